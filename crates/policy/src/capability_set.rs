//! Grants put together by a program rather than by flags and profiles.
//!
//! A set holds exactly what was added: no groups, no protected paths, no home folder. Each path is resolved once,
//! when it is added, against the working directory of the process; a leading `~` is an ordinary character.
//! The network is closed unless asked for.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::access::{AccessMode, CapabilitySource};
use crate::error::{CapabilityError, PolicyError};
use crate::facts::{Facts, Found, FoundKind, HostFacts};
use crate::resolved::{
    ClosedBy, ClosedHow, ClosedPath, EnvironmentRules, FsCapability, HostGrant, Limits, NetworkPolicy,
    PathKind, ResolvedPolicy, Rule, RuleAccess,
};

/// What a process may do.
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
    deny: Vec<ClosedPath>,
    unix_sockets: Vec<FsCapability>,
    network: NetworkPolicy,
    limits: Limits,
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

    /// Allows connecting to a unix socket.
    pub fn allow_unix_socket(&mut self, path: impl AsRef<Path>) -> Result<(), CapabilityError> {
        let path = path.as_ref();
        let found = find(path)?;
        if found.kind != FoundKind::Socket {
            return Err(CapabilityError::ExpectedFile { path: path.to_path_buf() });
        }
        let (access, source) = (AccessMode::ReadWrite, CapabilitySource::User);
        let original = path.to_path_buf();
        self.unix_sockets.push(FsCapability {
            original,
            resolved: found.path,
            access,
            is_file: true,
            source,
        });
        Ok(())
    }

    /// Closes a path inside what is granted. It has to exist: an absent name cannot be kept closed.
    pub fn deny(&mut self, path: impl AsRef<Path>) -> Result<(), CapabilityError> {
        let path = path.as_ref();
        let found = find(path)?;
        let kind = if found.kind == FoundKind::Directory { PathKind::Directory } else { PathKind::File };
        self.deny.push(ClosedPath {
            original: path.to_path_buf(),
            resolved: found.path,
            by: ClosedBy::Deny(CapabilitySource::User),
            kind,
            how: ClosedHow::NotGranted,
            keep_read: false,
            has_openings: false,
        });
        Ok(())
    }

    /// Adds a grant that was resolved before, after checking that it is still what it was.
    pub(crate) fn restore(&mut self, grant: FsCapability) -> Result<(), CapabilityError> {
        let shape = if grant.is_file { GrantShape::File } else { GrantShape::Directory };
        check_shape(&find(&grant.resolved)?, shape, &grant.original)?;
        self.fs.push(grant);
        Ok(())
    }

    pub(crate) fn restore_socket(&mut self, socket: FsCapability) {
        self.unix_sockets.push(socket);
    }

    fn add(
        &mut self,
        path: &Path,
        access: AccessMode,
        shape: GrantShape,
        source: CapabilitySource,
    ) -> Result<(), CapabilityError> {
        let found = find(path)?;
        check_shape(&found, shape, path)?;
        let is_file = shape == GrantShape::File;
        let original = path.to_path_buf();
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

    /// Joins grants on the same path: their access adds up, as it does in the kernel, and the user's word for it stays.
    pub fn deduplicate(&mut self) {
        self.fs = merge_grants(std::mem::take(&mut self.fs));
    }

    /// The set in words, one grant a line.
    pub fn summary(&self) -> String {
        let mut lines = Vec::new();
        if self.fs.is_empty() {
            lines.push("(no capabilities granted)".to_owned());
        } else {
            lines.push("Filesystem:".to_owned());
            lines.extend(self.fs.iter().map(|grant| {
                let shape = if grant.is_file { "file" } else { "dir" };
                format!("  {} [{}] ({shape})", grant.resolved.display(), grant.access)
            }));
        }
        lines.push("Network:".to_owned());
        lines.push(format!("  outbound: {}", self.network_word()));
        lines.join("\n")
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

    pub fn into_policy(self) -> Result<ResolvedPolicy, PolicyError> {
        self.to_policy()
    }

    /// The policy to enforce: one rule a grant, denied paths masked where a grant covers them.
    pub fn to_policy(&self) -> Result<ResolvedPolicy, PolicyError> {
        let grants = merge_grants(self.fs.clone());
        let rules = grants.iter().enumerate().map(|(index, grant)| Rule {
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

/// In a set every host was asked for by its user.
fn hosts_of(network: &NetworkPolicy) -> Vec<HostGrant> {
    let NetworkPolicy::Filtered { hosts, .. } = network else { return Vec::new() };
    hosts.iter().map(|rule| HostGrant { rule: rule.clone(), source: CapabilitySource::User }).collect()
}

/// Puts a [`CapabilitySet`] together step by step.
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum GrantShape {
    Directory,
    File,
}

fn find(path: &Path) -> Result<Found, CapabilityError> {
    HostFacts.resolve(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => CapabilityError::PathNotFound { path: path.to_path_buf() },
        _ => CapabilityError::Resolve { path: path.to_path_buf(), source },
    })
}

fn check_shape(found: &Found, shape: GrantShape, path: &Path) -> Result<(), CapabilityError> {
    match (shape, found.kind == FoundKind::Directory) {
        (GrantShape::Directory, false) => {
            Err(CapabilityError::ExpectedDirectory { path: path.to_path_buf() })
        }
        (GrantShape::File, true) => Err(CapabilityError::ExpectedFile { path: path.to_path_buf() }),
        _ => Ok(()),
    }
}

/// One grant a path: access adds up; the first of the strongest source gives the spelling and the source.
pub(crate) fn merge_grants(grants: Vec<FsCapability>) -> Vec<FsCapability> {
    let mut index = std::collections::HashMap::with_capacity(grants.len());
    let mut merged: Vec<FsCapability> = Vec::with_capacity(grants.len());
    for grant in grants {
        match index.entry((grant.resolved.clone(), grant.is_file)) {
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(merged.len());
                merged.push(grant);
            }
            std::collections::hash_map::Entry::Occupied(slot) => {
                let known = &mut merged[*slot.get()];
                let access = known.access.union(grant.access);
                if strength(&grant.source) > strength(&known.source) {
                    *known = grant;
                }
                known.access = access;
            }
        }
    }
    merged
}

fn strength(source: &CapabilitySource) -> u8 {
    match source {
        CapabilitySource::User => 3,
        CapabilitySource::Profile(_) => 2,
        CapabilitySource::Group(_) => 1,
        CapabilitySource::Credential(_) | CapabilitySource::System => 0,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        (dir, root)
    }

    #[test]
    fn kinds_are_checked_when_added() {
        let (_dir, root) = folder();
        let mut set = CapabilitySet::new();
        let missing = set.allow_path(root.join("none"), AccessMode::Read).unwrap_err();
        assert!(matches!(missing, CapabilityError::PathNotFound { .. }));
        assert!(matches!(set.allow_path("", AccessMode::Read), Err(CapabilityError::PathNotFound { .. })));
        let file = set.allow_path(root.join("file"), AccessMode::Read);
        assert!(matches!(file, Err(CapabilityError::ExpectedDirectory { .. })));
        let dir = set.allow_file(root.join("sub"), AccessMode::Read);
        assert!(matches!(dir, Err(CapabilityError::ExpectedFile { .. })));
        let below = set.allow_file(root.join("file/x"), AccessMode::Read);
        assert!(matches!(below, Err(CapabilityError::Resolve { .. })));
        assert!(set.fs_capabilities().is_empty());
    }

    #[test]
    fn the_summary_has_one_line_a_grant() {
        let (_dir, root) = folder();
        let mut set = CapabilitySet::new();
        assert_eq!(set.summary(), "(no capabilities granted)\nNetwork:\n  outbound: blocked");
        set.allow_path(&root, AccessMode::ReadWrite).unwrap();
        set.set_network(NetworkPolicy::Allowed);
        let expected =
            format!("Filesystem:\n  {} [read+write] (dir)\nNetwork:\n  outbound: allowed", root.display());
        assert_eq!(set.summary(), expected);
    }

    #[test]
    fn equal_paths_join_and_nested_ones_do_not() {
        let (_dir, root) = folder();
        let mut set = CapabilitySet::new();
        set.allow_path(&root, AccessMode::Read).unwrap();
        set.allow_path(root.join("sub/.."), AccessMode::Write).unwrap();
        set.allow_path(root.join("sub"), AccessMode::Read).unwrap();
        set.deduplicate();
        let accesses: Vec<_> = set.fs_capabilities().iter().map(|grant| grant.access).collect();
        assert_eq!(accesses, [AccessMode::ReadWrite, AccessMode::Read]);
    }

    #[test]
    fn covering_goes_by_components_and_never_through_dots() {
        let (_dir, root) = folder();
        let mut set = CapabilitySet::new();
        set.allow_path(&root, AccessMode::Read).unwrap();
        assert!(set.path_covered(root.join("any/where")));
        assert!(!set.path_covered(root.join("../etc")));
        assert!(!set.path_covered(format!("{}x", root.display())));
    }

    #[test]
    fn a_policy_has_one_rule_a_grant_and_masks_what_is_denied() {
        let (_dir, root) = folder();
        let set = CapabilitySet::builder()
            .allow_path(&root, AccessMode::ReadWrite)
            .and_then(|builder| builder.deny(root.join("file")))
            .and_then(CapabilitySetBuilder::build)
            .unwrap();
        let policy = set.to_policy().unwrap();
        assert_eq!(policy.rules.len(), 1);
        assert_eq!(policy.closed[0].how, ClosedHow::Mask);
        let mut set = set;
        set.allow_file(root.join("file"), AccessMode::Read).unwrap();
        assert!(matches!(set.into_policy(), Err(PolicyError::GrantDenied { .. })));
    }
}
