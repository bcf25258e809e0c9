//! Capability sets: grants collected by a program rather than by flags and profiles.
//!
//! A set holds exactly what was added: no groups, no protected paths, no home folder. Each path is resolved once,
//! when it is added, against the working directory of the process; a leading `~` is an ordinary character.
//! The network is closed unless asked for.

mod merge;
mod platform_rule;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::access::{AccessMode, CapabilitySource};
use crate::error::{CapabilityError, PolicyError};
use crate::facts::{Facts, FoundKind, HostFacts, ResolvedPath};
use crate::resolved::{
    AccessRule, ClosedBy, ClosedHow, ClosedPath, EnvironmentRules, FsCapability, HostGrant, Limits,
    NetworkPolicy, PathKind, ProtectedNames, ResolvedPolicy, RuleAccess,
};

pub(crate) use merge::merge_grants;
pub use platform_rule::PlatformRuleError;

/// Set of grants for a process.
///
/// ```
/// use nono_policy::{AccessMode, CapabilitySet};
///
/// let set = CapabilitySet::builder()
///     .allow_path("/tmp", AccessMode::ReadWrite)?
///     .allow_file("/dev/null", AccessMode::ReadWrite)?
///     .allow_network(false)
///     .build()?;
/// assert_eq!(set.fs_capabilities().len(), 2);
/// assert!(set.is_network_blocked());
/// # Ok::<(), nono_policy::CapabilityError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapabilitySet {
    fs: Vec<FsCapability>,
    pub(crate) deny: Vec<ClosedPath>,
    pub(crate) unix_sockets: Vec<FsCapability>,
    network: NetworkPolicy,
    limits: Limits,
    platform_rules: Vec<String>,
}

impl CapabilitySet {
    pub fn builder() -> CapabilitySetBuilder {
        CapabilitySetBuilder::default()
    }

    /// An empty set with the network blocked.
    pub fn new() -> CapabilitySet {
        CapabilitySet::default()
    }

    /// Grants a directory and everything below it.
    pub fn allow_path(&mut self, path: impl AsRef<Path>, access: AccessMode) -> Result<(), CapabilityError> {
        self.add(path.as_ref(), access, GrantShape::Directory, CapabilitySource::User)
    }

    /// Grants one file; anything that is not a directory counts, devices included.
    pub fn allow_file(&mut self, path: impl AsRef<Path>, access: AccessMode) -> Result<(), CapabilityError> {
        self.add(path.as_ref(), access, GrantShape::File, CapabilitySource::User)
    }

    pub fn allow_unix_socket(&mut self, path: impl AsRef<Path>) -> Result<(), CapabilityError> {
        let path = path.as_ref();
        let found = find(path)?;
        if found.kind != FoundKind::Socket {
            return Err(CapabilityError::ExpectedFile { path: path.to_path_buf() });
        }
        let (original, resolved) = (path.to_path_buf(), found.path);
        let (access, source) = (AccessMode::ReadWrite, CapabilitySource::User);
        self.unix_sockets.push(FsCapability { original, resolved, access, is_file: true, source });
        Ok(())
    }

    /// Closes a path inside what is granted. It has to exist: an absent name cannot be kept closed.
    pub fn deny(&mut self, path: impl AsRef<Path>) -> Result<(), CapabilityError> {
        let path = path.as_ref();
        let found = find(path)?;
        let kind = if found.kind == FoundKind::Directory { PathKind::Directory } else { PathKind::File };
        let by = ClosedBy::Deny(CapabilitySource::User);
        let closed = ClosedPath::new(found.path, by, kind, ClosedHow::NotGranted);
        self.deny.push(ClosedPath { original: path.to_path_buf(), ..closed });
        Ok(())
    }

    /// Adds a grant that was resolved before, after checking that it is still what it was.
    pub(crate) fn restore(&mut self, grant: FsCapability) -> Result<(), CapabilityError> {
        let shape = if grant.is_file { GrantShape::File } else { GrantShape::Directory };
        let found = find(&grant.resolved)?;
        check_shape(&found, shape, &grant.resolved)?;
        if found.path != grant.resolved {
            return Err(CapabilityError::Elsewhere { path: grant.resolved, found: found.path });
        }
        self.fs.push(grant);
        Ok(())
    }

