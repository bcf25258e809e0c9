//! Putting a captured state back: plan, preflight, journal, apply, verify.
//!
//! The invariant is the first law of `docs/internals/overview.md`: nothing is removed whose bytes are not stored. [`plan`] compares the target with `current`,
//! the safety snapshot just taken, and is pure: a list of steps that can be shown. [`apply`] works beneath the
//! descriptor of each root's parent directory, one component at a time and never through a link. New content is made
//! under a temporary name `.nono-<restore id>-<n>` in its own directory, complete with all attributes, and then renamed
//! into place. (Compared with writing under the final name this costs one rename, 4 us on ext4 and 1.5 us on tmpfs;
//! O_TMPFILE with a link costs more, except in directories of thousands of files, where new files are made that way. In
//! return every name holds the old or the new file, never half of one, also after a kill.) A displaced file is
//! exchanged out, compared with the safety snapshot, and kept in the store if it was written meanwhile.
//!
//! After a kill the journal is still there. The next command: [`Journal::load`]; `plan` with the journal's target and
//! safety snapshot, as before; [`sweep`] with that plan removes the temporary files; a new safety snapshot; `plan`
//! again with it and with `resumed` set to the first safety snapshot; `apply`; [`Journal::finish`]. Since every name is
//! old or new, this converges. Limits: in a root's parent directory only the root's own name is changed; where the
//! kernel does not report open descriptors, data saved through one after the end is lost (`displace`).

mod apply;
mod build;
mod changes;
mod conflict_unit;
mod database;
mod displace;
mod durable;
mod hard_links;
mod journal;
mod meta;
mod nested;
mod open;
mod outcome;
mod parent_root;
mod place_entry;
mod plan;
mod preflight;
mod presence;
mod rename;
mod select;
mod steps;
mod sweep;
mod verify;

use std::io;
use std::path::PathBuf;

pub use self::apply::apply;
pub use self::build::plan;
pub use self::changes::Changes;
pub(crate) use self::displace::hash_file;
pub use self::durable::sync;
pub(crate) use self::journal::is_temporary;
pub use self::journal::{Journal, JournalError, JournalRecord, RestoreId};
pub use self::plan::{ActionKind, PlannedAction, RestorePlan};
pub use self::preflight::{PreflightError, preflight};
pub use self::sweep::{Swept, sweep};
pub use self::verify::verify;
use crate::diff::Lost;
use crate::hash::ContentHash;
use crate::node::Reason;
use crate::state::{ObjectError, SnapshotState};
use crate::store::StoreError;

/// Input of a restore plan.
#[derive(Clone, Copy, Debug)]
pub struct RestoreRequest<'a> {
    pub target: &'a SnapshotState,
    /// The safety snapshot, taken under the target's frozen rules.
    pub current: &'a SnapshotState,
    pub selection: &'a Selection,
    /// Absolute paths that stay as they are, with their content.
    pub except: &'a [PathBuf],
    /// States of the session: a path, or a whole `.git`, unlike all of them is by others, and kept unless forced.
    pub keep_changed_since: &'a [&'a SnapshotState],
    pub force: bool,
    /// First safety snapshot of an interrupted restore that is being completed.
    pub resumed: Option<&'a SnapshotState>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    All,
    /// Absolute paths of files, or of directories with their content.
    Paths(Vec<PathBuf>),
}

/// Reason why a path is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("the root was not captured ({0})")]
    RootFailed(Reason),
    #[error("its root is missing from one of the two snapshots")]
    RootUnknown,
    #[error("its present content is not stored ({0})")]
    NotStored(Reason),
    /// Selected, but not in the snapshot.
    #[error("the snapshot does not hold it ({0})")]
    NotCaptured(Reason),
    /// Selected, but nowhere.
    #[error("it is neither in the snapshot nor in the tree")]
    NotFound,
    /// Changed after the states of the session.
    #[error("changed later")]
    ChangedSince,
    #[error("it holds files that are not stored")]
    HoldsOthers,
    #[error("a directory that has to stay is in its place")]
    InTheWay,
    /// A new entry that is not in the safety snapshot.
    #[error("a new file appeared there")]
    Appeared,
    #[error("it changed during the restore")]
    ChangedMeanwhile,
    /// A git repository or part of one that was not asked for.
    #[error("an existing `.git` is left as it is")]
    Repository,
    #[error("the snapshot does not hold all of this repository ({0})")]
    IncompleteRepository(Reason),
    /// What the program saves would be lost with the file.
    #[error("a running program has it open for writing: end the program, then restore again")]
    OpenForWriting,
    #[error("kept under a new name: a running program still writes to the replaced file")]
    StillWritten,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub path: PathBuf,
    pub why: Why,
}

/// Note to show before a plan is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanNote {
    pub path: PathBuf,
    pub kind: NoteKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// The file has more names outside the tree. They keep the current file; the names here get one of their own.
    LinkedOutside,
}

/// A path that could not be restored, or not completely.
#[derive(Debug)]
pub struct FailedPath {
    pub path: PathBuf,
    pub error: RestoreError,
}

/// Result with [`RestoreError`], unless another error is named.
pub(crate) type Result<T, E = RestoreError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("cannot {doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
    /// The file stays owned by the user who restored it.
    #[error("cannot change its owner: {source}")]
    Owner { source: io::Error },
    #[error("cannot set the attribute {name}: {source}")]
    Xattr { name: String, source: io::Error },
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A file that was in place for a moment, and that a program opened for writing.
    #[error("a running program still writes to the replaced file, which is kept as {name}")]
    Beside { name: String },
    /// The check after the restore found another state than the restored one.
    #[error("it differs from what was restored: another process changed it")]
    Verify,
}

impl RestoreError {
    /// Whether there was no space: the disk or a quota is full, or the file exceeds this process's file size limit.
    pub(crate) fn is_full(&self) -> bool {
        let (RestoreError::Io { source, .. } | RestoreError::Object(ObjectError::Io { source, .. })) = self
        else {
            return false;
        };
        let inner = source.get_ref().and_then(|inner| inner.downcast_ref::<StoreError>());
        let kind = inner.and_then(StoreError::io_kind).unwrap_or_else(|| source.kind());
        crate::capture::is_full(kind)
    }

    pub(crate) fn io<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> RestoreError {
        move |error| RestoreError::Io { doing, source: error.into() }
    }
}

/// Content that was displaced by the restore and was in no snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptAside {
    pub path: PathBuf,
    pub content: KeptContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptContent {
    File {
        hash: ContentHash,
        size: u64,
    },
    /// Target of the link.
    Symlink {
        target: Box<[u8]>,
    },
}

/// Result of a restore. The lists are sorted by path.
#[derive(Debug, Default)]
pub struct RestoreOutcome {
    /// Number of completed steps.
    pub done: u64,
    pub skipped: Vec<Skipped>,
    pub failed: Vec<FailedPath>,
    /// Entries that the target excluded and that are gone or changed: they are not restored.
    pub lost: Vec<Lost>,
    /// Changes in the order of paths, computed when they are read.
    pub changes: Changes,
    pub kept: Vec<KeptAside>,
    /// Whether it was cancelled before it was complete: the journal must stay.
    pub cancelled: bool,
}
