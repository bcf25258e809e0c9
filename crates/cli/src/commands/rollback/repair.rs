//! `nono rollback repair`: sets damaged records of sessions and checkpoints aside, rebuilds and reports them.

use std::path::Path;

use nono::checkpoints::{self, CheckpointManager, Config, Host};
use nono::diagnostic::{escape, shown};
use nono::rollback::repair::{Repaired, RepairedStore};

use super::SessionContext;
use crate::args::RepairArgs;
use crate::failure::{Failure, NOT_DONE};
use crate::message;
use crate::units::some;

pub(super) fn repair(args: &RepairArgs, place: &SessionContext) -> Result<u8, Failure> {
    let sessions = place.catalogue.repair(args.dry_run)?;
    let host = Host { state_dir: place.state_dir.clone(), home: place.home.clone() };
    let projects = CheckpointManager::new(host, Config::default()).repair(args.dry_run)?;
    if args.json {
        message::answer_json(&nono::rollback::json::repaired(&sessions, &projects, args.dry_run))?;
    } else {
        let text = lines(&sessions, &projects, args.dry_run).join("\n");
        if args.dry_run { message::answer(&text).map(drop)? } else { message::line(&text) }
    }
    let problems = || sessions.problems.iter().chain(&projects.problems);
    message::problems("error", problems());
    let lost = sessions.stores.iter().any(|(_, store)| !store.lost.is_empty());
    Ok(if lost || problems().next().is_some() { NOT_DONE } else { 0 })
}

/// Verb for what was done, or would be.
fn verb(dry_run: bool, did: &str, would: &str) -> String {
    if dry_run { format!("would {would}") } else { did.to_owned() }
}

fn lines(sessions: &Repaired, projects: &checkpoints::Repaired, dry_run: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (dir, store) in &sessions.stores {
        lines.extend(store_lines(dir, store, dry_run));
    }
    for path in sessions.files.iter().chain(&projects.files) {
        lines.push(format!("{} {}", verb(dry_run, "set aside", "set aside"), shown(path)));
    }
    if lines.is_empty() {
        lines.push("nothing is damaged".to_owned());
    }
    lines
}

fn store_lines(dir: &Path, store: &RepairedStore, dry_run: bool) -> Vec<String> {
    let verb = |did, would| verb(dry_run, did, would);
    let removed = verb("removed", "remove");
    let mut lines: Vec<String> = Vec::new();
    if store.id {
        lines.push(format!("{} the store {}", verb("gave a new id to", "give a new id to"), shown(dir)));
    }
    for record in &store.records {
        let snapshots = some(record.snapshots, "snapshot");
        let path = shown(&record.session.join("record.json"));
        lines.push(format!("{} {path}: {snapshots} ({})", verb("rebuilt", "rebuild"), escape(&record.what)));
    }
    for lost in &store.lost {
        let which = lost.snapshot.as_ref().map_or("a snapshot".to_owned(), |id| format!("snapshot {id}"));
        let session = shown(&lost.session);
        lines.push(format!("{which} of {session} is lost: {} cannot be read", shown(&lost.manifest)));
    }
    for note in &store.notes_aside {
        lines.push(format!("{} {}: it names no session", verb("set aside", "set aside"), shown(note)));
    }
    for (notes, what) in [
        (&store.notes_removed, format!("{removed} {{}} no longer needed")),
        (&store.notes_replaced, format!("{} {{}} of an earlier version", verb("rewrote", "rewrite"))),
    ] {
        if !notes.is_empty() {
            lines.push(what.replace("{}", &some(notes.len(), "session reference")));
        }
    }
    if store.debris > 0 {
        let left = some(store.debris, "file");
        lines.push(format!("{removed} {left} left by killed processes"));
    }
    lines
}
