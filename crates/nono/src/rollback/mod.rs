//! Sessions that can be looked at and undone: what a supervised run with rollback leaves behind, and what is done with it
//! later.
//!
//! A run is [`tracking`]: roots, baseline, watcher, final snapshot, `session.json`. Everything later starts from the
//! [`Catalogue`], which finds sessions, and a [`RollbackSession`], which is one of them opened: what changed
//! ([`changes`]), how it looks as text ([`patch`]), putting it back ([`restore`]), checking it ([`verify`]).
//! Nothing here prints or asks: plans and outcomes are values.

pub mod catalogue;
pub mod changes;
pub(crate) mod choose;
pub(crate) mod ending;
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

pub use catalogue::{Catalogue, RollbackSession, SessionEntry, SnapshotInfo, Status};
pub use changes::{ChangeSet, Changed, Item, ItemKind};
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
