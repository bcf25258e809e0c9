//! History of a project: one entry for each checkpoint, in `history.json` beside the engine's record.
//!
//! The record lists the snapshots, the history says what they were taken for. A process that is killed between the two
//! writes leaves a snapshot without an entry, or an entry without its snapshot: `History::repair` adds the missing
//! entry, with the id that it would have had, and drops the orphaned one.

use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use nono_snapshot::file::Sync;
use nono_snapshot::session::{Recorded, SnapshotList};
use nono_snapshot::{Coverage, CoverageNote, SnapshotId};
use nono_sys::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{CheckpointError, Result};
use crate::json;
use crate::origin::Origin;
use crate::project::ProjectHash;
use crate::retention::excess;

/// Permanent id of a checkpoint: twelve hexadecimal digits, the first a letter, unlike a number of the list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckpointId(pub(crate) String);

impl CheckpointId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Short form for lists.
    pub fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

impl CheckpointId {
    /// Id of a snapshot of a project; deterministic.
    pub(crate) fn of(project: &ProjectHash, number: u32, recorded: &Recorded) -> CheckpointId {
        let mut digest = Sha256::new();
        digest.update(b"nono checkpoint v1\0");
        digest.update(project.as_str());
        digest.update(number.to_le_bytes());
        digest.update(recorded.manifest.as_bytes());
        let digest = digest.finalize();
        let first = char::from(b'a' + digest[0] % 6);
        CheckpointId(format!("{first}{}", &hex::encode(&digest[1..])[..11]))
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Changes after a checkpoint: up to the next one, or for the newest, up to the last mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    pub files: u64,
    pub insertions: u64,
    pub deletions: u64,
}

/// Entry of one checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub id: CheckpointId,
    /// Number of the snapshot in the project's session folder.
    pub snapshot: u32,
    /// ISO 8601, UTC.
    pub time: String,
    /// `before patch`, `before terminal: sed -i …`. Untrusted text: escape it before printing.
    pub reason: String,
    #[serde(default)]
    pub origin: Origin,
    /// Last work that began from it, if it was reused because nothing had changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Begun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default)]
    pub pinned: bool,
    /// Source in another tool's store. Restoring such a checkpoint never removes files that it does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<String>,
    /// Number of files captured; what was excluded follows.
    pub files: u64,
    pub left_out: u64,
    /// Changes after it; counted when a list is first shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<Stats>,
}

/// Work of an agent or a command that began from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// ISO 8601, UTC.
    pub time: String,
    /// Nanoseconds since 1970, to order events within one second.
    pub at: u64,
    /// Session of the sandbox, if it was in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl Checkpoint {
    /// Whether it was taken before an agent or a command worked, and not only by the user.
    pub fn is_before_work(&self) -> bool {
        self.begun.is_some() || self.origin.agent.is_some() || self.origin.run.is_some()
    }

    /// Time at which the last work from this checkpoint began. ISO 8601, UTC.
    pub fn work_began(&self) -> &str {
        self.begun.as_ref().map_or(&self.time, |begun| &begun.time)
    }

    /// Session of that work.
    pub fn run(&self) -> Option<&str> {
        self.begun.as_ref().map_or(self.origin.run.as_deref(), |begun| begun.run.as_deref())
    }

    /// Notes that work begins from it. Returns whether anything changed.
    fn begin(&mut self, origin: &Origin) -> bool {
        let is_known = self.is_before_work() && self.run() == origin.run.as_deref();
        if !is_known {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            let at = u64::try_from(now).unwrap_or(u64::MAX);
            self.begun = Some(Begun { time: nono_sys::time::now_iso(), at, run: origin.run.clone() });
        }
        !is_known
    }

    pub(crate) fn new(
        project: &ProjectHash,
        number: u32,
        recorded: &Recorded,
        reason: &str,
        origin: &Origin,
        coverage: &Coverage,
    ) -> Checkpoint {
        Checkpoint {
            id: CheckpointId::of(project, number, recorded),
            snapshot: number,
            time: recorded.timestamp.clone(),
            reason: crate::origin::bounded(reason),
            origin: origin.clone(),
            begun: None,
            name: None,
            pinned: false,
            imported_from: coverage.notes.iter().find_map(foreign),
            files: coverage.files,
            left_out: coverage.entries_left_out(),
            stats: None,
        }
    }

    pub fn snapshot_id(&self) -> SnapshotId {
        SnapshotId::Number(self.snapshot)
    }
}

