//! `nono rollback verify`: checks stored sessions against what was sealed when they ended.

use std::path::PathBuf;

use nono::diagnostic::{escape, shown};
use nono::rollback::{AllVerified, Catalogue, Checks, SessionVerified, json};

use crate::args::VerifyArgs;
use crate::failure::{Failure, NOT_DONE};
use crate::message;
use crate::progress::observed;
use crate::units::{bytes, grouped, some};

/// Maximum number of lost paths listed per snapshot.
const NAMED: usize = 20;

pub(super) fn verify(args: &VerifyArgs, catalogue: &Catalogue) -> Result<u8, Failure> {
    let found = match &args.session {
        Some(text) => {
            let entry = catalogue.find(text)?;
            let id = entry.id.clone();
            let found =
                observed("checking", |observer| catalogue.verify(entry, &observer, &mut Checks::default()))??;
            AllVerified { sessions: vec![(id, found)], ..AllVerified::default() }
        }
        None => observed("checking", |observer| catalogue.verify_all(&observer))??,
    };
    message::problems("error", &found.unreadable);
    for id in &found.running {
        message::line(&format!("session {} is running: not checked", escape(id)));
    }
    if args.json {
        message::answer_json(&json::all_verified(&found))?;
    } else if found.sessions.is_empty() && found.running.is_empty() && found.unreadable.is_empty() {
        message::answer("no sessions to check")?;
    }
    for (id, found) in found.sessions.iter().filter(|_| !args.json) {
        message::answer(&text(id, found))?;
    }
    if !args.json && found.sessions.iter().any(|(_, found)| found.repairable) {
        message::line("hint: `nono rollback repair --dry-run` shows what can be rebuilt");
    }
    Ok(if found.is_good() { 0 } else { NOT_DONE })
}

fn text(id: &str, found: &SessionVerified) -> String {
    if found.removed {
        return format!("{id}: removed meanwhile");
    }
    let amount = format!(
        "{}, {} objects, {}, {}",
        some(found.snapshots, "snapshot"),
        grouped(found.objects),
        bytes(found.bytes),
        match found {
            SessionVerified { sealed: true, .. } => "sealed",
            SessionVerified { seal_broken: true, .. } => "seal broken",
            SessionVerified { interrupted: true, .. } => "interrupted",
            _ => "not sealed",
        }
    );
    let verdict = if found.is_good() { "good" } else { "BAD" };
    let mut lines = vec![format!("{id}: {verdict} ({amount})")];
    lines.extend(found.problems.iter().map(|problem| format!("  {}", escape(problem))));
    for (snapshot, paths) in &found.lost {
        lines.push(format!("  snapshot {}:", escape(&snapshot.to_string())));
        lines.extend(lost_paths(paths));
    }
    lines.extend(found.forgotten.iter().map(|path| format!("  forgotten: {}", shown(path))));
    lines.join("\n")
}

/// Lines about paths that cannot be restored.
pub(crate) fn lost_paths(paths: &[PathBuf]) -> Vec<String> {
    let mut lines: Vec<String> =
        paths.iter().take(NAMED).map(|path| format!("    lost: {}", shown(path))).collect();
    if paths.len() > NAMED {
        lines.push(format!("    ... and {} more", grouped((paths.len() - NAMED) as u64)));
    }
    lines
}
