//! One change to the user's tree, from the plan to the report: shown, agreed to, done.

use nono::diagnostic::{quote_all, shown};
use nono::rollback::{Done, Plan, RestoreChoice, RollbackError, RollbackSession, json};
use nono::snapshot::restore::Skipped;

use super::recover;
use super::text::{self, Below, Length};
use crate::age::ago;
use crate::args::ConsentArgs;
use crate::commands::{consent, upkeep};
use crate::failure::{Failure, NOT_DONE, by_signal};
use crate::message;
use crate::progress::watched;

/// What can be done to a tree with a session.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    Restore(RestoreChoice),
    /// Undo a restore: the one of this id, or the last one that was not undone.
    TakeBack(Option<String>),
}

impl Task {
    fn plan(&self, session: &mut RollbackSession) -> Result<Plan, RollbackError> {
        match self {
            Task::Restore(choice) => session.plan(choice),
            Task::TakeBack(id) => session.plan_undo(id.as_deref()),
        }
    }

    fn carry_out(&self, session: &mut RollbackSession) -> Result<Done, RollbackError> {
        match self {
            Task::Restore(choice) => session.restore(choice),
            Task::TakeBack(id) => session.undo(id.as_deref()),
        }
    }

    fn title(&self, session: &RollbackSession) -> String {
        let entry = session.entry();
        let of = format!(
            "session {} ({}, {}) in {}",
            entry.id,
            quote_all(&entry.metadata.command),
            ago(&entry.metadata.started),
            shown(&entry.project)
        );
        match self {
            Task::Restore(choice) if choice.snapshot == 0.into() => format!("back to before {of}:"),
            Task::Restore(choice) => format!("back to snapshot {} of {of}:", choice.snapshot),
            Task::TakeBack(_) => format!("take back the restore of {of}:"),
        }
    }

    /// How to restore what was kept too. Taking back knows no such way.
    fn hint(&self, kept: &[Skipped]) -> Option<String> {
        match self {
            Task::Restore(_) => text::hint(kept, "nono rollback undo"),
            Task::TakeBack(_) => None,
        }
    }

    fn question(&self) -> &'static str {
        match self {
            Task::Restore(_) => "Restore this?",
            Task::TakeBack(_) => "Take the restore back?",
        }
    }
}

/// Plan, ask, do, report. 0: all of it was done; 1: something was kept or failed, or nobody agreed.
pub(crate) fn perform(session: RollbackSession, task: &Task, consent: ConsentArgs) -> Result<u8, Failure> {
    Ok(perform_unless(session, task, consent, |_| false)?.unwrap_or_default())
}

/// The same for a task that may have been done in another way: nothing is said or done if there is nothing to do.
pub(crate) fn perform_if_needed(
    session: RollbackSession,
    task: &Task,
    consent: ConsentArgs,
) -> Result<Option<u8>, Failure> {
    let is_done = |plan: &Plan| !has_work(plan) && plan.kept.is_empty() && plan.lost.is_empty();
    perform_unless(session, task, consent, is_done)
}

fn perform_unless(
    mut session: RollbackSession,
    task: &Task,
    consent: ConsentArgs,
    is_done: impl Fn(&Plan) -> bool,
) -> Result<Option<u8>, Failure> {
    let asks = consent::asks(consent, consent::DO)?;
    if let Some(code) = recover::first(&mut session)? {
        return Ok(Some(code));
    }
    let plan = watched(&mut session, "looking at the tree", |session| task.plan(session))?;
    if let Some(signal) = plan.signal {
        return Err(Failure::interrupted(signal));
    }
    let plan = plan.value;
    if is_done(&plan) {
        return Ok(None);
    }
    if consent.dry_run {
        show_plan(&session, task, &plan, consent.json)?;
        return Ok(Some(0));
    }
    if asks && has_work(&plan) {
        say_plan(&session, task, &plan);
        if !message::confirm(task.question()) {
            message::line("nothing was done");
            return Ok(Some(NOT_DONE));
        }
    }
    if !asks {
        if has_work(&plan) && !consent.json {
            message::line(&task.title(&session));
        }
        for note in text::notes(&plan) {
            message::line(&note);
        }
    }
    let done = if has_work(&plan) {
        // A restore makes its own; two of a million files need not be in memory at once.
        drop(plan);
        watched(&mut session, "restoring", |session| task.carry_out(session))?
    } else {
        crate::progress::Worked { value: nothing(plan), signal: None }
    };
    report(&session, &done.value, consent.json)?;
    // The session is free before another process looks at it.
    drop(session);
    upkeep::after_command();
    if let Some(hint) = task.hint(&done.value.kept).filter(|_| !consent.json) {
        message::line(&hint);
    }
    match done.signal {
        Some(signal) if done.value.interrupted => Ok(Some(by_signal(signal))),
        _ => Ok(Some(verdict(&done.value))),
    }
}

fn has_work(plan: &Plan) -> bool {
    text::only_times(plan) || !plan.changes.is_empty() || !text::written(&plan.merges, &plan.kept).is_empty()
}

/// The outcome of a plan that changes nothing.
fn nothing(plan: Plan) -> Done {
    let Plan { kept, merges: merged, lost, still_executes, .. } = plan;
    Done { kept, merged, lost, still_executes, ..Done::default() }
}

pub(super) fn verdict(done: &Done) -> u8 {
    if done.is_whole() { 0 } else { NOT_DONE }
}

fn plan_lines(session: &RollbackSession, task: &Task, plan: &Plan, length: Length) -> Vec<String> {
    let below = Below::new(&session.entry().metadata.tracked_paths);
    let mut lines = vec![task.title(session)];
    if !has_work(plan) {
        lines.push("there is nothing to restore".to_owned());
    }
    lines.extend(text::plan(plan, &below, length));
    lines.extend(task.hint(&plan.kept));
    lines
}

/// What a dry run was asked for.
fn show_plan(session: &RollbackSession, task: &Task, plan: &Plan, as_json: bool) -> Result<(), Failure> {
    if as_json {
        message::answer_json(&json::plan(&session.entry().id, plan))?;
    } else {
        message::answer(&plan_lines(session, task, plan, Length::All).join("\n"))?;
    }
    Ok(())
}

/// Before the question.
fn say_plan(session: &RollbackSession, task: &Task, plan: &Plan) {
    message::line(&plan_lines(session, task, plan, Length::Cut).join("\n"));
}

pub(super) fn report(session: &RollbackSession, done: &Done, as_json: bool) -> Result<(), Failure> {
    let entry = session.entry();
    if as_json {
        message::answer_json(&json::done(&entry.id, done))?;
    } else {
        let below = Below::new(&entry.metadata.tracked_paths);
        let lines = text::done(done, &below, Length::Done);
        if !lines.is_empty() {
            message::line(&lines.join("\n"));
        } else if !done.interrupted {
            message::line("there is nothing to restore");
        }
    }
    if done.interrupted {
        message::line("interrupted; `nono rollback recover` completes it");
    }
    warn_unrecorded(done);
    if let Some(undo) = &done.undo {
        // A session that is not in the catalogue is found by its folder only.
        let id = if entry.foreign { entry.dir.to_string_lossy().into_owned() } else { undo.clone() };
        message::line(&format!("undo this with: nono rollback undo {}", quote_all(&[id])));
    }
    Ok(())
}

/// What is not on record has to be known, whoever asked for JSON.
pub(super) fn warn_unrecorded(done: &Done) {
    if let Some(why) = &done.unrecorded {
        message::line(&message::unrecorded(why));
    }
}
