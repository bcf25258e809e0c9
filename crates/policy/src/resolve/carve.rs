//! Carving: kernel rules that leave out closed paths.
//!
//! Landlock adds and never subtracts, and a rule reaches everything below it. So a directory grant with a closed
//! path inside is taken apart: every entry of the directory gets a rule of its own, except the one that leads to
//! the closed path, which is taken apart in turn. The rules cover what existed when they were resolved; a name created
//! later directly in such a directory has no rule. Links are left out: their targets are judged on their own.
//! For a denied path deep inside a project the grant stays whole and the sandbox masks the path.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::locate::{Locator, same, strictly_within};
use super::protected::{Closure, Closures};
use crate::access::{AccessMode, CapabilitySource};
use crate::error::PolicyError;
use crate::facts::{EntryKind, FoundKind};
use crate::is_within;
use crate::resolved::{
    AccessRule, ClosedBy, ClosedHow, ClosedPath, FsCapability, PathKind, PolicyNote, RuleAccess,
};

pub(super) fn rules(
    locator: &Locator<'_>,
    grants: &[FsCapability],
    closures: &Closures,
    home: Option<&Path>,
    notes: &mut Vec<PolicyNote>,
) -> Result<Vec<AccessRule>, PolicyError> {
    let mut carver = Carver {
        locator,
        grants,
        closures,
        notes,
        noted: HashSet::new(),
        rules: Vec::with_capacity(grants.len()),
    };
    let all: Vec<&Closure> = closures.list.iter().collect();
    // Nearly all closures are in the home folder, and few grants overlap it.
    let outside = |closure: &&&Closure| !home.is_some_and(|home| is_within(&closure.point, home));
    let elsewhere: Vec<&Closure> = all.iter().filter(outside).copied().collect();
    for (index, grant) in grants.iter().enumerate() {
        if grant.is_file {
            carver.emit(index, &grant.resolved, RuleAccess::Mode(grant.access), true);
        } else {
            let near =
                home.is_none_or(|home| is_within(home, &grant.resolved) || is_within(&grant.resolved, home));
            let inside = to_carve(if near { &all } else { &elsewhere }, grant, home);
            carver.cover(index, &grant.resolved, grant.access, &inside)?;
        }
    }
    let rules = carver.rules;
    Ok(without_redundant(rules, grants))
}

/// The closed paths that have to be carved out of this grant; denied paths only where that costs nothing extra.
fn to_carve<'a>(closures: &[&'a Closure], grant: &FsCapability, home: Option<&Path>) -> Vec<&'a Closure> {
    let inside = closures
        .iter()
        .copied()
        .filter(|c| c.restricts(grant.access) && strictly_within(&c.point, &grant.resolved) && !c.mask);
    let (denied, mut carve): (Vec<_>, Vec<_>) = inside.partition(|closure| closure.is_deny());
    if denied.is_empty() {
        return carve;
    }
    let mut carved: HashSet<&Path> = HashSet::new();
    for closure in &carve {
        carved.extend(closure.point.ancestors().skip(1).take_while(|dir| is_within(dir, &grant.resolved)));
    }
    for closure in denied {
        let parent = closure.point.parent();
        if parent.is_some_and(|dir| carved.contains(dir) || Some(dir) == home) {
            carve.push(closure);
        }
    }
    carve
}

struct Carver<'a, 'b> {
    locator: &'a Locator<'b>,
    grants: &'a [FsCapability],
    closures: &'a Closures,
    notes: &'a mut Vec<PolicyNote>,
    noted: HashSet<PathBuf>,
    rules: Vec<AccessRule>,
}

