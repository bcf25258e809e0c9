//! `nono checkpoints create`: takes a checkpoint.

use nono::checkpoints::{Ensured, Origin, Skip, json as shapes};
use nono::diagnostic::shown;

use super::{CheckpointContext, text};
use crate::args::CreateArgs;
use crate::commands::rollback_notices::not_covered;
use crate::commands::upkeep::after_command;
use crate::failure::Failure;
use crate::message;
use crate::progress::attempt;
use crate::units::files;

pub(super) fn create(args: &CreateArgs, place: &mut CheckpointContext) -> Result<u8, Failure> {
    let dir = place.at(args.path.as_deref());
    nono::state_dir::ensure(&place.manager.host().state_dir)?;
    let worked = attempt(&mut place.manager, "taking a checkpoint", |manager| {
        manager.create(&dir, &args.message, &Origin::default())
    })?;
    match worked.value {
        Ensured::Failed { .. } if worked.signal.is_some() => {
            return Err(Failure::interrupted(worked.signal.unwrap_or_default()));
        }
        Ensured::Failed { error, .. } => return Err(error.into()),
        Ensured::Taken { .. } | Ensured::Skipped { .. } if args.json => {
            message::answer_json(&shapes::ensured(&worked.value))?;
        }
        Ensured::Taken { project, checkpoint, coverage } => {
            let (id, project, files) = (checkpoint.id.short(), shown(&project), files(checkpoint.files));
            message::line(&format!("checkpoint {id} of {project}: {files}"));
            if let Some(left_out) = not_covered(&coverage) {
                message::line(&format!("not covered: {left_out}"));
            }
            for note in &coverage.notes {
                message::line(&note.to_string());
            }
        }
        Ensured::Skipped { project, why } => message::line(&skipped(&shown(&project), &why)),
    }
    place.upkeep();
    after_command();
    Ok(0)
}

pub(crate) fn skipped(project: &str, why: &Skip) -> String {
    match why {
        Skip::Disabled => format!("checkpoints are off; none was taken of {project}"),
        Skip::ThisTurn(id) => format!("there is a checkpoint of this turn already: {}", id.short()),
        Skip::Unchanged(id) => {
            format!("nothing changed in {project} since checkpoint {}", text::cut(id.short(), 12))
        }
    }
}
