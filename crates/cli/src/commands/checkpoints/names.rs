//! `nono checkpoints name`, `pin` and `unpin`.

use nono::checkpoints::CheckpointTarget;

use super::CheckpointContext;
use super::text::cut;
use crate::args::{CheckpointArg, NameArgs};
use crate::failure::Failure;
use crate::message;

/// Maximum number of characters of a name in messages.
const LONGEST: usize = 100;

pub(super) fn name(args: &NameArgs, place: &CheckpointContext) -> Result<u8, Failure> {
    let dir = place.dir(&args.checkpoint.project);
    let one = place.manager.set_name(&dir, &target(&args.checkpoint), &args.name)?;
    let id = one.id.short();
    message::line(&match one.name {
        Some(name) => format!("checkpoint {id} is named {} and will not be pruned", cut(&name, LONGEST)),
        None => format!("checkpoint {id} has no name"),
    });
    Ok(0)
}

pub(super) fn pin(arg: &CheckpointArg, place: &CheckpointContext, pinned: bool) -> Result<u8, Failure> {
    let one = place.manager.set_pinned(&place.dir(&arg.project), &target(arg), pinned)?;
    let what = if pinned { "is kept until it is unpinned" } else { "may be removed when room is needed" };
    message::line(&format!("checkpoint {} {what}", one.id.short()));
    Ok(0)
}

pub(super) fn target(arg: &CheckpointArg) -> CheckpointTarget {
    CheckpointTarget::Text(arg.checkpoint.clone())
}
