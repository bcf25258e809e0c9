//! What a call has besides its arguments: the person, who may be asked, and the client, who may not want it any more.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nono::snapshot::Observer;

/// What the person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    Yes,
    No,
    /// The client has no way to ask.
    NobodyToAsk,
}

pub(super) trait Person {
    /// Show this, and wait for a yes. Whatever is none is a no.
    fn agrees(&self, message: &str) -> Agreement;
}

pub(super) struct Call<'a> {
    pub(super) person: &'a dyn Person,
    pub(super) stop: &'a Stop,
}

/// Held by whoever may end a call; dropped, it is ended.
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

/// The other side, in the call.
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
    /// Readable once the call is not wanted any more.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }

    /// For work on a tree, which then ends as soon as it can.
    pub(super) fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.asked))
    }
}

#[derive(Debug)]
pub(super) struct Watch(Arc<AtomicBool>);

impl Observer for Watch {
    fn progress(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
