//! Serving of one connection, from its request to its answer.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nono_policy::DeniedReason;
use nono_sys::wait;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::frame::{Along, FrameError, Message, encode, receive, send};
use super::message::{Asks, ControlRequest, LosslessPath, Problem, Request, Response, Status};
use super::peer::{self, Side};
use super::reception::{Desk, Hall};
use crate::approval::Asker;
use crate::report::{Because, MediationReport, Reply};

/// Answer, the descriptor sent with it, and whether the command is stopped once it is sent.
struct Answer {
    response: Response,
    descriptor: Option<OwnedFd>,
    stop: bool,
}

impl From<Response> for Answer {
    fn from(response: Response) -> Answer {
        Answer { response, descriptor: None, stop: false }
    }
}

/// Rejection of a request, sent as an error.
struct Refusal {
    id: Option<String>,
    problem: Problem,
    message: String,
}

fn refused(problem: Problem, message: &impl ToString) -> Refusal {
    Refusal { id: None, problem, message: message.to_string() }
}

/// Serves the client at the other end of `connection`. `known`: the connection was made for this program, which was
/// checked.
pub(super) fn serve(hall: &Hall, desk: &Desk, connection: &OwnedFd, known: Option<Asker>) {
    match answer(hall, desk, connection.as_fd(), known) {
        Ok(Answer { response, descriptor, stop }) => {
            desk.gate.served();
            // A client that does not read its answer loses it; the decision stands.
            let _ =
                encode(&response).and_then(|packet| send(connection.as_fd(), &packet, descriptor.as_ref()));
            if stop {
                hall.ring_stop();
            }
        }
        Err(Refusal { id, problem, message }) => {
            desk.gate.count(problem);
            refuse(connection.as_fd(), id, problem, message);
        }
    }
}

/// Sends the reason of a refusal.
pub(super) fn refuse(connection: BorrowedFd<'_>, id: Option<String>, error: Problem, message: String) {
    let response = Response::Error { id, error, message };
    // The client may be gone.
    let _ = encode(&response).and_then(|packet| send(connection, &packet, None));
}

fn answer(
    hall: &Hall,
    desk: &Desk,
    connection: BorrowedFd<'_>,
    known: Option<Asker>,
) -> Result<Answer, Refusal> {
    let asker = match known {
        Some(asker) => asker,
        None => peer::check(connection, desk.side, hall.init)
            .map_err(|stranger| refused(Problem::Stranger, &stranger))?,
    };
    let message = read(hall, desk, connection)?;
    match desk.side {
        Side::Inside => Ok(request(hall, &asker, connection, admitted(desk, message)?)),
        Side::Outside => Ok(control(hall, admitted(desk, message)?)),
    }
}

/// Reads the one message of a connection, if it arrives in time.
fn read(hall: &Hall, desk: &Desk, connection: BorrowedFd<'_>) -> Result<Message, Refusal> {
    let until = Instant::now() + desk.gate.bounds.patience;
    loop {
        match receive(connection, Along::Nothing) {
            Ok(Some((message, _))) => return Ok(message),
            Ok(None) => {}
            Err(error) => return Err(refused(Problem::Malformed, &error)),
        }
        let left = until.saturating_duration_since(Instant::now());
        let fds = [Some((connection, false)), Some((hall.closing(), false))];
        let ready = wait::poll(&fds, Some(left))
            .map_err(|error| refused(Problem::Malformed, &FrameError::Io(error)))?;
        if ready[1] {
            return Err(refused(Problem::Ending, &"the session has ended"));
        }
        if !ready[0] && left.is_zero() {
            return Err(refused(Problem::TooSlow, &"no request came in time"));
        }
    }
}

/// Parses a request and checks that its id is new.
fn admitted<R: Asks>(desk: &Desk, message: Message) -> Result<R, Refusal> {
    let request = R::read(message).map_err(|error| refused(Problem::Malformed, &error))?;
    let again = |problem| Refusal {
        id: Some(request.id().to_owned()),
        problem,
        message: match problem {
            Problem::Replayed => "this id was used before".to_owned(),
            _ => "this session has reached its maximum number of requests".to_owned(),
        },
    };
    desk.gate.first_time(request.id()).map_err(again)?;
    Ok(request)
}

