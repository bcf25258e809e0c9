//! Flags of `run`, `shell` and `wrap` about snapshots and checkpoints.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use nono::rollback::RollbackRequest;
use nono::session::{Checkpointing, Rollback};

use super::values;

/// How much of the tracked roots has to fit into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protect {
    /// Everything, or the command is not run
    Full,
    /// As much as fits; the rest is named
    BestEffort,
}

#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, Args)]
pub(crate) struct TrackingArgs {
    /// Snapshot everything writable before, while and after the command runs; review and undo it at the end
    #[arg(
        long,
        alias = "undo",
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "full",
        conflicts_with = "no_rollback",
        help_heading = "Rollback"
    )]
    rollback: Option<Protect>,
    /// Take no snapshots, whatever the profile says
    #[arg(long, help_heading = "Rollback")]
    no_rollback: bool,
    /// Do not ask at the end
    #[arg(long, help_heading = "Rollback")]
    pub(crate) no_rollback_prompt: bool,
    /// Ask in plain lines at the end, not full screen
    #[arg(long, help_heading = "Rollback")]
    pub(crate) no_tui: bool,
    /// Leave this out of the snapshots: a name, a part of a path, or a glob on names
    #[arg(long, value_name = "PATTERN", help_heading = "Rollback")]
    rollback_exclude: Vec<String>,
    /// Take this into the snapshots whatever other rules say
    #[arg(long, value_name = "PATTERN", help_heading = "Rollback")]
    rollback_include: Vec<String>,
    /// Take everything: ignored files and build output too
    #[arg(long, help_heading = "Rollback")]
    rollback_all: bool,
    /// Keep the session here; must not be writable by the command
    #[arg(long, value_name = "DIR", help_heading = "Rollback")]
    rollback_dest: Option<PathBuf>,
    /// The longest time between snapshots while something changes (10s, 5m)
    #[arg(long, value_name = "TIME", value_parser = values::duration, help_heading = "Rollback")]
    snapshot_interval: Option<Duration>,
    /// Read every file for every snapshot, whatever its time stamps say
    #[arg(long, help_heading = "Rollback")]
    paranoid: bool,
}

/// Flags about checkpoints.
#[derive(Debug, Args)]
pub(crate) struct CheckpointingArgs {
    /// Checkpoint the projects it may write before it starts, and whenever an agent's hook inside asks for it
    #[arg(long, conflicts_with = "no_checkpoints", help_heading = "Checkpoints")]
    pub(crate) checkpoints: bool,
    /// Take no checkpoints, whatever config.toml says
    #[arg(long, help_heading = "Checkpoints")]
    no_checkpoints: bool,
}

/// Choice made by a pair of flags; none if neither is given.
fn switch(on: bool, off: bool) -> Option<bool> {
    (on || off).then_some(on)
}

impl CheckpointingArgs {
    pub(crate) fn request(&self) -> Checkpointing {
        Checkpointing { wanted: switch(self.checkpoints, self.no_checkpoints) }
    }
}

impl TrackingArgs {
    /// Whether snapshots were asked for by the flag.
    pub(crate) fn rollback(&self) -> bool {
        self.rollback.is_some()
    }

    /// Value of `--rollback-dest`, as typed.
    pub(crate) fn dest(&self) -> Option<&Path> {
        self.rollback_dest.as_deref()
    }

    pub(crate) fn request(&self) -> Rollback {
        let request = RollbackRequest {
            exclude: self.rollback_exclude.clone(),
            include: self.rollback_include.clone(),
            all: self.rollback_all,
            dest: self.rollback_dest.clone(),
            interval: self.snapshot_interval,
            paranoid: self.paranoid,
            best_effort: self.rollback == Some(Protect::BestEffort),
        };
        Rollback { wanted: switch(self.rollback(), self.no_rollback), request }
    }
}
