//! `nono checkpoints` inside a sandbox: requests to the supervisor, which has the checkpoints and asks the user before
//! it restores anything. This process changes no file.

use std::io::{self, IsTerminal};
use std::path::Path;

use nono::checkpoints::supervisor_request::{self, RemoteAction};
use nono::checkpoints::{Origin, json};
use nono::diagnostic::escape;
use nono::hooks::slash_command::readable;
use nono::request::{self, RequestError, Wait};
use serde_json::Value;

use super::text;
use crate::args::{
    CheckpointListArgs, CheckpointRestoreArgs, CheckpointsCommand, CreateArgs, DiffArgs, DiffLookArgs,
    first_given,
};
use crate::commands::rollback::conflicts;
use crate::failure::{Failure, NOT_DONE};
use crate::host::request_socket;
use crate::message;
use crate::units::some;

pub(super) fn checkpoints(command: CheckpointsCommand, cwd: &Path) -> Result<u8, Failure> {
    let Some(socket) = request_socket() else {
        return Err(Failure::new("checkpoints are not available in this sandbox: it has no supervisor"));
    };
    let outside = Outside { socket: &socket, cwd, wait: Wait::default() };
    match command {
        CheckpointsCommand::List(args) => outside.list(&args),
        CheckpointsCommand::Create(args) => outside.create(args),
        CheckpointsCommand::Diff(args) => outside.diff(&args),
        CheckpointsCommand::Restore(args) => outside.restore(args),
        _ => Err(Failure::new("inside a sandbox only checkpoints list, create, diff and restore work")
            .hint("run this command outside")),
    }
}

/// Connection to the supervisor, for requests from a directory.
pub(crate) struct Outside<'a> {
    pub(crate) socket: &'a Path,
    pub(crate) cwd: &'a Path,
    /// Time to wait for an answer; by default as long as the user takes.
    pub(crate) wait: Wait<'a>,
}

impl Outside<'_> {
    pub(crate) fn ask(&self, action: RemoteAction) -> Result<Value, Failure> {
        request::history(self.socket, action, self.wait).map_err(|error| match error {
            RequestError::Refused(why) => Failure::refused(escape(&why)),
            error => error.into(),
        })
    }

    pub(crate) fn at(&self, path: Option<&Path>) -> supervisor_request::Path {
        supervisor_request::Path(path.map_or_else(|| self.cwd.to_owned(), |path| self.cwd.join(path)))
    }

    pub(crate) fn paths(
        &self,
        typed: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Vec<supervisor_request::Path> {
        typed.into_iter().map(|path| self.at(Some(path.as_ref()))).collect()
    }

    fn list(&self, args: &CheckpointListArgs) -> Result<u8, Failure> {
        refuse([("--all", args.all)])?;
        let answer = self.ask(RemoteAction::List { dir: self.at(args.project.path.as_deref()) })?;
        if args.json {
            return message::answer_json(&answer);
        }
        let json::Listed { project, checkpoints, here } = json::listed(&answer).ok_or_else(strange)?;
        message::answer(&text::list_and_hints(&project, &checkpoints, here.as_ref()))
    }

    fn create(&self, args: CreateArgs) -> Result<u8, Failure> {
        let targets = vec![self.at(args.path.as_deref())];
        let action =
            RemoteAction::Before { origin: Origin::default(), reason: args.message, command: None, targets };
        let answer = self.ask(action)?;
        let result = answer["results"].get(0).ok_or_else(strange)?;
        if args.json {
            message::answer_json(result)?;
            let is_there = result["taken"].is_string() || result["skipped"].is_string();
            return Ok(if is_there { 0 } else { NOT_DONE });
        }
        message::line(&created(result)?);
        Ok(0)
    }

    fn diff(&self, args: &DiffArgs) -> Result<u8, Failure> {
        let DiffLookArgs { stat, side_by_side, .. } = args.look;
        refuse([("--glob", args.glob), ("--stat", stat), ("--side-by-side", side_by_side)])?;
        let answer = self.ask(RemoteAction::Diff {
            dir: self.at(args.checkpoint.project.path.as_deref()),
            target: args.checkpoint.checkpoint.clone(),
            paths: self.paths(&args.paths),
            brief: false,
        })?;
        let patch = answer["patch"].as_str().ok_or_else(strange)?;
        if args.look.json {
            message::answer_json(&answer)?;
        } else if patch.is_empty() {
            message::line("nothing changed since this checkpoint");
        } else if args.for_reading {
            message::answer(&readable(patch).split('\n').map(escape).collect::<Vec<_>>().join("\n"))?;
        } else if io::stdout().is_terminal() {
            message::answer(&patch.trim_end().split('\n').map(escape).collect::<Vec<_>>().join("\n"))?;
        } else {
            message::answer(patch.trim_end_matches('\n'))?;
        }
        let left_out = answer["left_out"].as_u64().unwrap_or(0);
        if left_out > 0 {
            let paths = some(left_out, "path");
            message::line(&format!("{paths} not shown: too long, or not open to this sandbox"));
        }
        let differs = !patch.is_empty() || left_out > 0;
        Ok(if args.look.exit_code && differs { NOT_DONE } else { 0 })
    }

    fn restore(&self, args: CheckpointRestoreArgs) -> Result<u8, Failure> {
        refuse([
            ("--turn", args.turn.is_some()),
            ("--glob", args.glob),
            ("--with-git", args.with_git),
            ("--force", args.conflicts.force),
            ("--merge", args.conflicts.merge),
            ("--dry-run", args.consent.dry_run),
        ])?;
        let target = args.checkpoint.unwrap_or_default().to_string_lossy().into_owned();
        let answer = self.ask(RemoteAction::Restore {
            dir: self.at(args.project.path.as_deref()),
            target,
            paths: self.paths(args.paths),
            conflicts: conflicts(args.conflicts),
        })?;
        let (line, whole) = restored(&answer)?;
        if args.consent.json {
            message::answer_json(&answer)?;
        } else {
            message::line(&line);
            if !io::stdout().is_terminal() {
                message::answer(&answer.to_string())?;
            }
        }
        Ok(if whole { 0 } else { NOT_DONE })
    }
}

