//! Result of resolution: everything the sandbox has to enforce.
//!
//! It has two views of the same access. `grants` is what was asked for, and what is shown to the user; `rules` is what
//! the kernel enforces after protected and denied paths were carved out of the grants. Nothing here touches the file
//! system.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::access::{AccessMode, CapabilitySource};
use crate::host_rule::HostRule;
use crate::is_within;

/// One granted path: as it was written, and as it was resolved, once, when it was granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsCapability {
    #[serde(with = "crate::path_serde")]
    pub original: PathBuf,
    #[serde(with = "crate::path_serde")]
    pub resolved: PathBuf,
    pub access: AccessMode,
    pub is_file: bool,
    pub source: CapabilitySource,
}

/// Access that one kernel rule gives on a path and everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleAccess {
    /// The full access of a grant.
    Mode(AccessMode),
    /// Listing only: a carved directory itself, whose entries are granted one by one.
    List,
}

/// One rule for the kernel. `grant` is the index in [`ResolvedPolicy::grants`] it was derived from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRule {
    #[serde(with = "crate::path_serde")]
    pub path: PathBuf,
    pub access: RuleAccess,
    pub is_file: bool,
    pub grant: usize,
}

/// Reason why a path is closed although a grant covers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClosedBy {
    /// `--deny`, or `deny` of a profile.
    Deny(CapabilitySource),
    /// A protected group of the embedded policy, by name.
    Protected(String),
    /// nono's own state, configuration or binary; never grantable.
    Nono,
    /// Settings, hooks or commands of this agent. Never writable.
    Agent(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathKind {
    Directory,
    File,
    /// A link in the path of a write-protected file; its target is judged on its own.
    Link,
    Absent,
}

/// Way in which a path inside a grant is kept closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClosedHow {
    /// No rule reaches it: nothing needs to be done (outside every grant, or carved out by granting its siblings).
    NotGranted,
    /// A mount must hide it; a sandbox without a mount namespace has to refuse.
    Mask,
    /// A mount puts a writable copy there; the supervisor decides which changes to it are saved outside.
    Copy,
}

/// A path the child may not use, whatever the grants say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedPath {
    #[serde(with = "crate::path_serde")]
    pub original: PathBuf,
    #[serde(with = "crate::path_serde")]
    pub resolved: PathBuf,
    pub by: ClosedBy,
    pub kind: PathKind,
    pub how: ClosedHow,
    /// Whether only writing is closed, and reading stays possible where granted (nono's own binary, an agent's
    /// settings).
    pub keep_read: bool,
    /// Whether a path below it was opened (`--bypass-protection` and a grant), so that a mask would hide too much.
    pub has_openings: bool,
}

impl ClosedPath {
    /// Path that was named as it is resolved, closed for reading too, with nothing opened below it.
    pub fn new(path: PathBuf, by: ClosedBy, kind: PathKind, how: ClosedHow) -> ClosedPath {
        let original = path.clone();
        ClosedPath { original, resolved: path, by, kind, how, keep_read: false, has_openings: false }
    }
}

/// Protected names that do not exist and that no grant reaches. The run closes nothing for them; they only explain why
/// a path is refused. There are hundreds, so each is kept as a name and not as a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtectedNames {
    folders: Vec<NamesIn>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NamesIn {
    dir: PathBuf,
    names: Vec<ProtectedName>,
}

/// A path below a folder, and the group that protects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProtectedName {
    pub(crate) below: String,
    pub(crate) group: Arc<str>,
    /// Whether only writing is closed, and not reading.
    pub(crate) held: bool,
}

impl ProtectedNames {
    pub(crate) fn add(&mut self, dir: &Path, name: ProtectedName) {
        let known = self.folders.iter().position(|folder| folder.dir.as_os_str() == dir.as_os_str());
        let at = known.unwrap_or_else(|| {
            self.folders.push(NamesIn { dir: dir.to_path_buf(), names: Vec::with_capacity(64) });
            self.folders.len() - 1
        });
        self.folders[at].names.push(name);
    }

