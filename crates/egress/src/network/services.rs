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

const fn bearer(
    names: &'static [&'static str],
    host: &'static str,
    variables: &'static [&'static str],
) -> KnownService {
    KnownService { names, host, place: BEARER, variables, base_url: None }
}

/// All use https on port 443. A base URL is listed only if all programs of a service agree on its form; the others use
/// the proxy under the service's own name.
const KNOWN: &[KnownService] = &[
    KnownService {
        names: &["anthropic"],
        host: "api.anthropic.com",
        place: Header("x-api-key", "{}"),
        variables: &["ANTHROPIC_API_KEY"],
        base_url: Some(("ANTHROPIC_BASE_URL", "")),
    },
    bearer(&["cerebras"], "api.cerebras.ai", &["CEREBRAS_API_KEY"]),
    bearer(&["cohere"], "api.cohere.com", &["CO_API_KEY", "COHERE_API_KEY"]),
    KnownService {
        names: &["crates-io"],
        host: "crates.io",
        place: Header("Authorization", "{}"),
        variables: &["CARGO_REGISTRY_TOKEN"],
        base_url: None,
    },
    bearer(&["deepseek"], "api.deepseek.com", &["DEEPSEEK_API_KEY"]),
    KnownService {
        names: &["gemini", "google"],
        host: "generativelanguage.googleapis.com",
        place: Header("x-goog-api-key", "{}"),
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url: Some(("GOOGLE_GEMINI_BASE_URL", "")),
    },
    bearer(&["github"], "api.github.com", &["GH_TOKEN", "GITHUB_TOKEN"]),
    KnownService {
        names: &["gitlab"],
        host: "gitlab.com",
        place: Header("PRIVATE-TOKEN", "{}"),
        variables: &["GITLAB_TOKEN"],
        base_url: None,
    },
    bearer(&["groq"], "api.groq.com", &["GROQ_API_KEY"]),
    bearer(&["huggingface"], "huggingface.co", &["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]),
    bearer(&["mistral"], "api.mistral.ai", &["MISTRAL_API_KEY"]),
    bearer(&["npm"], "registry.npmjs.org", &["NPM_TOKEN", "NODE_AUTH_TOKEN"]),
    KnownService {
        names: &["openai"],
        host: "api.openai.com",
        place: BEARER,
        variables: &["OPENAI_API_KEY"],
        base_url: Some(("OPENAI_BASE_URL", "/v1")),
    },
    bearer(&["openrouter"], "openrouter.ai", &["OPENROUTER_API_KEY"]),
    bearer(&["perplexity"], "api.perplexity.ai", &["PERPLEXITY_API_KEY"]),
    KnownService {
        names: &["pypi"],
        host: "upload.pypi.org",
        place: Basic("__token__"),
        variables: &["TWINE_PASSWORD", "UV_PUBLISH_TOKEN"],
        base_url: None,
    },
    bearer(&["together"], "api.together.xyz", &["TOGETHER_API_KEY"]),
    bearer(&["xai"], "api.x.ai", &["XAI_API_KEY"]),
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
