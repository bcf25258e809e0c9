//! Work beside a running command: copies its streams, and ends it at the timeout or on cancellation.

use std::borrow::Cow;
use std::io::{self, PipeReader};
use std::time::{Duration, Instant};

use nono_supervisor::Streams;

use super::ExecRequest;
use super::Input;
use crate::streams::{self, CancelPipe, LOOK, StreamPipes};

pub(super) struct Capture<'a> {
    wires: StreamPipes<'a>,
    timeout: Option<Duration>,
    cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// The command's output, and whether it was ended early.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub(super) said: streams::Captured,
    pub(super) timed_out: bool,
    pub(super) cancelled: bool,
}

impl<'a> Capture<'a> {
    /// Create the streams; returns the command's ends, too.
    pub(super) fn new(
        request: &ExecRequest<'a>,
        cancelled: &'a (dyn Fn() -> bool + Sync),
    ) -> io::Result<(Capture<'a>, Streams)> {
        let input = match request.input {
            Input::Inherited => None,
            Input::Given(bytes) => Some(Cow::Borrowed(bytes)),
        };
        let (wires, theirs) = StreamPipes::new(input, true, request.max_output)?;
        Ok((Capture { wires, timeout: request.timeout, cancelled }, theirs))
    }

    /// Serve until the run is over. Dropping `bell` ends the command; that happens on an error, too.
    pub(super) fn until(self, over: &PipeReader, bell: CancelPipe) -> io::Result<Captured> {
        let mut bell = Some(bell);
        let deadline = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut captured = Captured::default();
        let said = self.wires.attend(over, || {
            if bell.is_none() {
                return Ok(None);
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            captured.timed_out = left.is_some_and(|left| left.is_zero());
            captured.cancelled = (self.cancelled)();
            if captured.timed_out || captured.cancelled {
                bell = None;
            }
            Ok(left.into_iter().chain([LOOK]).min())
        })?;
        Ok(Captured { said: said.unwrap_or_default(), ..captured })
    }
}
