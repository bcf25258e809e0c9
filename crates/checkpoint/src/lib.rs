//! Checkpoints: the history of a project folder. In each turn of a coding agent one is taken, before the first call that
//! finds something changed.
//!
//! A **project** is a folder with a history of its own below nono's state, `projects/<hash>/`. Its checkpoints are
//! numbered snapshots of the engine in one shared store, with their purpose (agent, turn, tool) in a history beside
//! them. A **turn** is what an agent does between two prompts of the user; it has at most one checkpoint for each
//! project.
//!
//! [`CheckpointManager`] is the entry point. A failure is a result, never the end of the agent's work; missing
//! protection stays in the project's status until a checkpoint succeeds. [`trigger`] decides which tool calls need a
//! checkpoint. This crate runs no git, prints nothing and does not read the environment: the caller passes these in.

pub mod adopt;
mod agent_notes;
pub mod call_log;
pub mod config;
pub mod error;
mod folder;
pub mod forget;
pub mod history;
pub mod host;
mod json;
pub mod legacy;
pub mod manager;
pub mod origin;
mod pending_calls;
pub mod project;
pub mod project_path;
mod prune;
mod quota;
pub mod repair;
mod restores;
pub mod retention;
mod stats;
mod status;
pub mod supervisor_request;
pub mod trigger;
pub mod turns;
pub mod unprotected;
pub mod usage;
pub mod verify;

pub use config::{Config, Ignored};
pub use error::CheckpointError;
pub use history::{Checkpoint, CheckpointId, Stats};
pub use manager::{
    ChangedBy, CheckpointChoice, CheckpointManager, CheckpointTarget, Compared, Completed, Ensured,
    FileVersion, Host, ProjectOutcome, ProjectPlan, ProjectStatus, Pruned, RestoreNote, Retention, RunGone,
    Skip, StatusReport, TurnCall, Undoable, WorkedTurn,
};
pub use nono_history::Conflicts;
pub use origin::Origin;
pub use project::{Project, ProjectHash, Root};
