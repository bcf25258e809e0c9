//! Requests from inside a sandbox: access to a file, a checkpoint, a restore.
//!
//! `socket` is the value of `NONO_REQUEST_SOCK`. A call waits as long as the approver needs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nono_checkpoint::supervisor_request::RemoteAction;
use nono_policy::AccessMode;
use nono_sys::errno;
use nono_sys::hex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use thiserror::Error;

pub use nono_sys::socket::hand_down;

pub use crate::channel::Wait;
use crate::channel::{ChannelRequest, ChannelResponse, ClientError, LosslessPath, exchange, new_id};

/// Reasons why there is no usable answer.
#[derive(Debug, Error)]
pub enum RequestError {
    #[error("{} does not answer: {error}", socket.display())]
    NoAnswer { socket: PathBuf, error: ClientError },
    #[error("{} sent an unexpected response", socket.display())]
    WrongAnswer { socket: PathBuf },
    #[error("cannot open {}, though it is granted: {}", path.display(), errno::describe(.source))]
    Open { path: PathBuf, source: io::Error },
    #[error("{0}")]
    Refused(String),
}

#[derive(Debug)]
pub enum FileRequestAnswer {
    /// The file, opened as requested.
    Granted {
        fd: OwnedFd,
        by: String,
    },
    /// Granted from the start: it can be opened like any other file.
    AlreadyOpen,
    Denied {
        by: Option<String>,
        reason: String,
    },
}

/// Request access to `path`, which is absolute.
pub fn ask_for(
    socket: &Path,
    path: &Path,
    access: AccessMode,
    reason: Option<&str>,
    wait: Wait<'_>,
) -> Result<FileRequestAnswer, RequestError> {
    let request = ChannelRequest::CapabilityRequest {
        id: new_id(),
        path: path.to_owned(),
        access,
        reason: reason.map(str::to_owned),
    };
    let wrong = || RequestError::WrongAnswer { socket: socket.to_owned() };
    match send_and_wait(socket, &request, wait)? {
        (ChannelResponse::CapabilityResponse { granted: true, already_open: true, .. }, _) => {
            Ok(FileRequestAnswer::AlreadyOpen)
        }
        (ChannelResponse::CapabilityResponse { granted: true, by, .. }, fd) => {
            Ok(FileRequestAnswer::Granted { fd: fd.ok_or_else(wrong)?, by: by.unwrap_or_default() })
        }
        (ChannelResponse::CapabilityResponse { granted: false, by, reason, .. }, _) => {
            Ok(FileRequestAnswer::Denied { by, reason: reason.unwrap_or_default() })
        }
        _ => Err(wrong()),
    }
}

/// Request access to `path` and open it; `None` if it was denied.
pub fn ask(
    socket: &Path,
    path: &Path,
    access: AccessMode,
    reason: Option<&str>,
) -> Result<Option<OwnedFd>, RequestError> {
    match ask_for(socket, path, access, reason, Wait::default())? {
        FileRequestAnswer::Granted { fd, .. } => Ok(Some(fd)),
        FileRequestAnswer::AlreadyOpen => open(path, access).map(Some),
        FileRequestAnswer::Denied { .. } => Ok(None),
    }
}

/// The approver that denied this access earlier in the session, if any. Does not ask.
pub fn refused_by(socket: &Path, path: &Path, access: AccessMode) -> Result<Option<String>, RequestError> {
    match send(socket, &ChannelRequest::RefusalRequest { id: new_id(), path: path.to_owned(), access })? {
        (ChannelResponse::RefusalResponse { by, .. }, _) => Ok(by),
        _ => Err(RequestError::WrongAnswer { socket: socket.to_owned() }),
    }
}

/// Open a file that is already granted.
pub fn open(path: &Path, access: AccessMode) -> Result<OwnedFd, RequestError> {
    let mut options = OpenOptions::new();
    options.read(access.reads()).write(access.writes()).create(access.writes()).truncate(false);
    match options.open(path) {
        Ok(file) => Ok(file.into()),
        Err(source) => Err(RequestError::Open { path: path.to_owned(), source }),
    }
}

/// Take a snapshot now; returns its number.
pub fn checkpoint(socket: &Path, reason: &str) -> Result<u64, RequestError> {
    let request = ChannelRequest::CheckpointRequest { id: new_id(), reason: Some(reason.to_owned()) };
    match send(socket, &request)? {
        (ChannelResponse::CheckpointResponse { snapshot: Some(snapshot), .. }, _) => Ok(snapshot),
        (ChannelResponse::CheckpointResponse { snapshot: None, reason, .. }, _) => {
            Err(RequestError::Refused(reason.unwrap_or_default()))
        }
        _ => Err(RequestError::WrongAnswer { socket: socket.to_owned() }),
    }
}

