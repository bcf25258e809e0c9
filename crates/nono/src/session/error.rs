//! Errors that keep a command from being run.

use std::io;
use std::path::PathBuf;

use nono_policy::{PolicyError, ProfileError};
use nono_sandbox::{ExecStrategy, Refusal};
use nono_supervisor::RunError;
use nono_sys::errno;
use thiserror::Error;

use super::audit_log::LogError;
use super::check::CheckError;
use super::stand_ins::HoldError;
use crate::checkpoints::SettingsError;
use crate::network::NetworkError;
use crate::rollback::RollbackError;
use nono_policy::state_dir::StateDirError;
use nono_supervisor::program::ProgramError;

/// Reasons why a command was not run.
#[derive(Debug, Error)]
pub enum SessionError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    State(#[from] StateDirError),
    #[error("cannot create the session folder in {base}: {}", errno::describe(.source), base = .base.display())]
    Folder { base: PathBuf, source: io::Error },
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("cannot set up checkpoints: {0}")]
    Checkpoints(#[from] SettingsError),
    #[error("checkpoints need a supervisor outside the sandbox, and {strategy} has none")]
    CheckpointsNeedSupervisor { strategy: ExecStrategy },
    #[error("cannot take the baseline snapshot, so nothing was run: {0}")]
    Rollback(#[from] RollbackError),
    #[error("snapshots (rollback.enabled in the profile) need a supervisor, and {strategy} has none")]
    NeedsSupervisor { strategy: ExecStrategy },
    #[error(
        "asking at run time (security.capability_elevation in the profile) needs a supervisor, and {strategy} has none"
    )]
    AskNeedsSupervisor { strategy: ExecStrategy },
    #[error("asking at run time needs the terminal, and the profile gives it to the command (interactive)")]
    AskNeedsTerminal,
    #[error("cannot write the audit log, so nothing was run: {0}")]
    Log(#[from] LogError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(
        "filtering the network by host (network.allow_domain) needs a supervisor, and {strategy} has none"
    )]
    FilterNeedsSupervisor { strategy: ExecStrategy },
    #[error("{flag} needs snapshots, and none are taken in this run")]
    NotTracked { flag: &'static str },
    #[error("{dest} is writable inside the sandbox: the command could change its own snapshots", dest = .dest.display())]
    DestWritable { dest: PathBuf },
    #[error("{dest} cannot hold sessions: {owner} belongs to nono or to another session", dest = .dest.display(), owner = .owner.display())]
    DestTaken { dest: PathBuf, owner: PathBuf },
    #[error(transparent)]
    Hold(#[from] HoldError),
    #[error("cannot copy an agent's settings for the command: {}", errno::describe(.0))]
    Saved(io::Error),
    #[error("interrupted by {} before the command started; nothing was left behind", nono_sys::wait::signal_name(*.signal))]
    Interrupted { signal: i32 },
    #[error("cancelled before the command started; nothing was left behind")]
    Cancelled,
}
