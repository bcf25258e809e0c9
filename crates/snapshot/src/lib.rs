//! The snapshot engine of nono: capture, compare, restore, exactly and fast.
//!
//! A [`SnapshotManager`] keeps snapshots of some roots in a session folder, with a content store of its own or one that
//! is shared. What a snapshot holds is never more than what its [`Coverage`] says, and a restore never removes bytes that
//! are not stored.

mod build;
mod bytes;
mod cache;
mod capture;
mod census;
mod coverage;
pub mod diff;
mod dirs;
mod disk;
pub mod exclusion;
mod file;
mod files;
pub mod hash;
mod manager;
mod manifest;
mod mapped;
mod metadata;
pub mod node;
mod objects;
mod paths;
mod pool;
mod read;
mod record;
pub mod restore;
mod scan;
pub mod session;
mod stat;
pub mod state;
pub mod store;
mod time;
mod unlock;

pub use bytes::Malformed;
pub use capture::{CaptureError, CaptureOptions};
pub use coverage::{Cause, Coverage, Example, LeftOut, Note, Protection};
pub use diff::{Change, ChangeType};
#[cfg(feature = "failpoints")]
pub use disk::failpoint;
pub use exclusion::ExclusionConfig;
pub use files::{FileState, Files};
pub use hash::{ContentHash, HashKind, MerkleRoot, StateRoot};
pub use manager::{
    CacheProblem, GcReport, Limits, ManagerOptions, Manifest, RestoreOptions, Restored, SettleReport,
    SnapshotError, SnapshotManager, SnapshotProblem, VerifyReport, gc,
};
pub use manifest::{ManifestDefect, SnapshotId};
pub use metadata::SessionMetadata;
pub use restore::RestoreOutcome;
pub use scan::Counts;
pub use state::{ObjectError, Observer, RootContent, RootState, SnapshotState};
