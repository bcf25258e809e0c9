//! `nono diff`: shows what the last session here changed, or without one, what changed since the newest checkpoint.

use nono::checkpoints::Checkpoint;
use nono::diagnostic::escape;
use nono::rollback::{RollbackError, Status};

use super::checkpoints;
use super::rollback::{SessionChoice, SessionContext, brief, place, present};
use crate::age::ago;
use crate::args::{
    CheckpointArg, CheckpointsArgs, CheckpointsCommand, DiffArgs, DiffHereArgs, DiffLookArgs, JsonArg,
    LookArgs, ProjectArg,
};
use crate::failure::{Failure, NOT_DONE};
use crate::host::host;
use crate::message;

pub(crate) fn diff(args: DiffHereArgs) -> Result<u8, Failure> {
    // Inside a sandbox sessions cannot be read; the supervisor serves checkpoints.
    if host(None)?.nested {
        return since_checkpoint(args);
    }
    let place = place()?;
    match place.catalogue.last_here(&place.cwd) {
        Ok(entry) => {
            message::line(&format!("changes of session {}", brief(&entry)));
            let session = place.catalogue.open(entry)?;
            of_session(SessionChoice { session, paths: args.paths.clone() }, &args, &place)
        }
        Err(none @ RollbackError::NoSessionHere { .. }) => match checkpoints::newest_here()? {
            Some(newest) => {
                message::line(&format!("changes since checkpoint {}", title(&newest)));
                since_checkpoint(args)
            }
            None => Err(none.into()),
        },
        Err(error) => Err(error.into()),
    }
}

fn of_session(choice: SessionChoice, args: &DiffHereArgs, place: &SessionContext) -> Result<u8, Failure> {
    let DiffLookArgs { stat, side_by_side, full, json, exit_code } = args.look;
    let look = LookArgs {
        diff: json || !stat,
        side_by_side: side_by_side && !stat,
        stat,
        full,
        json,
        ..LookArgs::default()
    };
    let running = choice.session.entry().status == Status::Live;
    let unfinished = !running && choice.session.final_snapshot()?.is_none();
    let differs = present(choice, &look, place)?;
    if unfinished {
        message::line("the session has no final snapshot: changes after its last snapshot are unknown");
        message::line("hint: `nono undo --dry-run` compares with the current files");
    } else if !differs && !json {
        message::line("nothing changed");
    }
    Ok(if (differs || unfinished) && exit_code { NOT_DONE } else { 0 })
}

fn since_checkpoint(args: DiffHereArgs) -> Result<u8, Failure> {
    let DiffHereArgs { paths, look } = args;
    let checkpoint = CheckpointArg { checkpoint: "1".to_owned(), project: ProjectArg { path: None } };
    let status = JsonArg { json: look.json };
    let diff = DiffArgs { checkpoint, paths, glob: false, look, for_reading: false };
    let command = Some(CheckpointsCommand::Diff(diff));
    checkpoints::checkpoints(CheckpointsArgs { status, command })
}

/// Title of a checkpoint: `a1b2c3d4 (before patch, 2h ago)`.
fn title(one: &Checkpoint) -> String {
    format!("{} ({}, {})", one.id.short(), escape(&one.reason), ago(&one.time))
}
