//! Checks before anything is modified: whether the filesystems are writable and have enough space.

use std::io;
use std::path::PathBuf;

use super::plan::{DirEntryMode, RestorePlan};
use crate::pool;

#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: the filesystem is read-only", path.display())]
    ReadOnly { path: PathBuf },
    #[error("{}: not enough space: {needed} bytes needed, {available} free", path.display())]
    NoSpace { path: PathBuf, needed: u64, available: u64 },
}

/// Check the roots of a plan, each on its own filesystem. Removed bytes are counted against new ones, so a tree that
/// filled the disk can be restored. Roots that fill a filesystem together are reported by their steps.
pub fn preflight(plan: &RestorePlan) -> Result<(), PreflightError> {
    for top in &plan.tops {
        let dir = &plan.dirs[*top];
        let DirEntryMode::Top(path) = &dir.how else { continue };
        if dir.steps.is_empty() && dir.children.is_empty() {
            continue;
        }
        // The root's own filesystem if it is a mount; its parent's if it is gone.
        let root = dir.children.first().map(|child| plan.path_of(*child, None));
        let stat = root.as_ref().and_then(|root| rustix::fs::statvfs(root).ok().map(|stat| (root, stat)));
        let (path, stat) = match stat {
            Some(found) => found,
            None => match rustix::fs::statvfs(path) {
                Ok(stat) => (path, stat),
                // The parent is gone: that root fails, and the others are restored.
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => continue,
                Err(errno) => {
                    return Err(PreflightError::Io { path: path.clone(), source: errno.into() });
                }
            },
        };
        if stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
            return Err(PreflightError::ReadOnly { path: path.clone() });
        }
        let (new, old, largest) = plan.sizes(*top);
        let threads = pool::threads() as u64;
        let needed =
            new.saturating_sub(old).saturating_add(largest.saturating_mul(threads).min(new.min(old)));
        let available = stat.f_bavail.saturating_mul(stat.f_frsize);
        if needed > available {
            return Err(PreflightError::NoSpace { path: path.clone(), needed, available });
        }
    }
    Ok(())
}
