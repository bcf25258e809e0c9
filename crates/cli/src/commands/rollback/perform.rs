//! Restore of a session, and undo of a restore.

use std::path::PathBuf;

use nono::diagnostic::{quote_all, shown};
use nono::rollback::{Done, Plan, RestoreChoice, RollbackSession, SessionEntry, json};
use nono::snapshot::restore::Skipped;
use serde_json::Value;

use super::session_choice::brief;
use super::{recover, text};
use crate::commands::perform::{Completion, Restoration, Tense};
use crate::failure::Failure;
use crate::progress::{Worked, watched};
use crate::units::few;

/// Kind of restore.
#[derive(Clone, Debug)]
pub(crate) enum SessionTask {
    Restore(RestoreChoice),
    /// Undo of a restore: the one with this id, or the last one that was not undone.
    TakeBack(Option<String>),
}

/// Restore of a session.
#[derive(Debug)]
pub(crate) struct OfSession {
    pub(crate) session: RollbackSession,
    pub(crate) task: SessionTask,
}

impl Restoration for OfSession {
    fn title(&self, tense: Tense) -> String {
        let entry = self.session.entry();
        let of = format!("session {} in {}", brief(entry), shown(&entry.project));
        let (go, take) = match tense {
            Tense::Plan => ("go", "take"),
            Tense::Done => ("went", "took"),
        };
        match &self.task {
            SessionTask::Restore(choice) if choice.snapshot == 0.into() => {
                format!("{go} back to before {of}:")
            }
            SessionTask::Restore(choice) => format!("{go} back to snapshot {} of {of}:", choice.snapshot),
            SessionTask::TakeBack(_) => format!("{take} back the restore of {of}:"),
        }
    }

    fn question(&self) -> &'static str {
        match self.task {
            SessionTask::Restore(_) => "Restore this?",
            SessionTask::TakeBack(_) => "Take the restore back?",
        }
    }

    fn roots(&self) -> Vec<PathBuf> {
        self.session.entry().metadata.tracked_paths.clone()
    }

    fn complete_first(&mut self) -> Result<Completion, Failure> {
        recover::first(self)
    }

    fn plan(&mut self) -> Result<Worked<Plan>, Failure> {
        let task = &self.task;
        watched(&mut self.session, "looking at the tree", |session| match task {
            SessionTask::Restore(choice) => session.plan(choice),
            SessionTask::TakeBack(id) => session.plan_undo(id.as_deref()),
        })
    }

    fn carry_out(&mut self) -> Result<Worked<Done>, Failure> {
        let task = &self.task;
        watched(&mut self.session, "restoring", |session| match task {
            SessionTask::Restore(choice) => session.restore(choice),
            SessionTask::TakeBack(id) => session.undo(id.as_deref()),
        })
    }

    fn plan_json(&self, plan: &Plan) -> Value {
        json::plan(&self.session.entry().id, plan)
    }

    fn done_json(&self, done: &Done) -> Value {
        json::done(&self.session.entry().id, done)
    }

    fn plan_notes(&self, plan: &Plan) -> Vec<String> {
        let others = self.beside("are undone").filter(|_| !plan.changes.is_empty());
        unknown(plan.cannot_tell_conflicts, "are undone").into_iter().chain(others).collect()
    }

    fn done_notes(&self, done: &Done) -> Vec<String> {
        let tells = done.cannot_tell_conflicts && !done.changes.is_empty();
        let others = self.beside("were undone").filter(|_| !done.changes.is_empty());
        unknown(tells, "were undone").into_iter().chain(others).collect()
    }

    fn answers_programs(&self) -> bool {
        false
    }

    /// None for the undo of a restore, which cannot be forced.
    fn hint(&self, kept: &[Skipped]) -> Option<String> {
        match &self.task {
            SessionTask::Restore(choice) => text::hint(kept, choice.conflicts, "nono rollback undo"),
            SessionTask::TakeBack(_) => None,
        }
    }

    fn undo(&self, id: &str) -> Option<String> {
        // A session that is not in the catalogue is found by its folder only.
        let entry = self.session.entry();
        let id = if entry.foreign { entry.dir.to_string_lossy().into_owned() } else { id.to_owned() };
        Some(format!("nono rollback undo {}", quote_all(&[id])))
    }

    fn completes(&self) -> &'static str {
        "interrupted; `nono rollback recover` completes it"
    }
}

impl OfSession {
    /// Note about sessions that ran at the same time, whose changes are undone as well. An error here must not prevent
    /// the undo.
    fn beside(&self, taken_back: &str) -> Option<String> {
        let SessionTask::Restore(_) = self.task else { return None };
        let others = self.session.beside().unwrap_or_default();
        let name = |entry: &SessionEntry| format!("{} ({})", entry.id, quote_all(&entry.metadata.command));
        let names: Vec<String> = others.iter().map(name).collect();
        let some = few(&names, 1);
        (!names.is_empty()).then(|| {
            format!("{some} ran here at the same time: their changes from that time {taken_back} too")
        })
    }
}

/// Note that without a final snapshot later changes cannot be told from the command's.
fn unknown(cannot_tell: bool, restored: &str) -> Option<String> {
    cannot_tell.then(|| {
        format!(
            "the session has no final snapshot, so nono cannot tell your later changes from the command's: \
both {restored}"
        )
    })
}
