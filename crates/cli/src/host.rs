//! What the environment says, read once, here and nowhere else.

use std::env;
use std::path::{Path, PathBuf};

use nono::HostContext;
use nono::audit::Author;
use nono::hooks::install::Places;
use nono::session::Host;

use crate::failure::Failure;

/// The machine as this process sees it. `workdir`: where the command starts, if not here.
pub(crate) fn host(workdir: Option<&Path>) -> Result<Host, Failure> {
    let here = env::current_dir().map_err(|error| Failure::nowhere(&error))?;
    let cwd = match workdir {
        None => here,
        Some(dir) => enter(&here.join(dir))?,
    };
    let home = absolute("HOME").ok_or_else(Failure::no_home)?;
    let config = absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("nono");
    let context = HostContext {
        cwd,
        state_dir: state_home(&home),
        xdg_config: absolute("XDG_CONFIG_HOME"),
        xdg_data: absolute("XDG_DATA_HOME"),
        xdg_cache: absolute("XDG_CACHE_HOME"),
        xdg_state: absolute("XDG_STATE_HOME"),
        xdg_runtime: absolute("XDG_RUNTIME_DIR"),
        home: Some(home),
        binary: env::current_exe().ok(),
        config_dir: config.clone(),
        session_dir: None,
        agent_folders: agent_folders(),
        can_mask: true,
    };
    let nested = cap_file().is_some() && nono::session::is_confined();
    let temp = temp_dir(nested);
    let temp = temp.canonicalize().unwrap_or(temp);
    Ok(Host {
        context,
        env: env::vars_os().collect(),
        session_base: temp.join(format!("nono-{}", nono::session::user_id())),
        profile_dir: Some(config.join("profiles")),
        nested,
    })
}

/// Who is on record for what this process restores. Which file nono was started from is of no interest.
pub(crate) fn author(workdir: PathBuf) -> Author {
    let command = std::iter::once("nono".into()).chain(env::args_os().skip(1)).collect();
    Author { command, workdir }
}

/// Where temporary files go; inside a sandbox always into its own folder, which alone is sure to be writable.
fn temp_dir(nested: bool) -> PathBuf {
    let own = cap_file().filter(|_| nested).and_then(|file| Some(file.parent()?.join("tmp")));
    own.unwrap_or_else(env::temp_dir)
}

/// The description of the sandbox this process is in, if it is in one.
pub(crate) fn cap_file() -> Option<PathBuf> {
    absolute("NONO_CAP_FILE").filter(|path| path.is_file())
}

/// Where the supervisor of the sandbox around this process takes requests, if it does.
pub(crate) fn request_socket() -> Option<PathBuf> {
    absolute("NONO_REQUEST_SOCK")
}

/// The variables by which agents are told where their own folder is.
const AGENT_FOLDERS: &[(&str, &str)] = &[
    ("claude-code", "CLAUDE_CONFIG_DIR"),
    ("codex", "CODEX_HOME"),
    ("opencode", "OPENCODE_CONFIG_DIR"),
    ("hermes", "HERMES_HOME"),
];

fn agent_folders() -> Vec<(String, PathBuf)> {
    let set = |(agent, name): &(&str, &str)| Some(((*agent).to_owned(), absolute(name)?));
    AGENT_FOLDERS.iter().filter_map(set).collect()
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
    Places {
        home,
        claude: absolute("CLAUDE_CONFIG_DIR"),
        codex: absolute("CODEX_HOME"),
        gemini: absolute("GEMINI_CLI_HOME"),
        xdg_config: absolute("XDG_CONFIG_HOME"),
        opencode: absolute("OPENCODE_CONFIG_DIR"),
        hermes: absolute("HERMES_HOME"),
    }
}

/// Where nono's own folder is, if not where it always is.
pub(crate) fn nono_home() -> Option<PathBuf> {
    absolute("NONO_HOME")
}

/// A variable that has to be an absolute path to count.
fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn enter(dir: &Path) -> Result<PathBuf, Failure> {
    let found = dir.canonicalize().map_err(|error| Failure::workdir(dir, &error))?;
    if found.is_dir() {
        Ok(found)
    } else {
        Err(Failure::workdir(dir, &std::io::ErrorKind::NotADirectory.into()))
    }
}
