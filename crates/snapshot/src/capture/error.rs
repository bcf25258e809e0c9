//! Errors of a capture.

use std::io;
use std::path::PathBuf;

use crate::build::BuildError;
use crate::exclusion::RulesError;
use crate::store::StoreError;

/// Result with [`CaptureError`], unless another error is named.
pub(crate) type Result<T, E = CaptureError> = std::result::Result<T, E>;

/// Reason why nothing was captured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("more than {limit} files (max_entries)")]
    TooManyFiles { limit: u64 },
    #[error("more than {limit} bytes in files (max_bytes)")]
    TooManyBytes { limit: u64 },
    /// Not everything fits the budget: the estimated bytes for everything, and the files that did not fit.
    #[error("{}", no_room(*files, *bytes, examples))]
    NoRoom { needed: u64, files: u64, bytes: u64, examples: Vec<PathBuf> },
    #[error("cancelled")]
    Cancelled,
    #[error("nothing could be captured: {}", reasons.join("; "))]
    Nothing { reasons: Vec<String> },
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("internal error: {0}")]
    Record(crate::bytes::Malformed),
    #[error("cannot restore the permissions of {} after reading it: {source}", path.display())]
    StaysOpen { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl CaptureError {
    /// Whether the disk is full, a quota is used up, or a file would exceed this process's file size limit.
    pub(crate) fn is_full(&self) -> bool {
        let kind = match self {
            CaptureError::Store(error) => error.io_kind(),
            CaptureError::Io { source, .. } | CaptureError::StaysOpen { source, .. } => Some(source.kind()),
            _ => None,
        };
        kind.is_some_and(is_full)
    }
}

pub(crate) fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

impl From<BuildError> for CaptureError {
    fn from(error: BuildError) -> CaptureError {
        match error {
            BuildError::Store(error) => CaptureError::Store(error),
            BuildError::Record(malformed) => CaptureError::Record(malformed),
        }
    }
}

fn no_room(files: u64, bytes: u64, examples: &[PathBuf]) -> String {
    let Some(first) = examples.first() else { return "the snapshot does not fit in the store".to_owned() };
    match files.saturating_sub(1) {
        0 => format!("{} ({bytes} bytes) does not fit in the store", first.display()),
        more => {
            format!("{} and {more} more files ({bytes} bytes) do not fit in the store", first.display())
        }
    }
}
