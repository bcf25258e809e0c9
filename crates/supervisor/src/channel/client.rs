//! Client side of the channels: one request, one answer.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nono_sys::wait;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::frame::{AllowedDescriptors, FrameError, Message, encode, receive, send};
use super::message::{ChannelResponse, RequestProblem};
use super::socket::connect_to;

#[derive(Debug, Error)]
pub enum ClientError {
    #[error("{}", nono_sys::errno::describe(.0))]
    Connect(io::Error),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("cannot read the answer: {0}")]
    Answer(serde_json::Error),
    #[error("no answer came in time")]
    Late,
    #[error("the question was withdrawn")]
    Withdrawn,
    #[error("{message}")]
    Refused { problem: RequestProblem, message: String },
}

/// Waiting time for an answer. By default as long as a person may need.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait<'a> {
    pub patience: Option<Duration>,
    /// The request is withdrawn once this becomes readable or is closed on its other side.
    pub until: Option<BorrowedFd<'a>>,
}

/// Sends a request to the socket at `path` and waits for the answer. To stop waiting is to withdraw the request.
pub fn exchange(
    path: &Path,
    request: &impl Serialize,
    wait: Wait<'_>,
) -> Result<(ChannelResponse, Option<OwnedFd>), ClientError> {
    let packet = encode(request)?;
    let socket = connect_to(path).map_err(ClientError::Connect)?;
    // A server that refuses at once has already closed and sent its reason: that is read below.
    let sent = send(socket.as_fd(), &packet, None);
    let mut reset = false;
    let until = wait.patience.map(|patience| Instant::now() + patience);
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let watched = [Some((socket.as_fd(), false)), wait.until.map(|stop| (stop, false))];
        let ready = wait::poll(&watched, left).map_err(FrameError::Io)?;
        // An answer that has arrived wins over a withdrawal.
        if ready == [false, true] {
            return Err(ClientError::Withdrawn);
        }
        if !ready.contains(&true) && left.is_some_and(|left| left.is_zero()) {
            return Err(ClientError::Late);
        }
        match receive(socket.as_fd(), AllowedDescriptors::OneDescriptor) {
            Ok(None) => {}
            Ok(Some((message, descriptor))) => return understood(message).map(|answer| (answer, descriptor)),
            // A reset is reported before the last message: a server that refuses at once does not read the request.
            Err(FrameError::Closed) if !reset => reset = true,
            // Closed without a message: the earlier error says more.
            Err(closed) => return Err(sent.err().unwrap_or(closed).into()),
        }
    }
}

fn understood(message: Message) -> Result<ChannelResponse, ClientError> {
    match serde_json::from_value(Value::Object(message)).map_err(ClientError::Answer)? {
        ChannelResponse::Error { error: problem, message, .. } => {
            Err(ClientError::Refused { problem, message })
        }
        response => Ok(response),
    }
}

/// Unique id of a request: process, time and a random number.
pub fn new_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}-{:016x}", std::process::id(), now.as_nanos(), RandomState::new().hash_one(now))
}
