//! Asking for more from inside a sandbox, in words: a file, a checkpoint, a restore.
//!
//! `socket` is what `NONO_REQUEST_SOCK` names. Every call waits for as long as whoever is asked needs.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nono_checkpoint::remote::Action;
use nono_policy::AccessMode;
use nono_supervisor::channel::{ClientError, LosslessPath, Request, Response, exchange, new_id};
use nono_sys::errno;
use serde_json::Value;
use thiserror::Error;

/// Why there is no answer, or nothing that can be used.
#[derive(Debug, Error)]
pub enum RequestError {
    #[error("{} does not answer: {error}", socket.display())]
    NoAnswer { socket: PathBuf, error: ClientError },
    #[error("{} gave an answer to another question", socket.display())]
    WrongAnswer { socket: PathBuf },
    #[error("{} is granted, but cannot be opened: {}", path.display(), errno::describe(.source))]
    Open { path: PathBuf, source: io::Error },
    #[error("{0}")]
    Refused(String),
}

/// What came of asking for a file.
#[derive(Debug)]
pub enum Answer {
    /// Here it is, opened as asked for.
    Granted {
        fd: OwnedFd,
        by: String,
    },
    /// It was open from the start: it can be opened like any other file.
    AlreadyOpen,
    Denied {
        by: Option<String>,
        reason: String,
    },
}

/// Ask for `path`, which is absolute.
pub fn ask_for(
    socket: &Path,
    path: &Path,
    access: AccessMode,
    reason: Option<&str>,
) -> Result<Answer, RequestError> {
    let request = Request::CapabilityRequest {
        id: new_id(),
        path: path.to_owned(),
        access,
        reason: reason.map(str::to_owned),
    };
    let wrong = || RequestError::WrongAnswer { socket: socket.to_owned() };
    match send(socket, &request)? {
        (Response::CapabilityResponse { granted: true, already_open: true, .. }, _) => {
            Ok(Answer::AlreadyOpen)
        }
        (Response::CapabilityResponse { granted: true, by, .. }, fd) => {
            Ok(Answer::Granted { fd: fd.ok_or_else(wrong)?, by: by.unwrap_or_default() })
        }
        (Response::CapabilityResponse { granted: false, by, reason, .. }, _) => {
            Ok(Answer::Denied { by, reason: reason.unwrap_or_default() })
        }
        _ => Err(wrong()),
    }
}

/// Ask for `path`, and have it opened; `None` if the answer was no.
pub fn ask(
    socket: &Path,
    path: &Path,
    access: AccessMode,
    reason: Option<&str>,
) -> Result<Option<OwnedFd>, RequestError> {
    match ask_for(socket, path, access, reason)? {
        Answer::Granted { fd, .. } => Ok(Some(fd)),
        Answer::AlreadyOpen => open(path, access).map(Some),
        Answer::Denied { .. } => Ok(None),
    }
}

/// Who said no to this in the session, if somebody did. Nobody is asked.
pub fn refused_by(socket: &Path, path: &Path, access: AccessMode) -> Result<Option<String>, RequestError> {
    match send(socket, &Request::RefusalRequest { id: new_id(), path: path.to_owned(), access })? {
        (Response::RefusalResponse { by, .. }, _) => Ok(by),
        _ => Err(RequestError::WrongAnswer { socket: socket.to_owned() }),
    }
}

/// Open what is open already.
pub fn open(path: &Path, access: AccessMode) -> Result<OwnedFd, RequestError> {
    let mut options = OpenOptions::new();
    options.read(access.reads()).write(access.writes()).create(access.writes()).truncate(false);
    match options.open(path) {
        Ok(file) => Ok(file.into()),
        Err(source) => Err(RequestError::Open { path: path.to_owned(), source }),
    }
}

/// Have a snapshot taken now; its number.
pub fn checkpoint(socket: &Path, reason: &str) -> Result<u64, RequestError> {
    let request = Request::CheckpointRequest { id: new_id(), reason: Some(reason.to_owned()) };
    match send(socket, &request)? {
        (Response::CheckpointResponse { snapshot: Some(snapshot), .. }, _) => Ok(snapshot),
        (Response::CheckpointResponse { snapshot: None, reason, .. }, _) => {
            Err(RequestError::Refused(reason.unwrap_or_default()))
        }
        _ => Err(RequestError::WrongAnswer { socket: socket.to_owned() }),
    }
}

/// Have `paths` (all, if there are none) put back to a snapshot, once the person agreed; a sentence about the outcome.
pub fn restore(socket: &Path, snapshot: u64, paths: &[PathBuf]) -> Result<String, RequestError> {
    let paths = paths.iter().cloned().map(LosslessPath).collect();
    match send(socket, &Request::RestoreRequest { id: new_id(), snapshot, paths })? {
        (Response::RestoreResponse { restored: true, outcome, .. }, _) => Ok(outcome),
        (Response::RestoreResponse { restored: false, outcome, .. }, _) => {
            Err(RequestError::Refused(outcome))
        }
        _ => Err(RequestError::WrongAnswer { socket: socket.to_owned() }),
    }
}

/// Have an address opened in the person's browser; who agreed.
pub fn open_url(socket: &Path, url: &str) -> Result<String, RequestError> {
    match send(socket, &Request::UrlRequest { id: new_id(), url: url.to_owned() })? {
        (Response::UrlResponse { opened: true, by, .. }, _) => Ok(by.unwrap_or_default()),
        (Response::UrlResponse { opened: false, reason, .. }, _) => {
            Err(RequestError::Refused(reason.unwrap_or_default()))
        }
        _ => Err(RequestError::WrongAnswer { socket: socket.to_owned() }),
    }
}

/// Have something done about the checkpoints of a project; what it answers. `patience`: as long as it takes if `None`.
pub fn history(socket: &Path, action: Action, patience: Option<Duration>) -> Result<Value, RequestError> {
    let request = Request::HistoryRequest { id: new_id(), action: Box::new(action) };
    let asked = exchange(socket, &request, patience)
        .map_err(|error| RequestError::NoAnswer { socket: socket.to_owned(), error });
    match asked? {
        (Response::HistoryResponse { answer, error: None, .. }, _) => Ok(answer),
        (Response::HistoryResponse { error: Some(error), .. }, _) => Err(RequestError::Refused(error)),
        _ => Err(RequestError::WrongAnswer { socket: socket.to_owned() }),
    }
}

fn send(socket: &Path, request: &Request) -> Result<(Response, Option<OwnedFd>), RequestError> {
    exchange(socket, request, None)
        .map_err(|error| RequestError::NoAnswer { socket: socket.to_owned(), error })
}

/// Keep `fd` open under `number` for the program that replaces this one.
pub fn hand_down(fd: OwnedFd, number: i32) -> io::Result<()> {
    nono_sys::socket::hand_down(fd, number)
}
