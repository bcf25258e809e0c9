//! Directories themselves: creating them, and setting their final attributes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode};

use super::super::meta::{self, CurrentAttributes, Handle, Problems};
use super::super::place_entry::{NotDone, TargetDir};
use super::super::plan::{DirEntryMode, DirIndex, Leave, PlanDir};
use super::super::{RestoreError, RestoreOutcome, Why};
use super::{ApplyWork, Fd};
use crate::diff::{Aspects, EntryRef};
use crate::dirs::open_dir;
use crate::disk;

impl ApplyWork<'_> {
    /// Remove an emptied directory, and put in place what replaces it.
    pub(super) fn remove(
        &self,
        index: DirIndex,
        old: &EntryRef,
        then: Option<&EntryRef>,
        parent: Option<&Fd>,
        outcome: &mut RestoreOutcome,
    ) -> Result<(), NotDone> {
        let parent = if let Some(parent) = parent {
            parent.clone()
        } else {
            let parent = self.plan.dirs[index].parent;
            self.opened.get(parent, None).map_err(RestoreError::io("open its parent"))?
        };
        disk::step().map_err(RestoreError::io("remove it"))?;
        match rustix::fs::unlinkat(&parent, old.name.as_bytes(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(rustix::io::Errno::NOTEMPTY | rustix::io::Errno::EXIST) => {
                return Err(NotDone::Skipped(Why::HoldsOthers));
            }
            Err(errno) => return Err(RestoreError::io("remove it")(errno).into()),
        }
        self.marks.own(self.plan, index);
        if let Some(new) = then {
            let mut problems = Vec::new();
            let mut place = TargetDir::new(parent.as_fd(), self.objects);
            let created = self.create(new, &mut place, &mut problems);
            self.report(index, None, problems, outcome);
            created?;
            self.marks.swapped(self.plan, index);
        }
        Ok(())
    }

    /// Set the final attributes of a directory.
    pub(super) fn leave(
        &self,
        index: DirIndex,
        dir: &PlanDir,
        fd: BorrowedFd<'_>,
        problems: &mut Problems,
    ) -> io::Result<()> {
        let touched = self.plan.is_touched(index);
        let stat = rustix::fs::fstat(fd)?;
        let mode = u16::try_from(stat.st_mode & 0o7777).unwrap_or(0);
        let handle = Handle::Open(fd);
        match &dir.leave {
            Leave::Alone | Leave::AsEntered => {}
            Leave::Target { old, new } => {
                let differs = old.as_ref().is_none_or(|old| Aspects::to_reach(old, new).metadata());
                if !differs && !touched && !self.opened.is_opened_up(index) {
                    return Ok(());
                }
                let xattrs = old.as_ref().map_or(&[][..], |old| &old.meta.xattrs);
                let has =
                    CurrentAttributes { xattrs, inherits: old.is_none(), ..CurrentAttributes::of(&stat) };
                meta::set(handle, has, &new.meta, problems);
            }
            Leave::AsFound(found) => {
                let wanted = found.meta.mode;
                let ours = self.opened.is_opened_up(index) || mode == wanted | 0o700;
                if mode != wanted && ours {
                    let set = handle.chmod(wanted);
                    problems.extend(set.err().map(RestoreError::io("change its permissions")));
                }
                let moved =
                    matches!(&dir.how, DirEntryMode::Enter(old) if old.meta.mtime != found.meta.mtime);
                if touched || moved {
                    let set = handle.set_mtime(found.meta.mtime);
                    problems.extend(set.err().map(RestoreError::io("set its time")));
                }
            }
        }
        Ok(())
    }
}

/// Create a directory that only this user can access until it is finished, or use one created meanwhile.
pub(super) fn make_dir(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, NotDone> {
    disk::step().map_err(RestoreError::io("create the directory"))?;
    let made = rustix::fs::mkdirat(parent, name, Mode::RWXU);
    match (made, open_dir(parent, name)) {
        (Ok(()) | Err(rustix::io::Errno::EXIST), Ok(fd)) => Ok(fd),
        (Err(rustix::io::Errno::EXIST), Err(_)) => Err(NotDone::Skipped(Why::Appeared)),
        (Err(errno), _) => Err(RestoreError::io("create the directory")(errno).into()),
        (Ok(()), Err(error)) => Err(RestoreError::io("open it")(error).into()),
    }
}