fn request(hall: &Hall, asker: &Asker, connection: BorrowedFd<'_>, request: Request) -> Answer {
    let wanted = || !hall.is_closing() && !hung_up(connection);
    match request {
        Request::CapabilityRequest { id, path, access, reason } => {
            capability(id, hall.office.capability(asker, path, access, reason, &wanted))
        }
        Request::CheckpointRequest { id, reason } => {
            let taken = hall.office.checkpoint(asker, reason.as_deref().unwrap_or_default());
            let reason = taken.as_ref().err().cloned();
            Response::CheckpointResponse { id, snapshot: taken.ok(), reason }.into()
        }
        Request::RestoreRequest { id, snapshot, paths } => {
            let paths: Vec<PathBuf> = paths.into_iter().map(|LosslessPath(path)| path).collect();
            let outcome = hall.office.restore(asker, snapshot, paths, &wanted);
            let restored = outcome.is_ok();
            Response::RestoreResponse { id, restored, outcome: outcome.unwrap_or_else(|why| why) }.into()
        }
        Request::UrlRequest { id, url } => {
            let opened = hall.office.open_url(asker, &url, &wanted);
            let reason = opened.as_ref().err().cloned();
            Response::UrlResponse { id, opened: opened.is_ok(), by: opened.ok(), reason }.into()
        }
        Request::HistoryRequest { id, action } => {
            let (answer, error) = match hall.office.history(asker, *action, &wanted) {
                Ok(answer) => (answer, None),
                Err(error) => (serde_json::Value::Null, Some(error)),
            };
            history(id, answer, error).into()
        }
        Request::RefusalRequest { id, path, access } => {
            Response::RefusalResponse { id, by: hall.office.refusal(&path, access) }.into()
        }
    }
}

/// Response to a history request; an answer that does not fit into a frame is an error.
fn history(id: String, answer: serde_json::Value, error: Option<String>) -> Response {
    let response = Response::HistoryResponse { id: id.clone(), answer, error };
    if !matches!(encode(&response), Err(FrameError::TooLong)) {
        return response;
    }
    let error = Some("the answer is too long for the channel".to_owned());
    Response::HistoryResponse { id, answer: serde_json::Value::Null, error }
}

fn capability(id: String, reply: Reply) -> Answer {
    let response = |granted, already_open, proxy_fd, by, reason| Response::CapabilityResponse {
        id,
        granted,
        already_open,
        proxy_fd,
        by,
        reason,
    };
    match reply {
        Reply::Granted { fd, by } => Answer {
            response: response(true, false, Some(0), Some(by), None),
            descriptor: Some(fd),
            stop: false,
        },
        Reply::AlreadyOpen => response(true, true, None, None, None).into(),
        Reply::Denied { because } => {
            let (by, reason) = words(because);
            response(false, false, None, by, Some(reason)).into()
        }
    }
}

/// Approver that denied it, if one did, and the reason.
fn words(because: Because) -> (Option<String>, String) {
    match because {
        Because::Policy { reason } => (None, policy_words(&reason)),
        Because::Answered { by } => (Some(by), "the approver denied it".to_owned()),
        Because::NoAnswer { why } | Because::Failed { why } => (None, why),
        Because::TooMany => (None, "too many questions".to_owned()),
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

fn control(hall: &Hall, request: ControlRequest) -> Answer {
    match request {
        ControlRequest::Status { id } => {
            let report = hall.office.report();
            let status = Status {
                session: hall.info.clone(),
                questions_waiting: hall.office.waiting(),
                expansions: u64::try_from(report.expansions.len()).unwrap_or(u64::MAX),
                mediation: report,
                requests: hall.request_counts(),
            };
            fitting(&id, status).into()
        }
        ControlRequest::Stop { id } => {
            Answer { response: Response::StopResponse { id, stopping: true }, descriptor: None, stop: true }
        }
    }
}

/// Status response cut to the size of a frame: its lists are halved until it fits.
fn fitting(id: &str, mut status: Status) -> Response {
    loop {
        let MediationReport { refused, expansions, .. } = &status.mediation;
        let lengths = (refused.len(), expansions.len());
        let response = Response::StatusResponse { id: id.to_owned(), status: Box::new(status.clone()) };
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
