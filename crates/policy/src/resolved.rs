//! The outcome of resolution: a value that says everything the sandbox has to enforce.
//!
//! Two views of the same thing stand side by side. `grants` is what people asked for and what they are shown;
//! `rules` is what the kernel is told after protected and denied paths were carved out of the grants.
//! Nothing here touches the file system.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::access::{AccessMode, CapabilitySource};
use crate::hosts::HostRule;

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

/// What one kernel rule gives on a path and everything below it.
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
pub struct Rule {
    #[serde(with = "crate::path_serde")]
    pub path: PathBuf,
    pub access: RuleAccess,
    pub is_file: bool,
    pub grant: usize,
}

/// Why a path is closed although a grant covers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClosedBy {
    /// `--deny`, or `deny` of a profile.
    Deny(CapabilitySource),
    /// A protected group of the embedded policy, by name.
    Protected(String),
    /// nono's own state, configuration or binary; never grantable.
    Nono,
    /// What this agent is told by: its settings, hooks, commands. Never writable.
    Agent(String),
}

/// What stands at a closed path now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathKind {
    Directory,
    File,
    /// A link on the way to a path that is held; its target is judged on its own.
    Link,
    Absent,
}

/// How a closed path inside a grant is kept closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClosedHow {
    /// No rule reaches it: nothing needs to be done (outside every grant, or carved out by granting its siblings).
    NotGranted,
    /// A mount must hide it; a sandbox without a mount namespace has to refuse.
    Mask,
    /// A copy stands there that the command may write; what becomes of that is decided outside. By a mount, too.
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
    /// Reading stays possible where a grant gives it; only writing is closed (nono's own binary, an agent's settings).
    pub keep_read: bool,
    /// A path below it was opened on purpose (`--bypass-protection` and a grant), so a mask over it would hide too much.
    pub has_openings: bool,
}

/// What the child may do on the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkPolicy {
    /// Nothing leaves; loopback inside the sandbox works where there is a network namespace.
    #[default]
    Blocked,
    Allowed,
    /// TCP by port, on the host's network.
    Ports {
        connect: Vec<u16>,
        listen: Vec<u16>,
    },
    /// Only these hosts, through the filtering proxy; and loopback ports of this machine, as in `Ports`.
    Filtered {
        hosts: Vec<HostRule>,
        connect: Vec<u16>,
        listen: Vec<u16>,
    },
}

/// A host that is open through the filtering proxy, and who asked for it.
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

/// Which variables of the caller's environment reach the child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentRules {
    /// Names, or prefixes written `LC_*`.
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    /// Set to these values, in order; later ones win.
    pub set: Vec<(String, String)>,
    /// Pass everything except what can inject code into a loader or an interpreter.
    pub all: bool,
}

/// Something worth a line in `--dry-run` or the footer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Note {
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
    pub rules: Vec<Rule>,
    pub closed: Vec<ClosedPath>,
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
    pub notes: Vec<Note>,
}
