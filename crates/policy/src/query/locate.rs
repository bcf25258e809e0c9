//! Resolution of a queried path, as far as it exists.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use crate::facts::{Facts, FoundKind};

/// Maximum number of links in one path, as in the kernel.
const MAX_LINKS: usize = 40;

/// A path, resolved as far as it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocatedPath {
    pub(super) path: PathBuf,
    pub(super) exists: bool,
    pub(super) is_dir: bool,
    /// Path that a grant would have to name: the path itself, or the directory in which it would be created.
    pub(super) grantable: PathBuf,
    /// Whether its existence is unknown, because its directory may not be searched.
    pub(super) hidden: bool,
}

/// Follows the path component by component, as the kernel does: a `..` leaves what the part before it resolved to, and
/// a link whose target is missing leads to the place where that would be made. Behind the first missing component there
/// is nothing to follow; there `..` only takes back what was missing too.
pub(super) fn locate(facts: &dyn Facts, path: &Path) -> LocatedPath {
    let hidden = match facts.resolve(path) {
        Ok(found) => {
            let is_dir = found.kind == FoundKind::Directory;
            return LocatedPath {
                grantable: found.path.clone(),
                path: found.path,
                exists: true,
                is_dir,
                hidden: false,
            };
        }
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    };
    let mut walk =
        PathWalk { facts, known: PathBuf::from("/"), rest: Vec::new(), waiting: steps(path), links: 0 };
    while let Some(step) = walk.waiting.pop_front() {
        walk.take(step);
    }
    // A `..` that took everything missing back would make the path look like one that exists; the kernel says it does
    // not.
    let path = walk.rest.iter().fold(walk.known.clone(), |path, name| path.join(name));
    LocatedPath { path, exists: false, is_dir: false, grantable: walk.known, hidden }
}

enum LocateStep {
    Name(OsString),
    Up,
    Root,
}

fn steps(path: &Path) -> VecDeque<LocateStep> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(LocateStep::Name(name.to_owned())),
            Component::ParentDir => Some(LocateStep::Up),
            Component::RootDir => Some(LocateStep::Root),
            Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

struct PathWalk<'a> {
    facts: &'a dyn Facts,
    /// Part that exists, without links.
    known: PathBuf,
    /// Components that are missing below it.
    rest: Vec<OsString>,
    waiting: VecDeque<LocateStep>,
    links: usize,
}

impl PathWalk<'_> {
    fn take(&mut self, step: LocateStep) {
        match step {
            LocateStep::Root => self.known = PathBuf::from("/"),
            LocateStep::Name(name) if self.rest.is_empty() => self.enter(&name),
            LocateStep::Name(name) => self.rest.push(name),
            LocateStep::Up if self.rest.is_empty() => drop(self.known.pop()),
            LocateStep::Up => drop(self.rest.pop()),
        }
    }

    fn enter(&mut self, name: &OsStr) {
        let next = self.known.join(name);
        if let Ok(found) = self.facts.resolve(&next) {
            self.known = found.path;
            return;
        }
        match self.facts.read_link(&next) {
            Ok(target) if self.links < MAX_LINKS => {
                self.links += 1;
                for step in steps(&target).into_iter().rev() {
                    self.waiting.push_front(step);
                }
            }
            _ => self.rest.push(name.to_owned()),
        }
    }
}
