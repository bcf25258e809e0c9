//! `nono checkpoints status` and `list`.

use nono::checkpoints::{CheckpointError, json};
use nono::diagnostic::shown;
use serde_json::Value;

use super::{CheckpointContext, text};
use crate::args::{CheckpointListArgs, JsonArg};
use crate::failure::Failure;
use crate::message;

pub(super) fn status(args: &JsonArg, place: &mut CheckpointContext) -> Result<u8, Failure> {
    // Before the list, which then lacks what was pruned.
    place.upkeep();
    let status = place.manager.status()?;
    if args.json {
        message::answer_json(&json::status(&status))?;
    } else {
        message::answer(&text::status(&status))?;
        message::problems("warning", &status.problems);
    }
    Ok(0)
}

pub(super) fn list(args: &CheckpointListArgs, place: &mut CheckpointContext) -> Result<u8, Failure> {
    place.upkeep();
    if args.all {
        return all(args, place);
    }
    let dir = place.dir(&args.project);
    let root = place.manager.root_of(&dir);
    let listed = root.and_then(|root| Ok((place.manager.list(&root.dir)?, root.dir)));
    let (checkpoints, project) = match listed {
        // A path that was given explicitly is an error instead.
        Err(CheckpointError::NoProject { .. } | CheckpointError::TooBroad { .. })
            if args.project.path.is_none() =>
        {
            return status(&JsonArg { json: args.json }, place);
        }
        other => other?,
    };
    // Damage there must not prevent the list.
    let here = place.manager.here(&project).unwrap_or_default();
    let value = || json::list(&project, &checkpoints, here.as_ref());
    message::answer_either(args.json, value, || text::list_and_hints(&project, &checkpoints, here.as_ref()))
}

/// Lists all projects; one that cannot be read is reported as a warning.
fn all(args: &CheckpointListArgs, place: &mut CheckpointContext) -> Result<u8, Failure> {
    let status = place.manager.status()?;
    let mut problems = status.problems;
    let (mut texts, mut values): (Vec<String>, Vec<Value>) = (Vec::new(), Vec::new());
    for project in status.projects.into_iter().map(|one| one.workdir) {
        let here = place.manager.here(&project).unwrap_or_default();
        match place.manager.list(&project) {
            Ok(checkpoints) if args.json => values.push(json::list(&project, &checkpoints, here.as_ref())),
            Ok(checkpoints) => texts.push(text::list(&project, &checkpoints, here.as_ref())),
            Err(error) => problems.push(format!("{}: {error}", shown(&project))),
        }
    }
    if args.json {
        message::answer_json(&values)?;
    } else if texts.is_empty() {
        message::answer("no checkpoints; `nono checkpoints create` takes one")?;
    } else {
        message::answer(&texts.join("\n\n"))?;
    }
    message::problems("warning", &problems);
    Ok(0)
}
