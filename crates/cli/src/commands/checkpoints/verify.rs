//! `nono checkpoints verify`: recomputes every object that checkpoints need.

use nono::checkpoints::{ProjectVerified, json};
use nono::diagnostic::{escape, shown};

use super::{CheckpointContext, text};
use crate::args::CheckpointVerifyArgs;
use crate::commands::rollback::lost_paths;
use crate::failure::{Failure, NOT_DONE};
use crate::message;
use crate::progress::watched;
use crate::units::{bytes, grouped, some};

pub(super) fn verify(args: &CheckpointVerifyArgs, place: &mut CheckpointContext) -> Result<u8, Failure> {
    let dir = args.path.as_ref().map(|path| place.cwd.join(path));
    let worked = watched(&mut place.manager, "checking", |manager| manager.verify(dir.as_deref()))?;
    if let Some(signal) = worked.signal {
        message::line("interrupted; not everything was checked");
        return Ok(crate::failure::by_signal(signal));
    }
    let found = worked.value;
    message::answer_either(args.json, || json::verified(&found), || lines(&found).join("\n"))?;
    Ok(if found.is_good() { 0 } else { NOT_DONE })
}

fn lines(found: &ProjectVerified) -> Vec<String> {
    let amount = format!(
        "{}, {}, {} objects, {}",
        some(found.projects, "project"),
        some(found.checkpoints, "checkpoint"),
        grouped(found.objects),
        bytes(found.bytes)
    );
    if found.is_good() {
        return vec![format!("good ({amount})")];
    }
    let mut lines = vec![format!("BAD ({amount})")];
    for lost in &found.lost {
        lines.push(format!("  {}: {}", shown(&lost.project), text::summary(&lost.checkpoint)));
        lines.extend(lost_paths(&lost.paths));
    }
    lines.extend(found.problems.iter().map(|problem| format!("  {}", escape(problem))));
    lines
}
