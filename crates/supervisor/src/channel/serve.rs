//! Serving of one connection, from its request to its answer.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nono_policy::DeniedReason;
use nono_sys::wait;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::frame::{AllowedDescriptors, FrameError, Message, encode, receive, send};
use super::message::{
    ChannelRequest, ChannelResponse, CheckedRequest, ControlRequest, LosslessPath, RequestProblem,
    RunningStatus,
};
use super::peer::{self, PeerSide};
use super::server::{Channel, ChannelServer};
use crate::approval::Asker;
use crate::report::{MediationReport, RefusalReason};
use crate::request_service::RequestReply;

/// Answer, the descriptor sent with it, and whether the command is stopped once it is sent.
struct ChannelAnswer {
    response: ChannelResponse,
    descriptor: Option<OwnedFd>,
    stop: bool,
}

impl From<ChannelResponse> for ChannelAnswer {
    fn from(response: ChannelResponse) -> ChannelAnswer {
        ChannelAnswer { response, descriptor: None, stop: false }
    }
}

/// Rejection of a request, sent as an error.
struct Refusal {
    id: Option<String>,
    problem: RequestProblem,
    message: String,
}

fn refused(problem: RequestProblem, message: &impl ToString) -> Refusal {
    Refusal { id: None, problem, message: message.to_string() }
}

/// Serves the client at the other end of `connection`. `known`: the connection was made for this program, which was
/// checked.
pub(super) fn serve(server: &ChannelServer, channel: &Channel, connection: &OwnedFd, known: Option<Asker>) {
    match answer(server, channel, connection.as_fd(), known) {
        Ok(ChannelAnswer { response, descriptor, stop }) => {
            channel.gate.served();
            // A client that does not read its answer loses it; the decision stands.
            let _ =
                encode(&response).and_then(|packet| send(connection.as_fd(), &packet, descriptor.as_ref()));
            if stop {
                server.ring_stop();
            }
        }
        Err(Refusal { id, problem, message }) => {
            channel.gate.count(problem);
            refuse(connection.as_fd(), id, problem, message);
        }
    }
}

pub(super) fn refuse(connection: BorrowedFd<'_>, id: Option<String>, error: RequestProblem, message: String) {
    let response = ChannelResponse::Error { id, error, message };
    // The client may be gone.
    let _ = encode(&response).and_then(|packet| send(connection, &packet, None));
}

fn answer(
    server: &ChannelServer,
    channel: &Channel,
    connection: BorrowedFd<'_>,
    known: Option<Asker>,
) -> Result<ChannelAnswer, Refusal> {
    let asker = match known {
        Some(asker) => asker,
        None => peer::check(connection, channel.side, server.init)
            .map_err(|stranger| refused(RequestProblem::Stranger, &stranger))?,
    };
    let message = read(server, channel, connection)?;
    match channel.side {
        PeerSide::Inside => Ok(request(server, &asker, connection, admitted(channel, message)?)),
        PeerSide::Outside => Ok(control(server, admitted(channel, message)?)),
    }
}

/// Reads the one message of a connection, if it arrives in time.
fn read(server: &ChannelServer, channel: &Channel, connection: BorrowedFd<'_>) -> Result<Message, Refusal> {
    let until = Instant::now() + channel.gate.bounds.patience;
    loop {
        match receive(connection, AllowedDescriptors::Nothing) {
            Ok(Some((message, _))) => return Ok(message),
            Ok(None) => {}
            Err(error) => return Err(refused(RequestProblem::Malformed, &error)),
        }
        let left = until.saturating_duration_since(Instant::now());
        let fds = [Some((connection, false)), Some((server.closing(), false))];
        let ready = wait::poll(&fds, Some(left))
            .map_err(|error| refused(RequestProblem::Malformed, &FrameError::Io(error)))?;
        if ready[1] {
            return Err(refused(RequestProblem::Ending, &"the session has ended"));
        }
        if !ready[0] && left.is_zero() {
            return Err(refused(RequestProblem::TooSlow, &"no request came in time"));
        }
    }
}

/// Parses a request and checks that its id is new.
fn admitted<R: CheckedRequest>(channel: &Channel, message: Message) -> Result<R, Refusal> {
    let request = R::read(message).map_err(|error| refused(RequestProblem::Malformed, &error))?;
    let again = |problem| Refusal {
        id: Some(request.id().to_owned()),
        problem,
        message: match problem {
            RequestProblem::Replayed => "this id was used before".to_owned(),
            _ => "this session has reached its maximum number of requests".to_owned(),
        },
    };
    channel.gate.first_time(request.id()).map_err(again)?;
    Ok(request)
}

