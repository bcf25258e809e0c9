//! What is left to be done when a command has ended: a process of its own syncs and compresses what was stored, at the
//! lowest priority, and ends by itself. Nobody waits for it, and it keeps nothing open of the process that started it.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nono::hooks::upkeep;

use super::hook::manager;
use crate::failure::Failure;
use crate::host::{home, request_socket, state_home};

/// How this program is called for that. Not part of the grammar.
pub(crate) const UPKEEP: &str = "__upkeep";
/// Before the projects of which a hook took checkpoints: room is made, too, before it runs out.
const HOOK: &str = "hook";
const STORE: &str = "store";

/// After a run, a restore or a checkpoint that a person asked for.
pub(crate) fn after_command() {
    start(STORE, &[]);
}

pub(super) fn after_hook(projects: &[PathBuf]) {
    start(HOOK, projects);
}

/// That it could not be started is no loss: the next one does the same.
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

/// In the process of its own.
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
