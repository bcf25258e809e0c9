//! `nono checkpoints forget`: removes a path and its stored contents from every checkpoint of its project and every
//! session.

use std::path::Path;

use nono::checkpoints::{self, HoldingEverywhere, PurgedEverywhere, json};
use nono::diagnostic::{escape, shown};
use nono::rollback::{Catalogue, Status};

use super::{CheckpointContext, text};
use crate::args::ForgetPathArgs;
use crate::commands::confirm;
use crate::commands::rollback::brief;
use crate::failure::{Failure, NOT_DONE};
use crate::message;
use crate::units::{few, some};

pub(super) fn forget(args: &ForgetPathArgs, place: &CheckpointContext) -> Result<u8, Failure> {
    let consent = args.consent;
    let asks = confirm::asks(consent, confirm::REMOVE)?;
    let path = place.cwd.join(&args.path);
    let catalogue = Catalogue::new(&place.manager.host().state_dir);
    if consent.dry_run || asks {
        let holding = checkpoints::holding(&place.manager, &catalogue, &path)?;
        if consent.dry_run && consent.json {
            message::answer_json(&json::holding_everywhere(&holding))?;
        }
        if holding.is_nothing() {
            return Ok(report_not_held(&path, &holding.checkpoints.project));
        }
        if consent.dry_run && consent.json {
            return Ok(0);
        }
        let mut lines = plan(&path, &holding);
        if consent.dry_run {
            return message::answer(&lines.join("\n"));
        }
        lines.push("this cannot be undone; the file itself stays".to_owned());
        message::line(&lines.join("\n"));
        if !message::confirm("Remove it?") {
            message::line("nothing was removed");
            return Ok(NOT_DONE);
        }
    }
    let purged = checkpoints::forget(&place.manager, &catalogue, &path)?;
    if consent.json {
        message::answer_json(&json::purged_everywhere(&purged))?;
    }
    if purged.is_nothing() {
        return Ok(report_not_held(&path, &purged.checkpoints.project));
    }
    if !consent.json {
        report(&purged, &place.manager.host().state_dir);
    }
    Ok(if purged.is_whole() { 0 } else { NOT_DONE })
}

/// Reports that nothing holds the path, and fails: most likely the path was mistyped.
fn report_not_held(path: &Path, project: &Path) -> u8 {
    let (path, project) = (shown(path), shown(project));
    message::line(&format!("no checkpoint of {project} and no session holds {path}; nothing was removed"));
    NOT_DONE
}

fn plan(path: &Path, holding: &HoldingEverywhere) -> Vec<String> {
    let here = &holding.checkpoints;
    let from = owners(here.checkpoints.len() as u64, here.others, holding.sessions.len());
    let mut lines = vec![format!("{} of {} would be removed from {from}", shown(path), shown(&here.project))];
    lines.extend(here.checkpoints.iter().map(|one| format!("  {}", text::summary(one))));
    lines.extend(holding.sessions.iter().map(|(entry, _)| {
        let running =
            if entry.status == Status::Live { ": running, so it keeps the path until it ends" } else { "" };
        format!("  session {}{running}", brief(entry))
    }));
    lines
}

fn report(purged: &PurgedEverywhere, state_dir: &Path) {
    let here = &purged.checkpoints;
    let (path, project) = (shown(&here.path), shown(&here.project));
    let others = here.snapshots.saturating_sub(here.checkpoints);
    let from = owners(here.checkpoints, others, purged.sessions.len());
    if !from.is_empty() {
        let left = match here.contents {
            0 => String::new(),
            contents => format!("; {} deleted from the store", some(contents, "object")),
        };
        message::line(&format!("{path} of {project} was removed from {from}{left}"));
    }
    for (id, why) in &purged.held {
        message::line(&format!("warning: session {} still has {path}: {}", escape(id), escape(why)));
    }
    for (holder, paths) in &here.held_by {
        let names: Vec<String> = paths.iter().map(|path| shown(path)).collect();
        let at = if names.is_empty() { String::new() } else { format!(": {}", few(&names, 1)) };
        message::line(&format!("warning: {} the same content{at}", holder_name(holder, state_dir)));
    }
}

/// Owners of snapshots: `1 checkpoint and 2 sessions`; empty if there are none.
fn owners(checkpoints: u64, others: u64, sessions: usize) -> String {
    let counts = [(checkpoints, "checkpoint"), (others, "other snapshot"), (sessions as u64, "session")];
    let some = counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| some(count, what));
    some.collect::<Vec<_>>().join(" and ")
}

/// Subject and verb for the folder of a session or of a project.
fn holder_name(holder: &Path, state_dir: &Path) -> String {
    let real = state_dir.canonicalize().unwrap_or_else(|_| state_dir.to_owned());
    let in_state = |name: &str| {
        let inside = [state_dir, real.as_path()].map(|dir| holder.strip_prefix(dir.join(name)).ok());
        inside.into_iter().flatten().next()
    };
    if in_state("projects").is_some() {
        return "checkpoints still have".to_owned();
    }
    // A session that is kept elsewhere is found by its folder.
    let id = in_state("rollbacks").unwrap_or(holder);
    format!("session {} still has", shown(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_and_result_name_the_same_owners() {
        assert_eq!(owners(1, 0, 1), "1 checkpoint and 1 session");
        assert_eq!(owners(2, 1, 0), "2 checkpoints and 1 other snapshot");
        assert_eq!(owners(0, 0, 0), "");
    }

    #[test]
    fn a_holder_is_a_session_or_checkpoints() {
        let name = |holder: &str| holder_name(Path::new(holder), Path::new("/no/state"));
        assert_eq!(name("/no/state/rollbacks/20260801-101500-42"), "session 20260801-101500-42 still has");
        assert_eq!(name("/no/state/projects/work-1"), "checkpoints still have");
        assert_eq!(name("/elsewhere/20260801-101500-42"), "session /elsewhere/20260801-101500-42 still has");
    }
}
