//! `nono checkpoints status` and `list`.

use nono::checkpoints::{CheckpointError, json};
use nono::diagnostic::shown;
use serde_json::Value;

use super::{Place, say_problems, text};
use crate::args::{CheckpointListArgs, StatusArgs};
use crate::failure::Failure;
use crate::message;

pub(super) fn status(args: &StatusArgs, place: &mut Place) -> Result<u8, Failure> {
    // What it removes is not shown any more.
    place.upkeep();
    let status = place.manager.status()?;
    if args.json {
        message::answer_json(&json::status(&status))?;
    } else {
        message::answer(&text::status(&status))?;
        say_problems(status.problems.into_iter());
    }
    Ok(0)
}

pub(super) fn list(args: &CheckpointListArgs, place: &mut Place) -> Result<u8, Failure> {
    place.upkeep();
    if args.all {
        return all(args, place);
    }
    let dir = place.dir(&args.project);
    let root = place.manager.root_of(&dir);
    let listed = root.and_then(|root| Ok((place.manager.list(&root.dir)?, root.dir)));
    let (checkpoints, project) = match listed {
        // Whoever names a path wants to know about that path.
        Err(CheckpointError::NoProject { .. } | CheckpointError::TooBroad { .. })
            if args.project.path.is_none() =>
        {
            return status(&StatusArgs { json: args.json }, place);
        }
        other => other?,
    };
    // A list has to be there in spite of damage.
    let here = place.manager.here(&project).unwrap_or_default();
    if args.json {
        message::answer_json(&json::list(&project, &checkpoints, here.as_ref()))?;
    } else {
        let list = text::list(&project, &checkpoints, here.as_ref());
        message::answer(&format!("{list}\n\n{}", text::HINTS))?;
    }
    Ok(0)
}

/// A project that cannot be read is a problem, not the end of the list.
fn all(args: &CheckpointListArgs, place: &mut Place) -> Result<u8, Failure> {
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
    say_problems(problems.into_iter());
    Ok(0)
}
