//! Detects git repositories that changed while they were scanned. Refs name objects, and `git gc` moves objects between
//! files, so files read at different moments may not fit together. Every entry of a `.git` is looked at a second time:
//! if all are unchanged, there was a moment between the two looks at which they existed together.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;

use crate::dirs::{DirId, Dirs};
use crate::scan::Listing;
use crate::scan_record::{Entries, Payload};
use crate::stat::{Stat, stat_at};

/// Scans after which a repository that goes on changing is left out.
pub(super) const ATTEMPTS: u32 = 3;

/// Paths of the repositories that changed. `listings` are in the order of their numbers, without gaps.
pub(super) fn changed(dirs: &Dirs, listings: &[Listing]) -> Vec<Vec<u8>> {
    // A directory's number is greater than its parent's.
    let mut repository_of: HashMap<DirId, DirId> = HashMap::new();
    let mut touched: HashMap<DirId, bool> = HashMap::new();
    for listing in listings {
        let Some((parent, name)) = dirs.entry(listing.id) else { continue };
        let outer = repository_of.get(&parent).copied();
        let Some(repository) = outer.or_else(|| (&*name == b".git").then_some(listing.id)) else { continue };
        repository_of.insert(listing.id, repository);
        // Unchanged since the last scan, which checked it the same way.
        *touched.entry(repository).or_default() |= !listing.same;
    }
    let mut changed: Vec<DirId> = Vec::new();
    for (id, repository) in &repository_of {
        let looked = touched.get(repository).copied().unwrap_or(false) && !changed.contains(repository);
        if looked && differs(dirs, listings, *id, id == repository) {
            changed.push(*repository);
        }
    }
    changed.into_iter().map(|id| dirs.path(id)).collect()
}

/// Whether a directory, or an entry of it, is not as it was when it was scanned.
fn differs(dirs: &Dirs, listings: &[Listing], id: DirId, itself: bool) -> bool {
    let Some(listing) = listings.get(id as usize) else { return true };
    // Unreadable and excluded directories are in no snapshot.
    if listing.left_out.is_some() {
        return false;
    }
    if itself && differs_in(dirs, listings, id) {
        return true;
    }
    let fd = match dirs.reopen(id) {
        Ok(fd) => fd,
        // It was made readable for the scan and is closed again now. If it was closed since, its own entry shows that.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return false,
        Err(_) => return true,
    };
    Entries::new(&listing.entries).any(|known| {
        known.is_ok_and(|known| {
            stat_at(fd.as_fd(), known.name).map_or(true, |now| !is_same(&known.stat(), &now.stat))
        })
    })
}

/// Whether the directory's own entry in its parent differs.
fn differs_in(dirs: &Dirs, listings: &[Listing], id: DirId) -> bool {
    let Some((parent, name)) = dirs.entry(id) else { return false };
    let Some(above) = listings.get(parent as usize) else { return true };
    let Ok(fd) = dirs.reopen(parent) else { return true };
    let mut entries = Entries::new(&above.entries).flatten();
    let known = entries.find(|known| known.payload == Payload::Dir(id));
    let now = stat_at(fd.as_fd(), &name);
    !matches!((known, now), (Some(known), Ok(now)) if is_same(&known.stat(), &now.stat))
}

/// Compares without the ctime of entries closed to their owner: the scan may have made them readable and closed them
/// again, which changes it. Names that come and go in a directory still show in its mtime.
fn is_same(then: &Stat, now: &Stat) -> bool {
    let needed = if then.is_dir() { 0o500 } else { 0o400 };
    let closed = then.permissions() & needed != needed;
    let then = if closed { Stat { ctime: now.ctime, ..*then } } else { *then };
    then.pack() == now.pack()
}
