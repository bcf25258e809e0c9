use std::io;
use std::path::{Path, PathBuf};

use nono_audit::ledger::LedgerError;
use nono_audit::log::{FinishError, ResumeError};
use nono_audit::proof::ProofError;
use nono_audit::reader::ReadError;
use nono_audit::session::SessionError;
use nono_audit::{redact, sign};
use nono_sys::errno;
use thiserror::Error;

use nono_policy::state_dir::StateDirError;

use crate::config_file::SettingProblem;

/// Errors of finding, reading, closing and removing logs.
#[derive(Debug, Error)]
pub enum AuditError {
    #[error("there are no recorded sessions")]
    NoSessions,
    #[error("no recorded session is called \"{text}\"")]
    NotFound { text: String },
    #[error("session {id} is in the ledger, but its log is missing")]
    Gone { id: String },
    #[error("session {id} was removed by a cleanup")]
    Removed { id: String },
    #[error("{text} matches several sessions: {}", .ids.join(", "))]
    Ambiguous { text: String, ids: Vec<String> },
    #[error("{}: it is not a recorded session: {what}", .path.display())]
    NoSession { path: PathBuf, what: &'static str },
    #[error("{}: {source}", .path.display())]
    Settings { path: PathBuf, source: SettingProblem },
    #[error("{}: {}", .path.display(), errno::describe(.source))]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    StateDir(#[from] StateDirError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    RedactionKey(#[from] redact::KeyError),
    #[error(transparent)]
    SigningKey(#[from] sign::KeyError),
    #[error(transparent)]
    Proof(#[from] ProofError),
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error(transparent)]
    Finish(#[from] FinishError),
}

impl AuditError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> AuditError {
        let path = path.to_owned();
        move |source| AuditError::Io { path, source }
    }
}
