//! `nono checkpoints`: snapshots of a project, taken while agents work on it. One file per concern.

pub(super) mod create;
mod diff;
mod forget;
mod import;
pub(super) mod inside;
mod list;
mod names;
mod removal;
mod restore;
pub(super) mod text;
mod verify;

use std::path::{Path, PathBuf};

use nono::HostContext;
use nono::audit::Author;
use nono::checkpoints::{
    Checkpoint, CheckpointError, CheckpointManager, CheckpointTarget, Host, recording, settings,
};

pub(super) use restore::{CheckpointTask, OfProject};

use crate::args::{CheckpointsArgs, CheckpointsCommand, ProjectArg};
use crate::failure::Failure;
use crate::host::{author, host};
use crate::message;
use crate::units::some;
pub(super) use text::{cut, stats};

pub(crate) fn checkpoints(args: CheckpointsArgs) -> Result<u8, Failure> {
    let host = host(None)?;
    let command = args.command.unwrap_or(CheckpointsCommand::Status(args.status));
    if host.nested {
        return inside::checkpoints(command, &host.context.cwd);
    }
    let mut place = place(host.context)?;
    let code = perform(command, &mut place);
    say_completed(&place.manager);
    code
}

/// Prints which interrupted restores the manager completed.
pub(super) fn say_completed(manager: &CheckpointManager) {
    for done in manager.take_completed() {
        for line in text::completed(&done) {
            message::line(&line);
        }
    }
    for told in manager.take_completed_others() {
        message::line(&told);
    }
}

/// Checkpoints of the current directory, for commands that handle sessions as well.
pub(super) fn here() -> Result<CheckpointContext, Failure> {
    place(host(None)?.context)
}

fn perform(command: CheckpointsCommand, place: &mut CheckpointContext) -> Result<u8, Failure> {
    match command {
        CheckpointsCommand::Status(args) => list::status(&args, place),
        CheckpointsCommand::List(args) => list::list(&args, place),
        CheckpointsCommand::Create(args) => create::create(&args, place),
        CheckpointsCommand::Diff(args) => diff::diff(&args, place),
        CheckpointsCommand::Restore(args) => restore::restore(args, place),
        CheckpointsCommand::Undo(args) => restore::take_back(&args, place),
        CheckpointsCommand::Name(args) => names::name(&args, place),
        CheckpointsCommand::Pin(args) => names::pin(&args, place, true),
        CheckpointsCommand::Unpin(args) => names::pin(&args, place, false),
        CheckpointsCommand::Prune(args) => removal::prune(&args, place),
        CheckpointsCommand::Clear(args) => removal::clear(&args, place),
        CheckpointsCommand::ClearLegacy(consent) => removal::clear_legacy(consent, place),
        CheckpointsCommand::Forget(args) => forget::forget(&args, place),
        CheckpointsCommand::Verify(args) => verify::verify(&args, place),
        CheckpointsCommand::Import(args) => import::import(&args, place),
    }
}

/// Newest checkpoint of the project of the current directory, if there is one.
pub(super) fn newest_here() -> Result<Option<Checkpoint>, Failure> {
    let place = place(host(None)?.context)?;
    match place.manager.find(&place.cwd, &CheckpointTarget::Text("1".to_owned())) {
        Ok(newest) => Ok(Some(newest)),
        Err(
            CheckpointError::NotFound { .. }
            | CheckpointError::NoProject { .. }
            | CheckpointError::TooBroad { .. },
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Checkpoint manager for commands that only read.
pub(super) fn manager(context: HostContext) -> Result<CheckpointManager, Failure> {
    Ok(place(context)?.manager)
}

/// Checkpoint manager and the directory that arguments refer to.
pub(super) struct CheckpointContext {
    pub(super) manager: CheckpointManager,
    pub(super) cwd: PathBuf,
    author: Author,
}

/// Creates nothing: without a state folder there are no checkpoints.
fn place(context: HostContext) -> Result<CheckpointContext, Failure> {
    let HostContext { state_dir, cwd, home, .. } = context;
    if state_dir.symlink_metadata().is_ok() {
        nono::state_dir::ensure(&state_dir)?;
    }
    let config = settings::load(&state_dir.join("config.toml"))?;
    let home = home.ok_or_else(Failure::no_home)?;
    let author = author(cwd.clone());
    let stand_ins = nono::session::stand_ins(&state_dir);
    let manager = CheckpointManager::new(Host { state_dir, home }, config).without(stand_ins);
    let manager = recording(manager, author.clone());
    Ok(CheckpointContext { manager, cwd, author })
}

impl CheckpointContext {
    /// Directory that `--path` names, else the current one.
    pub(super) fn dir(&self, project: &ProjectArg) -> PathBuf {
        self.at(project.path.as_deref())
    }

    fn at(&self, path: Option<&Path>) -> PathBuf {
        path.map_or_else(|| self.cwd.clone(), |path| self.cwd.join(path))
    }

    /// Prunes if it is due. Called by commands that may take a while, before they list anything.
    fn upkeep(&self) {
        match self.manager.auto_prune() {
            Ok(None) => {}
            Ok(Some(pruned)) => {
                let gone: usize = pruned.removed.iter().map(|(_, gone)| gone.len()).sum();
                let removed = [(gone, "checkpoint"), (pruned.legacy.len(), "archive")];
                for (count, what) in removed.into_iter().filter(|(count, _)| *count > 0) {
                    let were = if count == 1 { "was" } else { "were" };
                    let what = some(count, what);
                    message::line(&format!("removed {what} that {were} old or over the size limit"));
                }
                message::problems("warning", &pruned.problems);
            }
            // Not fatal: the next command tries again.
            Err(error) => message::problems("warning", [format!("cannot remove old checkpoints: {error}")]),
        }
    }
}
