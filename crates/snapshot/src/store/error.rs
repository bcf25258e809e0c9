//! Errors of a store, and kinds of damage. Every error names its file; the caller's files (being captured or restored)
//! are known here only by descriptor, so [`StoreError::Source`] and [`StoreError::Target`] leave the name to the
//! caller.

use std::io;
use std::path::PathBuf;

use super::key::ObjectKey;

/// Result with [`StoreError`], unless another error is named.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Error of a store operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    /// Reading the file to be captured failed.
    #[error("cannot read the file: {0}")]
    Source(io::Error),
    /// The file to be captured became shorter or longer while it was read.
    #[error("the file changed its size while it was read")]
    SourceChanged,
    /// Writing the file to be restored failed.
    #[error("cannot write the file: {0}")]
    Target(io::Error),
    #[error("{key} is not in the store {dir}", dir = dir.display())]
    Missing { key: ObjectKey, dir: PathBuf },
    #[error("{file} is damaged: {damage}", file = file.display())]
    Damaged { file: PathBuf, object: Option<ObjectKey>, damage: Damage },
    /// The store was written by another version of this program.
    #[error("{path} was written by another version of nono", path = path.display())]
    Version { path: PathBuf },
    /// The object does not fit; the writer can continue.
    #[error("{needed} bytes do not fit in the {left} bytes left for {dir}", dir = dir.display())]
    OverBudget { needed: u64, left: u64, dir: PathBuf },
    /// An object of this size must be stored with `put_large`.
    #[error("an object of {size} bytes is too large for a pack of {dir}", dir = dir.display())]
    TooLarge { size: u64, dir: PathBuf },
    /// Another process settles, verifies or collects, or writes when its lock must not be waited for.
    #[error("{path} is in use by another process", path = path.display())]
    Busy { path: PathBuf },
    /// An appender failed or was dropped before it was finished: its objects are missing.
    #[error("some objects for {dir} were not written", dir = dir.display())]
    Incomplete { dir: PathBuf },
}

impl StoreError {
    /// Kind of the system error, if there is one.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            StoreError::Io { source, .. } | StoreError::Source(source) | StoreError::Target(source) => {
                Some(source.kind())
            }
            _ => None,
        }
    }

    /// Whether the file is a link, a folder or a device, which no store creates.
    pub(super) fn is_foreign(&self) -> bool {
        let foreign = [rustix::io::Errno::LOOP, rustix::io::Errno::NXIO].map(rustix::io::Errno::raw_os_error);
        let code = match self {
            StoreError::Io { source, .. } => source.raw_os_error(),
            _ => None,
        };
        code.is_some_and(|code| foreign.contains(&code))
    }

    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// What was found; `None` where nothing of that name exists (yet, or any more).
pub(super) fn there<T>(found: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match found {
        Err(error) if error.is_not_found() => Ok(None),
        other => other.map(Some),
    }
}

/// Damage of a file of the store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("the format file was changed")]
    Format,
    #[error("the index was changed or cut")]
    Index,
    #[error("the index does not match its pack")]
    Disagrees,
    #[error("the pack of this index is missing")]
    NoPack,
    #[error("the start of the pack was changed")]
    PackStart,
    #[error("the record at byte {offset} was changed or cut")]
    Record { offset: u64 },
    #[error("the bytes of the record at byte {offset} were changed")]
    Payload { offset: u64 },
    #[error("the content does not match its address")]
    Content,
    #[error("the closing record was changed or cut")]
    Trailer,
    #[error("the chunk list was changed or cut")]
    List,
    #[error("a part of it is damaged or missing: {0}")]
    Part(ObjectKey),
    #[error("it cannot be read: {0}")]
    Unreadable(crate::node::Errno),
    #[error("it is not a file of a store")]
    Unexpected,
}

/// A problem: the file, the object if known, and the damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreProblem {
    pub file: PathBuf,
    pub object: Option<ObjectKey>,
    pub what: Damage,
}

impl StoreProblem {
    /// Convert an error about damage into a problem; other errors are returned.
    pub(super) fn from_error(
        error: StoreError,
        object: Option<ObjectKey>,
    ) -> Result<StoreProblem, StoreError> {
        match error {
            StoreError::Damaged { file, object: named, damage } => {
                Ok(StoreProblem { file, object: named.or(object), what: damage })
            }
            StoreError::Io { path, source, doing } => match (doing, source.raw_os_error()) {
                // Only an error of reading is a finding; a failed write is a failure.
                ("read" | "open", Some(errno)) => Ok(StoreProblem {
                    file: path,
                    object,
                    what: Damage::Unreadable(crate::node::Errno(errno)),
                }),
                _ => Err(StoreError::Io { path, source, doing }),
            },
            other => Err(other),
        }
    }
}