    /// Denies a path that was resolved before, after checking that it still is that path.
    pub(crate) fn restore_denied(&mut self, path: &Path) -> Result<(), CapabilityError> {
        let found = find(path)?.path;
        if found != path {
            return Err(CapabilityError::Elsewhere { path: path.to_path_buf(), found });
        }
        self.deny(path)
    }

    /// A rule in the language of a platform's own sandbox, kept for that platform and checked on each. Linux has none.
    pub fn platform_rule(&mut self, rule: &str) -> Result<(), PlatformRuleError> {
        platform_rule::check(rule)?;
        self.platform_rules.push(rule.to_owned());
        Ok(())
    }

    pub fn platform_rules(&self) -> &[String] {
        &self.platform_rules
    }

    pub(crate) fn add(
        &mut self,
        path: &Path,
        access: AccessMode,
        shape: GrantShape,
        source: CapabilitySource,
    ) -> Result<(), CapabilityError> {
        let found = find(path)?;
        check_shape(&found, shape, path)?;
        let (is_file, original) = (found.kind != FoundKind::Directory, path.to_path_buf());
        self.fs.push(FsCapability { original, resolved: found.path, access, is_file, source });
        Ok(())
    }

    pub fn set_network(&mut self, network: NetworkPolicy) {
        self.network = network;
    }

    pub fn network(&self) -> &NetworkPolicy {
        &self.network
    }

    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The grants, in the order they were added.
    pub fn fs_capabilities(&self) -> &[FsCapability] {
        &self.fs
    }

    pub fn unix_sockets(&self) -> &[FsCapability] {
        &self.unix_sockets
    }

    pub fn denied_paths(&self) -> impl Iterator<Item = &Path> {
        self.deny.iter().map(|closed| closed.resolved.as_path())
    }

    /// Whether the network as a whole is closed; single open ports do not change that.
    pub fn is_network_blocked(&self) -> bool {
        self.network != NetworkPolicy::Allowed
    }

    /// Whether a directory grant stands at or above the path. Lexical: a path with `..` is covered by nothing.
    pub fn path_covered(&self, path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        let climbs = path.components().any(|component| component == std::path::Component::ParentDir);
        !climbs && self.fs.iter().any(|grant| !grant.is_file && path.starts_with(&grant.resolved))
    }

    /// Joins grants of one source on the same path, and drops grants that add nothing. The enforced access stays the
    /// same, and no grant shows more access than its source asked for, or another spelling.
    pub fn deduplicate(&mut self) {
        self.fs = merge::deduplicate(std::mem::take(&mut self.fs));
    }

    /// Text summary of the set, one grant per line.
    pub fn summary(&self) -> String {
        self.summary_with(&self.network_word()).to_string_lossy().into_owned()
    }

    /// Summary including names that are not UTF-8, with the caller's own text for the network.
    pub fn summary_with(&self, network: &str) -> OsString {
        let mut text = OsString::new();
        if self.fs.is_empty() {
            text.push("(no capabilities granted)\n");
        } else {
            text.push("Filesystem:\n");
        }
        for grant in &self.fs {
            let shape = if grant.is_file { "file" } else { "dir" };
            text.push("  ");
            text.push(&grant.resolved);
            text.push(format!(" [{}] ({shape})\n", grant.access));
        }
        text.push(format!("Network:\n  outbound: {network}"));
        text
    }

    /// `allowed`, `blocked`, or the ports that are open.
    pub fn network_word(&self) -> String {
        match &self.network {
            NetworkPolicy::Allowed => "allowed".to_owned(),
            NetworkPolicy::Blocked => "blocked".to_owned(),
            NetworkPolicy::Ports { connect, listen } => {
                format!("ports (connect {connect:?}, listen {listen:?})")
            }
            NetworkPolicy::Filtered { hosts, .. } => {
                let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
                format!("hosts ({})", hosts.join(", "))
            }
        }
    }