impl Carver<'_, '_> {
    /// Gives `access` on everything in `dir` except the closures that lie strictly inside it.
    fn cover(
        &mut self,
        grant: usize,
        dir: &Path,
        access: AccessMode,
        closures: &[&Closure],
    ) -> Result<(), PolicyError> {
        let Some(first) = closures.first() else {
            self.emit(grant, dir, RuleAccess::Mode(access), false);
            return Ok(());
        };
        let entries = self.locator.list(dir).map_err(|source| PolicyError::List {
            dir: dir.to_path_buf(),
            closed: first.original.clone(),
            source,
        })?;
        self.note_carved(dir, first);
        if access.reads() {
            self.emit(grant, dir, RuleAccess::List, false);
        }
        for (name, kind) in entries.iter() {
            self.entry(grant, &dir.join(name), *kind, access, closures)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        grant: usize,
        path: &Path,
        kind: EntryKind,
        access: AccessMode,
        closures: &[&Closure],
    ) -> Result<(), PolicyError> {
        if kind == EntryKind::Symlink {
            return Ok(());
        }
        let mut at = closures.iter().filter(|closure| same(&closure.point, path));
        if at.clone().any(|closure| !closure.keep_read) {
            return at.try_for_each(|closure| self.open_through(grant, closure, access));
        }
        if at.clone().next().is_some() {
            self.held(grant, path, kind, access, closures)?;
            return at.try_for_each(|closure| self.open_through(grant, closure, access));
        }
        match kind {
            EntryKind::Directory => {
                let inside: Vec<_> = closures
                    .iter()
                    .copied()
                    .filter(|closure| strictly_within(&closure.point, path))
                    .collect();
                self.cover(grant, path, access, &inside)?;
            }
            EntryKind::File => self.emit(grant, path, RuleAccess::Mode(access), true),
            EntryKind::Other if self.is_plain_special(path) => {
                self.emit(grant, path, RuleAccess::Mode(access), true);
            }
            EntryKind::Other | EntryKind::Symlink => {}
        }
        Ok(())
    }

    /// Rules for reading a write-protected path where the grant allows reading, except for closed paths in it.
    fn held(
        &mut self,
        grant: usize,
        path: &Path,
        kind: EntryKind,
        access: AccessMode,
        closures: &[&Closure],
    ) -> Result<(), PolicyError> {
        if !access.reads() {
            return Ok(());
        }
        if kind != EntryKind::Directory {
            self.emit(grant, path, RuleAccess::Mode(AccessMode::Read), true);
            return Ok(());
        }
        let inside = closures.iter().copied();
        let inside: Vec<_> =
            inside.filter(|c| c.restricts(AccessMode::Read) && strictly_within(&c.point, path)).collect();
        self.cover(grant, path, AccessMode::Read, &inside)
    }

    /// Whether a special file is part of the grant: pipes and devices are, sockets are opened by their own flag only.
    fn is_plain_special(&self, path: &Path) -> bool {
        self.locator.find(path).is_ok_and(|found| matches!(found.kind, FoundKind::Fifo | FoundKind::Device))
    }

    /// A bypass below a closed path lets this grant through to the opening, unless a grant of its own says how far.
    fn open_through(
        &mut self,
        grant: usize,
        closure: &Closure,
        access: AccessMode,
    ) -> Result<(), PolicyError> {
        for opening in &closure.openings {
            let own = |other: &FsCapability| {
                is_within(&other.resolved, &closure.path)
                    && (is_within(&other.resolved, opening) || is_within(opening, &other.resolved))
            };
            if self.grants.iter().any(own) || self.closures.forbids(opening, access).is_some() {
                continue;
            }
            match self.locator.place(opening).kind {
                Some(FoundKind::Directory) => {
                    let inside = self.closures.list.iter();
                    let inside: Vec<_> = inside
                        .filter(|c| c.restricts(access) && strictly_within(&c.point, opening) && !c.is_deny())
                        .collect();
                    self.cover(grant, opening, access, &inside)?;
                }
                Some(FoundKind::File | FoundKind::Fifo) => {
                    self.emit(grant, opening, RuleAccess::Mode(access), true);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn note_carved(&mut self, dir: &Path, because: &Closure) {
        if self.noted.insert(dir.to_path_buf()) {
            self.notes.push(PolicyNote::Carved { path: dir.to_path_buf(), because: because.path.clone() });
        }
    }

    fn emit(&mut self, grant: usize, path: &Path, access: RuleAccess, is_file: bool) {
        self.rules.push(AccessRule { path: path.to_path_buf(), access, is_file, grant });
    }
}

/// Drops rules of groups and of nono itself that another rule above them makes pointless (`/bin` beside `/usr` where
/// one links to the other): each rule costs the start of a run two system calls.
fn without_redundant(rules: Vec<AccessRule>, grants: &[FsCapability]) -> Vec<AccessRule> {
    let mut above: HashMap<&OsStr, AccessMode> = HashMap::new();
    for rule in rules.iter().filter(|rule| !rule.is_file) {
        if let RuleAccess::Mode(access) = rule.access {
            above
                .entry(rule.path.as_os_str())
                .and_modify(|known| *known = known.union(access))
                .or_insert(access);
        }
    }
    let offered = |rule: &AccessRule| {
        let source = grants.get(rule.grant).map(|grant| &grant.source);
        matches!(source, Some(CapabilitySource::Group(_) | CapabilitySource::System))
    };
    let redundant = |rule: &AccessRule| match rule.access {
        RuleAccess::Mode(access) => rule
            .path
            .ancestors()
            .skip(1)
            .any(|dir| above.get(dir.as_os_str()).is_some_and(|known| known.covers(access))),
        RuleAccess::List => false,
    };
    let keep: Vec<bool> = rules.iter().map(|rule| !(offered(rule) && redundant(rule))).collect();
    rules.into_iter().zip(keep).filter_map(|(rule, keep)| keep.then_some(rule)).collect()
}

/// Closed paths for the sandbox. A path that a rule still reaches has to be masked, which is possible only if it
/// exists.
pub(super) fn closed_paths(
    closures: Closures,
    grants: &[FsCapability],
    rules: &[AccessRule],
    notes: &mut Vec<PolicyNote>,
) -> Result<Vec<ClosedPath>, PolicyError> {
    let mut reach = RulesByPath::new(rules);
    let mut closed = Vec::with_capacity(closures.list.len());
    for closure in closures.list {
        let reached = reach.at(&closure);
        if let (Some(rule), PathKind::Absent) = (reached, closure.kind) {
            match (&closure.by, closure.optional) {
                // A stand-in is created before the command starts; the sandbox refuses to start without it.
                (ClosedBy::Agent(_), _) => {}
                (ClosedBy::Deny(source), true) => {
                    notes.push(PolicyNote::Skipped { path: closure.path.clone(), source: source.clone() });
                    continue;
                }
                _ => return Err(absent(&closure, rule, grants)),
            }
        }
        let how = if reached.is_some() { ClosedHow::Mask } else { ClosedHow::NotGranted };
        closed.push(ClosedPath {
            original: closure.original,
            resolved: closure.path,
            by: closure.by,
            kind: closure.kind,
            how,
            keep_read: closure.keep_read,
            has_openings: !closure.openings.is_empty(),
        });
    }
    Ok(closed)
}

fn absent(closure: &Closure, rule: &AccessRule, grants: &[FsCapability]) -> PolicyError {
    let grant = grants.get(rule.grant).map_or_else(|| rule.path.clone(), |grant| grant.original.clone());
    PolicyError::DenyAbsent { path: closure.original.clone(), grant }
}

/// Index of the rules by path, to find those above a path without a full scan.
struct RulesByPath<'a> {
    by_path: HashMap<&'a OsStr, Vec<&'a AccessRule>>,
    /// Cached rule at or above a folder, separately for closures that forbid reading and those that do not: a few
    /// folders hold nearly everything that is closed.
    above: [HashMap<OsString, Option<&'a AccessRule>>; 2],
}

impl<'a> RulesByPath<'a> {
    fn new(rules: &'a [AccessRule]) -> Self {
        let mut by_path: HashMap<&OsStr, Vec<&AccessRule>> = HashMap::new();
        for rule in rules {
            by_path.entry(rule.path.as_os_str()).or_default().push(rule);
        }
        RulesByPath { by_path, above: Default::default() }
    }

    /// A rule that gives something on the closed path which the closure takes away.
    fn at(&mut self, closure: &Closure) -> Option<&'a AccessRule> {
        let gives = |rule: &&'a AccessRule| matches!(rule.access, RuleAccess::Mode(access) if closure.restricts(access));
        let own = self.by_path.get(closure.path.as_os_str()).into_iter().flatten().copied().find(gives);
        if own.is_some() {
            return own;
        }
        let parent = closure.path.parent()?;
        let above = &mut self.above[usize::from(closure.keep_read)];
        if let Some(known) = above.get(parent.as_os_str()) {
            return *known;
        }
        let rules = parent.ancestors().filter_map(|dir| self.by_path.get(dir.as_os_str())).flatten();
        let found = rules.copied().filter(|rule| !rule.is_file).find(gives);
        above.insert(parent.into(), found);
        found
    }
}
