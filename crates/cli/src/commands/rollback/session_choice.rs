//! Choice of a session and its paths from the arguments. Without a name it is the last session here, which is printed.

use std::ffi::{OsStr, OsString};

use nono::diagnostic::quote_all;
use nono::rollback::{RollbackError, RollbackSession, SessionEntry};
use nono::snapshot::SnapshotId;

use super::SessionContext;
use crate::age::ago;
use crate::args::ChoiceArgs;
use crate::failure::Failure;
use crate::message;

/// Chosen session, and the paths as typed.
pub(crate) struct SessionChoice {
    pub(crate) session: RollbackSession,
    pub(crate) paths: Vec<OsString>,
}

/// Takes the first argument as a session if it names one; else all arguments are paths in the last session here.
pub(super) fn choose(args: &ChoiceArgs, place: &SessionContext) -> Result<SessionChoice, Failure> {
    let paths = || args.paths.iter().chain(&args.more).cloned();
    let Some(first) = &args.first else {
        return Ok(SessionChoice { session: last_here(place)?, paths: paths().collect() });
    };
    let error = match first.to_str().map(|text| place.catalogue.find(text)) {
        Some(Ok(entry)) => {
            return Ok(SessionChoice { session: place.catalogue.open(entry)?, paths: paths().collect() });
        }
        Some(Err(error)) => error,
        None => RollbackError::NotFound { text: first.to_string_lossy().into_owned() },
    };
    let session = of_path(first, error, place)?;
    say(session.entry());
    Ok(SessionChoice { session, paths: std::iter::once(first.clone()).chain(paths()).collect() })
}

/// Last session here if it has the argument as a path; else the error about it as a session.
fn of_path(first: &OsStr, error: RollbackError, place: &SessionContext) -> Result<RollbackSession, Failure> {
    let names_nothing = matches!(
        error,
        RollbackError::NotFound { .. } | RollbackError::NoSession { .. } | RollbackError::Io { .. }
    );
    // An empty argument would mean the directory and so everything: most likely an unset variable.
    if !names_nothing || first.is_empty() {
        return Err(error.into());
    }
    let Ok(entry) = place.catalogue.last_here(&place.cwd) else { return Err(error.into()) };
    let session = place.catalogue.open(entry)?;
    match session.resolve_paths(&SnapshotId::Number(0), &[first.to_owned()], &place.cwd) {
        Ok(_) => Ok(session),
        // With a slash it is meant as a path, whether or not it exists.
        Err(no_path @ RollbackError::NoSuchPath { .. }) if is_path(first) => Err(no_path.into()),
        Err(_) => Err(error.into()),
    }
}

fn is_path(typed: &OsStr) -> bool {
    typed.as_encoded_bytes().contains(&b'/')
}

/// Session with a name; without one, the last one here.
pub(super) fn named_or_last(name: Option<&str>, place: &SessionContext) -> Result<RollbackSession, Failure> {
    match name {
        Some(name) => Ok(place.catalogue.open(place.catalogue.find(name)?)?),
        None => last_here(place),
    }
}

fn last_here(place: &SessionContext) -> Result<RollbackSession, Failure> {
    let entry = place.catalogue.last_here(&place.cwd)?;
    say(&entry);
    Ok(place.catalogue.open(entry)?)
}

/// Prints which session was chosen, since it was not named.
fn say(entry: &SessionEntry) {
    message::line(&format!("the last session here: {}", brief(entry)));
}

/// Short description of a session: `20260801-101500-42 (make test, 2h ago)`.
pub(crate) fn brief(entry: &SessionEntry) -> String {
    let (command, age) = (quote_all(&entry.metadata.command), ago(&entry.metadata.started));
    format!("{} ({command}, {age})", entry.id)
}
