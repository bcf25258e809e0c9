//! The helper process, as the supervisor sees it: started, spoken to with a deadline, and killed when it is dropped or
//! says anything out of turn. It is not trusted: it holds no secret, and cannot make an answer that would be believed.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

use super::wire::{self, Post, Said, Setup};

/// How often it is looked whether anybody still waits for the answer.
const LOOK: Duration = Duration::from_millis(100);
/// Starting takes milliseconds; a machine under load may take long.
const START: Duration = Duration::from_secs(20);

#[derive(Debug, Error)]
pub(super) enum Trouble {
    #[error("its helper cannot be started: {0}")]
    Start(io::Error),
    #[error("its helper cannot work: {0}")]
    Unable(String),
    #[error("its helper ended")]
    Ended,
    #[error("its helper spoke out of turn")]
    OutOfTurn,
    #[error("its helper cannot be understood: {0}")]
    Garbled(io::Error),
    #[error("there was no answer in time")]
    Late,
    #[error("nobody waits for the answer any more")]
    Unwanted,
}

#[derive(Debug)]
pub(super) struct Helper {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    buffer: Vec<u8>,
    sequence: u64,
}

impl Helper {
    /// Start it, and wait until it is confined.
    pub(super) fn start(command: &[OsString], setup: &Setup) -> Result<Helper, Trouble> {
        let nothing = || Trouble::Start(io::Error::other("no program is named"));
        let (program, args) = command.split_first().ok_or_else(nothing)?;
        let mut child = Command::new(program)
            .args(args)
            .env_clear()
            .current_dir("/")
            // Ctrl-C is for the command.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Trouble::Start)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Trouble::Start(io::Error::other("it has no pipes")));
        };
        let mut helper = Helper { child, input, output, buffer: Vec::new(), sequence: 0 };
        helper.send(setup)?;
        match helper.receive(Instant::now() + START, &|| true)? {
            Said::Ready => Ok(helper),
            Said::Unable { why } => Err(Trouble::Unable(why)),
            Said::Reply { .. } | Said::Nothing { .. } => Err(Trouble::OutOfTurn),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it is there and silent, as it should be between questions.
    pub(super) fn is_ready(&mut self) -> bool {
        let alive = matches!(self.child.try_wait(), Ok(None));
        alive && self.buffer.is_empty() && !self.readable(Duration::ZERO)
    }

    /// Put one question to the service. After an error the helper is not to be used again.
    pub(super) fn post(
        &mut self,
        mut post: Post,
        deadline: Instant,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Said, Trouble> {
        self.sequence += 1;
        post.sequence = self.sequence;
        self.send(&post)?;
        let said = self.receive(deadline, wanted)?;
        match said {
            Said::Reply { sequence, .. } | Said::Nothing { sequence, .. }
                if sequence == self.sequence && self.buffer.is_empty() =>
            {
                Ok(said)
            }
            _ => Err(Trouble::OutOfTurn),
        }
    }

    fn send(&mut self, value: &impl serde::Serialize) -> Result<(), Trouble> {
        let frame = wire::encode(value).map_err(Trouble::Garbled)?;
        self.input.write_all(&frame).map_err(|_| Trouble::Ended)
    }

    fn receive(&mut self, deadline: Instant, wanted: &dyn Fn() -> bool) -> Result<Said, Trouble> {
        loop {
            if let Some(said) = wire::take(&mut self.buffer).map_err(Trouble::Garbled)? {
                return Ok(said);
            }
            if !wanted() {
                return Err(Trouble::Unwanted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Trouble::Late);
            }
            if self.readable(left.min(LOOK)) {
                let mut chunk = [0; 16 << 10];
                match self.output.read(&mut chunk) {
                    Ok(0) => return Err(Trouble::Ended),
                    Ok(got) => self.buffer.extend_from_slice(&chunk[..got]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(Trouble::Garbled(error)),
                }
            }
        }
    }

    /// An error counts as readable: reading then says what it is.
    fn readable(&self, wait: Duration) -> bool {
        let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut fds = [PollFd::new(&self.output, PollFlags::IN)];
        match poll(&mut fds, Some(&wait)) {
            Ok(ready) => ready > 0,
            Err(error) => error != rustix::io::Errno::INTR,
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill, and waiting takes its last trace away.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
