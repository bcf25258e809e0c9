//! Tools outside a sandbox: they use the checkpoints directly. Nothing is restored before the user confirmed the plan.

use std::ffi::OsString;
use std::path::PathBuf;

use nono::checkpoints::json::Listed;
use nono::checkpoints::{
    self, Brief, CheckpointChoice, CheckpointError, CheckpointManager, CheckpointTarget, Ensured, Origin,
    brief, changes_of, json as shapes,
};
use nono::diagnostic::{quote_all, shown};
use nono::rollback::SessionEntry;
use nono::snapshot::SnapshotId;
use serde_json::{Value, json};

use super::answer::{ToolAnswer, cut};
use super::call::{Agreement, McpCall};
use super::responses;
use crate::age::ago;
use crate::commands::checkpoints::create::skipped;
use crate::commands::checkpoints::{CheckpointContext, CheckpointTask, OfProject, here, text};
use crate::commands::perform::{Restoration, done_lines, has_work, plan_lines};
use crate::commands::rollback;
use crate::commands::rollback::text::Length;
use crate::failure::Failure;
use crate::progress::ReportsProgress;
use crate::units::grouped;

/// Maximum size of a plan in a question, in bytes.
const PLAN: usize = 4 << 10;

pub(super) fn list(limit: usize, call: &McpCall<'_>) -> Result<ToolAnswer, Failure> {
    at_place(call, |place| {
        let root = place.manager.root_of(&place.cwd)?;
        let all = match place.manager.list(&root.dir) {
            Err(CheckpointError::NoProject { .. }) => Vec::new(),
            all => all?,
        };
        let here = place.manager.here(&root.dir).unwrap_or_default();
        Ok(responses::list(&Listed { project: root.dir, checkpoints: all, here }, limit))
    })
}

pub(super) fn diff(checkpoint: &str, paths: &[PathBuf], call: &McpCall<'_>) -> Result<ToolAnswer, Failure> {
    at_place(call, |place| {
        let (id, found) = compared(place, checkpoint, paths)?;
        Ok(responses::diff(&id, &found, 0))
    })
}

pub(super) fn create(reason: &str, call: &McpCall<'_>) -> Result<ToolAnswer, Failure> {
    at_place(call, |place| {
        nono::state_dir::ensure(&place.manager.host().state_dir)?;
        let ensured = place.manager.create(&place.cwd.clone(), reason, &Origin::default());
        let text = match &ensured {
            Ensured::Taken { project, checkpoint, .. } => {
                let (id, files) = (checkpoint.id.short(), grouped(checkpoint.files));
                format!("checkpoint {id} of {}: {files} files", shown(project))
            }
            Ensured::Skipped { project, why } => skipped(&shown(project), why),
            Ensured::Failed { .. } => String::new(),
        };
        let value = shapes::ensured(&ensured);
        if let Ensured::Failed { error, .. } = ensured {
            return Err(error.into());
        }
        // Prunes as the command does; an error shows up again in the next command.
        let _ = place.manager.auto_prune();
        Ok(ToolAnswer::new(text, responses::harmless(value)))
    })
}

pub(super) fn restore(
    checkpoint: &str,
    paths: &[PathBuf],
    call: &McpCall<'_>,
) -> Result<ToolAnswer, Failure> {
    at_place(call, |place| {
        let dir = place.cwd.clone();
        // Resolved once: numbers shift when another checkpoint is taken meanwhile.
        let checkpoint = place.manager.find(&dir, &CheckpointTarget::Text(checkpoint.to_owned()))?;
        let id = checkpoint.id.short().to_owned();
        let chosen = match paths {
            [] => Vec::new(),
            paths => {
                let compared = place.manager.compare(&dir, &CheckpointTarget::Id(checkpoint.id.clone()))?;
                let chosen = checkpoints::chosen(&compared, &typed(paths), &dir, false);
                compared.close()?;
                chosen?
            }
        };
        let command = command(&id, paths);
        let choice = CheckpointChoice { paths: chosen, ..CheckpointChoice::default() };
        let task = CheckpointTask::Restore(Box::new(checkpoint), choice);
        let mut task = OfProject::new(place, dir.clone(), task);
        let plan = task.plan_quietly()?;
        let lines = cut(plan_lines(&task, &plan, Length::Cut).join("\n"), PLAN);
        let about = |restored: bool| json!({"restored": restored, "checkpoint": id, "command": command});
        if !has_work(&plan) {
            return Ok(ToolAnswer::new(lines, about(false)));
        }
        let question = format!("{lines}\n\n{}", task.question());
        match call.person.agrees(&question) {
            Agreement::Yes => {}
            Agreement::No => {
                let text =
                    format!("The person did not agree: nothing was restored. This was the plan:\n{lines}");
                return Ok(not_done(text, about(false)));
            }
            Agreement::NoApprover => {
                let text = format!(
                    "Nothing was restored: only the person can agree to this, and this client has no way to ask. The plan:\n\
                     {lines}\n\nThe person can do it in {}, by typing: {command}",
                    shown(&dir)
                );
                return Ok(not_done(text, about(false)));
            }
        }
        drop(plan);
        // Confirmed, so it can no longer be cancelled.
        task.watch(());
        let done = task.carry_out_quietly()?;
        let mut lines = done_lines(&task, &done);
        lines.extend(done.unrecorded.as_deref().map(crate::message::unrecorded));
        lines.extend(
            done.undo.as_deref().and_then(|id| task.undo(id)).map(|undo| format!("undo this with: {undo}")),
        );
        let mut value = responses::short(task.done_json(&done));
        value["restored"] = json!(true);
        let answer = ToolAnswer::new(lines.join("\n"), responses::harmless(value));
        Ok(if done.is_whole() { answer } else { answer.failed() })
    })
}