/// A turn, and the checkpoint before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnLink {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub turn: String,
    /// First words of the user's prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Session of the sandbox that reported it: a process in a sandbox cannot act for other sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Time at which it began to work in this project. ISO 8601, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    pub checkpoint: CheckpointId,
    /// Whether a restore undid it.
    #[serde(default)]
    pub undone: bool,
}

impl TurnLink {
    fn is_of(&self, origin: &Origin) -> bool {
        self.agent == origin.agent
            && self.session == origin.session
            && self.run == origin.run
            && Some(&self.turn) == origin.turn.as_ref()
    }
}

/// The checkpoints of a project, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    pub format: u32,
    pub checkpoints: Vec<Checkpoint>,
    #[serde(default)]
    pub turns: Vec<TurnLink>,
    /// Snapshots without an entry, which the next sweep removes from the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) given_up: Vec<u32>,
}

pub(crate) const FORMAT: u32 = 1;
pub(crate) const FILE: &str = "history.json";
/// Name to which an unreadable history is moved.
pub(crate) const DAMAGED: &str = "history.damaged";
/// Maximum number of turns kept.
const TURNS: usize = 1000;
/// Reason of a checkpoint whose entry was lost and added again.
pub(crate) const RECOVERED: &str = "recovered";

impl History {
    /// Loads the history in a project's folder.
    pub fn load(folder: &Path) -> Result<History> {
        let path = folder.join(FILE);
        let history: Option<History> = json::load(&path)?;
        match history {
            Some(history) if history.format == FORMAT => Ok(history),
            Some(history) => {
                Err(CheckpointError::damaged(path, format!("unknown format {}", history.format)))
            }
            None => Ok(History { format: FORMAT, ..History::default() }),
        }
    }

    /// Loads the history for the holder of the lock, who repairs it: a damaged one is moved aside and started anew.
    pub(crate) fn load_or_begin(folder: &Path) -> Result<History> {
        match History::load(folder) {
            Err(CheckpointError::Damaged { path, .. }) => {
                std::fs::rename(&path, folder.join(DAMAGED)).map_err(CheckpointError::io(&path))?;
                History::load(folder)
            }
            other => other,
        }
    }

    /// Saves the history. For the holder of the lock.
    pub(crate) fn save(&self, folder: &Path) -> Result<()> {
        // Names, pins and turns are stored only here: a power loss must leave the old or the new file.
        json::save(&folder.join(FILE), self, Sync::Whole)
    }

    /// Matches the history to the record. `coverage` is called for snapshots without an entry; an unreadable one gets
    /// none. Returns whether anything was wrong.
    pub(crate) fn repair(
        &mut self,
        project: &ProjectHash,
        record: &SnapshotList,
        coverage: impl Fn(u32) -> Result<Option<Coverage>>,
    ) -> Result<bool> {
        let mut there: Vec<(u32, &Recorded)> = record.snapshots.iter().filter_map(numbered).collect();
        self.given_up.retain(|number| there.iter().any(|(there, _)| there == number));
        there.retain(|(number, _)| !self.given_up.contains(number));
        let before = self.checkpoints.len();
        self.checkpoints.retain(|line| there.iter().any(|(number, _)| *number == line.snapshot));
        let mut wrong = self.checkpoints.len() < before;
        for (number, recorded) in there {
            if self.checkpoints.iter().any(|line| line.snapshot == number) {
                continue;
            }
            let Some(coverage) = coverage(number)? else { continue };
            self.add(Checkpoint::new(project, number, recorded, RECOVERED, &Origin::default(), &coverage));
            wrong = true;
        }
        if wrong {
            self.forget_turns();
        }
        Ok(wrong)
    }

