//! A large file to be stored, before it is read.

use super::error::StoreError;
use crate::hash::ContentHash;

/// Known properties of a large file before it is read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LargeSource {
    pub(crate) size: u64,
    /// Whether to look for holes.
    pub(crate) sparse: bool,
    /// Content when it was last captured.
    pub(crate) before: Option<ContentHash>,
}

pub(super) fn source_failed(error: std::io::Error) -> StoreError {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => StoreError::SourceChanged,
        _ => StoreError::Source(error),
    }
}