/// Failed answer with the text in its JSON as well, since some clients show only that.
fn not_done(text: String, mut value: Value) -> ToolAnswer {
    value["message"] = json!(text);
    ToolAnswer::new(text, value).failed()
}

/// Changes since the newest checkpoint, or of a session that began after it.
pub(super) fn changes(call: &McpCall<'_>) -> Result<ToolAnswer, Failure> {
    at_place(call, |place| {
        let newest = place.manager.find(&place.cwd, &CheckpointTarget::Text("1".to_owned()));
        let sessions = rollback::place()?;
        let session = sessions.catalogue.last_here(&sessions.cwd).ok();
        let is_newer = |entry: &SessionEntry| {
            newest.as_ref().map_or(true, |newest| entry.metadata.started.as_str() > newest.time.as_str())
        };
        if let Some(entry) = session.filter(is_newer) {
            let title = format!("Changed by session {}:", rollback::brief(&entry));
            let session = sessions.catalogue.open(entry)?;
            let set = session.changes(&SnapshotId::Number(0), &session.last()?)?;
            let found = brief(session.engine(), &set)?;
            return Ok(responses::changes(&title, found, 0));
        }
        let newest = newest?;
        let title = format!("Changed since checkpoint {} ({}):", text::summary(&newest), ago(&newest.time));
        let (_, found) = compared(place, newest.id.as_str(), &[])?;
        Ok(responses::changes(&title, found, 0))
    })
}

/// Id of a checkpoint, and the changes since.
fn compared(
    place: &mut CheckpointContext,
    checkpoint: &str,
    paths: &[PathBuf],
) -> Result<(String, Brief), Failure> {
    let dir = place.cwd.clone();
    let checkpoint = place.manager.find(&dir, &CheckpointTarget::Text(checkpoint.to_owned()))?;
    let mut compared = place.manager.compare(&dir, &CheckpointTarget::Id(checkpoint.id.clone()))?;
    let chosen = checkpoints::chosen(&compared, &typed(paths), &dir, false)?;
    let set = changes_of(&mut compared, &chosen);
    let found = brief(&compared.manager, &set)?;
    compared.close()?;
    Ok((checkpoint.id.short().to_owned(), found))
}

fn typed(paths: &[PathBuf]) -> Vec<OsString> {
    paths.iter().map(|path| path.clone().into_os_string()).collect()
}

/// Equivalent command line.
fn command(id: &str, paths: &[PathBuf]) -> String {
    let mut words: Vec<String> = ["nono", "checkpoints", "restore", id].map(str::to_owned).to_vec();
    if !paths.is_empty() {
        words.push("--".to_owned());
        words.extend(paths.iter().map(|path| path.to_string_lossy().into_owned()));
    }
    quote_all(&words)
}

/// Runs work on the checkpoints of this directory; completed interrupted restores are added to the answer.
fn at_place(
    call: &McpCall<'_>,
    work: impl FnOnce(&mut CheckpointContext) -> Result<ToolAnswer, Failure>,
) -> Result<ToolAnswer, Failure> {
    let mut place = here()?;
    place.manager.observe(call.stop.watch());
    let answer = work(&mut place);
    let completed = completed(&place.manager);
    let mut answer = answer?;
    if !completed.is_empty() {
        answer.text = format!("{}\n\n{}", completed.join("\n"), answer.text);
    }
    Ok(answer)
}

fn completed(manager: &CheckpointManager) -> Vec<String> {
    let own = manager.take_completed().iter().flat_map(text::completed).collect::<Vec<_>>();
    let others = manager.take_completed_others();
    own.into_iter().chain(others.iter().map(|told| nono::diagnostic::escape(told))).collect()
}
