//! The helper process as the supervisor sees it: started, sent questions with a deadline, and killed when it is dropped
//! or sends an unexpected frame. It is not trusted: it holds no secret, and cannot forge an answer.

use std::ffi::OsString;
use std::io::Write;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use super::wire::{FRAMES, Post, Setup, WebhookHelperMessage};
use crate::helper::{HelperProcessError, Incoming, Process, START};

#[derive(Debug)]
pub(super) struct Helper {
    process: Process,
    input: ChildStdin,
    output: Incoming<ChildStdout>,
    sequence: u64,
}

impl Helper {
    /// Start the process, and wait until it is confined.
    pub(super) fn start(command: &[OsString], setup: &Setup) -> Result<Helper, HelperProcessError> {
        let mut process = Process::start(command, Stdio::piped(), Stdio::piped())?;
        let (input, output) = process.pipes()?;
        let mut helper = Helper { process, input, output: Incoming::new(output, FRAMES), sequence: 0 };
        helper.send(setup)?;
        match helper.output.receive(Instant::now() + START, &|| true)? {
            WebhookHelperMessage::Ready => Ok(helper),
            WebhookHelperMessage::Unable { why } => Err(HelperProcessError::Unable(why)),
            WebhookHelperMessage::Reply { .. } | WebhookHelperMessage::Nothing { .. } => {
                Err(HelperProcessError::OutOfTurn)
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Whether it is running and silent, as it should be between questions.
    pub(super) fn is_ready(&mut self) -> bool {
        self.process.is_alive() && self.output.is_silent()
    }

    /// Send one question to the service. After an error the helper must not be used again.
    pub(super) fn post(
        &mut self,
        mut post: Post,
        deadline: Instant,
        wanted: &dyn Fn() -> bool,
    ) -> Result<WebhookHelperMessage, HelperProcessError> {
        self.sequence += 1;
        post.sequence = self.sequence;
        self.send(&post)?;
        let said = self.output.receive(deadline, wanted)?;
        match said {
            WebhookHelperMessage::Reply { sequence, .. } | WebhookHelperMessage::Nothing { sequence, .. }
                if sequence == self.sequence && self.output.is_empty() =>
            {
                Ok(said)
            }
            _ => Err(HelperProcessError::OutOfTurn),
        }
    }

    fn send(&mut self, value: &impl serde::Serialize) -> Result<(), HelperProcessError> {
        let frame = FRAMES.encode(value).map_err(HelperProcessError::Garbled)?;
        self.input.write_all(&frame).map_err(|_| HelperProcessError::Ended)
    }
}
