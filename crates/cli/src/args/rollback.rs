//! Arguments of `rollback`, `undo` and `redo`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{JsonArg, values};

#[derive(Debug, Subcommand)]
pub(crate) enum RollbackCommand {
    /// List the sessions, by project, newest first
    #[command(after_help = super::after_help("rollback list"))]
    List(ListArgs),
    /// What a session changed
    #[command(after_help = super::after_help("rollback show"))]
    Show(ShowArgs),
    /// Put back what was there before a session, or at one of its snapshots
    #[command(after_help = super::after_help("rollback restore"))]
    Restore(RestoreArgs),
    /// Take a restore back: the last one, a session's last one, or the one with this id
    #[command(after_help = super::after_help("rollback undo"))]
    Undo(TakeBackArgs),
    /// Look through a session on the full screen, and choose what to restore
    #[command(after_help = super::after_help("rollback review"))]
    Review(ReviewArgs),
    /// Check stored sessions against what was sealed when they ended
    #[command(after_help = super::after_help("rollback verify"))]
    Verify(VerifyArgs),
    /// Keep a session: it is never removed to make room
    #[command(after_help = super::after_help("rollback pin"))]
    Pin(SessionArg),
    /// Let a pinned session be removed again when room is needed
    #[command(after_help = super::after_help("rollback unpin"))]
    Unpin(SessionArg),
    /// Remove old sessions and free what only they needed
    #[command(after_help = super::after_help("rollback cleanup"))]
    Cleanup(CleanupArgs),
    /// Complete restores that were interrupted
    #[command(after_help = super::after_help("rollback recover"))]
    Recover(JsonArg),
    /// Set damaged records of sessions and checkpoints aside and rebuild them
    #[command(after_help = super::after_help("rollback repair"))]
    Repair(RepairArgs),
}

/// Choice of a session.
#[derive(Debug, Args)]
pub(crate) struct SessionArg {
    /// A session: its id, the beginning of one, its name, `last`, or the path of its folder
    #[arg(value_name = "ID")]
    pub(crate) session: String,
}

/// Choice of a session, and of paths in it.
#[derive(Debug, Default, Args)]
pub(crate) struct ChoiceArgs {
    /// A session: its id, the beginning of one, its name, `last`, or the path of its folder; the last one in this directory
    /// if none is given
    #[arg(value_name = "ID")]
    pub(crate) first: Option<OsString>,
    /// Only these files, directories or globs
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,
    /// Paths after --, whatever they look like
    #[arg(value_name = "PATH", last = true)]
    pub(crate) more: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// A session: its id, the beginning of one, its name, `last`, or the path of its folder; the last one in this directory
    /// if none is given
    #[arg(value_name = "ID")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only sessions of the project that this path is in
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// Only the newest N
    #[arg(long, value_name = "N", value_parser = values::count::<u32>)]
    pub(crate) recent: Option<u32>,
    /// Also list folders that are not readable sessions, with the reason
    #[arg(long)]
    pub(crate) all: bool,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    #[command(flatten)]
    pub(crate) look: LookArgs,
}

/// Choice of what is shown of a session, and how.
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, Default, Args)]
pub(crate) struct LookArgs {
    /// Show the differences; a patch for `git apply` where it does not go to a terminal
    #[arg(long)]
    pub(crate) diff: bool,
    /// Show the differences in two columns
    #[arg(long)]
    pub(crate) side_by_side: bool,
    /// Show how many lines changed in each file
    #[arg(long)]
    pub(crate) stat: bool,
    /// Show whole files around the differences, and long lists to their end
    #[arg(long)]
    pub(crate) full: bool,
    /// Compare from this snapshot (0 is the baseline)
    #[arg(long, value_name = "N", value_parser = values::number::<u32>)]
    pub(crate) from: Option<u32>,
    /// Compare with this snapshot (the last one if none is given)
    #[arg(long, value_name = "N", value_parser = values::number::<u32>)]
    pub(crate) to: Option<u32>,
    /// List the session's snapshots
    #[arg(long)]
    pub(crate) snapshots: bool,
    /// List what the snapshots do not cover, and why
    #[arg(long)]
    pub(crate) coverage: bool,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of commands that ask before they change something.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ConsentArgs {
    /// Show what would be done, and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do it without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Handling of paths that changed after the session or checkpoint.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ConflictArgs {
    /// Merge text files that were changed later; what does not merge is kept
    #[arg(long, conflicts_with = "force")]
    pub(crate) merge: bool,
    /// With --merge: write conflict markers into files that do not merge
    #[arg(long, requires = "merge")]
    pub(crate) conflict_markers: bool,
    /// Also restore what was changed later; it can be undone
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// Go back to this snapshot; 0 is the baseline
    #[arg(long, value_name = "N", value_parser = values::number::<u32>, default_value_t = 0)]
    pub(crate) snapshot: u32,
    #[command(flatten)]
    pub(crate) conflicts: ConflictArgs,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TakeBackArgs {
    /// A session, or the id that a restore printed
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// A session: its id, the beginning of one, its name, `last`, or the path of its folder; all if none is given
    #[arg(value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CleanupArgs {
    /// Keep the newest N sessions
    #[arg(long, value_name = "N", value_parser = values::number::<usize>, conflicts_with = "all")]
    pub(crate) keep: Option<usize>,
    /// Remove sessions that are older than this many days
    #[arg(long, value_name = "DAYS", value_parser = values::number::<u32>, conflicts_with = "all")]
    pub(crate) older_than: Option<u32>,
    /// Remove the oldest until everything together takes no more than this (500M, 2G)
    #[arg(long, value_name = "SIZE", value_parser = values::size, conflicts_with = "all")]
    pub(crate) max_size: Option<u64>,
    /// Remove every session that is neither running nor pinned
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    /// Show what would be done, and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// A session (undoes it and everything later here), or only these files or directories
    #[arg(value_name = "ID|PATH")]
    pub(crate) paths: Vec<OsString>,
    /// Back to before this session, or to this checkpoint: its id, the beginning of one, its name, or `last`; or to this
    /// time: `10:15`, `2h` ago, `2026-08-01 10:15`. Everything that began later here is undone, too. Default: the newest
    /// that was not undone
    #[arg(long, value_name = "TIME|ID")]
    pub(crate) to: Option<String>,
    /// Only what an agent did in this turn: its number or id in `nono turns`. What came later stays: in the same text file it
    /// is merged, and what does not merge is kept and named
    #[arg(long, value_name = "TURN", conflicts_with = "to")]
    pub(crate) turn: Option<String>,
    /// This turn of an agent, and everything since
    #[arg(long, value_name = "TURN", conflicts_with_all = ["to", "turn"])]
    pub(crate) to_turn: Option<String>,
    #[command(flatten)]
    pub(crate) conflicts: ConflictArgs,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}
