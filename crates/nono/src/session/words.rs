//! What is told about a session, and small questions about this process, for whoever starts one.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use nono_policy::NetworkPolicy;
use nono_supervisor::RunError;
use nono_sys::errno;

/// Whether the policy leaves the host's network reachable, for messages.
pub fn network_word(network: &NetworkPolicy) -> String {
    match network {
        NetworkPolicy::Blocked => "blocked".to_owned(),
        NetworkPolicy::Allowed => "allowed".to_owned(),
        NetworkPolicy::Ports { connect, listen } => {
            let list = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
            let mut parts = Vec::new();
            if !connect.is_empty() {
                parts.push(format!("connect to TCP port {}", list(connect)));
            }
            if !listen.is_empty() {
                parts.push(format!("listen on TCP port {}", list(listen)));
            }
            parts.join("; ")
        }
        NetworkPolicy::Filtered { hosts, .. } => {
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            format!("only {}", hosts.join(", "))
        }
    }
}

/// Whether a session can have this name: nothing that would have to be quoted, or that means something else.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && name != "last"
}

/// Why exec failed, as a shell tells it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecProblem {
    Missing,
    Refused,
}

/// The program and the problem, if it was the last step of the launch that failed.
pub fn failed_exec(error: &RunError) -> Option<(&Path, ExecProblem)> {
    let RunError::Launch { error, program } = error else { return None };
    if error.step != nono_sys::launch::Step::Exec {
        return None;
    }
    let missing = io::Error::from_raw_os_error(error.errno).kind() == io::ErrorKind::NotFound;
    Some((program, if missing { ExecProblem::Missing } else { ExecProblem::Refused }))
}

/// End this process by `signal`. A shell that waits sees then that the person wanted an end, not just this one.
pub fn end_by(signal: i32) {
    nono_sys::process::kill_self(signal);
}

/// The user this process runs as.
pub fn user_id() -> u32 {
    nono_sys::process::uid()
}

/// Whether a system call filter already holds this process.
pub fn is_confined() -> bool {
    nono_sys::process::is_filtered()
}

/// An I/O error in the C library's words.
pub fn io_words(error: &io::Error) -> String {
    errno::describe(error)
}

/// What `ps` shows of this process from now on, and what the command can see of it: for whoever was given secrets on its
/// command line.
pub fn show_arguments(arguments: &[&OsStr]) -> io::Result<()> {
    nono_sys::process::show_arguments(arguments)
}
