//! What was restored, on the disk: the journal may go only then.
//!
//! A few files are synced one by one, with the folders they are in. Of many, the whole file system is: that waits for
//! everything that others wrote, too, but the disk is asked once and not once for each file.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, OFlags};

use super::RestoreError;
use super::plan::{DirIndex, How, RestorePlan, Step};
use super::verify::each_dir;
use crate::disk;
use crate::node::Kind;

/// More files than this are synced with their whole file system. On ext4 one file costs 4 to 7 ms and `syncfs` 4 to 15 ms, but
/// that has no bound where others have much to write.
const FEW: usize = 8;

/// Wait until what was restored survives a loss of power.
pub fn sync(plan: &RestorePlan) -> Result<(), RestoreError> {
    if plan.is_empty() {
        return Ok(());
    }
    let files: usize = plan.dirs.iter().map(|dir| dir.steps.iter().filter(is_file).count()).sum();
    let synced = if files <= FEW && sync_each(plan)? { Ok(()) } else { sync_filesystems(plan) };
    synced.map_err(RestoreError::io("write the restored files to the disk"))
}

/// Whether a step leaves a regular file whose bytes or attributes are new.
fn is_file(step: &Step) -> bool {
    step.sides().1.is_some_and(|new| matches!(new.kind, Kind::File { .. }))
}

/// Every file and every folder. False where one could not be opened, as files that are closed to their owner.
fn sync_each(plan: &RestorePlan) -> Result<bool, RestoreError> {
    let mut all = Ok(true);
    each_dir(plan, &mut |index, dir| {
        if !matches!(all, Ok(true)) {
            return;
        }
        all = match dir {
            Ok(dir) => sync_dir(plan, index, dir),
            Err(_) if matches!(plan.dirs[index].how, How::Remove { .. }) => Ok(true),
            Err(_) => Ok(false),
        };
    });
    all.map_err(RestoreError::io("write the restored files to the disk"))
}

fn sync_dir(plan: &RestorePlan, index: DirIndex, dir: BorrowedFd<'_>) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for step in plan.dirs[index].steps.iter().filter(is_file) {
        let Some(new) = step.sides().1 else { continue };
        match rustix::fs::openat(dir, new.name.as_bytes(), flags, Mode::empty()) {
            Ok(file) => fsync(file.as_fd())?,
            // Somebody took it away, or it could not be restored, which was reported.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => {}
            Err(_) => return Ok(false),
        }
    }
    fsync(dir).map(|()| true)
}

fn fsync(file: BorrowedFd<'_>) -> io::Result<()> {
    disk::step()?;
    match rustix::fs::fsync(file) {
        // What cannot be synced there never can be.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOTSUP) => Ok(()),
        other => Ok(other?),
    }
}

/// Every file system that a directory of the plan is on.
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
