//! Taking of checkpoints.
//!
//! A failure is a result, and is recorded for the status: in the project's folder, or beside all projects if there is
//! none yet. The next success clears it.

use std::path::{Path, PathBuf};

use nono_history::quota;
use nono_snapshot::store::StoreError;
use nono_snapshot::{CaptureError, Coverage, Gaps, Manifest, Next, SnapshotError};

use super::open::{Bounds, Open};
use super::restore::random_id;
use super::{CheckpointManager, Ensured, Skip};
use crate::error::{CheckpointError, Result};
use crate::folder::Folder;
use crate::history::{Checkpoint, CheckpointId};
use crate::origin::Origin;
use crate::pending_calls::PendingCalls;
use crate::project::{ProjectHash, Root};
use crate::unprotected;

/// Origin of a request for a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// An agent's call is about to begin: one checkpoint per turn.
    Call,
    /// The user or a program asked for it.
    Asked,
}

/// Key of a turn of one conversation in one project.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TurnKey {
    agent: Option<String>,
    session: Option<String>,
    turn: Option<String>,
    project: ProjectHash,
}

/// Maximum number of turns remembered; then all are dropped, since most have ended.
const TURNS: usize = 10_000;

impl CheckpointManager {
    /// Sets the turn of this manager's checkpoints; for agents whose calls are separate processes see [`crate::turns`].
    pub fn new_turn(&mut self, turn: &str) {
        self.turn = Some(crate::origin::bounded(turn));
        self.taken.clear();
    }

    /// Begins a turn with a unique name, and returns it.
    pub fn begin_turn(&mut self) -> Result<String> {
        let turn = random_id()?;
        self.new_turn(&turn);
        Ok(turn)
    }

    /// Turn that [`CheckpointManager::new_turn`] set last.
    pub fn turn(&self) -> Option<&str> {
        self.turn.as_deref()
    }

    /// Takes a checkpoint of the project that `dir` (a folder or a file) belongs to, unless this turn has one or
    /// nothing changed. It begins a call of the agent, which [`CheckpointManager::agent_left`] ends.
    pub fn ensure_checkpoint(&mut self, dir: &Path, reason: &str, origin: &Origin) -> Ensured {
        if !self.config.enabled {
            return Ensured::Skipped { project: dir.to_owned(), why: Skip::Disabled };
        }
        self.take(dir, reason, origin, Wish::Call)
    }

    /// Takes a checkpoint on request, whatever the turn and the setting `enabled` say.
    pub fn create(&mut self, dir: &Path, reason: &str, origin: &Origin) -> Ensured {
        self.take(dir, reason, origin, Wish::Asked)
    }

    /// Begins a whole run of a command, which counts as a call: [`CheckpointManager::agent_left`] ends it. It has a
    /// checkpoint of its own, whatever the setting `enabled` says.
    pub fn begin_run(&mut self, dir: &Path, reason: &str, origin: &Origin) -> Ensured {
        self.take(dir, reason, origin, Wish::Call)
    }

    /// Begins a call of the agent that needs no checkpoint: changes until now are not attributed to it.
    pub fn agent_begins(&mut self, dir: &Path, origin: &Origin) -> Result<()> {
        let origin = self.whole(origin);
        let Some(mut open) = self.open_if_any(dir)? else { return Ok(()) };
        let now = open.manager.look_now(Next::default())?;
        let marks = PendingCalls::begin(&open.folder, &mut open.manager, &now, &origin, None)?;
        marks.set(&open.folder, &mut open.manager, now)
    }

    /// Ends a call of the agent and sets the mark: later differences from it are attributed to others.
    pub fn agent_left(&mut self, dir: &Path, origin: &Origin) -> Result<()> {
        let origin = self.whole(origin);
        let Some(mut open) = self.open_if_any(dir)? else { return Ok(()) };
        // With the exclusions of the last checkpoint: an agent must not hide its changes by an ignore file.
        let now = open.look_now_as_newest()?;
        let marks = PendingCalls::end(&open.folder, &mut open.manager, &now, &origin)?;
        marks.set(&open.folder, &mut open.manager, now)
    }

