//! Rollback: the snapshots that a supervised run leaves behind, and listing, comparing, restoring and verifying them.
//!
//! During a run, [`tracking`] takes the snapshots: tracked roots, baseline, watcher, final snapshot, `session.json`.
//! Later commands start from the [`Catalogue`], which finds sessions, and a [`RollbackSession`], an opened session: its
//! changes ([`changes`]), also as text ([`patch`]), restoring them ([`restore`]), verification ([`verify`]).
//! Nothing here prints or prompts: plans and results are values.

mod audited_restores;
pub mod autorun;
pub mod catalogue;
pub mod changes;
pub mod ending;
mod entry;
pub mod error;
pub mod folder;
pub mod forget;
mod interrupted;
pub mod json;
mod kept_autorun;
pub mod live_lock;
pub mod patch;
mod pending_restores;
pub mod periodic_snapshots;
pub mod prune;
pub(crate) mod quota;
pub mod recorder;
pub mod repair;
pub mod restore;
pub mod running;
pub mod scope;
pub mod seals;
pub(crate) mod select_paths;
mod sequence;
pub mod settings;
mod thinning;
pub mod tracking;
mod undo;
pub mod verify;

pub use autorun::Later;
pub use catalogue::{Catalogue, RollbackSession, SnapshotInfo};
pub use changes::{ChangeSet, Changed, Item, ItemKind};
pub use entry::{SessionEntry, Status};
pub use error::RollbackError;
pub use forget::SessionsForgot;
pub use nono_snapshot::{ChangeCounts, Checks};
pub use patch::{Body, FileDiff, Hunk, LineKind, PatchLine, Segment};
pub use prune::{Pruned, Retention};
pub use restore::{Conflicts, Done, Merge, Plan, RestoreChoice};
pub use running::TrackedSession;
pub use settings::RollbackSettings;
pub use tracking::{Baseline, RollbackReport, RollbackRequest};
pub use undo::ToUndo;
pub use verify::{AllVerified, SessionVerified};
