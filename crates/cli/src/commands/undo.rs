//! `nono undo` and `nono redo`: the short way back from what a session did, and the way back from there.

use nono::diagnostic::shown;
use nono::rollback::{RestoreChoice, SessionEntry};

use super::rollback::{Place, Task, conflicts, perform, place};
use crate::args::{RedoArgs, UndoArgs};
use crate::failure::Failure;

pub(crate) fn undo(args: &UndoArgs) -> Result<u8, Failure> {
    let place = place()?;
    let entry = match &args.session {
        Some(text) => place.catalogue.find(text)?,
        None => last_here(&place)?,
    };
    let choice = RestoreChoice { conflicts: conflicts(args.conflicts), ..RestoreChoice::everything() };
    perform(place.catalogue.open(entry)?, &Task::Restore(choice), args.consent)
}

pub(crate) fn redo(args: &RedoArgs) -> Result<u8, Failure> {
    let place = place()?;
    let session = place.catalogue.open(place.catalogue.last_restored()?)?;
    perform(session, &Task::TakeBack(None), args.consent)
}

/// The last session that worked here. One that worked elsewhere is only undone by its name.
fn last_here(place: &Place) -> Result<SessionEntry, Failure> {
    let cwd = place.cwd.canonicalize().map_err(|error| Failure::nowhere(&error))?;
    let entry = place.catalogue.last_for(&cwd)?;
    let mut tracked = entry.metadata.tracked_paths.iter();
    if tracked.any(|root| cwd.starts_with(root) || root.starts_with(&cwd)) {
        return Ok(entry);
    }
    let message = format!("no session worked in {}", shown(&cwd));
    Err(Failure::refused(message).hint(format!(
        "the last one, {id}, worked in {}: nono undo {id}",
        shown(&entry.project),
        id = entry.id
    )))
}
