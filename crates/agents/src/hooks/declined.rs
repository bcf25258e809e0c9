//! Record of declined hook installations: a profile that names an agent asks only once whether to install its hooks.

use std::path::Path;

use nono_policy::state_dir::{self, StateFileError};

use super::agents::Agent;

const FILE: &str = "hooks-declined.json";

/// Names of the declined agents. If the file is unreadable, the question is asked again.
fn read(state_dir: &Path) -> Vec<String> {
    let text = std::fs::read(state_dir.join(FILE)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

pub fn is_declined(state_dir: &Path, agent: Agent) -> bool {
    read(state_dir).iter().any(|name| name == agent.name())
}

/// Record the refusal. `nono hooks install` still works.
pub fn decline(state_dir: &Path, agent: Agent) -> Result<(), StateFileError> {
    let mut names = read(state_dir);
    if !names.iter().any(|name| name == agent.name()) {
        names.push(agent.name().to_owned());
    }
    state_dir::save_json(state_dir, FILE, &names)
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
