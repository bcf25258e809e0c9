//! Supervisor's side of a helper: started with nothing, read with a deadline, killed when dropped.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::wire::Frames;

/// Interval of the checks whether the caller still waits.
const LOOK: Duration = Duration::from_millis(100);
/// Time limit for the start, which takes milliseconds unless the machine is under load.
pub(crate) const START: Duration = Duration::from_secs(20);

#[derive(Debug, Error)]
pub(crate) enum HelperProcessError {
    #[error("cannot start its helper: {0}")]
    Start(io::Error),
    #[error("its helper failed: {0}")]
    Unable(String),
    #[error("its helper ended")]
    Ended,
    #[error("its helper sent an unexpected message")]
    OutOfTurn,
    #[error("its helper sent an invalid message: {0}")]
    Garbled(io::Error),
    #[error("there was no answer in time")]
    Late,
    #[error("the caller no longer waits for the answer")]
    Unwanted,
}

#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(
        command: &[OsString],
        input: Stdio,
        output: Stdio,
    ) -> Result<Process, HelperProcessError> {
        let nothing = || HelperProcessError::Start(io::Error::other("no program is named"));
        let (program, args) = command.split_first().ok_or_else(nothing)?;
        let child = Command::new(program)
            .args(args)
            .env_clear()
            .current_dir("/")
            // Ctrl-C is for the command.
            .process_group(0)
            .stdin(input)
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()
            .map_err(HelperProcessError::Start)?;
        Ok(Process(child))
    }

    /// Its input and output, if both are pipes.
    pub(crate) fn pipes(&mut self) -> Result<(ChildStdin, ChildStdout), HelperProcessError> {
        match (self.0.stdin.take(), self.0.stdout.take()) {
            (Some(input), Some(output)) => Ok((input, output)),
            _ => Err(HelperProcessError::Start(io::Error::other("it has no pipes"))),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself: then there is nothing to kill, and waiting reaps it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Messages of a helper, frame by frame.
#[derive(Debug)]
pub(crate) struct Incoming<R> {
    from: R,
    buffer: Vec<u8>,
    frames: Frames,
}

impl<R: Read + AsFd> Incoming<R> {
    pub(crate) fn new(from: R, frames: Frames) -> Incoming<R> {
        Incoming { from, buffer: Vec::new(), frames }
    }

    /// Whether everything read was consumed.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Whether there is no unread message.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_empty() && !self.readable(Duration::ZERO)
    }

    pub(crate) fn receive<T: DeserializeOwned>(
        &mut self,
        deadline: Instant,
        wanted: &dyn Fn() -> bool,
    ) -> Result<T, HelperProcessError> {
        loop {
            if let Some(said) = self.frames.take(&mut self.buffer).map_err(HelperProcessError::Garbled)? {
                return Ok(said);
            }
            if !wanted() {
                return Err(HelperProcessError::Unwanted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(HelperProcessError::Late);
            }
            if self.readable(left.min(LOOK)) {
                self.fill()?;
            }
        }
    }

    /// Next frame, without a deadline.
    pub(crate) fn wait<T: DeserializeOwned>(&mut self) -> Result<T, HelperProcessError> {
        loop {
            if let Some(said) = self.frames.take(&mut self.buffer).map_err(HelperProcessError::Garbled)? {
                return Ok(said);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<(), HelperProcessError> {
        let mut chunk = [0; 16 << 10];
        match self.from.read(&mut chunk) {
            Ok(0) => Err(HelperProcessError::Ended),
            Ok(got) => {
                self.buffer.extend_from_slice(&chunk[..got]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            // A socket whose peer closed it with unread data.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(HelperProcessError::Ended),
            Err(error) => Err(HelperProcessError::Garbled(error)),
        }
    }

    /// Whether it is readable. An error counts as readable: reading then returns it.
    fn readable(&self, wait: Duration) -> bool {
        let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut fds = [PollFd::new(&self.from, PollFlags::IN)];
        match poll(&mut fds, Some(&wait)) {
            Ok(ready) => ready > 0,
            Err(error) => error != rustix::io::Errno::INTR,
        }
    }
}
