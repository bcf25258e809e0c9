//! Texts about a session, and facts about the current process, for programs that start sessions.

use std::io;
use std::path::Path;

use nono_policy::NetworkPolicy;
use nono_supervisor::RunError;

pub fn network_word(network: &NetworkPolicy) -> String {
    match network {
        NetworkPolicy::Blocked => "blocked".to_owned(),
        NetworkPolicy::Allowed => "allowed".to_owned(),
        NetworkPolicy::Ports { connect, listen } => {
            let list = |ports: &[u16]| {
                let many = if ports.len() > 1 { "s" } else { "" };
                format!("port{many} {}", ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", "))
            };
            let mut parts = Vec::new();
            if !connect.is_empty() {
                parts.push(format!("connect to TCP {}", list(connect)));
            }
            if !listen.is_empty() {
                parts.push(format!("listen on TCP {}", list(listen)));
            }
            parts.join("; ")
        }
        NetworkPolicy::Filtered { hosts, .. } => {
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            format!("only {}", hosts.join(", "))
        }
    }
}

/// Whether a session can have this name: no character that needs quoting, and not the keyword `last`.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && name != "last"
}

/// Kind of exec failure, as a shell distinguishes them (127 and 126).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecProblem {
    Missing,
    Refused,
}

/// The program and the kind of failure, if exec was the launch step that failed.
pub fn failed_exec(error: &RunError) -> Option<(&Path, ExecProblem)> {
    let RunError::Launch { error, program } = error else { return None };
    if error.step != nono_sys::launch::Step::Exec {
        return None;
    }
    let missing = io::Error::from_raw_os_error(error.errno).kind() == io::ErrorKind::NotFound;
    Some((program, if missing { ExecProblem::Missing } else { ExecProblem::Refused }))
}
