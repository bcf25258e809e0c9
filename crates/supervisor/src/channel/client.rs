//! The other end: one request, one answer.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nono_sys::wait;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::frame::{Along, FrameError, Message, encode, receive, send};
use super::listening::connect_to;
use super::message::{Problem, Response};

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    #[error("{}", nono_sys::errno::describe(.0))]
    Connect(io::Error),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("the answer cannot be read: {0}")]
    Answer(serde_json::Error),
    #[error("no answer came in time")]
    Late,
    #[error("the question was withdrawn")]
    Withdrawn,
    #[error("{message}")]
    Refused { problem: Problem, message: String },
}

/// How long an answer is waited for. By default for as long as a person may need.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait<'a> {
    pub patience: Option<Duration>,
    /// Once this can be read from, or is closed on its other side, the question is withdrawn.
    pub until: Option<BorrowedFd<'a>>,
}

/// Ask at the socket at `path`, and wait for the answer. Whoever stops waiting has withdrawn the question.
pub fn exchange(
    path: &Path,
    request: &impl Serialize,
    wait: Wait<'_>,
) -> Result<(Response, Option<OwnedFd>), ClientError> {
    let packet = encode(request)?;
    let socket = connect_to(path).map_err(ClientError::Connect)?;
    // Whoever refuses at once has closed already, and said why: that is what is read below.
    let sent = send(socket.as_fd(), &packet, None);
    let mut reset = false;
    let until = wait.patience.map(|patience| Instant::now() + patience);
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let watched = [Some((socket.as_fd(), false)), wait.until.map(|stop| (stop, false))];
        let ready = wait::poll(&watched, left).map_err(FrameError::Io)?;
        // An answer that is there counts.
        if ready == [false, true] {
            return Err(ClientError::Withdrawn);
        }
        if !ready.contains(&true) && left.is_some_and(|left| left.is_zero()) {
            return Err(ClientError::Late);
        }
        match receive(socket.as_fd(), Along::OneDescriptor) {
            Ok(None) => {}
            Ok(Some((message, descriptor))) => return understood(message).map(|answer| (answer, descriptor)),
            // A reset comes before what was said last: whoever refuses at once does not read the request.
            Err(FrameError::Closed) if !reset => reset = true,
            // Closed without a word: what went wrong before says more.
            Err(closed) => return Err(sent.err().unwrap_or(closed).into()),
        }
    }
}

fn understood(message: Message) -> Result<Response, ClientError> {
    match serde_json::from_value(Value::Object(message)).map_err(ClientError::Answer)? {
        Response::Error { error: problem, message, .. } => Err(ClientError::Refused { problem, message }),
        response => Ok(response),
    }
}

/// An id that nobody used before: where and when it was made, and a number.
pub fn new_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}-{:016x}", std::process::id(), now.as_nanos(), RandomState::new().hash_one(now))
}