    /// Removes and returns the names that overlap one of these paths, each with its folder.
    pub(crate) fn take_met(&mut self, paths: &[&Path]) -> Vec<(PathBuf, ProtectedName)> {
        let mut taken = Vec::new();
        for folder in &mut self.folders {
            let all = paths.iter().any(|path| is_within(&folder.dir, path));
            let inside: Vec<&[u8]> = paths.iter().filter_map(|path| below(path, &folder.dir)).collect();
            let meets = |name: &mut ProtectedName| {
                let name = name.below.as_bytes();
                all || inside.iter().any(|path| is_prefix(path, name) || is_prefix(name, path))
            };
            if all || !inside.is_empty() {
                taken.extend(folder.names.extract_if(.., meets).map(|name| (folder.dir.clone(), name)));
            }
        }
        self.folders.retain(|folder| !folder.names.is_empty());
        taken
    }

    /// Names that are `path` or an ancestor of it.
    pub fn over(&self, path: &Path) -> impl Iterator<Item = ClosedPath> {
        let folders = self.folders.iter().filter_map(move |folder| Some((folder, below(path, &folder.dir)?)));
        folders.flat_map(|(folder, rest)| {
            let over = folder.names.iter().filter(move |name| is_prefix(name.below.as_bytes(), rest));
            over.map(|name| {
                let by = ClosedBy::Protected(name.group.as_ref().to_owned());
                let path = folder.dir.join(&name.below);
                let closed = ClosedPath::new(path, by, PathKind::Absent, ClosedHow::NotGranted);
                ClosedPath { keep_read: name.held, ..closed }
            })
        })
    }

    /// Whether any of the names is `folder` or lies below it.
    pub fn is_any_in(&self, folder: &Path) -> bool {
        self.folders.iter().any(|names| {
            let within = |rest| names.names.iter().any(|name| is_prefix(rest, name.below.as_bytes()));
            is_within(&names.dir, folder) || below(folder, &names.dir).is_some_and(within)
        })
    }
}

/// Rest of a path below a folder, by bytes for speed: every grant is compared with every folder.
fn below<'a>(path: &'a Path, dir: &Path) -> Option<&'a [u8]> {
    let dir = dir.as_os_str().as_bytes();
    let dir = dir.strip_suffix(b"/").unwrap_or(dir);
    path.as_os_str().as_bytes().strip_prefix(dir)?.strip_prefix(b"/").filter(|rest| !rest.is_empty())
}

/// Whether `start` is a prefix of `whole`, by whole components.
fn is_prefix(start: &[u8], whole: &[u8]) -> bool {
    whole.strip_prefix(start).is_some_and(|rest| rest.first().is_none_or(|next| *next == b'/'))
}

/// Network access of the child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkPolicy {
    /// No network; loopback inside the sandbox works where there is a network namespace.
    #[default]
    Blocked,
    Allowed,
    /// TCP by port, on the host's network.
    Ports {
        connect: Vec<u16>,
        listen: Vec<u16>,
    },
    /// These hosts only, through the filtering proxy; and loopback ports of this machine, as in `Ports`.
    Filtered {
        hosts: Vec<HostRule>,
        connect: Vec<u16>,
        listen: Vec<u16>,
    },
}

/// A host that is open through the filtering proxy, and its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostGrant {
    pub rule: HostRule,
    pub source: CapabilitySource,
}

/// Limits on the child's tree. `None`: no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub time: Option<Duration>,
    pub memory: Option<u64>,
    pub processes: Option<u64>,
    pub file_size: Option<u64>,
}

/// Rules for the variables of the caller's environment that reach the child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentRules {
    /// Names, or prefixes written `LC_*`.
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    /// Variables to set, in order; later ones win.
    pub set: Vec<(String, String)>,
    /// Pass everything except what can inject code into a loader or an interpreter.
    pub all: bool,
}

/// Remark for `--dry-run` or the footer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum PolicyNote {
    /// An optional path of a group or profile that does not exist here.
    Skipped {
        #[serde(with = "crate::path_serde")]
        path: PathBuf,
        source: CapabilitySource,
    },
    /// A directory whose entries are granted one by one: nothing new can be made directly in it.
    Carved {
        #[serde(with = "crate::path_serde")]
        path: PathBuf,
        #[serde(with = "crate::path_serde")]
        because: PathBuf,
    },
    /// A closed file has other names; those are not closed.
    HardLinks {
        #[serde(with = "crate::path_serde")]
        path: PathBuf,
        links: u64,
    },
}