/// Result of a request for a checkpoint, in a sentence.
pub(crate) fn created(result: &Value) -> Result<String, Failure> {
    let id = |key: &str| result[key].as_str().unwrap_or_default().chars().take(8).collect::<String>();
    let word = |key: &str| result[key].as_str().map(escape);
    if result["taken"].is_string() {
        return Ok(format!("checkpoint {}", id("taken")));
    }
    if let Some(why) = word("skipped") {
        let there = match id("checkpoint").as_str() {
            "" => String::new(),
            id => format!(", checkpoint {id} exists"),
        };
        return Ok(format!("no checkpoint was taken: {}{there}", why.replace('_', " ")));
    }
    let why = word("refused").or_else(|| word("failed")).ok_or_else(strange)?;
    Err(Failure::refused(format!("no checkpoint was taken: {why}")))
}

/// Result of a restore in a sentence, and whether it was done completely.
pub(crate) fn restored(answer: &Value) -> Result<(String, bool), Failure> {
    let more = |key: &str| usize::try_from(answer[format!("more_{key}")].as_u64().unwrap_or(0)).unwrap_or(0);
    let count =
        |key: &str| answer[key].as_array().map(|all| all.len().saturating_add(more(key))).ok_or_else(strange);
    let counts = answer["counts"].as_object().ok_or_else(strange)?;
    let changed = counts.values().filter_map(Value::as_u64).sum::<u64>();
    let (kept, failed, turns) = (count("kept")?, count("failed")?, count("turns_undone")?);
    let counts = [(kept, "kept"), (failed, "failed")].into_iter().filter(|(count, _)| *count > 0);
    let counts = counts.map(|(count, what)| format!("{what} {count}"));
    let undone = (turns > 0).then(|| format!("undid {}", some(turns, "turn")));
    let parts = [format!("restored {}", some(changed, "path"))].into_iter();
    let line = parts.chain(counts).chain(undone).collect::<Vec<_>>().join(", ");
    Ok((line, kept == 0 && failed == 0 && answer["interrupted"] != true))
}

/// Refuses flags that work only outside a sandbox.
fn refuse<const N: usize>(flags: [(&'static str, bool); N]) -> Result<(), Failure> {
    match first_given(flags) {
        Some(flag) => Err(Failure::usage(format!("{flag} works only outside a sandbox"))),
        None => Ok(()),
    }
}

pub(crate) fn strange() -> Failure {
    Failure::new("cannot parse the supervisor's answer")
}
