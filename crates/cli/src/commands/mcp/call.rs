//! Context of a tool call: the user, who may be asked, and cancellation by the client.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nono::snapshot::Observer;

use super::person::Client;

/// Answer of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    Yes,
    No,
    /// The client has no way to ask.
    NoApprover,
}

pub(super) struct McpCall<'a> {
    pub(super) person: &'a Client,
    pub(super) stop: &'a Stop,
}

/// Handle that cancels a call when it is dropped.
#[derive(Debug)]
pub(super) struct Stopper {
    asked: Arc<AtomicBool>,
    _other_end: UnixStream,
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.asked.store(true, Ordering::Relaxed);
    }
}

/// Cancellation as the call sees it.
#[derive(Debug)]
pub(super) struct Stop {
    asked: Arc<AtomicBool>,
    end: UnixStream,
}

pub(super) fn stop() -> io::Result<(Stopper, Stop)> {
    let (other_end, end) = UnixStream::pair()?;
    let asked = Arc::new(AtomicBool::new(false));
    Ok((Stopper { asked: Arc::clone(&asked), _other_end: other_end }, Stop { asked, end }))
}

impl Stop {
    /// Descriptor that becomes readable when the call is cancelled.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }

    /// Observer that cancels work on a tree.
    pub(super) fn watch(&self) -> CallWatch {
        CallWatch(Arc::clone(&self.asked))
    }
}

#[derive(Debug)]
pub(super) struct CallWatch(Arc<AtomicBool>);

impl Observer for CallWatch {
    fn progress(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
