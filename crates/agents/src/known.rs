//! Coding agents by name: which program is which agent, how it is started, and what the user agreed to grant it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub use nono_policy::data::Agent;
use nono_policy::host_rule::HostRule;
use nono_policy::state_dir::{self, StateFileError};
use nono_policy::{MergedProfile, PolicyData};
use nono_sys::hex;
use sha2::{Digest, Sha256};

const AGREED: &str = "agents/agreed.json";

/// All agents that nono knows.
pub fn all() -> &'static [Agent] {
    &PolicyData::embedded().agents
}

/// The agent that a program is, by its file name.
pub fn of_program(program: &OsStr) -> Option<&'static Agent> {
    let name = Path::new(program).file_name()?;
    all().iter().find(|agent| name == agent.program.as_str())
}

/// Address to open for an agent whose service was moved by a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceAddress {
    Host(HostRule),
    /// A port of this machine.
    Port(u16),
}

/// Effects of the user's environment on starting an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentLaunch {
    /// The service whose key stays outside the sandbox, and the variable that holds it.
    pub credential: Option<(String, String)>,
    pub services: Vec<ServiceAddress>,
}

/// Evaluate the user's environment for an agent.
pub fn start(agent: &Agent, env: &[(OsString, OsString)]) -> AgentLaunch {
    let variable = |wanted: &str| {
        let value = env.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        value.and_then(|value| value.to_str()).filter(|value| !value.is_empty())
    };
    let urls = agent.start.base_urls.iter().filter_map(|name| variable(name));
    let services: Vec<ServiceAddress> = urls.filter_map(service).collect();
    // With another base URL the key belongs to another service.
    let credential = agent.start.credential.as_ref().filter(|_| services.is_empty());
    let credential = credential.filter(|credential| variable(&credential.variable).is_some());
    let credential = credential.map(|credential| (credential.service.clone(), credential.variable.clone()));
    AgentLaunch { credential, services }
}

fn service(url: &str) -> Option<ServiceAddress> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && !port.contains(']') => (host, port.parse().ok()?),
        _ => (authority, if scheme == "http" { 80 } else { 443 }),
    };
    if matches!(host, "localhost" | "127.0.0.1" | "[::1]") {
        return Some(ServiceAddress::Port(port));
    }
    format!("{host}:{port}").parse().ok().map(ServiceAddress::Host)
}

/// The folder of packages that an agent's program was installed with. `None` if the program is self-contained.
pub fn installation(program: &Path) -> Option<PathBuf> {
    let program = program.canonicalize().ok()?;
    let packages =
        program.ancestors().filter(|dir| dir.file_name() == Some(OsStr::new("node_modules"))).last();
    let environment = || program.ancestors().find(|dir| dir.join("pyvenv.cfg").is_file());
    packages.or_else(environment).map(Path::to_owned)
}

/// Agreements by agent name: a digest of everything it is granted. An unreadable file counts as none.
fn agreed(state_dir: &Path) -> BTreeMap<String, String> {
    let bytes = std::fs::read(state_dir.join(AGREED)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Digest of what an agent is granted; if it changes, the user is asked again.
pub fn terms(agent: &Agent, profile: &MergedProfile) -> String {
    let mut digest = Sha256::new();
    // Plain data: serialisation cannot fail.
    digest.update(serde_json::to_vec(profile).unwrap_or_default());
    digest.update(serde_json::to_vec(agent).unwrap_or_default());
    hex::encode(&digest.finalize())
}

/// Whether the user agreed to exactly these terms.
pub fn is_agreed(state_dir: &Path, agent: &Agent, terms: &str) -> bool {
    agreed(state_dir).get(&agent.name).is_some_and(|known| known == terms)
}

/// Save the user's agreement.
pub fn agree(state_dir: &Path, agent: &Agent, terms: &str) -> Result<(), StateFileError> {
    let mut agreed = agreed(state_dir);
    agreed.insert(agent.name.clone(), terms.to_owned());
    state_dir::save_json(state_dir, AGREED, &agreed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> AgentLaunch {
        let env: Vec<_> = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        start(of_program(OsStr::new("/opt/x/claude")).unwrap(), &env)
    }

    #[test]
    fn a_program_is_known_by_its_name() {
        assert_eq!(of_program(OsStr::new("codex")).unwrap().name, "codex");
        assert!(of_program(OsStr::new("claude-code")).is_none());
        for agent in all() {
            assert!(
                nono_policy::ProfileStore::new(None)
                    .resolve(&nono_policy::ProfileRef::Name(agent.name.clone()), &[])
                    .is_ok()
            );
        }
    }

    #[test]
    fn a_key_stays_outside_unless_it_is_for_another_address() {
        let key = ("ANTHROPIC_API_KEY", "sk-1");
        assert_eq!(with(&[]), AgentLaunch { credential: None, services: vec![] });
        let credential = Some(("anthropic".to_owned(), "ANTHROPIC_API_KEY".to_owned()));
        assert_eq!(with(&[key]), AgentLaunch { credential, services: vec![] });
        let host = |text: &str| vec![ServiceAddress::Host(text.parse().unwrap())];
        for (url, services) in [
            ("https://gate.example.org/x", host("gate.example.org:443")),
            ("http://me:pw@gate.example.org:8080", host("gate.example.org:8080")),
            ("http://127.0.0.1:8080/v1", vec![ServiceAddress::Port(8080)]),
            ("http://[::1]:81", vec![ServiceAddress::Port(81)]),
            ("http://localhost", vec![ServiceAddress::Port(80)]),
        ] {
            assert_eq!(
                with(&[key, ("ANTHROPIC_BASE_URL", url)]),
                AgentLaunch { credential: None, services },
                "{url}"
            );
        }
    }

    #[test]
    fn other_terms_are_another_question() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let agent = &all()[0];
        let now = terms(agent, &MergedProfile::default());
        assert!(!is_agreed(&state, agent, &now));
        agree(&state, agent, &now).unwrap();
        assert!(is_agreed(&state, agent, &now) && !is_agreed(&state, &all()[1], &now));
        let mut wider = MergedProfile::default();
        wider.network.allow_domain.push("example.org".to_owned());
        assert!(!is_agreed(&state, agent, &terms(agent, &wider)));
        std::fs::write(state.join(AGREED), "{").unwrap();
        assert!(!is_agreed(&state, agent, &now));
    }
}
