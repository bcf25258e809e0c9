//! Restores of sessions and checkpoints: show the plan, ask, restore, report.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use nono::rollback::{Done, Plan};
use nono::snapshot::restore::Skipped;
use serde_json::Value;

use super::rollback::text::{self, Below, Length};
use super::{confirm, upkeep};
use crate::args::ConsentArgs;
use crate::failure::{Failure, NOT_DONE, by_signal};
use crate::message;
use crate::progress::Worked;

/// Whether a title says what a restore will do, or what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tense {
    Plan,
    Done,
}

/// Restore of a session or a project, or the undo of one.
pub(crate) trait Restoration {
    /// Target, owner and directory of the restore.
    fn title(&self, tense: Tense) -> String;
    fn question(&self) -> &'static str;
    fn roots(&self) -> Vec<PathBuf>;
    /// Completes an interrupted restore.
    fn complete_first(&mut self) -> Result<Completion, Failure>;
    fn plan(&mut self) -> Result<Worked<Plan>, Failure>;
    fn carry_out(&mut self) -> Result<Worked<Done>, Failure>;
    fn plan_json(&self, plan: &Plan) -> Value;
    fn done_json(&self, done: &Done) -> Value;
    /// Further notes on a plan.
    fn plan_notes(&self, plan: &Plan) -> Vec<String>;
    /// Further notes on what was done.
    fn done_notes(&self, done: &Done) -> Vec<String>;
    /// Whether JSON is printed to a stdout that is no terminal even without `--json`, for models.
    fn answers_programs(&self) -> bool;
    /// Hint how to restore kept paths as well.
    fn hint(&self, kept: &[Skipped]) -> Option<String>;
    /// Command that undoes it.
    fn undo(&self, id: &str) -> Option<String>;
    /// Message after an interrupt: what completes the restore.
    fn completes(&self) -> &'static str;
}

/// Result of completing an interrupted restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// There was no interrupted restore.
    Nothing,
    /// Completed; exit code of the completed restore.
    Complete(u8),
    /// It was interrupted again; exit code of the command.
    Ended(u8),
}

/// Result of a restore command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Performed {
    /// There was nothing to do.
    Nothing,
    /// The user did not confirm.
    Declined,
    /// It was done, or shown; exit code.
    Done(u8),
}

/// Plans, asks, restores, reports. 0: everything was done; 1: something was kept or failed, or it was not confirmed.
pub(crate) fn perform(task: impl Restoration, consent: ConsentArgs) -> Result<u8, Failure> {
    Ok(match attempt(task, consent, Pass::Never)? {
        Performed::Nothing => 0,
        Performed::Declined => NOT_DONE,
        Performed::Done(code) => code,
    })
}

/// Condition on which a restore is skipped silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Never,
    /// Skip if nothing would be restored, kept or lost: the restore was done in another way.
    Done,
    /// Nothing to restore; kept paths were reported before.
    NothingToDo,
}

/// Performs a restore that may be skipped.
pub(crate) fn attempt(
    mut task: impl Restoration,
    consent: ConsentArgs,
    pass: Pass,
) -> Result<Performed, Failure> {
    let asks = confirm::asks(consent, confirm::DO)?;
    let completed = match task.complete_first()? {
        Completion::Ended(code) => return Ok(Performed::Done(code)),
        Completion::Complete(code) => Performed::Done(code),
        Completion::Nothing => Performed::Nothing,
    };
    let plan = task.plan()?;
    if let Some(signal) = plan.signal {
        return Err(Failure::interrupted(signal));
    }
    let plan = plan.value;
    let is_done = match pass {
        Pass::Never => false,
        Pass::NothingToDo => !has_work(&plan),
        Pass::Done => !has_work(&plan) && plan.kept.is_empty() && plan.lost.is_empty(),
    };
    if is_done {
        // Completing the interrupted restore may have done all of it.
        return Ok(completed);
    }
    if consent.dry_run {
        let text = || plan_lines(&task, &plan, Length::All).join("\n");
        return message::answer_either(consent.json, || task.plan_json(&plan), text).map(Performed::Done);
    }
    if asks && has_work(&plan) {
        message::line(&plan_lines(&task, &plan, Length::Cut).join("\n"));
        if !message::confirm(task.question()) {
            message::line("nothing was done");
            return Ok(Performed::Declined);
        }
    }
    // After a question they were shown before it.
    let notes = if asks { Vec::new() } else { text::notes(&plan) };
    let works = has_work(&plan);
    let done = if works {
        // The restore makes its own plan: two plans of a million files need not be in memory at once.
        drop(plan);
        task.carry_out()
    } else {
        Ok(Worked { value: Done::nothing(plan), signal: None })
    };
    if works && !asks && !consent.json {
        let complete = done.as_ref().is_ok_and(|done| !done.value.interrupted);
        message::line(&task.title(if complete { Tense::Done } else { Tense::Plan }));
    }
    for note in notes {
        message::line(&note);
    }
    let done = done?;
    report(&task, &done.value, consent.json)?;
    let hint = task.hint(&done.value.kept).filter(|_| !consent.json);
    // Releases the session before the upkeep process reads it.
    drop(task);
    upkeep::after_command();
    if let Some(hint) = hint {
        message::line(&hint);
    }
    match done.signal {
        Some(signal) if done.value.interrupted => Ok(Performed::Done(by_signal(signal))),
        _ => Ok(Performed::Done(verdict(&done.value))),
    }
}

pub(super) fn has_work(plan: &Plan) -> bool {
    text::only_times(plan) || !plan.changes.is_empty() || !plan.written_merges().is_empty()
}

pub(super) fn verdict(done: &Done) -> u8 {
    if done.is_whole() { 0 } else { NOT_DONE }
}

pub(super) fn plan_lines(task: &impl Restoration, plan: &Plan, length: Length) -> Vec<String> {
    let roots = task.roots();
    let mut lines = vec![task.title(Tense::Plan)];
    if !has_work(plan) {
        lines.push("nothing to restore".to_owned());
    }
    lines.extend(text::plan(plan, &Below::new(&roots), length));
    lines.extend(task.plan_notes(plan));
    lines.extend(task.hint(&plan.kept));
    lines
}

pub(super) fn report(task: &impl Restoration, done: &Done, as_json: bool) -> Result<(), Failure> {
    if as_json {
        message::answer_json(&task.done_json(done))?;
    } else {
        let lines = done_lines(task, done);
        if !lines.is_empty() {
            message::line(&lines.join("\n"));
        }
        if task.answers_programs() && !io::stdout().is_terminal() {
            message::answer(&task.done_json(done).to_string())?;
        }
    }
    if done.interrupted {
        message::line(task.completes());
    }
    warn_unrecorded(done);
    if let Some(undo) = done.undo.as_deref().and_then(|id| task.undo(id)) {
        message::line(&format!("undo this with: {undo}"));
    }
    Ok(())
}

/// Report of a restore, with its notes.
pub(super) fn done_lines(task: &impl Restoration, done: &Done) -> Vec<String> {
    let roots = task.roots();
    let mut lines = text::done(done, &Below::new(&roots), Length::Done);
    if done.changes.is_empty() && done.undo.is_none() && !done.interrupted {
        lines.splice(0..0, [task.title(Tense::Plan), "nothing to restore".to_owned()]);
    }
    lines.extend(task.done_notes(done));
    lines
}

/// Warns that the restore was not recorded, with `--json` as well.
pub(super) fn warn_unrecorded(done: &Done) {
    if let Some(why) = &done.unrecorded {
        message::line(&message::unrecorded(why));
    }
}
