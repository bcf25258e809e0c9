//! Copying of bytes from one descriptor to another inside a poll loop, without blocking it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Number of bytes a pipe takes without blocking once poll says it is writable.
const CHUNK: usize = 4096;
const READ: usize = 16 * 1024;
/// Number of bytes that may wait for a slow sink before the source has to wait too.
const BUFFER: usize = 64 * 1024;

/// One direction of flow. Reads only while there is little left to write, so a slow reader slows the writer down, as
/// without nono.
#[derive(Debug)]
pub(crate) struct Pump {
    /// Source; `None` once it has ended or its output has no reader left. It is closed then, so that its writer gets
    /// the usual error.
    from: Option<File>,
    to: File,
    pending: VecDeque<u8>,
    /// Number of the last bytes that wait for the bytes after them.
    held: usize,
}

impl Pump {
    pub(crate) fn new(from: OwnedFd, to: OwnedFd) -> Pump {
        Pump { from: Some(from.into()), to: to.into(), pending: VecDeque::new(), held: 0 }
    }

    /// Descriptor to poll for reading: the source, unless it ended or enough is waiting.
    pub(crate) fn source(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.from.as_ref().filter(|_| self.pending.len() < BUFFER).map(|from| (from.as_fd(), false))
    }

    pub(crate) fn sink(&self) -> Option<(BorrowedFd<'_>, bool)> {
        (!self.is_flushed()).then(|| (self.to.as_fd(), true))
    }

    /// Whether nothing is left that may be written now.
    pub(crate) fn is_flushed(&self) -> bool {
        self.ready() == 0
    }

    /// Number of bytes that may be written now. After the source's end nothing is held back.
    fn ready(&self) -> usize {
        self.pending.len() - self.from.as_ref().map_or(0, |_| self.held.min(self.pending.len()))
    }

    /// Holds back this many of the last bytes.
    pub(crate) fn hold(&mut self, held: usize) {
        self.held = held;
    }

    /// Inserts these bytes before those held back.
    pub(crate) fn insert(&mut self, bytes: &[u8]) {
        let held = self.pending.split_off(self.ready());
        self.pending.extend(bytes);
        self.pending.extend(held);
    }

    pub(crate) fn is_done(&self) -> bool {
        self.from.is_none() && self.pending.is_empty()
    }

    /// Reads what is available. `look` sees the bytes.
    pub(crate) fn fill(&mut self, mut look: impl FnMut(&[u8])) {
        let mut buffer = [0u8; READ];
        let Some(from) = &mut self.from else { return };
        match from.read(&mut buffer) {
            Ok(0) => self.from = None,
            Ok(n) => {
                look(&buffer[..n]);
                self.pending.extend(&buffer[..n]);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // A pty whose last slave closed reads as EIO; that is its end of file.
            Err(_) => self.from = None,
        }
    }

    /// Writes one chunk.
    pub(crate) fn flush(&mut self) {
        let (front, _) = self.pending.as_slices();
        let chunk = &front[..front.len().min(CHUNK).min(self.ready())];
        match self.to.write(chunk) {
            Ok(n) => drop(self.pending.drain(..n)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => {
                self.from = None;
                self.pending.clear();
            }
        }
    }
}
