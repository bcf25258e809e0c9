//! What the environment says, read once, here and nowhere else.

use std::env;
use std::path::{Path, PathBuf};

use nono::audit::Author;
use nono::hooks::install::{self, Places};
use nono::session::{Host, HostError, Surroundings};

use crate::failure::Failure;

/// The machine as this process sees it. `workdir`: where the command starts, if not here.
pub(crate) fn host(workdir: Option<&Path>) -> Result<Host, Failure> {
    let here = env::current_dir().map_err(|error| Failure::nowhere(&error))?;
    let around = Surroundings {
        env: env::vars_os().collect(),
        here,
        workdir: workdir.map(Path::to_owned),
        binary: env::current_exe().ok(),
    };
    around.host().map_err(|error| match error {
        HostError::NoHome => Failure::no_home(),
        HostError::Workdir { dir, source } => Failure::workdir(&dir, &source),
    })
}

/// Who is on record for what this process restores. Which file nono was started from is of no interest.
pub(crate) fn author(workdir: PathBuf) -> Author {
    let command = std::iter::once("nono".into()).chain(env::args_os().skip(1)).collect();
    Author { command, workdir }
}

/// The description of the sandbox this process is in, if it is in one.
pub(crate) fn cap_file() -> Option<PathBuf> {
    absolute("NONO_CAP_FILE").filter(|path| path.is_file())
}

/// Where the supervisor of the sandbox around this process takes requests, if it does.
pub(crate) fn request_socket() -> Option<PathBuf> {
    absolute("NONO_REQUEST_SOCK")
}

/// Whether somebody is asked about what is not open, in the sandbox around this process.
pub(crate) fn asks() -> bool {
    env::var_os("NONO_ASKS").is_some_and(|value| value == "1")
}

pub(crate) fn home() -> Option<PathBuf> {
    absolute("HOME")
}

/// nono's own folder.
pub(crate) fn state_home(home: &Path) -> PathBuf {
    absolute("NONO_HOME").unwrap_or_else(|| home.join(".nono"))
}

/// Where agents keep their settings.
pub(crate) fn agent_places(home: PathBuf) -> Places {
    let moved = install::variables().into_iter().filter_map(|name| Some((name.to_owned(), absolute(name)?)));
    Places { home, moved: moved.collect() }
}

/// Where nono's own folder is, if not where it always is.
pub(crate) fn nono_home() -> Option<PathBuf> {
    absolute("NONO_HOME")
}

/// A variable that has to be an absolute path to count.
fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
