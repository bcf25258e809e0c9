//! Inputs of one resolution: the request of a run, and the host it runs on.
//!
//! Nothing here was checked or resolved yet. Relative paths are relative to [`HostContext::cwd`]; no path of a
//! request is expanded (a shell did that already), only those of profiles and groups are.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::access::AccessMode;
use crate::links::EscapingLink;
use crate::profile::ProjectOverlay;
use crate::resolved::{HostGrant, Limits, NetworkPolicy};

/// Whether a grant is for a directory and everything below it, or for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantKind {
    Directory,
    File,
}

/// One `--allow`, `--read`, `--write` or its `-file` twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRequest {
    pub path: PathBuf,
    pub access: AccessMode,
    pub kind: GrantKind,
}

/// One `--env`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvRequest {
    /// Pass the caller's value of that name.
    Pass(String),
    Set(String, String),
}

/// Reference to a profile: a name or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileRef {
    Name(String),
    File(PathBuf),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunRequest {
    pub grants: Vec<GrantRequest>,
    pub deny: Vec<PathBuf>,
    pub bypass_protection: Vec<PathBuf>,
    pub unix_sockets: Vec<PathBuf>,
    /// `None`: as the profile says, else blocked.
    pub network: Option<NetworkPolicy>,
    /// Hosts to open through the filtering proxy, each with its source; added to the profile's.
    pub hosts: Vec<HostGrant>,
    pub env: Vec<EnvRequest>,
    pub env_all: bool,
    pub profile: Option<ProfileRef>,
    /// More profiles to build on, beside those the profile names.
    pub extends: Vec<String>,
    /// Additions by the profiles of projects.
    pub projects: Vec<ProjectOverlay>,
    pub limits: Limits,
    pub allow_cwd: bool,
    /// Links that lead out of their folder and that the user agreed to.
    pub links: Vec<EscapingLink>,
    /// The file the command was found in.
    pub program: Option<PathBuf>,
    pub name: Option<String>,
}

/// Properties of the host that the policy depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostContext {
    /// Directory the command starts in; absolute.
    pub cwd: PathBuf,
    pub home: Option<PathBuf>,
    pub xdg_config: Option<PathBuf>,
    pub xdg_data: Option<PathBuf>,
    pub xdg_cache: Option<PathBuf>,
    pub xdg_state: Option<PathBuf>,
    pub xdg_runtime: Option<PathBuf>,
    /// nono's own folder, closed to every child.
    pub state_dir: PathBuf,
    /// nono's own configuration and profiles, closed to every child.
    pub config_dir: PathBuf,
    /// nono's own binary: readable where granted, never writable.
    pub binary: Option<PathBuf>,
    /// The folder of this session: readable, its `tmp` writable.
    pub session_dir: Option<PathBuf>,
    /// Folders of agents that a variable moved from their usual place: (agent, folder).
    pub agent_folders: Vec<(String, PathBuf)>,
    /// Whether mounts can keep a path closed here. Without them nono's binary has to be carved out of a grant around
    /// it, which keeps new names out of its folders.
    pub can_mask: bool,
}

impl HostContext {
    /// The absolute path that a path of a profile means on this host.
    pub fn expand(&self, text: &str) -> Result<PathBuf, crate::PolicyError> {
        crate::expand::expand(text, self)
    }

    /// `path` made absolute against the working directory; `.` components disappear, `..` stay for the kernel.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        if is_normal(path) { path.to_path_buf() } else { self.cwd.join(path).components().collect() }
    }
}

/// Whether a path is absolute and already normal. Most are, and normalising hundreds of them is noticeable in the time
/// of a run.
fn is_normal(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    bytes.first() == Some(&b'/')
        && bytes[1..].split(|byte| *byte == b'/').all(|name| !name.is_empty() && name != b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_gives_what_the_long_way_does() {
        let host = HostContext { cwd: "/w".into(), ..HostContext::default() };
        for path in ["/a/.b/c", "/a//b", "/a/./b", "/a/", "/", "a/b", ".", "/a/../b", "/..", ""] {
            let long: PathBuf = host.cwd.join(path).components().collect();
            assert_eq!(host.absolute(Path::new(path)).as_os_str(), long.as_os_str(), "{path:?}");
        }
    }
}
