//! Services whose credentials nono can place: their hosts, and the variables that their programs read.
//!
//! Facts, not logic. A name that is not here can be described in `config.toml` (see [`super::settings`]).

use nono_policy::host_rule::{Host, HostRule, Hosts};
use nono_proxy::Inject;

/// Service of a credential: its host, the place of the credential in requests, and the variables of its programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSpec {
    pub name: String,
    pub https: bool,
    pub host: Host,
    pub port: u16,
    pub inject: Inject,
    /// Variables from which its programs read the credential. All of them are set to the placeholder.
    pub variables: Vec<String>,
    /// Variable from which its programs read the base URL, and the path to append to the address.
    pub base_url: Option<(String, String)>,
}

impl ServiceSpec {
    /// Host rule that a credential for it opens.
    pub fn rule(&self) -> HostRule {
        HostRule { hosts: Hosts::One(self.host.clone()), port: Some(self.port) }
    }
}

enum CredentialPlacement {
    /// Header name and format.
    Header(&'static str, &'static str),
    /// User name.
    Basic(&'static str),
}

use CredentialPlacement::{Basic, Header};

const BEARER: CredentialPlacement = Header("Authorization", "Bearer {}");

struct KnownService {
    names: &'static [&'static str],
    host: &'static str,
    place: CredentialPlacement,
    variables: &'static [&'static str],
    base_url: Option<(&'static str, &'static str)>,
}

impl KnownService {
    const fn new(
        names: &'static [&'static str],
        host: &'static str,
        place: CredentialPlacement,
        variables: &'static [&'static str],
    ) -> KnownService {
        KnownService { names, host, place, variables, base_url: None }
    }

    const fn with_base_url(self, variable: &'static str, path: &'static str) -> KnownService {
        KnownService { base_url: Some((variable, path)), ..self }
    }
}

/// All use https on port 443. A base URL is listed only if all programs of a service agree on its form; the others use
/// the proxy under the service's own name.
const KNOWN: &[KnownService] = &[
    KnownService::new(&["anthropic"], "api.anthropic.com", Header("x-api-key", "{}"), &["ANTHROPIC_API_KEY"])
        .with_base_url("ANTHROPIC_BASE_URL", ""),
    KnownService::new(&["cerebras"], "api.cerebras.ai", BEARER, &["CEREBRAS_API_KEY"]),
    KnownService::new(&["cohere"], "api.cohere.com", BEARER, &["CO_API_KEY", "COHERE_API_KEY"]),
    KnownService::new(&["crates-io"], "crates.io", Header("Authorization", "{}"), &["CARGO_REGISTRY_TOKEN"]),
    KnownService::new(&["deepseek"], "api.deepseek.com", BEARER, &["DEEPSEEK_API_KEY"]),
    KnownService::new(
        &["gemini", "google"],
        "generativelanguage.googleapis.com",
        Header("x-goog-api-key", "{}"),
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    )
    .with_base_url("GOOGLE_GEMINI_BASE_URL", ""),
    KnownService::new(&["github"], "api.github.com", BEARER, &["GH_TOKEN", "GITHUB_TOKEN"]),
    KnownService::new(&["gitlab"], "gitlab.com", Header("PRIVATE-TOKEN", "{}"), &["GITLAB_TOKEN"]),
    KnownService::new(&["groq"], "api.groq.com", BEARER, &["GROQ_API_KEY"]),
    KnownService::new(&["huggingface"], "huggingface.co", BEARER, &["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]),
    KnownService::new(&["mistral"], "api.mistral.ai", BEARER, &["MISTRAL_API_KEY"]),
    KnownService::new(&["npm"], "registry.npmjs.org", BEARER, &["NPM_TOKEN", "NODE_AUTH_TOKEN"]),
    KnownService::new(&["openai"], "api.openai.com", BEARER, &["OPENAI_API_KEY"])
        .with_base_url("OPENAI_BASE_URL", "/v1"),
    KnownService::new(&["openrouter"], "openrouter.ai", BEARER, &["OPENROUTER_API_KEY"]),
    KnownService::new(&["perplexity"], "api.perplexity.ai", BEARER, &["PERPLEXITY_API_KEY"]),
    KnownService::new(
        &["pypi"],
        "upload.pypi.org",
        Basic("__token__"),
        &["TWINE_PASSWORD", "UV_PUBLISH_TOKEN"],
    ),
    KnownService::new(&["together"], "api.together.xyz", BEARER, &["TOGETHER_API_KEY"]),
    KnownService::new(&["xai"], "api.x.ai", BEARER, &["XAI_API_KEY"]),
];

pub fn known(name: &str) -> Option<ServiceSpec> {
    let known = KNOWN.iter().find(|known| known.names.contains(&name))?;
    Some(ServiceSpec {
        name: name.to_owned(),
        https: true,
        // A test parses every entry.
        host: known.host.parse().ok()?,
        port: 443,
        inject: match known.place {
            Header(name, format) => Inject::Header { name: name.to_owned(), format: format.to_owned() },
            Basic(user) => Inject::Basic { user: user.to_owned() },
        },
        variables: known.variables.iter().map(|name| (*name).to_owned()).collect(),
        base_url: known.base_url.map(|(name, path)| (name.to_owned(), path.to_owned())),
    })
}

/// All names, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<_> = KNOWN.iter().flat_map(|known| known.names).copied().collect();
    names.sort_unstable();
    names.into_iter()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_entry_can_be_used() {
        for name in names() {
            let service = known(name).unwrap();
            assert!(matches!(service.host, Host::Name(_)), "{name}");
            assert!(!service.variables.is_empty(), "{name}: a bare name needs one");
            if let Inject::Header { format, .. } = &service.inject {
                assert_eq!(format.matches("{}").count(), 1, "{name}");
            }
        }
        assert_eq!(known("nobody"), None);
    }

    #[test]
    fn no_name_and_no_variable_stands_for_two() {
        let all: Vec<_> = names().collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        let variables: Vec<_> = KNOWN.iter().flat_map(|known| known.variables).collect();
        assert_eq!(variables.iter().collect::<HashSet<_>>().len(), variables.len());
    }

    #[test]
    fn a_credential_opens_its_host_and_port() {
        assert_eq!(known("openai").unwrap().rule().to_string(), "api.openai.com:443");
    }
}
