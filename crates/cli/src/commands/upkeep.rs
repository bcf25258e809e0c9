//! Upkeep after a command: a detached process syncs and compresses what was stored, at the lowest priority. No process
//! waits for it, and it keeps no descriptor of the process that started it.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nono::hooks::upkeep;

use super::hook::manager;
use crate::failure::Failure;
use crate::host::{home, request_socket, state_home};

/// First argument of nono when it runs as that process. Not part of the grammar.
pub(crate) const UPKEEP: &str = "__upkeep";
/// Upkeep after a hook; the projects that got checkpoints follow. Also prunes, before the quota is reached.
const HOOK: &str = "hook";
const STORE: &str = "store";

/// Starts upkeep after a run, a restore or a checkpoint.
pub(crate) fn after_command() {
    start(STORE, &[]);
}

pub(super) fn after_hook(projects: &[PathBuf]) {
    start(HOOK, projects);
}

/// Starts the process. A failure is ignored: the next command tries again.
fn start(what: &str, projects: &[PathBuf]) {
    if request_socket().is_some() {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        let _ = Command::new(program)
            .arg(UPKEEP)
            .arg(what)
            .args(projects)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
    }
}

/// Main function of the upkeep process.
pub(crate) fn upkeep(args: &[OsString]) -> Result<u8, Failure> {
    upkeep::detach().map_err(|error| Failure::new(error.to_string()))?;
    let home = home().ok_or_else(Failure::no_home)?;
    let (what, projects) = args
        .split_first()
        .map_or((OsStr::new(STORE), &[][..]), |(what, projects)| (what.as_os_str(), projects));
    if what == HOOK {
        let mut manager = manager(home.clone()).map_err(Failure::new)?;
        let projects: Vec<PathBuf> = projects.iter().map(PathBuf::from).collect();
        upkeep::run(&mut manager, &projects)?;
    }
    upkeep::settle(&state_home(&home)).map_err(|error| Failure::new(error.to_string()))?;
    Ok(0)
}