/// Everything the sandbox has to enforce for one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedPolicy {
    /// Profile names from the base to the one asked for.
    pub profiles: Vec<String>,
    pub grants: Vec<FsCapability>,
    pub rules: Vec<AccessRule>,
    pub closed: Vec<ClosedPath>,
    #[serde(skip)]
    pub names: ProtectedNames,
    /// Unix sockets the child may connect to.
    pub unix_sockets: Vec<FsCapability>,
    pub network: NetworkPolicy,
    /// The hosts of a filtered network again, with their sources.
    #[serde(default)]
    pub hosts: Vec<HostGrant>,
    pub environment: EnvironmentRules,
    #[serde(with = "crate::path_serde")]
    pub workdir: PathBuf,
    pub limits: Limits,
    /// Keep the caller's terminal instead of giving the child its own.
    pub interactive: bool,
    pub notes: Vec<PolicyNote>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ProtectedNames {
        let mut names = ProtectedNames::default();
        for (dir, below, held) in
            [("/h", ".ssh", false), ("/h", ".aws/login", false), ("/h/.config", "edit", true)]
        {
            names.add(Path::new(dir), ProtectedName { below: below.into(), group: "kept".into(), held });
        }
        names
    }

    fn over(path: &str) -> Option<(String, bool)> {
        let closed = names().over(Path::new(path)).next()?;
        assert_eq!(
            (closed.by, closed.kind, closed.how),
            (ClosedBy::Protected("kept".into()), PathKind::Absent, ClosedHow::NotGranted)
        );
        Some((closed.resolved.to_str().unwrap().to_owned(), closed.keep_read))
    }

    #[test]
    fn a_name_closes_what_would_lie_in_it() {
        assert_eq!(over("/h/.ssh"), Some(("/h/.ssh".into(), false)));
        assert_eq!(over("/h/.ssh/id/x"), Some(("/h/.ssh".into(), false)));
        assert_eq!(over("/h/.config/edit/rc"), Some(("/h/.config/edit".into(), true)));
        for other in ["/h", "/", "/h/.ss", "/h/.sshd", "/h/.aws", "/h/.aws/log", "/hh/.ssh", "/other/.ssh"] {
            assert_eq!(over(other), None, "{other}");
        }
    }

    #[test]
    fn a_secret_in_what_runs_later_is_both() {
        let mut names = ProtectedNames::default();
        for (dir, below, held) in
            [("/h", ".edit", true), ("/h", ".edit/login", false), ("/h/.edit", "login/a", true)]
        {
            names.add(Path::new(dir), ProtectedName { below: below.into(), group: "kept".into(), held });
        }
        let over: Vec<_> = names.over(Path::new("/h/.edit/login/a")).map(|closed| closed.keep_read).collect();
        assert_eq!(over, [true, false, true]);
    }

    #[test]
    fn a_folder_is_known_by_the_names_in_it() {
        for folder in ["/", "/h", "/h/.aws", "/h/.config", "/h/.ssh"] {
            assert!(names().is_any_in(Path::new(folder)), "{folder}");
        }
        for folder in ["/h/.ssh/id", "/h/.aw", "/h/work", "/other", "/h/.configs"] {
            assert!(!names().is_any_in(Path::new(folder)), "{folder}");
        }
    }

    #[test]
    fn those_that_a_path_meets_are_taken_and_the_others_stay() {
        let took = |paths: &[&str]| {
            let mut names = names();
            let met = names.take_met(&paths.iter().map(Path::new).collect::<Vec<_>>());
            let met: Vec<_> = met.iter().map(|(dir, name)| dir.join(&name.below)).collect();
            for path in &met {
                assert_eq!(names.over(path).next(), None, "{}", path.display());
            }
            met.iter().map(|path| path.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(took(&["/h/work", "/usr"]), [""; 0]);
        assert_eq!(took(&["/h/.ssh/id"]), ["/h/.ssh"]);
        assert_eq!(took(&["/h/.aws"]), ["/h/.aws/login"]);
        assert_eq!(took(&["/h/.config"]), ["/h/.config/edit"]);
        assert_eq!(took(&["/"]), ["/h/.ssh", "/h/.aws/login", "/h/.config/edit"]);
        assert_eq!(took(&["/h/work", "/h"]), took(&["/"]));
    }
}
