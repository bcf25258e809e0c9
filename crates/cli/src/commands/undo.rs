//! `nono undo` and `nono redo`: the short way back from what sessions did in this directory, and the way back from there.

use std::path::PathBuf;

use nono::rollback::{Conflicts, RestoreChoice, SessionEntry};

use super::rollback::{Place, Task, conflicts, perform, place, resolved};
use crate::args::{RedoArgs, UndoArgs};
use crate::failure::Failure;

pub(crate) fn undo(args: &UndoArgs) -> Result<u8, Failure> {
    let place = place()?;
    let conflicts = conflicts(args.conflicts);
    let (entry, typed) = chosen(args, &place, conflicts)?;
    let session = place.catalogue.open(entry)?;
    let snapshot = 0.into();
    let paths = match typed {
        [] => Vec::new(),
        typed => session.resolve_paths(&snapshot, typed, &place.cwd)?,
    };
    let choice = RestoreChoice { snapshot, paths, conflicts, ..RestoreChoice::everything() };
    perform(session, &Task::Restore(choice), args.consent)
}

pub(crate) fn redo(args: &RedoArgs) -> Result<u8, Failure> {
    let place = place()?;
    let entry = place.catalogue.last_restored_in(&here(&place)?)?;
    perform(place.catalogue.open(entry)?, &Task::TakeBack(None), args.consent)
}

/// The session that is meant, and the paths in it.
fn chosen<'a>(
    args: &'a UndoArgs,
    place: &Place,
    conflicts: Conflicts,
) -> Result<(SessionEntry, &'a [std::ffi::OsString]), Failure> {
    if let Some(to) = &args.to {
        return Ok((place.catalogue.find(to)?, &args.paths));
    }
    // A session can be named alone, too, as long as no file is called like it.
    if let [only] = args.paths.as_slice()
        && let Some(text) = only.to_str()
        && place.cwd.join(only).symlink_metadata().is_err()
        && let Ok(entry) = place.catalogue.find(text)
    {
        return Ok((entry, &[]));
    }
    let here = here(place)?;
    // What somebody else changed was kept the first time: it is still to be done.
    if conflicts != Conflicts::Keep
        && let Some(entry) = place.catalogue.last_kept_in(&here)?
    {
        return Ok((entry, &args.paths));
    }
    let paths: Vec<PathBuf> = args.paths.iter().map(|path| resolved(&place.cwd.join(path))).collect();
    Ok((place.catalogue.next_to_undo(&here, &paths)?, &args.paths))
}

fn here(place: &Place) -> Result<PathBuf, Failure> {
    place.cwd.canonicalize().map_err(|error| Failure::nowhere(&error))
}
