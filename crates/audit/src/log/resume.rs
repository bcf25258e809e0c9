//! Reopening the log of a session whose supervisor was killed, to close it.

use std::fs::TryLockError;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use thiserror::Error;

use super::{AuditLog, EVENTS, LogState, Options};
use crate::files;
use crate::ledger::Ledger;
use crate::reader::{ReadError, Reader};
use crate::reserve::Reserve;
use crate::session::{SessionError, SessionRecord};
use crate::summary::Summary;
use crate::writer::{WriteError, Writer};

/// Reason why the log of a killed session cannot be closed.
#[derive(Debug, Error)]
pub enum ResumeError {
    #[error("{}: {}", .path.display(), nono_sys::errno::describe(.source))]
    Io { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("{}: the first record is not the start of its session", .path.display())]
    NotItsLog { path: PathBuf },
}

impl AuditLog {
    /// Sequence number of the entry that the writer added before it was killed. An unreadable ledger has none; adding
    /// to it then reports why.
    pub(super) fn line_in_ledger(&self, state: &LogState) -> Option<u64> {
        let id = &state.summary.started()?.session_id;
        let mut own =
            self.ledger.entries().ok()?.filter_map(Result::ok).filter(|entry| entry.session_id == *id);
        own.next().filter(|entry| !entry.removed).map(|entry| entry.sequence)
    }

    /// Opens the log of a session whose writer was killed, to close it: its records are checked, and an incomplete one
    /// at the end is removed. `None` if another process writes it, or if it is closed.
    pub fn resume(audit: &Path, session_id: &str, options: Options) -> Result<Option<AuditLog>, ResumeError> {
        let dir = audit.join(session_id);
        let failed = |path: &Path, source| ResumeError::Io { path: path.to_owned(), source };
        let path = dir.join(EVENTS);
        let file = files::open_to_write(&path).map_err(|error| failed(&path, error))?;
        // A file system without locks is not an error: the caller knows that the session is over.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Ok(None);
        }
        match SessionRecord::read(&dir) {
            Ok(record) if record.ended.is_some() => return Ok(None),
            Ok(_) => {}
            // Killed before session.json was written.
            Err(SessionError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        let copy = file.try_clone().map_err(|error| failed(&path, error))?;
        let mut reader = Reader::new(path.clone(), BufReader::with_capacity(64 << 10, copy));
        let mut summary = Summary::default();
        for record in &mut reader {
            match record {
                Ok(record) => summary.add(&record.event),
                Err(error) if error.is_torn() => {}
                Err(error) => return Err(error.into()),
            }
        }
        if summary.started().is_none_or(|started| started.session_id != session_id) {
            return Err(ResumeError::NotItsLog { path });
        }
        let writer = Writer::resume(path, file, reader.read().clone(), reader.end())?;
        let state = LogState { summary, ..LogState::new(writer) };
        let (ledger, reserve) = (Ledger::of(audit), Reserve::of(&dir));
        Ok(Some(AuditLog { dir, ledger, options, reserve, remarks: Vec::new(), state: Mutex::new(state) }))
    }
}
