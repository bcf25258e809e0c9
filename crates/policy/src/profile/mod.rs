//! Profiles: named, inheritable requests kept as JSON with comments.
//!
//! A [`Profile`] is one file as it was written; a [`MergedProfile`] is what it and everything it extends add up to,
//! base first, each path still knowing which profile it came from. A profile only asks: what it asks for goes
//! through the same resolution, with the same refusals, as flags do.

mod builtin;
mod diff;
mod merge;
mod overlay;
mod parse;
mod project;
mod store;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::AccessMode;

pub use diff::{DiffChange, DiffLine, diff};
pub use merge::{MergedFilesystem, MergedProfile, MergedWorkdir, ProfileGrant, ProfilePath};
pub use parse::{read_listed, schema};
pub use project::{
    AgreedGrant, EffectiveProfile, PROJECT_FILE, PROJECT_MAX_BYTES, ProjectEntry, ProjectOverlay,
    ProjectProfile,
};
pub use store::{ProfileInfo, ProfileOrigin, ProfileStore};
pub use template::template;

/// A profile as it stands in its file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "nono profile")]
pub struct Profile {
    /// The profile's name; the file's name without its ending says the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// One profile or several to build on, base first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<OneOrMany>,
    #[serde(skip_serializing_if = "is_default")]
    pub groups: GroupsSection,
    #[serde(skip_serializing_if = "is_default")]
    pub filesystem: FilesystemSection,
    #[serde(skip_serializing_if = "is_default")]
    pub network: NetworkSection,
    #[serde(skip_serializing_if = "is_default")]
    pub workdir: WorkdirSection,
    #[serde(skip_serializing_if = "is_default")]
    pub environment: EnvironmentSection,
    #[serde(skip_serializing_if = "is_default")]
    pub rollback: RollbackSection,
    /// Settings for the hooks of agents, by the agent's name (`claude-code`, `codex`, ...).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<String, HookSection>,
    /// Keep the caller's terminal instead of giving the command its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interactive: Option<bool>,
    #[serde(skip_serializing_if = "is_default")]
    pub security: SecuritySection,
}

impl Profile {
    /// The profiles this one builds on, base first.
    pub fn bases(&self) -> &[String] {
        match &self.extends {
            None => &[],
            Some(OneOrMany::One(name)) => std::slice::from_ref(name),
            Some(OneOrMany::Many(names)) => names,
        }
    }
}

/// One name, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Groups of the embedded policy to add or to leave out. Protected groups cannot be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GroupsSection {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

/// Paths to open and to close. `~`, `$HOME`, `$WORKDIR` and `$XDG_*` are expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FilesystemSection {
    /// Directories, read and write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<PathEntry>,
    /// Directories, read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathEntry>,
    /// Directories, write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_file: Vec<PathEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_file: Vec<PathEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write_file: Vec<PathEntry>,
    /// Closed even inside a granted tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<PathEntry>,
    /// Protected paths to open; each needs a grant too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bypass_protection: Vec<PathEntry>,
    /// Unix sockets the command may connect to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unix_socket: Vec<PathEntry>,
}

/// A path, or a path that may be missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PathEntry {
    Plain(String),
    Detailed(DetailedPath),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DetailedPath {
    pub path: String,
    /// Skip it where it does not exist.
    #[serde(default)]
    pub optional: bool,
}

impl PathEntry {
    pub fn path(&self) -> &str {
        match self {
            PathEntry::Plain(path) => path,
            PathEntry::Detailed(detailed) => &detailed.path,
        }
    }

    pub fn optional(&self) -> bool {
        matches!(self, PathEntry::Detailed(DetailedPath { optional: true, .. }))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSection {
    /// `false` opens the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<bool>,
    /// `host`, `host:port` or `*.host`, reached through the filtering proxy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_domain: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_connect_port: Vec<u16>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listen_port: Vec<u16>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkdirSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<WorkdirAccess>,
}

/// Access on the directory the command starts in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkdirAccess {
    #[default]
    None,
    Read,
    Write,
    ReadWrite,
}

impl WorkdirAccess {
    pub(crate) fn mode(self) -> Option<AccessMode> {
        match self {
            WorkdirAccess::None => None,
            WorkdirAccess::Read => Some(AccessMode::Read),
            WorkdirAccess::Write => Some(AccessMode::Write),
            WorkdirAccess::ReadWrite => Some(AccessMode::ReadWrite),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EnvironmentSection {
    /// Names, or beginnings written `LC_*`; a name that looks like a secret passes only in full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_vars: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_vars: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set_vars: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RollbackSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_patterns: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_globs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub force_include: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_gitignore: Option<bool>,
}

/// The hooks of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookSection {
    pub install: HookInstall,
}

/// Whether hooks are offered when the agent is run with this profile and has none: once, on a terminal, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HookInstall {
    Ask,
    Never,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SecuritySection {
    /// Ask at run time instead of failing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability_elevation: Option<bool>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
