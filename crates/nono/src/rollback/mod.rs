//! Rollback: the snapshots that a supervised run leaves behind, and listing, comparing, restoring and verifying them.
//!
//! During a run, [`tracking`] takes the snapshots: tracked roots, baseline, watcher, final snapshot, `session.json`.
//! Later commands start from the [`Catalogue`], which finds sessions, and a [`RollbackSession`], an opened session: its
//! changes ([`changes`]), also as text ([`patch`]), restoring them ([`restore`]), verification ([`verify`]).
//! Nothing here prints or prompts: plans and results are values.

pub mod catalogue;
pub mod changes;
pub(crate) mod choose;
pub(crate) mod ending;
mod entry;
pub mod error;
mod executing;
pub(crate) mod folder;
pub mod forget;
pub mod json;
mod killed;
pub mod later;
pub mod live;
pub mod patch;
pub mod prune;
pub(crate) mod recorded;
pub(crate) mod recorder;
pub mod repair;
pub mod restore;
pub(crate) mod room;
pub(crate) mod running;
pub(crate) mod scope;
pub mod seals;
mod sequence;
pub mod settings;
mod thinning;
pub mod tracking;
mod under_way;
mod undo;
pub mod verify;
pub(crate) mod watching;

pub use catalogue::{Catalogue, RollbackSession, SnapshotInfo};
pub use changes::{ChangeSet, Changed, Item, ItemKind};
pub use entry::{SessionEntry, Status};
pub use error::RollbackError;
pub use forget::SessionsForgot;
pub use later::Later;
pub use nono_snapshot::{ChangeCounts, Checks};
pub use patch::{Body, FileDiff, Hunk, Line, LineKind, Segment};
pub use prune::{Pruned, Retention};
pub use restore::{Conflicts, Done, Merge, Plan, RestoreChoice};
pub use running::Live;
pub use settings::Settings;
pub use tracking::{Baseline, RollbackReport, RollbackRequest};
pub use undo::ToUndo;
pub use verify::Verified;
