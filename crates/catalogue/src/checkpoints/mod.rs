//! Checkpoints for the CLI and the bindings: the manager and its types from `nono-checkpoint`, its settings, resolution
//! of typed paths, differences as text, and the audit of restores.
//!
//! Nothing here prints or prompts: plans and results are values.

mod audited_restores;
mod diff_summary;
mod differences;
mod forget;
pub mod import;
pub mod json;
mod paths;
pub mod settings;

pub use nono_checkpoint::Ignored;
pub use nono_checkpoint::forget::{Holding, Purged};
pub use nono_checkpoint::history::TurnLink;
pub use nono_checkpoint::legacy::Legacy;
pub use nono_checkpoint::manager::{Compared, Completed, RestoreNote};
pub use nono_checkpoint::repair::Repaired;
pub use nono_checkpoint::unprotected::Unprotected;
pub use nono_checkpoint::usage::Usage;
pub use nono_checkpoint::verify::{Lost, ProjectVerified};
pub use nono_checkpoint::{
    ChangedBy, Checkpoint, CheckpointChoice, CheckpointError, CheckpointId, CheckpointManager,
    CheckpointTarget, Config, Conflicts, Ensured, Host, Origin, Project, ProjectHash, ProjectOutcome,
    ProjectPlan, ProjectStatus, Pruned, Retention, Root, Skip, Stats, StatusReport, TurnCall, Undoable,
    WorkedTurn, manager, origin, project, supervisor_request, trigger, turns,
};

pub use audited_restores::{completion, subject};
pub use audited_restores::{recording, restore, undo, undo_turn};
pub use diff_summary::{Brief, BriefFile, brief};
pub use differences::{Difference, Differences, changes_of, differences};
pub use forget::{HoldingEverywhere, PurgedEverywhere, forget, holding};
pub use paths::{PathError, chosen};
pub use settings::SettingsError;

use crate::rollback::ChangeSet;

/// Changes from a checkpoint to now, for display: renames detected, files that run later marked.
pub fn changes(compared: &mut Compared) -> ChangeSet {
    let changes = std::mem::take(&mut compared.changes);
    ChangeSet::of(&compared.manager, &compared.from, &compared.to, changes)
}
