//! Record of agents' work: `work.ndjson` in a project's folder, one entry for each call that changed something.
//!
//! An entry has the states of the project before and after the call, which are marks (`marks`) or checkpoints, and the
//! paths that differ between them. For successive calls of one turn without changes by others between them, only the
//! first and the last state are kept: these are the turn's spans, which are used to undo it alone. An entry that was
//! lost or cut off by a power loss is skipped.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nono_snapshot::file::{self, Sync};
use nono_snapshot::{Change, ContentHash, SnapshotId};
use serde::{Deserialize, Serialize};

use crate::error::{CheckpointError, Result};
use crate::folder::Folder;
use crate::history::{History, TurnLink};

const FILE: &str = "work.ndjson";
/// Maximum number of paths in one entry.
const PATHS: usize = 1000;
/// Maximum number of entries kept.
const LINES: usize = 2000;
/// Maximum number of entries whose states are kept.
const STATES: usize = 400;

/// Name of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnKey {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl TurnKey {
    pub(crate) fn is(&self, link: &TurnLink) -> bool {
        (&self.agent, &self.session, &self.run) == (&link.agent, &link.session, &link.run)
            && self.turn.as_ref() == Some(&link.turn)
    }
}

/// A path that a call changed, with the contents of a file before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touched {
    #[serde(with = "nono_sys::path_serde")]
    pub path: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<ContentHash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<ContentHash>,
}

/// Record of one call: its turn, its command, and the paths it changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Time of its end. ISO 8601, UTC.
    pub time: String,
    #[serde(flatten)]
    pub turn: TurnKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Reason of its checkpoint: `before terminal: rm -r src`. Untrusted text: escape it before printing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of concurrent calls, any of which may be the author.
    pub at_once: usize,
    pub(crate) from: SnapshotId,
    pub(crate) to: SnapshotId,
    pub paths: Vec<Touched>,
    /// Number of further paths.
    #[serde(default)]
    pub more: u64,
}

/// Two states of a project between which only one turn worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: SnapshotId,
    pub(crate) to: SnapshotId,
}

impl CallRecord {
    pub(crate) fn new(
        turn: TurnKey,
        tool: Option<String>,
        reason: Option<String>,
        at_once: usize,
        (from, to): (SnapshotId, SnapshotId),
        changes: &[Change],
    ) -> CallRecord {
        let files = changes.iter().filter(|change| !crate::stats::is_git(&change.path));
        let touched = |change: &Change| Touched {
            path: change.path.clone(),
            old: change.old.as_ref().and_then(|old| old.hash),
            new: change.new.as_ref().and_then(|new| new.hash),
        };
        let all = files.clone().count();
        let paths: Vec<Touched> = files.take(PATHS).map(touched).collect();
        let more = (all - paths.len()) as u64;
        CallRecord { time: nono_sys::time::now_iso(), turn, tool, reason, at_once, from, to, paths, more }
    }

    /// Whether it continues exactly where another entry of the same turn ended, so that the state between them can be
    /// dropped. Never if one of them does not list all its paths: only the states have those.
    fn follows(&self, before: &CallRecord) -> bool {
        self.turn == before.turn && self.from == before.to && self.more == 0 && before.more == 0
    }
}

/// Adds an entry. For the holder of the lock.
pub(crate) fn add(folder: &Folder, line: &CallRecord) -> Result<()> {
    let path = folder.file(FILE);
    // Separates the entry from an incomplete line that a killed process may have left.
    let mut text = vec![b'\n'];
    put(&mut text, line, &path)?;
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(&text)).map_err(CheckpointError::io(&path))
}

fn put(text: &mut Vec<u8>, line: &CallRecord, path: &Path) -> Result<()> {
    serde_json::to_writer(&mut *text, line).map_err(|error| CheckpointError::damaged(path, error))?;
    text.push(b'\n');
    Ok(())
}

