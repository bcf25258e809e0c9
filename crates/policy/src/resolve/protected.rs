//! Closed paths: nono's own files, protected groups, agents' settings, denied paths; and what a bypass opens again.
//!
//! A bypass at or above a protected path lifts its closure; one below it leaves the closure and marks an opening,
//! through which a grant may pass. Neither touches a denied path, nono's own files, or the settings of agents.

mod agents;
mod groups;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use super::Inputs;
use super::grants::check_links;
use super::locate::{PathLocation, same, strictly_within};
use crate::access::{AccessMode, CapabilitySource};
use crate::error::PolicyError;
use crate::expand::expand;
use crate::facts::{EntryKind, FoundKind};
use crate::is_within;
use crate::profile::{MergedProfile, ProfilePath};
use crate::resolved::{ClosedBy, ClosedPath, FsCapability, PathKind, ProtectedNames};

/// One path that must stay closed.
#[derive(Clone, Debug)]
pub(super) struct Closure {
    pub(super) original: PathBuf,
    pub(super) path: PathBuf,
    /// The first component that is missing, or the path itself.
    pub(super) point: PathBuf,
    pub(super) by: ClosedBy,
    pub(super) kind: PathKind,
    pub(super) keep_read: bool,
    /// Whether a mount keeps it closed, so that no grant has to be carved for it.
    pub(super) mask: bool,
    /// Whether it may be missing, because a profile marks it as optional.
    pub(super) optional: bool,
    pub(super) openings: Vec<PathBuf>,
}

impl Closure {
    fn new(original: &Path, place: PathLocation, by: ClosedBy) -> Closure {
        let kind = match place.kind {
            None => PathKind::Absent,
            Some(FoundKind::Directory) => PathKind::Directory,
            Some(_) => PathKind::File,
        };
        let (path, point) = (place.path, place.point);
        let original = original.to_path_buf();
        Closure {
            original,
            path,
            point,
            by,
            kind,
            keep_read: false,
            mask: false,
            optional: false,
            openings: vec![],
        }
    }

    /// Whether it takes anything away from a grant with that access.
    pub(super) fn restricts(&self, access: AccessMode) -> bool {
        !self.keep_read || access.writes()
    }

    /// Denied paths may be masked; everything else is carved out of grants.
    pub(super) fn is_deny(&self) -> bool {
        matches!(self.by, ClosedBy::Deny(_))
    }

    fn closes(&self, path: &Path, access: AccessMode) -> bool {
        self.restricts(access)
            && is_within(path, &self.path)
            && !self.openings.iter().any(|opening| is_within(path, opening))
    }
}

impl From<ClosedPath> for Closure {
    fn from(closed: ClosedPath) -> Closure {
        let place = PathLocation { path: closed.resolved.clone(), kind: None, point: closed.resolved };
        Closure { keep_read: closed.keep_read, ..Closure::new(&closed.original, place, closed.by) }
    }
}

/// Everything that must stay closed: nono's own first, then denied, then protected paths.
#[derive(Debug, Default)]
pub(super) struct Closures {
    pub(super) list: Vec<Closure>,
    by_path: OnceCell<ByPath>,
    /// Protected names that do not exist. They are closed only where a grant reaches them.
    pub(super) names: ProtectedNames,
}

/// Index of the closures by a hash of their path: hundreds of grants are compared with hundreds of closures.
#[derive(Debug)]
struct ByPath {
    hasher: RandomState,
    sorted: Vec<(u64, usize)>,
}

impl ByPath {
    fn new(list: &[Closure]) -> ByPath {
        let hasher = RandomState::new();
        let hashed =
            list.iter().enumerate().map(|(at, closure)| (hasher.hash_one(closure.path.as_os_str()), at));
        let mut sorted: Vec<_> = hashed.collect();
        sorted.sort_unstable();
        ByPath { hasher, sorted }
    }

    /// Indices of the closures that may be at `path`.
    fn at(&self, path: &Path) -> impl Iterator<Item = usize> {
        let hash = self.hasher.hash_one(path.as_os_str());
        let first = self.sorted.partition_point(|(known, _)| *known < hash);
        self.sorted[first..].iter().take_while(move |(known, _)| *known == hash).map(|(_, at)| *at)
    }
}

#[derive(Debug)]
pub(super) struct Bypass {
    original: PathBuf,
    path: PathBuf,
    optional: bool,
}

impl Closures {
    pub(super) fn collect(inputs: &Inputs<'_>) -> Result<Closures, PolicyError> {
        let mut closures = Closures::default();
        closures.add_own(inputs);
        closures.add_denied(inputs)?;
        groups::add(&mut closures, inputs);
        agents::add(&mut closures, inputs);
        Ok(closures)
    }

