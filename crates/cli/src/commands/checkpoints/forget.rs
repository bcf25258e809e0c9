//! `nono checkpoints forget`: a path, and all that it ever held, out of every checkpoint of its project.

use std::path::Path;

use nono::checkpoints::{Holding, Purged, json};
use nono::diagnostic::shown;

use super::{Place, text};
use crate::args::ForgetPathArgs;
use crate::commands::consent;
use crate::commands::rollback::some;
use crate::failure::{Failure, NOT_DONE};
use crate::message;

pub(super) fn forget(args: &ForgetPathArgs, place: &Place) -> Result<u8, Failure> {
    let consent = args.consent;
    let asks = consent::asks(consent, consent::REMOVE)?;
    let path = place.cwd.join(&args.path);
    if consent.dry_run || asks {
        let holding = place.manager.holding(&path)?;
        let project = &holding.project;
        if consent.dry_run && consent.json {
            message::answer_json(&json::holding(project, &path, &holding.checkpoints))?;
        }
        if holding.checkpoints.is_empty() && holding.others == 0 {
            return Ok(nobody_holds(&path, project));
        }
        if consent.dry_run && consent.json {
            return Ok(0);
        }
        let mut lines = plan(&path, &holding);
        if consent.dry_run {
            message::answer(&lines.join("\n"))?;
            return Ok(0);
        }
        lines.push("this cannot be undone; the file itself stays".to_owned());
        message::line(&lines.join("\n"));
        if !message::confirm("Remove it?") {
            message::line("nothing was removed");
            return Ok(NOT_DONE);
        }
    }
    let purged = place.manager.forget(&path)?;
    if consent.json {
        message::answer_json(&json::purged(&purged))?;
    }
    if purged.is_nothing() {
        return Ok(nobody_holds(&path, &purged.project));
    }
    if !consent.json {
        report(&purged);
    }
    Ok(if purged.held_by.is_empty() { 0 } else { NOT_DONE })
}

/// Most likely a slip of the fingers: nobody should take it for done.
fn nobody_holds(path: &Path, project: &Path) -> u8 {
    message::line(&format!("no checkpoint of {} holds {}; nothing was removed", shown(project), shown(path)));
    NOT_DONE
}

fn plan(path: &Path, holding: &Holding) -> Vec<String> {
    let mut from = some(holding.checkpoints.len(), "checkpoint");
    if holding.others > 0 {
        let others = some(usize::try_from(holding.others).unwrap_or(usize::MAX), "other snapshot");
        from = format!("{from} and {others}");
    }
    let mut lines = vec![format!("{} of {} would go from {from}", shown(path), shown(&holding.project))];
    lines.extend(holding.checkpoints.iter().map(|one| format!("  {}", text::summary(one))));
    lines
}

fn report(purged: &Purged) {
    let (snapshots, contents) = (purged.snapshots, purged.contents);
    message::line(&format!(
        "{} is gone from {} of {}; {} removed",
        shown(&purged.path),
        some(usize::try_from(snapshots).unwrap_or(usize::MAX), "snapshot"),
        shown(&purged.project),
        some(usize::try_from(contents).unwrap_or(usize::MAX), "content")
    ));
    for (holder, paths) in &purged.held_by {
        let first = paths.first().map(|path| format!(" ({})", shown(path))).unwrap_or_default();
        message::line(&format!(
            "warning: the same bytes are still kept by {}: {}{first}",
            shown(holder),
            some(paths.len(), "path")
        ));
    }
}
