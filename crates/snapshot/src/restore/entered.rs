//! The directory that a root stands in, where it lies in another root. That one was restored before, with its time; work
//! on the names in it must not change what was just put back.

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
        // What cannot be opened is not worked in either, which is reported there.
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
