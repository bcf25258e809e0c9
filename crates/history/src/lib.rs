//! History of snapshots: restoring one of them, and undoing that.
//!
//! A history belongs to an owner, a session or a project, and is in the owner's folder: the engine's snapshots, and
//! [`log`], the list of restores. [`History`] implements restore, conflict rule and undo chain for all owners; where
//! owners differ, they pass a value: [`OwnerRules`] say which changes are the owner's and how a `.git` is treated, the
//! details of a [`log::Restore`] are the owner's own. Retention is common, too: [`retention`] by number, [`clock`] by
//! age, [`quota`] by size, [`removal`] of an owner, and so is [`verify`]; what is protected is a value of the entry. Nothing here prints or prompts: a [`Plan`] and a [`Done`] are values.

pub mod clock;
mod conflicts;
mod error;
pub mod lock;
pub mod log;
mod outcome;
pub mod quota;
pub mod removal;
mod repositories;
mod restore;
pub mod retention;
mod selection;
pub mod sequence;
mod undo;
pub mod verify;

pub use conflicts::content_at;
pub use error::HistoryError;
pub use log::{LastRestore, Restore, RestoreHistory, Scope};
pub use outcome::{Done, Later, Merge, Plan};
pub use repositories::{file_content, git_of};
pub use restore::{Begin, History, Prepared, Under, has_journal};
pub use selection::{Conflicts, Edit, Labels, OwnerRules, Repositories, SnapshotChoice, refuse_parts};
pub use undo::Recovered;
