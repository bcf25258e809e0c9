//! The two ways to talk to a supervisor while its command runs.
//!
//! `request.sock` stands in the session folder, for the command: it asks in words for a file, a checkpoint or a restore.
//! `control.sock` stands in nono's state, which is closed to the command, for whoever started it: what runs, and make it
//! end. Both speak frames (`frame`), one request to a connection, and refuse whoever is on the wrong side of the sandbox
//! (`peer`), too fast, too many or too slow (`gate`). What is asked for is decided by the [`Office`](crate::report::Office), never here.
//!
//! Whoever asks may lie, stall, flood and vanish. So: every connection is served by a thread of its own, of which there
//! are so many and no more; nothing is waited for without a bound but the office's answer; and every error ends in an
//! error message or silence, never in a grant.

mod client;
mod closed;
mod frame;
#[cfg(test)]
mod fuzzed;
mod gate;
mod listening;
mod message;
mod peer;
mod reception;
mod serve;

pub use client::{ClientError, Wait, exchange, new_id};
pub use closed::Closed;
pub use frame::{FrameError, MAX as MAX_JSON, VERSION};
pub use gate::{Bounds, Counts};
pub use listening::{CONTROL_SOCKET, Listening, REQUEST_SOCKET};
pub use message::{ControlRequest, LosslessPath, Problem, Request, Response, SessionInfo, Status};
pub use reception::{Door, Reception};

/// The sockets of a session, bound, with nobody behind them yet: what is sent to them waits.
#[derive(Debug)]
pub struct Channels {
    pub request: Option<Listening>,
    pub control: Option<Listening>,
    pub info: SessionInfo,
    pub bounds: Bounds,
}