    /// Drops entries beyond `max`. The next sweep removes their snapshots, because that waits for the disk.
    pub(crate) fn thin_out(&mut self, max: u32) {
        let gone = excess(&self.checkpoints, max);
        if gone.is_empty() {
            return;
        }
        let lines = self.checkpoints.extract_if(.., |line| gone.contains(&line.id));
        self.given_up.extend(lines.map(|line| line.snapshot));
        self.forget_turns();
    }

    /// Adds an entry, in the order of numbers; imported ones by their time.
    pub(crate) fn add(&mut self, checkpoint: Checkpoint) {
        let older = |line: &Checkpoint| match &checkpoint.imported_from {
            Some(_) => line.time <= checkpoint.time,
            None => line.snapshot < checkpoint.snapshot || line.imported_from.is_some(),
        };
        let newer = self.checkpoints.iter().rev().take_while(|line| !older(line)).count();
        let at = self.checkpoints.len() - newer;
        self.checkpoints.insert(at, checkpoint);
    }

    /// Removes turns whose checkpoint is gone.
    pub(crate) fn forget_turns(&mut self) {
        let there: std::collections::HashSet<&CheckpointId> =
            self.checkpoints.iter().map(|line| &line.id).collect();
        self.turns.retain(|link| there.contains(&link.checkpoint));
    }

    pub(crate) fn find(&self, id: &CheckpointId) -> Option<&Checkpoint> {
        self.checkpoints.iter().find(|line| line.id == *id)
    }

    pub(crate) fn of_snapshot(&self, number: u32) -> Option<&Checkpoint> {
        self.checkpoints.iter().find(|line| line.snapshot == number)
    }

    /// Checkpoint of this turn of this conversation.
    pub(crate) fn of_turn(&self, origin: &Origin) -> Option<&Checkpoint> {
        let link = self.turns.iter().rev().find(|link| link.is_of(origin))?;
        self.find(&link.checkpoint)
    }

    /// Notes that work of an agent or a command begins from a checkpoint. Returns whether anything changed.
    pub(crate) fn begin_from(&mut self, origin: &Origin, checkpoint: &CheckpointId) -> bool {
        let line = self.checkpoints.iter_mut().find(|line| line.id == *checkpoint);
        line.is_some_and(|line| line.begin(origin))
    }

    /// Links a turn to the checkpoint before it. Returns whether anything changed.
    pub(crate) fn link(&mut self, origin: &Origin, checkpoint: &CheckpointId) -> bool {
        let Some(turn) = origin.turn.clone() else { return false };
        if self.of_turn(origin).is_some() {
            return false;
        }
        self.turns.push(TurnLink {
            agent: origin.agent.clone(),
            session: origin.session.clone(),
            turn,
            prompt: origin.prompt.clone(),
            run: origin.run.clone(),
            time: Some(nono_sys::time::now_iso()),
            checkpoint: checkpoint.clone(),
            undone: false,
        });
        let beyond = self.turns.len().saturating_sub(TURNS);
        self.turns.drain(..beyond);
        true
    }

    /// Turns that a restore of a checkpoint undoes, oldest first.
    pub(crate) fn turns_after(&self, target: &Checkpoint) -> impl Iterator<Item = &TurnLink> {
        let place = |id: &CheckpointId| self.checkpoints.iter().position(|line| line.id == *id);
        let from = place(&target.id);
        let after = move |link: &&TurnLink| !link.undone && from.is_some() && place(&link.checkpoint) >= from;
        self.turns.iter().filter(after)
    }
}

/// Source of a snapshot that was imported and not captured.
fn foreign(note: &CoverageNote) -> Option<String> {
    match note {
        CoverageNote::Foreign { from } => Some(from.clone()),
        _ => None,
    }
}

fn numbered(recorded: &Recorded) -> Option<(u32, &Recorded)> {
    recorded.id.number().filter(|_| !recorded.thinned).map(|number| (number, recorded))
}
