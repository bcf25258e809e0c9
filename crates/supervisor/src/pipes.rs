//! Descriptors that become the command's standard streams.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use nono_sys::{launch, process};

use crate::pump::Pump;
use crate::terminal::{Caller, is_terminal};

/// Standard streams of the command, where the caller chose them; `None` is this process's own. They stay open here as
/// long as this value lives: a reader at the other end of a pipe must wait for the end of the run, not for the end of
/// the file.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    pub input: Option<Arc<OwnedFd>>,
    pub output: Option<Arc<OwnedFd>>,
    pub errors: Option<Arc<OwnedFd>>,
}

impl Streams {
    fn stdio(&self) -> [RawFd; 3] {
        let raw = |fd: &Option<Arc<OwnedFd>>| fd.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        [raw(&self.input), raw(&self.output), raw(&self.errors)]
    }
}

/// Descriptors between the command's output and the caller's.
pub(crate) struct Pipes {
    pub(crate) stdio: [RawFd; 3],
    /// Pair of (read end, destination); the child's end is open until the fork.
    tapped: Option<(OwnedFd, OwnedFd)>,
    _childs: Option<OwnedFd>,
}

impl Pipes {
    /// Chooses the streams. A stream that is not a terminal stays what it is, pty or not. Errors are scanned through a
    /// pipe, unless they go to a terminal: then the command would notice, and with a pty they are seen anyway. Where
    /// both outputs are one file they stay one pipe, so that their order is kept.
    pub(crate) fn new(caller: &Caller, listen: bool, output_aside: bool) -> io::Result<Pipes> {
        let mut pipes = Pipes::as_they_are(caller, listen)?;
        if output_aside && !is_terminal(1) {
            let errors = pipes.stdio[2];
            pipes.stdio[1] = if errors < 0 { 2 } else { errors };
        }
        Ok(pipes)
    }

    /// Uses the caller's streams with nothing in between.
    pub(crate) fn given(streams: &Streams) -> Pipes {
        Pipes { stdio: streams.stdio(), tapped: None, _childs: None }
    }

    fn as_they_are(caller: &Caller, listen: bool) -> io::Result<Pipes> {
        let mut stdio = [0, 1, 2].map(|stream| if is_terminal(stream) { -1 } else { stream });
        if matches!(caller, Caller::Shared { .. }) {
            (stdio[0], stdio[1]) = (-1, -1);
        }
        if !listen || stdio[2] < 0 {
            return Ok(Pipes { stdio, tapped: None, _childs: None });
        }
        let (ours, childs) = launch::output_pipe()?;
        if !is_terminal(1) && process::same_open_file(1, 2) {
            stdio[1] = childs.as_raw_fd();
        }
        stdio[2] = childs.as_raw_fd();
        let sink = io::stderr().as_fd().try_clone_to_owned()?;
        Ok(Pipes { stdio, tapped: Some((ours, sink)), _childs: Some(childs) })
    }

    pub(crate) fn into_pumps(self) -> Vec<Pump> {
        self.tapped.into_iter().map(|(from, to)| Pump::new(from, to)).collect()
    }
}