/// Restore `paths` (all, if empty) from a snapshot, once the user approved; returns a sentence about the outcome.
pub fn restore(socket: &Path, snapshot: u64, paths: &[PathBuf]) -> Result<String, RequestError> {
    let paths = paths.iter().cloned().map(LosslessPath).collect();
    match send(socket, &ChannelRequest::RestoreRequest { id: new_id(), snapshot, paths })? {
        (ChannelResponse::RestoreResponse { restored: true, outcome, .. }, _) => Ok(outcome),
        (ChannelResponse::RestoreResponse { restored: false, outcome, .. }, _) => {
            Err(RequestError::Refused(outcome))
        }
        _ => Err(RequestError::WrongAnswer { socket: socket.to_owned() }),
    }
}

/// Open an address in the user's browser; returns the approver.
pub fn open_url(socket: &Path, url: &str) -> Result<String, RequestError> {
    match send(socket, &ChannelRequest::UrlRequest { id: new_id(), url: url.to_owned() })? {
        (ChannelResponse::UrlResponse { opened: true, by, .. }, _) => Ok(by.unwrap_or_default()),
        (ChannelResponse::UrlResponse { opened: false, reason, .. }, _) => {
            Err(RequestError::Refused(reason.unwrap_or_default()))
        }
        _ => Err(RequestError::WrongAnswer { socket: socket.to_owned() }),
    }
}

/// Send a request about the checkpoints of a project; returns the answer.
pub fn history(socket: &Path, action: RemoteAction, wait: Wait<'_>) -> Result<Value, RequestError> {
    let request = ChannelRequest::HistoryRequest { id: new_id(), action: Box::new(action) };
    match send_and_wait(socket, &request, wait)? {
        (ChannelResponse::HistoryResponse { answer, error: None, .. }, _) => Ok(answer),
        (ChannelResponse::HistoryResponse { error: Some(error), .. }, _) => Err(RequestError::Refused(error)),
        _ => Err(RequestError::WrongAnswer { socket: socket.to_owned() }),
    }
}

fn send(socket: &Path, request: &ChannelRequest) -> Result<(ChannelResponse, Option<OwnedFd>), RequestError> {
    send_and_wait(socket, request, Wait::default())
}

fn send_and_wait(
    socket: &Path,
    request: &ChannelRequest,
    wait: Wait<'_>,
) -> Result<(ChannelResponse, Option<OwnedFd>), RequestError> {
    exchange(socket, request, wait)
        .map_err(|error| RequestError::NoAnswer { socket: socket.to_owned(), error })
}

/// Content of a granted file, up to a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    Text {
        text: String,
        /// Number of bytes left out after the text.
        more: u64,
    },
    Binary {
        size: u64,
        /// Hexadecimal.
        sha256: String,
    },
    Directory,
    /// A FIFO, a device or a socket, which has no end to read to.
    Other,
}

/// Read a granted file: text up to `most` bytes, anything else as size and digest.
pub fn content(fd: OwnedFd, most: usize) -> io::Result<FileContent> {
    let mut file = File::from(fd);
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Ok(FileContent::Directory);
    }
    if !meta.is_file() {
        return Ok(FileContent::Other);
    }
    let mut bytes = Vec::new();
    file.by_ref().take(most as u64).read_to_end(&mut bytes)?;
    let more = meta.len().saturating_sub(bytes.len() as u64);
    let (valid, cut_inside) = match std::str::from_utf8(&bytes) {
        Ok(_) => (bytes.len(), false),
        // The limit may cut a character in two.
        Err(error) => (error.valid_up_to(), more > 0 && error.error_len().is_none()),
    };
    if !bytes.contains(&0) && (valid == bytes.len() || cut_inside) {
        let more = more + (bytes.len() - valid) as u64;
        bytes.truncate(valid);
        return Ok(FileContent::Text { text: String::from_utf8_lossy(&bytes).into_owned(), more });
    }
    let mut hasher = Sha256::new_with_prefix(&bytes);
    let size = bytes.len() as u64 + io::copy(&mut file, &mut hasher)?;
    Ok(FileContent::Binary { size, sha256: hex::encode(&hasher.finalize()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_and_the_rest_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let read = |bytes: &[u8], most| {
            let path = dir.path().join("file");
            std::fs::write(&path, bytes).unwrap();
            content(File::open(path).unwrap().into(), most).unwrap()
        };
        let text = |text: &str, more| FileContent::Text { text: text.to_owned(), more };
        assert_eq!(read(b"hello", 10), text("hello", 0));
        assert_eq!(read("häh".as_bytes(), 2), text("h", 3));
        assert_eq!(read(b"", 10), text("", 0));
        let sha256 = "ae4b3280e56e2faf83f414a6e3dabe9d5fbe18976544c05fed121accb85b53fc".to_owned();
        assert_eq!(read(&[0, 1, 2], 2), FileContent::Binary { size: 3, sha256 });
        assert!(matches!(read(&[0xff; 100], 10), FileContent::Binary { size: 100, .. }));
        assert_eq!(content(File::open(dir.path()).unwrap().into(), 10).unwrap(), FileContent::Directory);
        assert_eq!(content(File::open("/dev/null").unwrap().into(), 10).unwrap(), FileContent::Other);
    }
}
