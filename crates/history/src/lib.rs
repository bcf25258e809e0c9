//! History of snapshots: going back to one of them, and taking that back.
//!
//! A history belongs to an owner, a session or a project, and lies in the owner's folder: the engine's snapshots, and
//! [`log`], the restores that were made. [`History`] has the one restore, the one conflict rule and the one undo chain of
//! all owners; where owners differ, they hand in a value: a [`Rule`] says which changes are the owner's and how a `.git`
//! is treated, the details of a [`log::Restore`] are the owner's own. What may stay is one rule too: [`retention`] by number,
//! [`room`] by size, [`removal`] for how an owner goes. Nothing here prints or asks: a [`Plan`] and a
//! [`Done`] are values.

mod choice;
mod conflicts;
mod error;
mod git_index;
pub mod lock;
pub mod log;
mod outcome;
pub mod removal;
mod repositories;
mod restore;
pub mod retention;
pub mod room;
pub mod sequence;
mod undo;

pub use choice::{Choice, Conflicts, Edit, Labels, Repositories, Rule, refuse_parts};
pub use conflicts::content_at;
pub use error::HistoryError;
pub use log::{Log, Restore, Scope};
pub use outcome::{Done, Later, Merge, Plan};
pub use repositories::git_of;
pub use restore::{Begin, History, JOURNAL, Prepared, Under};
pub use undo::Recovered;
