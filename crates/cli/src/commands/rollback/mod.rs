//! `nono rollback`: lists, shows, restores, verifies and removes past sessions. One file per command.

mod cleanup;
mod list;
mod perform;
mod recover;
mod repair;
mod restore;
mod session_choice;
mod show;
pub(super) mod text;
mod verify;

use std::path::PathBuf;

use nono::rollback::Catalogue;

pub(super) use list::resolved;
pub(super) use perform::{OfSession, SessionTask};
pub(super) use restore::conflicts;
pub(super) use session_choice::{SessionChoice, brief};
pub(super) use show::present;
pub(super) use verify::lost_paths;

use crate::args::{RollbackCommand, SessionArg};
use crate::failure::Failure;
use crate::host::{author, host};
use crate::message;

pub(crate) fn rollback(command: &RollbackCommand) -> Result<u8, Failure> {
    let place = place()?;
    match command {
        RollbackCommand::List(args) => list::list(args, &place),
        RollbackCommand::Restore(args) => restore::restore(args, &place),
        RollbackCommand::Undo(args) => restore::take_back(args, &place),
        RollbackCommand::Verify(args) => verify::verify(args, &place.catalogue),
        RollbackCommand::Pin(arg) => pin(arg, &place.catalogue, true),
        RollbackCommand::Unpin(arg) => pin(arg, &place.catalogue, false),
        RollbackCommand::Cleanup(args) => cleanup::cleanup(args, &place),
        RollbackCommand::Recover(args) => recover::recover(args, &place.catalogue),
        RollbackCommand::Repair(args) => repair::repair(args, &place),
        RollbackCommand::Review(args) => {
            crate::review::review(session_choice::named_or_last(args.session.as_deref(), &place)?)
        }
        RollbackCommand::Show(args) => show::show(args, &place),
    }
}

/// Catalogue of sessions and the directories that arguments refer to.
pub(super) struct SessionContext {
    pub(super) catalogue: Catalogue,
    pub(super) state_dir: PathBuf,
    pub(super) cwd: PathBuf,
    home: PathBuf,
}

/// Creates nothing: without a state folder there are no sessions.
pub(super) fn place() -> Result<SessionContext, Failure> {
    let host = host(None)?;
    if host.nested {
        return Err(Failure::new("nono inside a sandbox cannot read or undo sessions"));
    }
    let state_dir = host.context.state_dir;
    if state_dir.symlink_metadata().is_ok() {
        nono::state_dir::ensure(&state_dir)?;
    }
    let (cwd, home) = (host.context.cwd, host.context.home.unwrap_or_default());
    let catalogue = Catalogue::new(&state_dir).recording(author(cwd.clone()));
    Ok(SessionContext { catalogue, state_dir, cwd, home })
}

fn pin(arg: &SessionArg, catalogue: &Catalogue, pinned: bool) -> Result<u8, Failure> {
    let entry = catalogue.find(&arg.session)?;
    catalogue.pin(&entry, pinned)?;
    let what = if pinned { "is kept until it is unpinned" } else { "may be removed when room is needed" };
    message::line(&format!("session {} {what}", entry.id));
    Ok(0)
}
