//! Two sockets to talk to a supervisor while its command runs.
//!
//! `request.sock` is in the session directory, for the command: it asks for a file, a checkpoint or a restore.
//! `control.sock` is in nono's state, which is closed to the command, for the user: status and stop. Both use frames
//! (`frame`), one request per connection, and refuse clients that are on the wrong side of the sandbox (`peer`) or too
//! fast, too many or too slow (`rate_limit`). Decisions are made by the [`RequestService`](crate::request_service::RequestService), never here.
//!
//! A client may lie, stall, flood and vanish. Therefore every connection is served by a thread of its own, whose number
//! is bounded; every wait has a timeout except the wait for a decision; and every error ends in an error message or
//! silence, never in a grant.

mod client;
mod frame;
#[cfg(test)]
mod fuzzed;
mod message;
mod peer;
mod rate_limit;
mod serve;
mod server;
mod socket;

pub use crate::request_service::NoRequests;
pub use client::{ClientError, Wait, exchange, new_id};
pub use frame::{FrameError, MAX as MAX_JSON, VERSION};
pub use message::{
    ChannelRequest, ChannelResponse, ControlRequest, LosslessPath, RequestProblem, RunningStatus, SessionInfo,
};
pub use rate_limit::{Bounds, ChannelCounts};
pub use server::{ChannelConnector, ChannelThreads};
pub use socket::{CONTROL_SOCKET, Listening, REQUEST_SOCKET};

/// Sockets of a session, bound but not served yet: messages sent to them wait.
#[derive(Debug)]
pub struct Channels {
    pub request: Option<Listening>,
    pub control: Option<Listening>,
    pub info: SessionInfo,
    pub bounds: Bounds,
}