    fn add_own(&mut self, inputs: &Inputs<'_>) {
        let host = inputs.host;
        for dir in [&host.state_dir, &host.config_dir] {
            if !dir.as_os_str().is_empty() {
                self.add(inputs, &host.absolute(dir), dir, ClosedBy::Nono);
            }
        }
        if let Some(binary) = &host.binary {
            let closure = self.add(inputs, &host.absolute(binary), binary, ClosedBy::Nono);
            closure.keep_read = true;
            closure.mask = host.can_mask;
            // A binary that was replaced while it ran has no path to protect.
            if closure.kind == PathKind::Absent {
                self.by_path.take();
                self.list.pop();
            }
        }
    }

    fn add_denied(&mut self, inputs: &Inputs<'_>) -> Result<(), PolicyError> {
        for path in &inputs.request.deny {
            self.add(inputs, &inputs.host.absolute(path), path, ClosedBy::Deny(CapabilitySource::User));
        }
        for deny in &inputs.profile.filesystem.deny {
            let path = expand(&deny.path, inputs.host)?;
            let source = CapabilitySource::Profile(deny.profile.clone());
            self.add(inputs, &path, Path::new(&deny.path), ClosedBy::Deny(source)).optional = deny.optional;
        }
        Ok(())
    }

    fn add(&mut self, inputs: &Inputs<'_>, path: &Path, original: &Path, by: ClosedBy) -> &mut Closure {
        self.put(Closure::new(original, inputs.locator.place(path), by))
    }

    fn push(&mut self, closure: Closure) {
        self.by_path.take();
        self.list.push(closure);
    }

    fn put(&mut self, closure: Closure) -> &mut Closure {
        let known =
            self.list.iter().position(|known| same(&known.path, &closure.path) && known.by == closure.by);
        let index = known.unwrap_or_else(|| {
            self.push(closure);
            self.list.len() - 1
        });
        &mut self.list[index]
    }

    /// Closes the link itself, where the last component of a write-protected path is one.
    fn add_link(&mut self, inputs: &Inputs<'_>, path: &Path, by: ClosedBy) -> Option<&mut Closure> {
        let (parent, name) = (path.parent()?, path.file_name()?);
        let parent = inputs.locator.place(parent);
        if parent.kind != Some(FoundKind::Directory) {
            return None;
        }
        let entries = inputs.locator.list(&parent.path).ok()?;
        let index = entries.binary_search_by(|(known, _)| known.as_os_str().cmp(name)).ok()?;
        if entries[index].1 != EntryKind::Symlink {
            return None;
        }
        let own = parent.path.join(name);
        let place = PathLocation { path: own.clone(), point: own, kind: Some(FoundKind::Other) };
        let link = Closure::new(path, place, by);
        Some(self.put(Closure { kind: PathKind::Link, keep_read: true, ..link }))
    }

    /// Lifts or opens what the bypasses name; each has to concern a protected path.
    pub(super) fn apply_bypasses(&mut self, inputs: &Inputs<'_>) -> Result<Vec<Bypass>, PolicyError> {
        let bypasses = bypasses(inputs)?;
        self.close_names(inputs, &bypasses.iter().map(|bypass| bypass.path.as_path()).collect::<Vec<_>>());
        for bypass in &bypasses {
            let own =
                self.list.iter().find(|own| own.by == ClosedBy::Nono && is_within(&bypass.path, &own.path));
            if let Some(own) = own.filter(|own| !own.keep_read) {
                return Err(PolicyError::NonoOwned { path: bypass.original.clone(), own: own.path.clone() });
            }
            if let Some(held) = self.forbids(&bypass.path, AccessMode::Write)
                && let ClosedBy::Agent(agent) = &held.by
                && held.keep_read
            {
                let (path, agent) = (bypass.original.clone(), agent.clone());
                return Err(PolicyError::AgentSettings { path, agent });
            }
            if !self.concerns_protected(&bypass.path) && !bypass.optional {
                return Err(PolicyError::NothingToBypass { path: bypass.original.clone() });
            }
        }
        let lifted = |closure: &Closure| {
            matches!(closure.by, ClosedBy::Protected(_))
                && bypasses.iter().any(|b| is_within(&closure.path, &b.path))
        };
        self.by_path.take();
        self.list.retain(|closure| !lifted(closure));
        for closure in self.list.iter_mut().filter(|closure| matches!(closure.by, ClosedBy::Protected(_))) {
            let inside = bypasses.iter().filter(|bypass| strictly_within(&bypass.path, &closure.path));
            closure.openings.extend(inside.map(|bypass| bypass.path.clone()));
        }
        Ok(bypasses)
    }

