//! Checks after a restore that everything is as planned. Contents were checked while they were written and put in place
//! by a rename, so a stat of each name is enough: kind, size, permissions and time.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Stat};

use super::displace;
use super::meta::is_mtime;
use super::open::{open_path, open_top};
use super::plan::{DirEntryMode, DirIndex, Leave, NameStep, RestorePlan};
use super::{FailedPath, RestoreError, RestoreOutcome};
use crate::dirs::open_dir;
use crate::node::{Entry, Kind};

/// Check every restored name. Returns those that are wrong and were not reported already.
pub fn verify(plan: &RestorePlan, outcome: &RestoreOutcome) -> Vec<FailedPath> {
    let skipped = outcome.skipped.iter().map(|one| one.path.as_path());
    let known: HashSet<&Path> = skipped.chain(outcome.failed.iter().map(|one| one.path.as_path())).collect();
    let mut failed = Vec::new();
    each_dir(plan, &mut |index, dir| match dir {
        Ok(dir) => {
            for step in plan.dirs[index].steps.iter() {
                let (old, new) = step.sides();
                let Some(entry) = new.or(old) else { continue };
                let stat = rustix::fs::statat(dir, entry.name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
                let fine = match (&stat, new) {
                    (Ok(stat), Some(new)) => is_as(stat, new),
                    (Err(rustix::io::Errno::NOENT), None) => true,
                    // Closed to its owner, as before: the work in it was done before it was closed.
                    (Err(rustix::io::Errno::ACCESS), _) => is_closed(plan, index),
                    _ => false,
                };
                if !fine && !matches!(step, NameStep::Keep) {
                    let path = plan.path_of(index, Some(&entry.name));
                    failed.push(FailedPath { path, error: RestoreError::Verify });
                }
            }
        }
        Err(_) if matches!(plan.dirs[index].how, DirEntryMode::Remove { .. }) => {}
        // A removed root whose parent was removed with it; another entry may be there now.
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied && is_emptied(plan, index) => {}
        // Closed to its owner, as before: only root can look.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && is_closed(plan, index) => {}
        Err(source) => {
            let error = RestoreError::Io { doing: "open it", source };
            failed.push(FailedPath { path: plan.path_of(index, None), error });
        }
    });
    // Below a directory that could not be entered nothing was done.
    failed.retain(|one| !one.path.ancestors().any(|path| known.contains(path)));
    failed
}

/// Whether the only step in a root's parent directory is the root's removal.
fn is_emptied(plan: &RestorePlan, index: DirIndex) -> bool {
    let dir = &plan.dirs[index];
    let goes = |child: &DirIndex| matches!(plan.dirs[*child].how, DirEntryMode::Remove { then: None, .. });
    matches!(dir.how, DirEntryMode::Top(_))
        && dir.steps.iter().all(|step| step.sides().1.is_none())
        && dir.children.iter().all(goes)
}

/// Whether a directory, or one above it, is left without the permissions to look into it.
fn is_closed(plan: &RestorePlan, mut index: DirIndex) -> bool {
    const LOOK: u16 = 0o500;
    loop {
        let dir = &plan.dirs[index];
        let mode = match &dir.leave {
            Leave::Target { new, .. } => new.meta.mode,
            Leave::AsFound(found) => found.meta.mode,
            Leave::Alone | Leave::AsEntered => LOOK,
        };
        if mode & LOOK != LOOK {
            return true;
        }
        if dir.parent == index {
            return false;
        }
        index = dir.parent;
    }
}

fn is_as(stat: &Stat, entry: &Entry) -> bool {
    let size = match &entry.kind {
        Kind::File { size, .. } => u64::try_from(stat.st_size).is_ok_and(|found| found == *size),
        _ => true,
    };
    let is_link = matches!(entry.kind, Kind::Symlink { .. });
    let mode = is_link || stat.st_mode & 0o7777 == u32::from(entry.meta.mode);
    size && mode
        && is_mtime(stat, entry.meta.mtime)
        && displace::kind_of(stat) == displace::expected_kind(&entry.kind)
}

/// Visit every directory of a plan, opened beneath its root's parent.
pub(super) fn each_dir(plan: &RestorePlan, visit: &mut dyn FnMut(DirIndex, io::Result<BorrowedFd<'_>>)) {
    let mut top: io::Result<OwnedFd> = Err(io::ErrorKind::NotFound.into());
    let mut last: Option<(DirIndex, OwnedFd)> = None;
    // Below a directory that cannot be opened nothing can: remember that instead of trying each level of a deep tree.
    let mut closed: HashMap<DirIndex, i32> = HashMap::new();
    for (index, dir) in plan.dirs.iter().enumerate() {
        if let DirEntryMode::Top(path) = &dir.how {
            top = open_top(path);
            visit(index, top.as_ref().map(AsFd::as_fd).map_err(|error| error.kind().into()));
            continue;
        }
        if let Some(errno) = closed.get(&dir.parent).copied() {
            closed.insert(index, errno);
            visit(index, Err(io::Error::from_raw_os_error(errno)));
            continue;
        }
        // In a deep tree, most directories are in the previous one.
        let opened = match (&last, &top, dir.name()) {
            (Some((above, fd)), _, Some(name)) if *above == dir.parent => {
                open_dir(fd.as_fd(), name.as_bytes())
            }
            (_, Ok(top), _) => open_path(top.as_fd(), &plan.names(index).1),
            (_, Err(_), _) => continue,
        };
        match opened {
            Ok(fd) => {
                visit(index, Ok(fd.as_fd()));
                last = Some((index, fd));
            }
            Err(error) => {
                closed.extend(error.raw_os_error().map(|errno| (index, errno)));
                visit(index, Err(error));
            }
        }
    }
}
