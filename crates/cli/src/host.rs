//! Environment of this process. The only place that reads environment variables for commands.

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nono::audit::Author;
use nono::hooks::install::{self, Places};
use nono::session::{Host, HostError, Surroundings};

use crate::failure::Failure;

/// Host description. `workdir`: directory in which the command starts, if not the current one.
pub(crate) fn host(workdir: Option<&Path>) -> Result<Host, Failure> {
    let here = env::current_dir().map_err(|error| Failure::nowhere(&error))?;
    let around = Surroundings {
        env: env::vars_os().collect(),
        here,
        workdir: workdir.map(Path::to_owned),
        binary: env::current_exe().ok(),
    };
    around.host().map_err(|error| match error {
        HostError::NoHome | HostError::RelativeHome { .. } => Failure::home(&error),
        HostError::Workdir { dir, source } => Failure::workdir(&dir, &source),
    })
}

/// Author of this process's restores in the audit log: its command line, with `nono` for the program.
pub(crate) fn author(workdir: PathBuf) -> Author {
    let command = std::iter::once("nono".into()).chain(env::args_os().skip(1)).collect();
    Author { command, workdir }
}

/// File that describes the sandbox around this process, if there is one.
pub(crate) fn cap_file() -> Option<PathBuf> {
    absolute("NONO_CAP_FILE").filter(|path| path.is_file())
}

/// Request socket of the supervisor around this process, if there is one.
pub(crate) fn request_socket() -> Option<PathBuf> {
    absolute("NONO_REQUEST_SOCK")
}

/// Variables that describe the sandbox to a process inside.
const OF_SANDBOX: [&str; 3] = ["NONO_CAP_FILE", "NONO_REQUEST_SOCK", "NONO_ASKS"];
/// Maximum number of ancestors that are searched.
const ANCESTORS: usize = 64;

/// Sandbox variables that this process lacks, found in the environment of an ancestor: some agents start servers with
/// an environment of their own.
pub(crate) fn untold() -> Vec<(&'static str, OsString)> {
    if env::var_os(OF_SANDBOX[0]).is_some() || !nono::session::is_confined() {
        return Vec::new();
    }
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..ANCESTORS {
        // An ancestor that cannot be read is skipped.
        let told =
            std::fs::read(format!("/proc/{pid}/environ")).map(|told| of_sandbox(&told)).unwrap_or_default();
        if told.iter().any(|(name, _)| *name == OF_SANDBOX[0]) {
            return told;
        }
        match parent(pid) {
            Some(parent) if parent > 0 => pid = parent,
            _ => break,
        }
    }
    Vec::new()
}

/// Sandbox variables in the content of a `/proc/PID/environ`.
fn of_sandbox(environ: &[u8]) -> Vec<(&'static str, OsString)> {
    let value = |name: &'static str| {
        let one = |one: &[u8]| one.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
        Some((name, OsString::from_vec(environ.split(|byte| *byte == 0).find_map(one)?)))
    };
    OF_SANDBOX.into_iter().filter_map(value).collect()
}

/// Parent of a process.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name may contain spaces and parentheses.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Whether the sandbox around this process asks about access that is not granted.
pub(crate) fn asks() -> bool {
    env::var_os("NONO_ASKS").is_some_and(|value| value == "1")
}

pub(crate) fn home() -> Option<PathBuf> {
    absolute("HOME")
}

/// State folder of nono.
pub(crate) fn state_home(home: &Path) -> PathBuf {
    absolute("NONO_HOME").unwrap_or_else(|| home.join(".nono"))
}

/// Folders in which agents keep their settings.
pub(crate) fn agent_places(home: PathBuf) -> Places {
    let moved = install::variables().into_iter().filter_map(|name| Some((name.to_owned(), absolute(name)?)));
    Places { home, moved: moved.collect() }
}

/// State folder of nono, if `NONO_HOME` sets it.
pub(crate) fn nono_home() -> Option<PathBuf> {
    absolute("NONO_HOME")
}

/// Value of a variable if it is an absolute path.
fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_another_process() {
        let environ = b"A=b\0XNONO_CAP_FILE=/no\0NONO_CAP_FILE=/a b\0NONO_REQUEST_SOCK=/c=d\0";
        let expected = [("NONO_CAP_FILE", "/a b".into()), ("NONO_REQUEST_SOCK", "/c=d".into())];
        assert_eq!(of_sandbox(environ), expected);
        assert!(of_sandbox(b"").is_empty());
        assert_eq!(parent(std::process::id()), Some(std::os::unix::process::parent_id()));
    }
}
