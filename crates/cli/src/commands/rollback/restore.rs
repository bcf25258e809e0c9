//! `nono rollback restore` and `undo`: restore any part of any snapshot, and undo that.

use nono::rollback::{Conflicts, RestoreChoice, RollbackError, RollbackSession};

use super::session_choice::{SessionChoice, choose};
use super::{OfSession, SessionContext, SessionTask};
use crate::args::{ConflictArgs, RestoreArgs, TakeBackArgs};
use crate::commands::perform::perform;
use crate::failure::Failure;

pub(super) fn restore(args: &RestoreArgs, place: &SessionContext) -> Result<u8, Failure> {
    let SessionChoice { session, paths } = choose(&args.choice, place)?;
    let snapshot = args.snapshot.into();
    let paths =
        if paths.is_empty() { Vec::new() } else { session.resolve_paths(&snapshot, &paths, &place.cwd)? };
    let conflicts = conflicts(args.conflicts);
    let choice = RestoreChoice { snapshot, paths, conflicts, ..RestoreChoice::everything() };
    perform(OfSession { session, task: SessionTask::Restore(choice) }, args.consent)
}

pub(crate) fn conflicts(args: ConflictArgs) -> Conflicts {
    match args {
        ConflictArgs { force: true, .. } => Conflicts::Force,
        ConflictArgs { merge: true, conflict_markers, .. } => Conflicts::Merge { markers: conflict_markers },
        _ => Conflicts::Keep,
    }
}

pub(super) fn take_back(args: &TakeBackArgs, place: &SessionContext) -> Result<u8, Failure> {
    let (session, undo) = restored(args.id.as_deref(), place)?;
    perform(OfSession { session, task: SessionTask::TakeBack(undo) }, args.consent)
}

/// Session whose restore is undone, and the id of that restore if it was given (SESSION.NUMBER).
fn restored(id: Option<&str>, place: &SessionContext) -> Result<(RollbackSession, Option<String>), Failure> {
    let catalogue = &place.catalogue;
    let Some(id) = id else { return Ok((catalogue.open(catalogue.last_restored()?)?, None)) };
    let found = catalogue.find(id);
    if let (Err(RollbackError::NotFound { .. }), Some((session, number))) = (&found, numbered(id)) {
        let entry = catalogue.find(session)?;
        let undo = format!("{}.{number}", entry.id);
        return Ok((catalogue.open(entry)?, Some(undo)));
    }
    Ok((catalogue.open(found?)?, None))
}

fn numbered(id: &str) -> Option<(&str, u64)> {
    let (session, number) = id.rsplit_once('.')?;
    Some((session, number.parse().ok()?))
}
