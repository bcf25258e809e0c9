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
    let words = if args.dry_run { WOULD } else { DID };
    if args.json {
        message::answer_json(&nono::rollback::json::repaired(&sessions, &projects, args.dry_run))?;
    } else {
        let text = lines(&sessions, &projects, &words).join("\n");
        if args.dry_run { message::answer(&text)? } else { message::line(&text) }
    }
    let problems = || sessions.problems.iter().chain(&projects.problems);
    message::problems("error", problems());
    let lost = sessions.stores.iter().any(|(_, store)| !store.lost.is_empty());
    Ok(if lost || problems().next().is_some() { NOT_DONE } else { 0 })
}

/// Verbs for what was done, or would be.
struct RepairTexts {
    rebuilt: &'static str,
    aside: &'static str,
    removed: &'static str,
    replaced: &'static str,
    id: &'static str,
}

const DID: RepairTexts = RepairTexts {
    rebuilt: "rebuilt",
    aside: "set aside",
    removed: "removed",
    replaced: "rewrote",
    id: "gave a new id to",
};

const WOULD: RepairTexts = RepairTexts {
    rebuilt: "would rebuild",
    aside: "would set aside",
    removed: "would remove",
    replaced: "would rewrite",
    id: "would give a new id to",
};

fn lines(sessions: &Repaired, projects: &checkpoints::Repaired, words: &RepairTexts) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (dir, store) in &sessions.stores {
        lines.extend(store_lines(dir, store, words));
    }
    for path in sessions.files.iter().chain(&projects.files) {
        lines.push(format!("{} {}", words.aside, shown(path)));
    }
    if lines.is_empty() {
        lines.push("nothing is damaged".to_owned());
    }
    lines
}

fn store_lines(dir: &Path, store: &RepairedStore, words: &RepairTexts) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    if store.id {
        lines.push(format!("{} the store {}", words.id, shown(dir)));
    }
    for record in &store.records {
        let snapshots = some(record.snapshots, "snapshot");
        let path = shown(&record.session.join("record.json"));
        lines.push(format!("{} {path}: {snapshots} ({})", words.rebuilt, escape(&record.what)));
    }
    for lost in &store.lost {
        let which = lost.snapshot.as_ref().map_or("a snapshot".to_owned(), |id| format!("snapshot {id}"));
        let session = shown(&lost.session);
        lines.push(format!("{which} of {session} is lost: {} cannot be read", shown(&lost.manifest)));
    }
    for note in &store.notes_aside {
        lines.push(format!("{} {}: it names no session", words.aside, shown(note)));
    }
    for (notes, what) in [
        (&store.notes_removed, format!("{} {{}} no longer needed", words.removed)),
        (&store.notes_replaced, format!("{} {{}} of an earlier version", words.replaced)),
    ] {
        if !notes.is_empty() {
            lines.push(what.replace("{}", &some(notes.len(), "session reference")));
        }
    }
    if store.debris > 0 {
        let left = some(store.debris, "file");
        lines.push(format!("{} {left} left by killed processes", words.removed));
    }
    lines
}