    /// Ends all open calls of a conversation whose agent has stopped. Earlier changes stay attributed.
    pub fn agent_stopped(&mut self, dir: &Path, origin: &Origin) -> Result<()> {
        let done = Origin { call: None, ..self.whole(origin) };
        let Some(open) = self.open_if_any(dir)? else { return Ok(()) };
        let waits = PendingCalls::load(&open.folder)?.has_open_calls_of(&done);
        drop(open);
        if waits { self.agent_left(dir, &done) } else { Ok(()) }
    }

    fn open_if_any(&self, dir: &Path) -> Result<Option<Open>> {
        match self.open(dir, Bounds::Settings) {
            Err(CheckpointError::NoProject { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    fn take(&mut self, dir: &Path, reason: &str, origin: &Origin, wish: Wish) -> Ensured {
        let origin = self.whole(origin);
        let failed = |dir: PathBuf, error: CheckpointError| {
            // If even that cannot be written, only the returned failure is left.
            let _ = unprotected::note(&self.host, &dir, &error);
            Ensured::Failed { dir, error }
        };
        let root = match self.root_of(dir) {
            Ok(root) => root,
            Err(error) => return failed(dir.to_owned(), error),
        };
        match self.take_in(&root, reason, &origin, wish) {
            Ok((ensured, key)) => {
                if let Some((key, id)) = key {
                    if self.taken.len() > TURNS {
                        self.taken.clear();
                    }
                    self.taken.insert(key, id);
                }
                ensured
            }
            Err(error) => failed(root.dir, error),
        }
    }

    fn take_in(
        &self,
        root: &Root,
        reason: &str,
        origin: &Origin,
        wish: Wish,
    ) -> Result<(Ensured, Option<(TurnKey, CheckpointId)>)> {
        let attempt = || self.attempt(root, reason, origin, wish, Gaps::Refuse);
        let mut taken = quota::retry(attempt, no_room, |needed| self.make_room(&root.dir, needed))?;
        // A call goes on in any case: a checkpoint with known gaps is better than none.
        if wish == Wish::Call && taken.as_ref().err().and_then(no_room).is_some() {
            taken = self.attempt(root, reason, origin, wish, Gaps::Allow);
        }
        let ensured = taken.map_err(|error| too_many(error, &root.dir))?;
        let id = match &ensured {
            Ensured::Taken { checkpoint, .. } => Some(&checkpoint.id),
            Ensured::Skipped { why: Skip::ThisTurn(id) | Skip::Unchanged(id), .. } => Some(id),
            _ => None,
        };
        let key = || key_of(origin, &ProjectHash::of(&root.dir));
        let key = id.filter(|_| wish == Wish::Call).map(|id| (key(), id.clone()));
        Ok((ensured, key))
    }

    fn attempt(&self, root: &Root, reason: &str, origin: &Origin, wish: Wish, gaps: Gaps) -> Result<Ensured> {
        let mut folder = Folder::create(&self.host, &root.dir)?;
        folder.touch()?;
        let fresh = !folder.has_record();
        let place = folder.file("");
        let taken = self.open_folder(folder, Bounds::Settings).and_then(|mut open| {
            open.manager.set_gaps(gaps);
            let ensured = if fresh {
                first(&mut open, reason, origin, wish)
            } else {
                self.next(&mut open, reason, origin, wish)
            }?;
            unprotected::clear(&self.host, &open.folder)?;
            Ok(ensured)
        });
        if fresh && taken.is_err() && !place.join("record.json").exists() {
            // Without a checkpoint it is not a project. Best effort: the original error is returned.
            let _ = std::fs::remove_file(place.join(crate::project::PROJECT));
        }
        taken
    }

    fn next(&self, open: &mut Open, reason: &str, origin: &Origin, wish: Wish) -> Result<Ensured> {
        let now = open.manager.look_now(Next::default())?;
        let marks = match wish {
            Wish::Call => {
                Some(PendingCalls::begin(&open.folder, &mut open.manager, &now, origin, Some(reason))?)
            }
            Wish::Asked => None,
        };
        let project = open.workdir().to_owned();
        let this_turn = if wish == Wish::Call { self.of_turn(open, origin) } else { None };
        let unchanged = open.history.of_snapshot(now.last()).filter(|_| now.is_unchanged());
        let unchanged = unchanged.map(|line| line.id.clone());
        match (this_turn, unchanged) {
            (Some(id), _) => {
                if let Some(marks) = marks {
                    marks.set(&open.folder, &mut open.manager, now)?;
                }
                Ok(Ensured::Skipped { project, why: Skip::ThisTurn(id) })
            }
            (None, Some(id)) => {
                let last = now.last();
                drop(now);
                if let Some(marks) = marks {
                    marks.set_number(&open.folder, last)?;
                }
                let begins = wish == Wish::Call && open.history.begin_from(origin, &id);
                if open.history.link(origin, &id) || begins {
                    open.save_history()?;
                }
                Ok(Ensured::Skipped { project, why: Skip::Unchanged(id) })
            }
            (None, None) => {
                let manifest = open.manager.number_now(now)?;
                let checkpoint =
                    open.write_down(&manifest, reason, origin, Some(self.config.max_snapshots))?;
                if let Some(marks) = marks {
                    marks.set_number(&open.folder, manifest.number)?;
                }
                Ok(taken(open, checkpoint, manifest.coverage))
            }
        }
    }

    /// Checkpoint of this turn, if it still exists.
    fn of_turn(&self, open: &Open, origin: &Origin) -> Option<CheckpointId> {
        let known = self.taken.get(&key_of(origin, &open.folder.hash));
        if let Some(line) = known.and_then(|id| open.history.find(id)) {
            return Some(line.id.clone());
        }
        // Turn numbers restart with each conversation: without its id they are ambiguous.
        origin.session.as_ref()?;
        open.history.of_turn(origin).map(|line| line.id.clone())
    }

    /// Origin with the turn of this manager if the agent named none, and with bounded texts.
    fn whole(&self, origin: &Origin) -> Origin {
        let mut origin = origin.bounded();
        origin.turn = origin.turn.or_else(|| self.turn.clone());
        origin
    }
}

fn key_of(origin: &Origin, project: &ProjectHash) -> TurnKey {
    let Origin { agent, session, turn, .. } = origin.clone();
    TurnKey { agent, session, turn, project: project.clone() }
}

fn first(open: &mut Open, reason: &str, origin: &Origin, wish: Wish) -> Result<Ensured> {
    let manifest = open.manager.create_baseline()?;
    let checkpoint = open.write_down(&manifest, reason, origin, None)?;
    if wish == Wish::Call {
        let now = PendingCalls::first(origin, reason);
        now.set_number(&open.folder, manifest.number)?;
    }
    Ok(taken(open, checkpoint, manifest.coverage))
}

impl Open {
    /// Adds the checkpoint to the history; with `max`, at most that many stay.
    pub(crate) fn write_down(
        &mut self,
        manifest: &Manifest,
        reason: &str,
        origin: &Origin,
        max: Option<u32>,
    ) -> Result<Checkpoint> {
        let record = self.record()?;
        let missing = || {
            let what = format!("its record has no snapshot {}", manifest.number);
            CheckpointError::damaged(&self.folder.dir, what)
        };
        let recorded = record.find(&manifest.id).ok_or_else(missing)?;
        let hash = &self.folder.hash;
        let line = Checkpoint::new(hash, manifest.number, recorded, reason, origin, &manifest.coverage);
        self.history.add(line.clone());
        self.history.link(origin, &line.id);
        if let Some(max) = max {
            self.history.thin_out(max);
        }
        self.save_history()?;
        Ok(line)
    }
}

fn taken(open: &Open, checkpoint: Checkpoint, coverage: Coverage) -> Ensured {
    Ensured::Taken { project: open.workdir().to_owned(), checkpoint, coverage }
}

/// Number of bytes needed, if the error is a lack of space.
fn no_room(error: &CheckpointError) -> Option<u64> {
    let CheckpointError::Snapshot(error) = error else { return None };
    match error {
        SnapshotError::Capture(
            CaptureError::NoRoom { needed, .. } | CaptureError::Store(StoreError::OverBudget { needed, .. }),
        )
        | SnapshotError::Store(StoreError::OverBudget { needed, .. }) => Some(*needed),
        _ => None,
    }
}

fn too_many(error: CheckpointError, project: &Path) -> CheckpointError {
    match error {
        CheckpointError::Snapshot(SnapshotError::Capture(CaptureError::TooManyFiles { limit })) => {
            CheckpointError::TooManyFiles { project: project.to_owned(), max: limit }
        }
        other => other,
    }
}
