//! Copying the streams between a command and the host program that runs it.
//!
//! One loop writes the input and reads both outputs, so that none blocks the others. It stops at the end of the run,
//! not at the end of the pipes: another process may have inherited one and keep it open.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use nono_supervisor::Streams;
use nono_sys::{launch, wait};

/// Interval at which to check whether the command is still wanted.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
const CHUNK: usize = 64 * 1024;
/// Maximum number of bytes read after the command's end. A pipe that holds more is being written by another process.
const LAST_WORDS: usize = 64 << 20;

/// Signals the end of the run when dropped. By a byte, not by closing the pipe: a process that was forked meanwhile
/// holds a copy of the descriptor.
pub(crate) struct RunEndSignal(PipeWriter);

impl RunEndSignal {
    pub(crate) fn new() -> io::Result<(PipeReader, RunEndSignal)> {
        let (over, end) = io::pipe()?;
        Ok((over, RunEndSignal(end)))
    }
}

impl Drop for RunEndSignal {
    fn drop(&mut self) {
        // Fails only if the reader is gone.
        let _ = self.0.write_all(b".");
    }
}

/// Ends a command when dropped, or earlier on request; by a byte, as for [`RunEndSignal`].
pub(crate) struct CancelPipe(PipeWriter);

impl CancelPipe {
    /// Create the pipe; the other end is for [`nono_supervisor::Options::cancel`].
    pub(crate) fn new() -> io::Result<(Arc<OwnedFd>, CancelPipe)> {
        let (cancel, bell) = io::pipe()?;
        Ok((Arc::new(cancel.into()), CancelPipe(bell)))
    }

    pub(crate) fn gently(&mut self) -> io::Result<()> {
        self.0.write_all(&[nono_supervisor::GENTLY])
    }
}

impl Drop for CancelPipe {
    fn drop(&mut self) {
        // Fails only if the command has ended.
        let _ = self.0.write_all(b"!");
    }
}

#[derive(Clone, Debug, Default)]
pub struct Captured {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Whether output was dropped.
    pub truncated: bool,
}

/// Our ends of a command's streams.
pub(crate) struct StreamPipes<'a> {
    input: Option<Feeding<'a>>,
    /// None, or stdout and stderr.
    outputs: Vec<Taking>,
}

impl<'a> StreamPipes<'a> {
    /// Create the pipes; returns our ends and the command's. A stream that is neither given nor captured is inherited.
    /// `limit`: maximum number of bytes kept of each output; the rest is read and dropped.
    pub(crate) fn new(
        input: Option<Cow<'a, [u8]>>,
        capture: bool,
        limit: Option<u64>,
    ) -> io::Result<(StreamPipes<'a>, Streams)> {
        let mut wires = StreamPipes { input: None, outputs: Vec::new() };
        let mut streams = Streams::default();
        if let Some(bytes) = input {
            let (theirs, ours) = launch::output_pipe()?;
            wires.input = Some(Feeding { to: ours_only(ours)?, bytes, at: 0 });
            streams.input = Some(Arc::new(theirs));
        }
        if capture {
            let limit = limit.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
            for stream in [&mut streams.output, &mut streams.errors] {
                let (ours, theirs) = launch::output_pipe()?;
                *stream = Some(Arc::new(theirs));
                let from = Some(ours_only(ours)?);
                wires.outputs.push(Taking { from, kept: Vec::new(), limit, truncated: false });
            }
        }
        Ok((wires, streams))
    }

    /// Copy until [`RunEndSignal`] is dropped. `look` is called before each wait and returns its maximum duration; `None` is
    /// unlimited.
    pub(crate) fn attend(
        mut self,
        over: &PipeReader,
        mut look: impl FnMut() -> io::Result<Option<Duration>>,
    ) -> io::Result<Option<Captured>> {
        let mut buffer = vec![0; if self.outputs.is_empty() { 0 } else { CHUNK }];
        loop {
            let timeout = look()?;
            let sink = self.input.as_ref().map(|input| (input.to.as_fd(), true));
            let mut fds = vec![Some((over.as_fd(), false)), sink];
            fds.extend(self.outputs.iter().map(Taking::source));
            let ready = wait::poll(&fds, timeout)?;
            if ready[1] && !self.input.as_mut().map_or(Ok(false), Feeding::feed)? {
                self.input = None;
            }
            for (taking, _) in self.outputs.iter_mut().zip(&ready[2..]).filter(|(_, ready)| **ready) {
                taking.take(&mut buffer)?;
            }
            if ready[0] {
                break;
            }
        }
        for taking in &mut self.outputs {
            taking.take_rest(&mut buffer)?;
        }
        let mut outputs = self.outputs.into_iter();
        let (Some(output), Some(errors)) = (outputs.next(), outputs.next()) else { return Ok(None) };
        let truncated = output.truncated || errors.truncated;
        Ok(Some(Captured { stdout: output.kept, stderr: errors.kept, truncated }))
    }
}

/// Make our end non-blocking. The command's end is another open file and does not change.
fn ours_only(fd: OwnedFd) -> io::Result<File> {
    rustix::io::ioctl_fionbio(&fd, true)?;
    Ok(fd.into())
}

fn comes_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

struct Feeding<'a> {
    to: File,
    bytes: Cow<'a, [u8]>,
    at: usize,
}

impl Feeding<'_> {
    /// Write what fits; returns whether there is more. A command that closes its input is no error.
    fn feed(&mut self) -> io::Result<bool> {
        match self.to.write(&self.bytes[self.at..]) {
            Ok(n) => self.at += n,
            Err(error) if comes_later(&error) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(self.at < self.bytes.len())
    }
}

/// One output stream. `from` is `None` after its end.
struct Taking {
    from: Option<File>,
    kept: Vec<u8>,
    limit: usize,
    truncated: bool,
}

impl Taking {
    fn source(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.from.as_ref().map(|from| (from.as_fd(), false))
    }

    /// Read once what is available; returns the number of bytes. 0: nothing now, or end of file.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(from) = &mut self.from else { return Ok(0) };
        let n = match from.read(buffer) {
            Ok(n) => n,
            Err(error) if comes_later(&error) => return Ok(0),
            Err(error) => return Err(error),
        };
        if n == 0 {
            self.from = None;
        }
        let room = (self.limit - self.kept.len()).min(n);
        self.kept.try_reserve(room).map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
        self.kept.extend_from_slice(&buffer[..room]);
        self.truncated |= room < n;
        Ok(n)
    }

    /// Read the rest of the pipe: no process of the command is left to write more.
    fn take_rest(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let mut rest = LAST_WORDS;
        while rest > 0 {
            match self.take(buffer)? {
                0 => break,
                n => rest = rest.saturating_sub(n),
            }
        }
        Ok(())
    }
}
