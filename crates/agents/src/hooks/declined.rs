//! Record of declined hook installations: a profile that names an agent asks only once whether to install its hooks.

use std::io;
use std::path::Path;

use nono_policy::state_dir::{self, StateDirError};

use super::agents::Agent;

const FILE: &str = "hooks-declined.json";

/// Error of recording a refusal.
#[derive(Debug, thiserror::Error)]
pub enum DeclineError {
    #[error(transparent)]
    State(#[from] StateDirError),
    #[error("{}: {}", path.display(), nono_sys::errno::describe(.source))]
    Io { path: std::path::PathBuf, source: io::Error },
}

/// Names of the declined agents. If the file is unreadable, the question is asked again.
fn read(state_dir: &Path) -> Vec<String> {
    let text = std::fs::read(state_dir.join(FILE)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

pub fn is_declined(state_dir: &Path, agent: Agent) -> bool {
    read(state_dir).iter().any(|name| name == agent.name())
}

/// Record the refusal. `nono hooks install` still works.
pub fn decline(state_dir: &Path, agent: Agent) -> Result<(), DeclineError> {
    state_dir::ensure(state_dir)?;
    let mut names = read(state_dir);
    if !names.iter().any(|name| name == agent.name()) {
        names.push(agent.name().to_owned());
    }
    let path = state_dir.join(FILE);
    let written = serde_json::to_vec(&names).map_err(io::Error::from);
    written
        .and_then(|text| nono_sys::fs::write_atomic(&path, &text))
        .map_err(|source| DeclineError::Io { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_is_kept_for_one_agent() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("state");
        let [claude, codex] = ["claude-code", "codex"].map(|name| name.parse().unwrap());
        assert!(!is_declined(&state, claude));
        decline(&state, claude).unwrap();
        decline(&state, claude).unwrap();
        assert!(is_declined(&state, claude) && !is_declined(&state, codex));
        assert_eq!(read(&state).len(), 1);
        std::fs::write(state.join(FILE), "{").unwrap();
        assert!(!is_declined(&state, claude), "what is damaged is asked again");
        decline(&state, codex).unwrap();
        assert!(is_declined(&state, codex));
    }
}
