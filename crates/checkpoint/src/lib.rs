//! Checkpoints: the history of a project folder, taken before each risky step of a coding agent.
//!
//! A **project** is a folder with a history of its own below nono's state, `projects/<hash>/`. Its checkpoints are numbered
//! snapshots of the engine in one store that everything shares; what they were taken for (agent, turn, tool) stands beside
//! them. A **turn** is what an agent does between two messages of a person: at most one checkpoint for each project in it.
//!
//! [`CheckpointManager`] is the way in. Whatever goes wrong is an answer, never the end of the agent's work; a protection
//! that is missing is kept in the project's status until it is there again. [`trigger`] says which tool calls need a
//! checkpoint. No git, no printing, no environment: the edge hands these in.

pub mod adopt;
mod clock;
pub mod config;
pub mod error;
mod folder;
pub mod forget;
pub mod history;
mod json;
pub mod legacy;
pub mod manager;
mod marks;
mod notes;
pub mod origin;
pub mod place;
pub mod project;
mod prune;
pub mod remote;
pub mod repair;
mod restores;
pub mod retention;
mod room;
mod stats;
mod status;
pub mod trigger;
pub mod turns;
pub mod unprotected;
pub mod usage;
pub mod verify;
pub mod work;

pub use config::{Config, Ignored};
pub use error::CheckpointError;
pub use history::{Checkpoint, CheckpointId, Stats};
pub use manager::{
    ChangedBy, CheckpointManager, Choice, Compared, Completed, Ensured, FileVersion, Host, LastRestore, Note,
    Outcome, Plan, ProjectStatus, Pruned, Retention, RunGone, Skip, Status, Target, TurnCall, Undoable,
    WorkedTurn,
};
pub use nono_history::Conflicts;
pub use origin::Origin;
pub use project::{Project, ProjectHash, Root};
