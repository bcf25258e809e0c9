//! Settings from the environment: the location of nono's state, and whether this process is inside a sandbox.

use std::env;
use std::path::PathBuf;

use nono::checkpoints::settings::{self, Given};
use nono::checkpoints::{Config, Host};
use nono::hooks::install::{self, Places};
use pyo3::prelude::*;

use super::{args, error};
use crate::error::{Raise, Raised};
use crate::paths::PathArg;

/// Host for checkpoints. Inside a sandbox the supervisor keeps them, and this fails.
pub(super) fn host(state_dir: Option<PathArg>, home: Option<PathArg>) -> PyResult<Host> {
    let home = self::home(home)?;
    let state_dir = match state_dir {
        Some(state_dir) => args::absolute(state_dir)?,
        None if is_inside() => {
            let words = "inside of a sandbox checkpoints are kept by its supervisor: use the command \
                         `nono checkpoints`, or a folder of your own, state_dir=…";
            return Err(error::raise("inside_sandbox", words));
        }
        None => absolute("NONO_HOME").unwrap_or_else(|| home.join(".nono")),
    };
    Ok(Host { state_dir, home })
}

/// The home folder.
pub(super) fn home(home: Option<PathArg>) -> PyResult<PathBuf> {
    let none =
        || error::raise("no_home", "HOME is not set to an absolute path: give the home folder, home=…");
    home.map_or_else(|| absolute("HOME").ok_or_else(none), args::absolute)
}

/// Folders of agents' settings. The variables that move them apply only to the user's own home.
pub(super) fn places(host: &Host) -> Places {
    let own = absolute("HOME").as_ref() == Some(&host.home);
    let set = |name: &str| absolute(name).filter(|_| own);
    let moved = install::variables().into_iter().filter_map(|name| Some((name.to_owned(), set(name)?)));
    Places { home: host.home.clone(), moved: moved.collect() }
}

/// nono's own folder, if it is not the default one: hooks pass it on.
pub(super) fn moved(host: &Host) -> Option<PathBuf> {
    Some(host.state_dir.clone()).filter(|dir| *dir != host.home.join(".nono"))
}

fn is_inside() -> bool {
    let told = absolute("NONO_CAP_FILE").is_some_and(|file| file.is_file());
    absolute("NONO_REQUEST_SOCK").is_some() || (told && nono::session::is_confined())
}

/// The settings of `config.toml`, with what the caller says instead. Nothing is made here.
pub(super) fn config(host: &Host, given: &[(&str, Option<Given>)]) -> PyResult<Config> {
    let given: Vec<(&str, Given)> = given.iter().filter_map(|(key, given)| Some((*key, (*given)?))).collect();
    if host.state_dir.symlink_metadata().is_ok() {
        ensure(host)?;
    }
    let file = settings::load(&host.state_dir.join("config.toml"));
    let file = file.raised(error::settings)?;
    settings::with(file, &given).map_err(|what| {
        let what = what.to_string().replace("`checkpoints.", "`");
        Raise::new("settings", what).value_error()
    })
}

/// Creates nono's own folder if it is missing, and checks that it can be trusted.
pub(super) fn ensure(host: &Host) -> PyResult<()> {
    nono::state_dir::ensure(&host.state_dir).raised(error::state_dir)
}

/// A variable that has to be an absolute path to count.
fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
