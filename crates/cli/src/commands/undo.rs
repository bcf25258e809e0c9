//! `nono undo` and `nono redo`: the short way back from what sessions did in this directory, and the way back from there.

use std::ffi::OsString;
use std::path::PathBuf;

use nono::rollback::{Conflicts, RestoreChoice, RollbackError, SessionEntry};

use super::rollback::{Place, Task, conflicts, perform, perform_if_needed, place, resolved};
use crate::args::{RedoArgs, UndoArgs};
use crate::failure::Failure;

pub(crate) fn undo(args: &UndoArgs) -> Result<u8, Failure> {
    let place = place()?;
    let conflicts = conflicts(args.conflicts);
    if let Some((entry, typed)) = named(args, &place, conflicts)? {
        let session = place.catalogue.open(entry)?;
        let choice = choice(&session, typed, &place, conflicts)?;
        return perform(session, &Task::Restore(choice), args.consent);
    }
    let here = here(&place)?;
    let paths: Vec<PathBuf> = args.paths.iter().map(|path| resolved(&place.cwd.join(path))).collect();
    for entry in place.catalogue.to_undo_in(&here, &paths)? {
        let session = place.catalogue.open(entry)?;
        let choice = choice(&session, &args.paths, &place, conflicts)?;
        // What somebody took back by hand is passed over.
        if let Some(code) = perform_if_needed(session, &Task::Restore(choice), args.consent)? {
            return Ok(code);
        }
    }
    Err(RollbackError::AllUndone { dir: here }.into())
}

pub(crate) fn redo(args: &RedoArgs) -> Result<u8, Failure> {
    let place = place()?;
    let entry = place.catalogue.last_restored_in(&here(&place)?)?;
    perform(place.catalogue.open(entry)?, &Task::TakeBack(None), args.consent)
}

/// The session that was named, and the paths in it.
fn named<'a>(
    args: &'a UndoArgs,
    place: &Place,
    conflicts: Conflicts,
) -> Result<Option<(SessionEntry, &'a [OsString])>, Failure> {
    if let Some(to) = &args.to {
        return Ok(Some((place.catalogue.find(to)?, &args.paths)));
    }
    // A session can be named alone, too, as long as no file is called like it.
    if let [only] = args.paths.as_slice()
        && let Some(text) = only.to_str()
        && place.cwd.join(only).symlink_metadata().is_err()
        && let Ok(entry) = place.catalogue.find(text)
    {
        return Ok(Some((entry, &[])));
    }
    // What somebody else changed was kept the first time: that is still to be done.
    if conflicts == Conflicts::Keep {
        return Ok(None);
    }
    let kept = place.catalogue.last_kept_in(&here(place)?)?;
    Ok(kept.map(|entry| (entry, args.paths.as_slice())))
}

fn choice(
    session: &nono::rollback::RollbackSession,
    typed: &[OsString],
    place: &Place,
    conflicts: Conflicts,
) -> Result<RestoreChoice, Failure> {
    let everything = RestoreChoice { conflicts, ..RestoreChoice::everything() };
    if typed.is_empty() {
        return Ok(everything);
    }
    let paths = session.resolve_paths(&everything.snapshot, typed, &place.cwd)?;
    Ok(RestoreChoice { paths, ..everything })
}

fn here(place: &Place) -> Result<PathBuf, Failure> {
    place.cwd.canonicalize().map_err(|error| Failure::nowhere(&error))
}
