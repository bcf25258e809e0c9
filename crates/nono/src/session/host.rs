//! Construction of a [`Host`] from the environment, which the caller reads and passes in.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use nono_policy::HostContext;
use nono_sys::errno;
use thiserror::Error;

use super::folder::base_in;
use super::{Host, is_confined};

/// The caller's process: environment, working directory and program.
#[derive(Clone, Debug)]
pub struct Surroundings {
    pub env: Vec<(OsString, OsString)>,
    /// The working directory of this process.
    pub here: PathBuf,
    /// Working directory of the command, if it differs.
    pub workdir: Option<PathBuf>,
    pub binary: Option<PathBuf>,
}

#[derive(Debug, Error)]
pub enum HostError {
    #[error("HOME is not set, so nono cannot tell which of your files to protect")]
    NoHome,
    #[error(
        "HOME is {home:?}, which is not an absolute path, so nono cannot tell which of your files to protect"
    )]
    RelativeHome { home: PathBuf },
    #[error("{}: {}", .dir.display(), errno::describe(.source))]
    Workdir { dir: PathBuf, source: io::Error },
}

/// Variables that tell agents where their own folder is.
const AGENT_FOLDERS: &[(&str, &str)] = &[
    ("claude-code", "CLAUDE_CONFIG_DIR"),
    ("codex", "CODEX_HOME"),
    ("opencode", "OPENCODE_CONFIG_DIR"),
    ("hermes", "HERMES_HOME"),
];

impl Surroundings {
    /// Build the host description. Creates nothing.
    pub fn host(self) -> Result<Host, HostError> {
        let cwd = match &self.workdir {
            None => self.here.clone(),
            Some(dir) => enter(self.here.join(dir))?,
        };
        let home = self.home()?;
        let xdg_config = self.absolute("XDG_CONFIG_HOME");
        let config = xdg_config.clone().unwrap_or_else(|| home.join(".config")).join("nono");
        let context = HostContext {
            cwd,
            state_dir: self.absolute("NONO_HOME").unwrap_or_else(|| home.join(".nono")),
            xdg_config,
            xdg_data: self.absolute("XDG_DATA_HOME"),
            xdg_cache: self.absolute("XDG_CACHE_HOME"),
            xdg_state: self.absolute("XDG_STATE_HOME"),
            xdg_runtime: self.absolute("XDG_RUNTIME_DIR"),
            home: Some(home),
            binary: self.binary.clone(),
            config_dir: config.clone(),
            session_dir: None,
            agent_folders: self.agent_folders(),
            can_mask: true,
        };
        let nested = self.cap_file().is_some() && is_confined();
        let temp = self.temp_dir(nested);
        let temp = temp.canonicalize().unwrap_or(temp);
        Ok(Host {
            context,
            env: self.env,
            session_base: base_in(&temp),
            profile_dir: Some(config.join("profiles")),
            nested,
        })
    }

    /// The description of the enclosing sandbox, if there is one.
    pub fn cap_file(&self) -> Option<PathBuf> {
        self.absolute("NONO_CAP_FILE").filter(|path| path.is_file())
    }

    fn home(&self) -> Result<PathBuf, HostError> {
        let set = self.variable("HOME").filter(|home| !home.is_empty()).ok_or(HostError::NoHome)?;
        let home = PathBuf::from(set);
        if home.is_absolute() { Ok(home) } else { Err(HostError::RelativeHome { home }) }
    }

    /// Value of a variable, if it is an absolute path.
    fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.variable(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        self.env.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_os_str())
    }

    /// Folder for temporary files; in a nested sandbox always the session's own, which alone is certain to be writable.
    fn temp_dir(&self, nested: bool) -> PathBuf {
        let own = self.cap_file().filter(|_| nested).and_then(|file| Some(file.parent()?.join("tmp")));
        own.or_else(|| self.variable("TMPDIR").map(PathBuf::from)).unwrap_or_else(|| PathBuf::from("/tmp"))
    }

    fn agent_folders(&self) -> Vec<(String, PathBuf)> {
        let set = |(agent, name): &(&str, &str)| Some(((*agent).to_owned(), self.absolute(name)?));
        AGENT_FOLDERS.iter().filter_map(set).collect()
    }
}

fn enter(dir: PathBuf) -> Result<PathBuf, HostError> {
    let entered = dir
        .canonicalize()
        .and_then(|found| if found.is_dir() { Ok(found) } else { Err(io::ErrorKind::NotADirectory.into()) });
    entered.map_err(|source| HostError::Workdir { dir, source })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn around(env: &[(&str, &str)]) -> Surroundings {
        let env = env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Surroundings { env, here: "/".into(), workdir: None, binary: None }
    }

    #[test]
    fn the_environment_says_where_things_are() {
        let host = around(&[("HOME", "/h"), ("TMPDIR", "/nowhere/t"), ("CODEX_HOME", "/c")]).host().unwrap();
        assert_eq!(host.context.state_dir, Path::new("/h/.nono"));
        assert_eq!(host.profile_dir.unwrap(), Path::new("/h/.config/nono/profiles"));
        assert!(host.session_base.starts_with("/nowhere/t"));
        assert_eq!(host.context.agent_folders, [("codex".to_owned(), PathBuf::from("/c"))]);
        let moved =
            around(&[("HOME", "/h"), ("NONO_HOME", "/n"), ("XDG_CONFIG_HOME", "rel")]).host().unwrap();
        assert_eq!((moved.context.state_dir, moved.context.xdg_config), ("/n".into(), None));
    }

    #[test]
    fn what_is_missing_is_said() {
        assert!(matches!(around(&[]).host(), Err(HostError::NoHome)));
        assert!(matches!(around(&[("HOME", "")]).host(), Err(HostError::NoHome)));
        assert_eq!(
            around(&[("HOME", "rel")]).host().unwrap_err().to_string(),
            "HOME is \"rel\", which is not an absolute path, so nono cannot tell which of your files to protect"
        );
        for dir in ["/no/such/folder", "/etc/passwd"] {
            let there = Surroundings { workdir: Some(dir.into()), ..around(&[("HOME", "/h")]) };
            assert!(
                matches!(there.host(), Err(HostError::Workdir { dir: named, .. }) if named == Path::new(dir))
            );
        }
    }
}