/// All readable entries, oldest first.
pub(crate) fn load(dir: &Path) -> Result<Vec<CallRecord>> {
    let path = dir.join(FILE);
    let bytes = file::read_existing(&path).map_err(CheckpointError::io(&path))?.unwrap_or_default();
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// Drops entries older than the history, and returns the states that the rest needs.
pub(crate) fn compact(folder: &Folder, history: &History) -> Result<HashSet<SnapshotId>> {
    let mut lines = load(&folder.dir)?;
    let all = lines.len();
    let oldest = history.checkpoints.iter().map(|line| line.time.as_str()).min();
    lines.retain(|line| oldest.is_some_and(|oldest| line.time.as_str() >= oldest));
    lines.drain(..lines.len().saturating_sub(LINES));
    if lines.len() < all {
        save(folder, &lines)?;
    }
    let is_linked = |line: &CallRecord| history.turns.iter().any(|link| line.turn.is(link));
    Ok(needed(&lines[lines.len().saturating_sub(STATES)..], is_linked))
}

fn save(folder: &Folder, lines: &[CallRecord]) -> Result<()> {
    let path = folder.file(FILE);
    let mut text = Vec::new();
    lines.iter().try_for_each(|line| put(&mut text, line, &path))?;
    file::replace(&path, &text, Sync::No).map_err(CheckpointError::io(&path))
}

/// Removes a path, and everything below it, from all entries.
pub(crate) fn forget(folder: &Folder, path: &Path) -> Result<()> {
    let mut lines = load(&folder.dir)?;
    let before = lines.clone();
    for line in &mut lines {
        line.paths.retain(|touched| !touched.path.starts_with(path));
    }
    if lines == before { Ok(()) } else { save(folder, &lines) }
}

/// States needed to undo these entries, without those in the middle of a span.
fn needed(lines: &[CallRecord], is_wanted: impl Fn(&CallRecord) -> bool) -> HashSet<SnapshotId> {
    let mut needed = HashSet::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| is_wanted(line)) {
        let before = at.checked_sub(1).and_then(|at| lines.get(at));
        if !before.is_some_and(|before| line.follows(before)) {
            needed.insert(line.from.clone());
        }
        if !lines.get(at + 1).is_some_and(|next| next.follows(line)) {
            needed.insert(line.to.clone());
        }
    }
    needed
}

/// Spans of a turn, oldest first.
pub(crate) fn spans(lines: &[CallRecord], link: &TurnLink) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for line in lines.iter().filter(|line| line.turn.is(link)) {
        match spans.last_mut() {
            Some(last) if last.to == line.from => last.to = line.to.clone(),
            _ => spans.push(Span { from: line.from.clone(), to: line.to.clone() }),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(turn: &str, from: u32, to: u32) -> CallRecord {
        let turn = TurnKey { turn: Some(turn.to_owned()), ..TurnKey::default() };
        let states = (SnapshotId::Number(from), SnapshotId::Number(to));
        CallRecord::new(turn, None, None, 1, states, &[])
    }

    fn numbers(needed: &HashSet<SnapshotId>) -> Vec<u32> {
        let number = |id: &SnapshotId| match id {
            SnapshotId::Number(number) => *number,
            SnapshotId::Safety(_) => u32::MAX,
        };
        let mut numbers: Vec<u32> = needed.iter().map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn states_between_calls_of_one_turn_are_not_needed() {
        let all = |_: &CallRecord| true;
        assert_eq!(numbers(&needed(&[line("a", 0, 1), line("a", 1, 2), line("a", 2, 3)], all)), [0, 3]);
        // Another turn, or another process, worked between them.
        assert_eq!(numbers(&needed(&[line("a", 0, 1), line("b", 1, 2), line("a", 2, 3)], all)), [0, 1, 2, 3]);
        assert_eq!(numbers(&needed(&[line("a", 0, 1), line("a", 5, 6)], all)), [0, 1, 5, 6]);
        let forgotten = |line: &CallRecord| line.turn.turn.as_deref() == Some("b");
        assert_eq!(numbers(&needed(&[line("a", 0, 1), line("b", 1, 2), line("a", 2, 3)], forgotten)), [1, 2]);
        assert_eq!(numbers(&needed(&[], all)), [] as [u32; 0]);
    }

    #[test]
    fn spans_of_a_turn_end_where_another_worked() {
        let link = TurnLink {
            agent: None,
            session: None,
            turn: "a".to_owned(),
            prompt: None,
            run: None,
            time: None,
            checkpoint: crate::CheckpointId("a00000000000".to_owned()),
            undone: false,
        };
        let span = |from, to| Span { from: SnapshotId::Number(from), to: SnapshotId::Number(to) };
        let lines = [line("a", 0, 1), line("a", 1, 2), line("b", 2, 3), line("a", 3, 4), line("a", 7, 8)];
        assert_eq!(spans(&lines, &link), [span(0, 2), span(3, 4), span(7, 8)]);
        assert_eq!(spans(&lines[2..3], &link), []);
    }
}
