//! Versions of one file: its contents from checkpoint to checkpoint, and the author of each change.

use std::path::Path;

use nono_snapshot::{ContentHash, SnapshotError, SnapshotId};

use super::CheckpointManager;
use super::open::{Bounds, Open};
use crate::call_log::{self, CallRecord, TurnKey};
use crate::error::{CheckpointError, Result};
use crate::history::CheckpointId;
use crate::project;
use crate::restores::ProjectRestores;

/// A change of a file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// Time at which it was observed. ISO 8601, UTC.
    pub time: String,
    pub by: ChangedBy,
    /// Content before; `None` if the file did not exist.
    pub old: Option<ContentHash>,
    pub new: Option<ContentHash>,
}

/// Author of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangedBy {
    /// A call of an agent.
    Turn {
        key: TurnKey,
        /// First words of the user's prompt.
        prompt: Option<String>,
        tool: Option<String>,
        /// Reason of the call's checkpoint. Untrusted text.
        reason: Option<String>,
        /// Number of concurrent calls, any of which may be the author.
        at_once: usize,
    },
    /// A restore or an undo.
    Restore,
    /// The user, or a program outside the agents' calls.
    Others,
    /// Content at the beginning of the history.
    Beginning,
}

/// Known content of a file at some time: in a checkpoint, or around a call.
#[derive(Clone, Copy, Debug)]
struct Observation<'a> {
    time: &'a str,
    before: Option<ContentHash>,
    after: Option<ContentHash>,
    call: Option<&'a CallRecord>,
}

impl<'a> Observation<'a> {
    fn checkpoint(time: &'a str, content: Option<ContentHash>) -> Observation<'a> {
        Observation { time, before: content, after: content, call: None }
    }

    fn call(
        line: &'a CallRecord,
        before: Option<ContentHash>,
        after: Option<ContentHash>,
    ) -> Observation<'a> {
        Observation { time: &line.time, before, after, call: Some(line) }
    }
}

impl CheckpointManager {
    /// Versions of a file in its project's history, oldest first; empty if it has no history.
    pub fn versions(&self, path: &Path) -> Result<Vec<FileVersion>> {
        let path = project::place(path)?;
        let open = match self.open(&path, Bounds::Settings) {
            Err(CheckpointError::NoProject { .. } | CheckpointError::TooBroad { .. }) => {
                return Ok(Vec::new());
            }
            other => other?,
        };
        let lines = call_log::load(&open.folder.dir)?;
        let mut seen = Vec::new();
        for line in &open.history.checkpoints {
            // An unreadable checkpoint is skipped.
            if let Ok(content) = open.content_at(&line.id, &path) {
                seen.push(Observation::checkpoint(&line.time, content));
            }
        }
        let record = open.record()?;
        let is_there = |id: &SnapshotId| record.find(id).is_some_and(|recorded| !recorded.thinned);
        let mut touched = Vec::new();
        for line in &lines {
            if let Some(one) = line.paths.iter().find(|one| one.path == path) {
                touched.push(Observation::call(line, one.old, one.new));
            } else if line.more > 0 && is_there(&line.from) && is_there(&line.to) {
                // The entry does not list all paths, but its states have them.
                let at = |id| nono_history::content_at(&open.manager, Some(id), &path);
                let (old, new) = (at(&line.from)?, at(&line.to)?);
                touched.extend((old != new).then_some(Observation::call(line, old, new)));
            }
        }
        let log = ProjectRestores::load(&open.folder.dir)?;
        let restored: Vec<u64> = log.restores.iter().map(|restore| restore.at / 1_000_000_000).collect();
        let mut versions = versions_between(merged(seen, touched), &restored);
        for version in &mut versions {
            if let ChangedBy::Turn { key, prompt, .. } = &mut version.by {
                let link = open.history.turns.iter().find(|link| key.is(link));
                *prompt = link.and_then(|link| link.prompt.clone());
            }
        }
        Ok(versions)
    }

    /// Content of a path in a checkpoint.
    pub fn content_at(&self, path: &Path, id: &CheckpointId) -> Result<Option<ContentHash>> {
        let path = project::place(path)?;
        self.open(&path, Bounds::None)?.content_at(id, &path)
    }

    /// Bytes of a content in the project of a path; `None` if they are not kept, or exceed `limit`.
    pub fn content(&self, path: &Path, content: ContentHash, limit: u64) -> Result<Option<Vec<u8>>> {
        let open = self.open(&project::place(path)?, Bounds::None)?;
        match open.manager.content(content, limit) {
            Err(SnapshotError::Store(_)) => Ok(None),
            other => Ok(other?),
        }
    }

