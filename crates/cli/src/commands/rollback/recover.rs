//! `nono rollback recover`: completes interrupted restores of all sessions.

use nono::diagnostic::escape;
use nono::rollback::{Catalogue, Done, RollbackError, RollbackSession, SessionEntry, Status, json};
use serde_json::Value;

use super::perform::{OfSession, SessionTask};
use crate::args::JsonArg;
use crate::commands::perform::{Completion, report, verdict, warn_unrecorded};
use crate::failure::{Failure, NOT_DONE, by_signal};
use crate::message;
use crate::progress::{Worked, attempt, watched};

const DOING: &str = "completing a restore";

pub(super) fn recover(args: &JsonArg, catalogue: &Catalogue) -> Result<u8, Failure> {
    let (entries, problems) = catalogue.list()?;
    let mut code = if problems.is_empty() { 0 } else { NOT_DONE };
    message::problems("error", &problems);
    let mut recovered: Vec<Value> = Vec::new();
    // A running session completes its own.
    for entry in entries.into_iter().filter(|entry| entry.status != Status::Live) {
        let id = entry.id.clone();
        let (worked, signal) = complete(catalogue, entry, args.json)?;
        match worked {
            Ok(None) => {}
            Ok(Some(done)) => {
                code = code.max(verdict(&done));
                if args.json {
                    warn_unrecorded(&done);
                }
                recovered.push(json::done(&id, &done));
            }
            // Not fatal for the other sessions.
            Err(error) => {
                code = NOT_DONE;
                message::line(&format!("error: session {id}: {}", escape(&error.to_string())));
            }
        }
        if let Some(signal) = signal {
            message::line("interrupted; `nono rollback recover` completes what is left");
            return Ok(by_signal(signal));
        }
    }
    if args.json {
        message::answer_json(&recovered)?;
    } else if recovered.is_empty() && code == 0 {
        message::line("there is no interrupted restore");
    }
    Ok(code)
}

type Recovered = Result<Option<Done>, RollbackError>;

fn complete(
    catalogue: &Catalogue,
    entry: SessionEntry,
    silent: bool,
) -> Result<(Recovered, Option<i32>), Failure> {
    let session = match catalogue.open(entry) {
        Ok(session) => session,
        Err(error) => return Ok((Err(error), None)),
    };
    let mut of = OfSession { session, task: SessionTask::TakeBack(None) };
    let Worked { value, signal } = attempt(&mut of.session, DOING, RollbackSession::recover)?;
    if let (Ok(Some(done)), false) = (&value, silent) {
        say(&of, done)?;
    }
    Ok((value, signal))
}

fn say(of: &OfSession, done: &Done) -> Result<(), Failure> {
    message::line(&format!("completed an interrupted restore of session {}:", of.session.entry().id));
    report(of, done, false)
}

/// Completes an interrupted restore before anything else is done with a session's tree.
pub(super) fn first(of: &mut OfSession) -> Result<Completion, Failure> {
    let Worked { value, signal } = watched(&mut of.session, DOING, RollbackSession::recover)?;
    if let Some(done) = &value {
        say(of, done)?;
    }
    let complete = value.map_or(Completion::Nothing, |done| Completion::Complete(verdict(&done)));
    Ok(signal.map_or(complete, |signal| Completion::Ended(by_signal(signal))))
}
