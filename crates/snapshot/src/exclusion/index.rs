//! Paths in git's index. Where it cannot be read the caller sets the ignore rules aside, so nothing is lost; a wrong path
//! can only change coverage.

use super::paths::PathSet;
use crate::git_index::GitIndex;

/// Paths that git tracks in one repository, relative to its top.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tracked {
    pub(super) files: PathSet,
    /// Submodules: directories that are tracked as such.
    pub(super) links: PathSet,
}

/// Parse a whole index; `id_len` is the length of an object id.
pub(super) fn parse(bytes: &[u8], id_len: usize, fold: bool) -> Result<Tracked, &'static str> {
    let mut index = GitIndex::open(bytes, id_len)?;
    let mut tracked = Tracked::default();
    while let Some(entry) = index.entry()? {
        if index.is_other_stage() {
            continue;
        }
        let set = if entry.is_link() { &mut tracked.links } else { &mut tracked.files };
        set.push(index.path()).then_some(()).ok_or("it is too large")?;
    }
    if fold {
        tracked.files.fold();
        tracked.links.fold();
    }
    Ok(tracked)
}