fn request(
    server: &ChannelServer,
    asker: &Asker,
    connection: BorrowedFd<'_>,
    request: ChannelRequest,
) -> ChannelAnswer {
    let wanted = || !server.is_closing() && !hung_up(connection);
    match request {
        ChannelRequest::CapabilityRequest { id, path, access, reason } => {
            capability(id, server.request_service.capability(asker, path, access, reason, &wanted))
        }
        ChannelRequest::CheckpointRequest { id, reason } => {
            let taken = server.request_service.checkpoint(asker, reason.as_deref().unwrap_or_default());
            let reason = taken.as_ref().err().map(ToString::to_string);
            ChannelResponse::CheckpointResponse { id, snapshot: taken.ok(), reason }.into()
        }
        ChannelRequest::RestoreRequest { id, snapshot, paths } => {
            let paths: Vec<PathBuf> = paths.into_iter().map(|LosslessPath(path)| path).collect();
            let outcome = server.request_service.restore(asker, snapshot, paths, &wanted);
            let restored = outcome.is_ok();
            ChannelResponse::RestoreResponse {
                id,
                restored,
                outcome: outcome.unwrap_or_else(|why| why.to_string()),
            }
            .into()
        }
        ChannelRequest::UrlRequest { id, url } => {
            let opened = server.request_service.open_url(asker, &url, &wanted);
            let reason = opened.as_ref().err().map(ToString::to_string);
            ChannelResponse::UrlResponse { id, opened: opened.is_ok(), by: opened.ok(), reason }.into()
        }
        ChannelRequest::HistoryRequest { id, action } => {
            let (answer, error) = match server.request_service.history(asker, *action, &wanted) {
                Ok(answer) => (answer, None),
                Err(error) => (serde_json::Value::Null, Some(error.to_string())),
            };
            history(id, answer, error).into()
        }
        ChannelRequest::RefusalRequest { id, path, access } => {
            ChannelResponse::RefusalResponse { id, by: server.request_service.refusal(&path, access) }.into()
        }
    }
}

/// Response to a history request; an answer that does not fit into a frame is an error.
fn history(id: String, answer: serde_json::Value, error: Option<String>) -> ChannelResponse {
    let response = ChannelResponse::HistoryResponse { id: id.clone(), answer, error };
    if !matches!(encode(&response), Err(FrameError::TooLong)) {
        return response;
    }
    let error = Some("the answer is too long for the channel".to_owned());
    ChannelResponse::HistoryResponse { id, answer: serde_json::Value::Null, error }
}

fn capability(id: String, reply: RequestReply) -> ChannelAnswer {
    let response = |granted, already_open, proxy_fd, by, reason| ChannelResponse::CapabilityResponse {
        id,
        granted,
        already_open,
        proxy_fd,
        by,
        reason,
    };
    match reply {
        RequestReply::Granted { fd, by } => ChannelAnswer {
            response: response(true, false, Some(0), Some(by), None),
            descriptor: Some(fd),
            stop: false,
        },
        RequestReply::AlreadyOpen => response(true, true, None, None, None).into(),
        RequestReply::Denied { because } => {
            let (by, reason) = words(because);
            response(false, false, None, by, Some(reason)).into()
        }
    }
}

/// Approver that denied it, if one did, and the reason.
fn words(because: RefusalReason) -> (Option<String>, String) {
    match because {
        RefusalReason::Policy { reason } => (None, policy_words(&reason)),
        RefusalReason::Answered { by } => (Some(by), "the approver denied it".to_owned()),
        RefusalReason::NoAnswer { why } | RefusalReason::Failed { why } => (None, why),
        RefusalReason::TooMany => (None, "too many questions".to_owned()),
    }
}

fn policy_words(reason: &DeniedReason) -> String {
    match reason {
        DeniedReason::NonoState => "nono's own files are never open".to_owned(),
        DeniedReason::AgentSettings { agent } => format!("settings of {agent} are never writable"),
        DeniedReason::Protected { .. } => reason.words(),
        DeniedReason::DenyRule { source } => format!("denied by {source}"),
        DeniedReason::NotGranted
        | DeniedReason::InsufficientAccess { .. }
        | DeniedReason::CarvedDirectory { .. } => "not granted".to_owned(),
    }
}

fn control(server: &ChannelServer, request: ControlRequest) -> ChannelAnswer {
    match request {
        ControlRequest::Status { id } => {
            let report = server.request_service.report();
            let status = RunningStatus {
                session: server.info.clone(),
                questions_waiting: server.request_service.waiting(),
                expansions: u64::try_from(report.expansions.len()).unwrap_or(u64::MAX),
                mediation: report,
                requests: server.request_counts(),
            };
            fitting(&id, status).into()
        }
        ControlRequest::Stop { id } => ChannelAnswer {
            response: ChannelResponse::StopResponse { id, stopping: true },
            descriptor: None,
            stop: true,
        },
    }
}

/// Status response cut to the size of a frame: its lists are halved until it fits.
fn fitting(id: &str, mut status: RunningStatus) -> ChannelResponse {
    loop {
        let MediationReport { refused, expansions, .. } = &status.mediation;
        let lengths = (refused.len(), expansions.len());
        let response =
            ChannelResponse::StatusResponse { id: id.to_owned(), status: Box::new(status.clone()) };
        if lengths == (0, 0) || !matches!(encode(&response), Err(FrameError::TooLong)) {
            return response;
        }
        let mediation = &mut status.mediation;
        let dropped = mediation.refused.split_off(lengths.0 / 2);
        mediation.refused_unlisted += dropped.iter().map(|one| one.count).sum::<u64>();
        mediation.expansions.truncate(lengths.1 / 2);
    }
}

/// Whether the client has closed its end or is gone.
fn hung_up(connection: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&connection, PollFlags::RDHUP)];
    let now = Timespec::try_from(Duration::ZERO).ok();
    // An error means there is no connection either.
    poll(&mut fds, now.as_ref()).is_err() || !fds[0].revents().is_empty()
}
