//! Which session a command is about, and which of its paths. Without a name it is the last one here, and that is said.

use std::ffi::{OsStr, OsString};

use nono::diagnostic::quote_all;
use nono::rollback::{RollbackError, RollbackSession, SessionEntry};
use nono::snapshot::SnapshotId;

use super::Place;
use crate::age::ago;
use crate::args::ChoiceArgs;
use crate::failure::Failure;
use crate::message;

/// A session that was chosen, and the paths of it as they were typed.
pub(in crate::commands) struct Choice {
    pub(in crate::commands) session: RollbackSession,
    pub(in crate::commands) paths: Vec<OsString>,
}

/// The first word is a session if it names one; else everything typed is a path of the last session here.
pub(super) fn choose(args: &ChoiceArgs, place: &Place) -> Result<Choice, Failure> {
    let paths = || args.paths.iter().chain(&args.more).cloned();
    let Some(first) = &args.first else {
        return Ok(Choice { session: last_here(place)?, paths: paths().collect() });
    };
    let error = match first.to_str().map(|text| place.catalogue.find(text)) {
        Some(Ok(entry)) => {
            return Ok(Choice { session: place.catalogue.open(entry)?, paths: paths().collect() });
        }
        Some(Err(error)) => error,
        None => RollbackError::NotFound { text: first.to_string_lossy().into_owned() },
    };
    let session = of_path(first, error, place)?;
    say(session.entry());
    Ok(Choice { session, paths: std::iter::once(first.clone()).chain(paths()).collect() })
}

/// The last session here if it knows what was typed as a path; else what is wrong with it as a session.
fn of_path(first: &OsStr, error: RollbackError, place: &Place) -> Result<RollbackSession, Failure> {
    let names_nothing = matches!(
        error,
        RollbackError::NotFound { .. } | RollbackError::NoSession { .. } | RollbackError::Io { .. }
    );
    // An empty word would be the directory itself, and so everything: most likely an unset variable.
    if !names_nothing || first.is_empty() {
        return Err(error.into());
    }
    let Ok(entry) = place.catalogue.last_here(&place.cwd) else { return Err(error.into()) };
    let session = place.catalogue.open(entry)?;
    match session.resolve_paths(&SnapshotId::Number(0), &[first.to_owned()], &place.cwd) {
        Ok(_) => Ok(session),
        // Whoever types a slash means a path, whether or not there is a file.
        Err(no_path @ RollbackError::NoSuchPath { .. }) if is_path(first) => Err(no_path.into()),
        Err(_) => Err(error.into()),
    }
}

fn is_path(typed: &OsStr) -> bool {
    typed.as_encoded_bytes().contains(&b'/')
}

/// The session of a name; without one, the last one here.
pub(super) fn named_or_last(name: Option<&str>, place: &Place) -> Result<RollbackSession, Failure> {
    match name {
        Some(name) => Ok(place.catalogue.open(place.catalogue.find(name)?)?),
        None => last_here(place),
    }
}

fn last_here(place: &Place) -> Result<RollbackSession, Failure> {
    let entry = place.catalogue.last_here(&place.cwd)?;
    say(&entry);
    Ok(place.catalogue.open(entry)?)
}

/// Nobody named it.
fn say(entry: &SessionEntry) {
    message::line(&format!("the last session here: {}", brief(entry)));
}

/// `20260801-101500-42 (make test, 2h ago)`.
pub(in crate::commands) fn brief(entry: &SessionEntry) -> String {
    let (command, age) = (quote_all(&entry.metadata.command), ago(&entry.metadata.started));
    format!("{} ({command}, {age})", entry.id)
}
