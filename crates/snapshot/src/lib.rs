//! The snapshot engine of nono: capture, compare, restore, exactly and fast.
//!
//! A [`SnapshotManager`] keeps snapshots of some roots in a session folder, with a content store of its own or a shared
//! one. A snapshot's [`Coverage`] says exactly what it holds. A restore never removes bytes that are not stored: it
//! takes a safety snapshot first, with which the restore itself can be undone.
//!
//! ```
//! use std::fs;
//!
//! use nono_snapshot::{ChangeType, ExclusionConfig, Limits, RestoreOptions, SnapshotManager};
//!
//! let folder = tempfile::tempdir()?;
//! let (project, session) = (folder.path().join("project"), folder.path().join("session"));
//! fs::create_dir(&project)?;
//! let notes = project.join("notes.txt");
//! fs::write(&notes, "a first draft")?;
//!
//! // Number 0: the whole tree.
//! let mut manager = SnapshotManager::new(&session, [&project], ExclusionConfig::default(), Limits::default())?;
//! let baseline = manager.create_baseline()?;
//! assert_eq!((baseline.number, baseline.coverage.files), (0, 1));
//!
//! // The tree changes. Number 1: only changed files are read.
//! fs::write(&notes, "a second draft")?;
//! fs::write(project.join("more.txt"), "another file")?;
//! let (next, changes) = manager.create_incremental()?;
//! assert_eq!((next.number, next.parent), (1, Some(0)));
//! let types: Vec<_> = changes.iter().map(|change| change.change_type).collect();
//! assert_eq!(types, [ChangeType::Created, ChangeType::Modified]); // more.txt, notes.txt
//!
//! // What a restore would change, and the restore.
//! assert_eq!(manager.compute_restore_diff(0)?.len(), 2);
//! let restored = manager.restore_to(0)?;
//! assert!(restored.skipped.is_empty() && restored.failed.is_empty());
//! assert_eq!(fs::read_to_string(&notes)?, "a first draft");
//! assert!(!project.join("more.txt").exists());
//!
//! // The restore can be undone like anything else.
//! manager.restore(&restored.safety, &RestoreOptions::default())?;
//! assert_eq!(fs::read_to_string(&notes)?, "a second draft");
//!
//! // Compress, and make it survive a power loss; otherwise this is done in the background.
//! manager.settle()?;
//! assert!(manager.verify()?.is_clean());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `ARCHITECTURE.md` has the stages, the formats on disk and the order of writes; `SECURITY.md` what a snapshot does
//! not protect. This crate does not print, prompt or read the environment.

mod build;
mod bytes;
mod cache;
mod capture;
mod coverage;
pub mod diff;
mod dirs;
mod disk;
pub mod exclusion;
pub mod file;
mod files;
pub mod git_index;
pub mod hash;
mod ignored_count;
mod manager;
mod manifest;
mod mapped;
pub mod merge;
mod metadata;
pub mod node;
mod objects;
pub mod paths;
mod pool;
mod read;
pub mod restore;
mod scan;
mod scan_record;
pub mod session;
mod stat;
pub mod state;
pub mod store;
pub use nono_sys::time;
mod units;
mod unlock;

pub use bytes::Malformed;
pub use capture::{CaptureError, CaptureOptions, Gaps};
pub use coverage::{Cause, Coverage, CoverageNote, Example, LeftOut, Protection};
pub use diff::{Change, ChangeType, Loss, Lost};
#[cfg(feature = "failpoints")]
pub use disk::failpoint;
pub use exclusion::ExclusionConfig;
pub use files::{FileState, Files};
pub use hash::{ContentHash, HashKind, MerkleRoot, StateRoot};
pub use manager::{
    Adopted, AdoptedPiece, CacheProblem, Candidate, Checks, CompletedOther, Contents, ContentsError,
    Forgotten, Freed, GcReport, ImportedPath, Limits, LostSnapshot, ManagerOptions, Manifest, Next, Now,
    Repaired, RepairedRecord, RestoreOptions, Restored, SettleReport, SnapshotError, SnapshotManager,
    SnapshotProblem, VerifyReport, freed, gc, gc_compact, holders, repair, resolved, session_dirs,
    settle_store, shares,
};
pub use manifest::{ManifestDefect, SnapshotId};
pub use metadata::{
    AuditAttestation, AuditIntegrity, ChangeCounts, ChangedByOthers, ExecutableIdentity, RequestedSnapshot,
    SessionMetadata,
};
pub use restore::{Changes, RestoreOutcome};
pub use scan::ScanCounts;
pub use state::{ObjectError, Observer, RootContent, RootState, SnapshotState};
pub use units::repository_of;
