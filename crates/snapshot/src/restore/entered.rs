//! Keeps the time of a root's parent directory that lies in another root. That root was restored before, with its
//! times; work on the names in it must not change them.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use super::meta::Handle;
use super::open::open_top;
use super::plan::{How, Leave, PlanDir};
use super::{Failed, RestoreError};
use crate::node::Time;

pub(super) struct Entered {
    path: PathBuf,
    fd: OwnedFd,
    time: Time,
}

impl Entered {
    pub(super) fn look(dir: &PlanDir) -> Option<Entered> {
        let (How::Top(path), Leave::AsEntered) = (&dir.how, &dir.leave) else { return None };
        // If it cannot be opened, the restore cannot work in it either and reports that.
        let fd = open_top(path).ok()?;
        let stat = rustix::fs::fstat(&fd).ok()?;
        let time = Time { seconds: stat.st_mtime, nanos: u32::try_from(stat.st_mtime_nsec).ok()? };
        Some(Entered { path: path.clone(), fd, time })
    }

    pub(super) fn leave(self) -> Option<Failed> {
        let set = Handle::Open(self.fd.as_fd()).set_mtime(self.time);
        let error = set.err().map(RestoreError::io("set its time"))?;
        Some(Failed { path: self.path, error })
    }
}
