//! `nono checkpoints import`: imports the checkpoints of another tool.

use nono::checkpoints::import::{self, Imported};
use nono::checkpoints::json;
use nono::diagnostic::shown;

use super::CheckpointContext;
use super::text::cut;
use crate::args::ImportArgs;
use crate::failure::{Failure, NOT_DONE};
use crate::message;
use crate::units::some;

/// Maximum number of characters shown of what was not imported, and of the reason.
const WORDS: usize = 200;

pub(super) fn import(args: &ImportArgs, place: &mut CheckpointContext) -> Result<u8, Failure> {
    nono::state_dir::ensure(&place.manager.host().state_dir)?;
    let imported = import::import(&place.cwd.join(&args.dir), &mut place.manager)?;
    if args.json {
        message::answer_json(&json::imported(&imported))?;
    } else {
        message::line(&lines(&imported).join("\n"));
    }
    Ok(if imported.skipped.is_empty() { 0 } else { NOT_DONE })
}

fn lines(imported: &Imported) -> Vec<String> {
    let known = match imported.known {
        0 => String::new(),
        known => format!(", {known} known already"),
    };
    let mut lines = vec![format!("imported {}{known}", some(imported.checkpoints.len(), "checkpoint"))];
    for (project, new) in &imported.projects {
        lines.push(format!("  {}: {}", shown(project), some(*new, "checkpoint")));
    }
    for one in &imported.skipped {
        lines.push(format!("  not imported: {}: {}", cut(&one.what, WORDS), cut(&one.why, WORDS)));
    }
    lines
}
