//! Resolution of paths as far as they exist, with few calls to the file system.
//!
//! The policy names hundreds of paths in a handful of directories, and most of them are absent on any one host. So a
//! directory that is asked about often is listed once, and names are looked up in the listing: an absent name, a plain
//! file and a directory then cost no call at all. Links and special files are always followed by the file system
//! itself. What is absent keeps its lexical rest below the deepest ancestor that exists.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::facts::{EntryKind, Facts, FoundKind, ResolvedPath};
use crate::is_within;

/// Resolved location of a path, existing or not.
#[derive(Clone, Debug)]
pub(super) struct PathLocation {
    /// Canonical as far as it exists.
    pub(super) path: PathBuf,
    /// `None`: absent.
    pub(super) kind: Option<FoundKind>,
    /// The path itself, or its first component that is missing: nothing below can appear without it.
    pub(super) point: PathBuf,
}

pub(super) type Entries = Rc<Vec<(OsString, EntryKind)>>;

/// Number of lookups in one directory from which a listing is cheaper.
const WORTH_LISTING: u32 = 3;

pub(super) struct Locator<'a> {
    pub(super) facts: &'a dyn Facts,
    // Keyed by bytes: a `Path` hashes component by component, which is noticeable in the time of a whole run.
    parents: RefCell<HashMap<OsString, Rc<PathLocation>>>,
    listings: RefCell<HashMap<OsString, Entries>>,
    asked: RefCell<HashMap<OsString, u32>>,
}

impl<'a> Locator<'a> {
    pub(super) fn new(facts: &'a dyn Facts) -> Self {
        let (parents, listings, asked) = (RefCell::default(), RefCell::default(), RefCell::default());
        Locator { facts, parents, listings, asked }
    }

    /// Resolves through the file system itself, for the exact error.
    pub(super) fn find(&self, path: &Path) -> io::Result<ResolvedPath> {
        self.facts.resolve(path)
    }

    /// Like [`Locator::find`], without the error: `None` for a path that cannot be followed.
    pub(super) fn look_up(&self, path: &Path) -> Option<ResolvedPath> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return self.facts.resolve(path).ok();
        };
        let above = self.parent(parent);
        if above.kind != Some(FoundKind::Directory) {
            return None;
        }
        let own = above.path.join(name);
        let Some(entries) = self.known_entries(&above.path) else { return self.facts.resolve(&own).ok() };
        let index = entries.binary_search_by(|(known, _)| known.as_os_str().cmp(name)).ok()?;
        match entries[index].1 {
            EntryKind::Directory => Some(ResolvedPath { path: own, kind: FoundKind::Directory }),
            EntryKind::File => Some(ResolvedPath { path: own, kind: FoundKind::File }),
            EntryKind::Symlink | EntryKind::Other => self.facts.resolve(&own).ok(),
        }
    }

    /// Listing of a directory; `None` while single lookups are cheaper, or if it cannot be read.
    fn known_entries(&self, dir: &Path) -> Option<Entries> {
        if let Some(known) = self.listings.borrow().get(dir.as_os_str()) {
            return Some(Rc::clone(known));
        }
        let mut asked = self.asked.borrow_mut();
        let count = asked.entry(dir.into()).or_default();
        *count += 1;
        if *count < WORTH_LISTING { None } else { self.list(dir).ok() }
    }

    /// Locates a path. Never fails: a path that cannot be followed counts as absent from that component on.
    pub(super) fn place(&self, path: &Path) -> PathLocation {
        match self.look_up(path) {
            Some(found) => {
                PathLocation { point: found.path.clone(), path: found.path, kind: Some(found.kind) }
            }
            None => self.absent(path),
        }
    }

    /// Location of a directory that holds other paths, cached.
    pub(super) fn parent(&self, path: &Path) -> Rc<PathLocation> {
        if let Some(known) = self.parents.borrow().get(path.as_os_str()) {
            return Rc::clone(known);
        }
        let place = Rc::new(self.place(path));
        self.parents.borrow_mut().insert(path.into(), Rc::clone(&place));
        place
    }

    fn absent(&self, path: &Path) -> PathLocation {
        let Some(parent) = path.parent() else {
            return PathLocation { path: path.to_path_buf(), kind: None, point: path.to_path_buf() };
        };
        let above = self.parent(parent);
        let own = match path.file_name() {
            Some(name) => above.path.join(name),
            // The path ends in `..`: the component it removes did not exist either.
            None => above.path.parent().unwrap_or(&above.path).to_path_buf(),
        };
        let point = if above.kind.is_some() { own.clone() } else { above.point.clone() };
        PathLocation { path: own, kind: None, point }
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Entries> {
        if let Some(known) = self.listings.borrow().get(dir.as_os_str()) {
            return Ok(Rc::clone(known));
        }
        let mut entries = self.facts.list(dir)?;
        entries.sort();
        let entries = Rc::new(entries);
        self.listings.borrow_mut().insert(dir.into(), Rc::clone(&entries));
        Ok(entries)
    }
}

/// Equality of normal paths, by bytes.
pub(super) fn same(a: &Path, b: &Path) -> bool {
    a.as_os_str() == b.as_os_str()
}

pub(super) fn strictly_within(path: &Path, dir: &Path) -> bool {
    !same(path, dir) && is_within(path, dir)
}