    /// Numbers of lines added and removed between two contents; `None` if unknown.
    pub fn lines_between(
        &self,
        path: &Path,
        old: Option<ContentHash>,
        new: Option<ContentHash>,
    ) -> Option<(u64, u64)> {
        let open = self.open(&project::place(path).ok()?, Bounds::None).ok()?;
        crate::stats::between(&open.manager, old, new)
    }
}

impl Open {
    fn content_at(&self, id: &CheckpointId, path: &Path) -> Result<Option<ContentHash>> {
        let missing =
            || CheckpointError::NotFound { text: id.to_string(), project: self.workdir().to_owned() };
        let line = self.history.find(id).ok_or_else(missing)?;
        Ok(nono_history::content_at(&self.manager, Some(&line.snapshot_id()), path)?)
    }
}

/// Merges both in order; within one second, a checkpoint with the content so far before an entry that goes on from it.
fn merged<'a>(checkpoints: Vec<Observation<'a>>, lines: Vec<Observation<'a>>) -> Vec<Observation<'a>> {
    let (mut checkpoints, mut lines) = (checkpoints.into_iter().peekable(), lines.into_iter().peekable());
    let mut all: Vec<Observation<'a>> = Vec::new();
    let mut present = None;
    loop {
        let line_first = match (checkpoints.peek(), lines.peek()) {
            (None, None) => return all,
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (Some(checkpoint), Some(line)) => {
                line.time < checkpoint.time
                    || line.time == checkpoint.time
                        && !all.is_empty()
                        && checkpoint.before != present
                        && line.before == present
            }
        };
        let next = if line_first { lines.next() } else { checkpoints.next() };
        present = next.map_or(present, |next| next.after);
        all.extend(next);
    }
}

/// Changes from one observation to the next. `restored`: times of restores in seconds since 1970.
fn versions_between(seen: Vec<Observation<'_>>, restored: &[u64]) -> Vec<FileVersion> {
    let mut versions: Vec<FileVersion> = Vec::new();
    let mut present: Option<ContentHash> = None;
    let mut since: Option<String> = None;
    for one in seen {
        let (time, before) = (one.time.to_owned(), one.before);
        if before != present {
            let by = match &since {
                None => ChangedBy::Beginning,
                Some(since) if was_restored(since, &time, restored) => ChangedBy::Restore,
                Some(_) => ChangedBy::Others,
            };
            versions.push(FileVersion { time: time.clone(), by, old: present, new: before });
            present = before;
        }
        if let Some(line) = one.call {
            let by = ChangedBy::Turn {
                key: line.turn.clone(),
                prompt: None,
                tool: line.tool.clone(),
                reason: line.reason.clone(),
                at_once: line.at_once,
            };
            versions.push(FileVersion { time: time.clone(), by, old: before, new: one.after });
            present = one.after;
        }
        since = Some(time);
    }
    versions
}

fn was_restored(since: &str, until: &str, restored: &[u64]) -> bool {
    let (Some(since), Some(until)) = (nono_sys::time::seconds(since), nono_sys::time::seconds(until)) else {
        return false;
    };
    restored.iter().any(|at| (since..=until).contains(at))
}

#[cfg(test)]
mod tests {
    use nono_snapshot::hash::content_hash;

    use super::*;

    fn content(text: &str) -> ContentHash {
        content_hash(text.as_bytes())
    }

    fn line(time: &str) -> CallRecord {
        let states = (SnapshotId::Number(0), SnapshotId::Number(1));
        CallRecord {
            time: time.to_owned(),
            ..CallRecord::new(TurnKey::default(), None, None, 1, states, &[])
        }
    }

    /// Two turns and the checkpoints before them, with any of them in the same second.
    #[test]
    fn what_happened_in_one_second_has_its_order() {
        for times in ["1111", "1112", "1122", "1222", "1234"] {
            let at: Vec<String> =
                times.chars().map(|second| format!("2026-11-17T12:00:0{second}Z")).collect();
            let (first, second) = (line(&at[1]), line(&at[3]));
            let checkpoints = vec![
                Observation::checkpoint(&at[0], Some(content("a"))),
                Observation::checkpoint(&at[2], Some(content("b"))),
            ];
            let lines = vec![
                Observation::call(&first, Some(content("a")), Some(content("b"))),
                Observation::call(&second, Some(content("b")), Some(content("c"))),
            ];
            let versions = versions_between(merged(checkpoints, lines), &[]);
            let by: Vec<bool> = versions.iter().map(|one| matches!(one.by, ChangedBy::Turn { .. })).collect();
            assert_eq!(by, [false, true, true], "{times}: {versions:?}");
            assert_eq!(versions[0].by, ChangedBy::Beginning);
        }
    }
}