    /// The policy to enforce: one rule a grant, denied paths masked where a grant covers them.
    pub fn to_policy(&self) -> Result<ResolvedPolicy, PolicyError> {
        let grants = merge_grants(self.fs.clone());
        let rules = grants.iter().enumerate().map(|(index, grant)| AccessRule {
            path: grant.resolved.clone(),
            access: RuleAccess::Mode(grant.access),
            is_file: grant.is_file,
            grant: index,
        });
        let closed = self.deny.iter().map(|deny| closed_among(deny, &grants)).collect::<Result<_, _>>()?;
        let workdir = fs::canonicalize(".").unwrap_or_else(|_| PathBuf::from("/"));
        Ok(ResolvedPolicy {
            profiles: vec![],
            rules: rules.collect(),
            closed,
            names: ProtectedNames::default(),
            unix_sockets: self.unix_sockets.clone(),
            network: self.network.clone(),
            hosts: hosts_of(&self.network),
            environment: EnvironmentRules::default(),
            workdir,
            limits: self.limits.clone(),
            interactive: false,
            notes: vec![],
            grants,
        })
    }
}

/// Host grants of a set; their source is always the user.
fn hosts_of(network: &NetworkPolicy) -> Vec<HostGrant> {
    let NetworkPolicy::Filtered { hosts, .. } = network else { return Vec::new() };
    hosts.iter().map(|rule| HostGrant { rule: rule.clone(), source: CapabilitySource::User }).collect()
}

#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CapabilitySetBuilder {
    set: CapabilitySet,
}

impl CapabilitySetBuilder {
    pub fn allow_path(mut self, path: impl AsRef<Path>, access: AccessMode) -> Result<Self, CapabilityError> {
        self.set.allow_path(path, access)?;
        Ok(self)
    }

    pub fn allow_file(mut self, path: impl AsRef<Path>, access: AccessMode) -> Result<Self, CapabilityError> {
        self.set.allow_file(path, access)?;
        Ok(self)
    }

    pub fn allow_unix_socket(mut self, path: impl AsRef<Path>) -> Result<Self, CapabilityError> {
        self.set.allow_unix_socket(path)?;
        Ok(self)
    }

    pub fn deny(mut self, path: impl AsRef<Path>) -> Result<Self, CapabilityError> {
        self.set.deny(path)?;
        Ok(self)
    }

    pub fn allow_network(mut self, allowed: bool) -> Self {
        self.set.network = if allowed { NetworkPolicy::Allowed } else { NetworkPolicy::Blocked };
        self
    }

    pub fn limits(mut self, limits: Limits) -> Self {
        self.set.limits = limits;
        self
    }

    /// The finished set. Every path was checked when it was added; the result leaves room for checks of the whole.
    pub fn build(self) -> Result<CapabilitySet, CapabilityError> {
        Ok(self.set)
    }
}

#[derive(Clone, Copy)]
pub(crate) enum GrantShape {
    Directory,
    File,
    /// A path of a group: granted for what it is now.
    Any,
}

fn find(path: &Path) -> Result<ResolvedPath, CapabilityError> {
    HostFacts.resolve(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => CapabilityError::PathNotFound { path: path.to_path_buf() },
        _ => CapabilityError::Resolve { path: path.to_path_buf(), source },
    })
}

fn check_shape(found: &ResolvedPath, shape: GrantShape, path: &Path) -> Result<(), CapabilityError> {
    match (shape, found.kind == FoundKind::Directory) {
        (GrantShape::Directory, false) => {
            Err(CapabilityError::ExpectedDirectory { path: path.to_path_buf() })
        }
        (GrantShape::File, true) => Err(CapabilityError::ExpectedFile { path: path.to_path_buf() }),
        _ => Ok(()),
    }
}

fn closed_among(deny: &ClosedPath, grants: &[FsCapability]) -> Result<ClosedPath, PolicyError> {
    if let Some(grant) = grants.iter().find(|grant| grant.resolved.starts_with(&deny.resolved)) {
        let (path, deny) = (grant.original.clone(), deny.original.clone());
        return Err(PolicyError::GrantDenied { path, deny, by: CapabilitySource::User });
    }
    let covered = grants.iter().any(|grant| !grant.is_file && deny.resolved.starts_with(&grant.resolved));
    let how = if covered { ClosedHow::Mask } else { ClosedHow::NotGranted };
    Ok(ClosedPath { how, ..deny.clone() })
}
