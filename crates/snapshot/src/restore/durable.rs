//! Syncs restored files to disk: only then may the journal be removed.
//!
//! A few files are synced one by one, with their folders. For many, the whole filesystem is synced: that also waits for
//! everything that others wrote, but it is one call instead of one for each file.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, OFlags};

use super::plan::{DirEntryMode, DirIndex, NameStep, RestorePlan};
use super::verify::each_dir;
use super::{RestoreError, Result};
use crate::disk;
use crate::node::Kind;

/// Maximum number of files synced one by one: on ext4 4 to 7 ms each, `syncfs` 4 to 15 ms, more if others write.
const FEW: usize = 8;

/// Wait until restored files survive a power loss.
pub fn sync(plan: &RestorePlan) -> Result<()> {
    if plan.is_empty() {
        return Ok(());
    }
    let files: usize = plan.dirs.iter().map(|dir| dir.steps.iter().filter(is_file).count()).sum();
    let synced = if files <= FEW && sync_each(plan)? { Ok(()) } else { sync_filesystems(plan) };
    synced.map_err(RestoreError::io("sync the restored files to disk"))
}

/// Whether a step leaves a regular file whose bytes or attributes are new.
fn is_file(step: &NameStep) -> bool {
    step.sides().1.is_some_and(|new| matches!(new.kind, Kind::File { .. }))
}

/// Sync every file and folder. False if one could not be opened, such as files closed to their owner.
fn sync_each(plan: &RestorePlan) -> Result<bool> {
    let mut all = Ok(true);
    each_dir(plan, &mut |index, dir| {
        if !matches!(all, Ok(true)) {
            return;
        }
        all = match dir {
            Ok(dir) => sync_dir(plan, index, dir),
            Err(_) if matches!(plan.dirs[index].how, DirEntryMode::Remove { .. }) => Ok(true),
            Err(_) => Ok(false),
        };
    });
    all.map_err(RestoreError::io("sync the restored files to disk"))
}

fn sync_dir(plan: &RestorePlan, index: DirIndex, dir: BorrowedFd<'_>) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for step in plan.dirs[index].steps.iter().filter(is_file) {
        let Some(new) = step.sides().1 else { continue };
        match rustix::fs::openat(dir, new.name.as_bytes(), flags, Mode::empty()) {
            Ok(file) => fsync(file.as_fd())?,
            // Removed by another process, or not restored, which was reported.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => {}
            Err(_) => return Ok(false),
        }
    }
    fsync(dir).map(|()| true)
}

fn fsync(file: BorrowedFd<'_>) -> io::Result<()> {
    disk::step()?;
    match rustix::fs::fsync(file) {
        // It can never be synced there.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOTSUP) => Ok(()),
        other => Ok(other?),
    }
}

/// Sync every filesystem that a directory of the plan is on.
fn sync_filesystems(plan: &RestorePlan) -> io::Result<()> {
    let mut synced = HashSet::new();
    let mut result = Ok(());
    each_dir(plan, &mut |_, dir| {
        if let (Ok(()), Ok(dir)) = (&result, dir) {
            result = sync_filesystem(dir, &mut synced);
        }
    });
    result
}

fn sync_filesystem(dir: BorrowedFd<'_>, synced: &mut HashSet<u64>) -> io::Result<()> {
    if synced.insert(rustix::fs::fstat(dir)?.st_dev) {
        disk::step()?;
        rustix::fs::syncfs(dir)?;
    }
    Ok(())
}
