//! Keeps the time of a root's parent directory that lies in another root, which was restored before.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use super::meta::Handle;
use super::open::open_top;
use super::plan::{DirEntryMode, Leave, PlanDir};
use super::{FailedPath, RestoreError};
use crate::node::Time;

pub(super) struct Entered {
    path: PathBuf,
    fd: OwnedFd,
    time: Time,
}

impl Entered {
    pub(super) fn look(dir: &PlanDir) -> Option<Entered> {
        let (DirEntryMode::Top(path), Leave::AsEntered) = (&dir.how, &dir.leave) else { return None };
        // If it cannot be opened, the restore cannot work in it either and reports that.
        let fd = open_top(path).ok()?;
        let stat = rustix::fs::fstat(&fd).ok()?;
        let time = Time { seconds: stat.st_mtime, nanos: u32::try_from(stat.st_mtime_nsec).ok()? };
        Some(Entered { path: path.clone(), fd, time })
    }

    pub(super) fn leave(self) -> Option<FailedPath> {
        let set = Handle::Open(self.fd.as_fd()).set_mtime(self.time);
        let error = set.err().map(RestoreError::io("set its time"))?;
        Some(FailedPath { path: self.path, error })
    }
}
