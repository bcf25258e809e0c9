//! What runs leave behind, found and used later: sessions with their snapshots, checkpoints of projects, audit logs.
//!
//! [`rollback`] lists, shows, restores, undoes and verifies the sessions of runs with snapshots, and takes those
//! snapshots while a run lasts. [`checkpoints`] does the same for projects, [`audit`] for audit logs. [`undo`] finds the
//! points to go back to in a directory, of sessions and checkpoints alike; [`file_log`] follows one file through all of
//! them. Plans and results are values: nothing here prints or prompts.

pub mod audit;
pub mod checkpoints;
pub mod config_file;
pub mod file_log;
pub mod json;
mod own_file;
pub mod rollback;
pub mod session_ref;
pub mod undo;