    /// Closes the missing protected names that overlap one of these paths.
    pub(super) fn close_names(&mut self, inputs: &Inputs<'_>, paths: &[&Path]) {
        let met = self.names.take_met(paths);
        groups::close(self, inputs, &met);
    }

    fn concerns_protected(&self, path: &Path) -> bool {
        self.list.iter().any(|closure| {
            matches!(closure.by, ClosedBy::Protected(_))
                && (is_within(path, &closure.path) || is_within(&closure.path, path))
        })
    }

    /// The closure that forbids a grant on this very path, if any.
    pub(super) fn forbids(&self, path: &Path, access: AccessMode) -> Option<Cow<'_, Closure>> {
        let by_path = self.by_path.get_or_init(|| ByPath::new(&self.list));
        let above = path.ancestors().flat_map(|dir| by_path.at(dir));
        let closing = above.filter(|at| self.list[*at].closes(path, access));
        let listed = closing.min().map(|at| Cow::Borrowed(&self.list[at]));
        // A name that appeared since its folder was listed is as closed as the others.
        let named = || self.names.over(path).map(Closure::from).find(|named| named.closes(path, access));
        listed.or_else(|| named().map(Cow::Owned))
    }
}

pub(super) fn refusal(closure: &Closure, original: &Path) -> PolicyError {
    let path = original.to_path_buf();
    match &closure.by {
        ClosedBy::Nono => PolicyError::NonoOwned { path, own: closure.original.clone() },
        ClosedBy::Agent(agent) => PolicyError::AgentSettings { path, agent: agent.clone() },
        ClosedBy::Protected(group) => PolicyError::Protected { path, group: group.clone() },
        ClosedBy::Deny(by) => {
            PolicyError::GrantDenied { path, deny: closure.original.clone(), by: by.clone() }
        }
    }
}

fn bypasses(inputs: &Inputs<'_>) -> Result<Vec<Bypass>, PolicyError> {
    let mut out = Vec::new();
    for original in &inputs.request.bypass_protection {
        let typed = inputs.host.absolute(original);
        let path = inputs.locator.place(&typed).path;
        check_links(inputs, original, &typed, &path, &CapabilitySource::User)?;
        out.push(Bypass { original: original.clone(), path, optional: false });
    }
    for ProfilePath { path, optional, profile, .. } in &inputs.profile.filesystem.bypass_protection {
        let (original, typed) = (PathBuf::from(path), expand(path, inputs.host)?);
        let resolved = inputs.locator.place(&typed).path;
        let source = CapabilitySource::Profile(profile.clone());
        check_links(inputs, &original, &typed, &resolved, &source)?;
        out.push(Bypass { original, path: resolved, optional: *optional });
    }
    Ok(out)
}

/// Refuses to apply the user's bypass to grants of a project's profile.
pub(super) fn check_bypasses_are_the_persons(
    bypasses: &[Bypass],
    profile: &MergedProfile,
) -> Result<(), PolicyError> {
    for grant in profile.filesystem.grants.iter().filter(|grant| grant.at.exact) {
        let path = Path::new(&grant.at.path);
        let meets = |bypass: &&Bypass| is_within(path, &bypass.path) || is_within(&bypass.path, path);
        if let Some(bypass) = bypasses.iter().find(meets) {
            return Err(PolicyError::BypassForProject {
                path: path.to_path_buf(),
                bypass: bypass.original.clone(),
                from: CapabilitySource::Profile(grant.at.profile.clone()),
            });
        }
    }
    Ok(())
}

/// Refuses a bypass without a matching grant: alone it opens nothing.
pub(super) fn check_bypasses_are_used(
    bypasses: &[Bypass],
    grants: &[FsCapability],
    sockets: &[FsCapability],
) -> Result<(), PolicyError> {
    let asked =
        |grant: &&FsCapability| matches!(grant.source, CapabilitySource::User | CapabilitySource::Profile(_));
    for bypass in bypasses.iter().filter(|bypass| !bypass.optional) {
        let meets = |grant: &FsCapability| {
            is_within(&grant.resolved, &bypass.path)
                || (!grant.is_file && is_within(&bypass.path, &grant.resolved))
        };
        if !grants.iter().chain(sockets).filter(asked).any(meets) {
            return Err(PolicyError::BypassWithoutGrant { path: bypass.original.clone() });
        }
    }
    Ok(())
}
