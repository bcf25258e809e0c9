//! History of one file: every version known from sessions and checkpoints, with its author.

use std::fs::{Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nono_checkpoint::{ChangedBy, CheckpointError, CheckpointManager, CheckpointTarget, FileVersion};
use nono_history::content_at;
use nono_snapshot::hash::content_hash;
use nono_snapshot::{ContentHash, SnapshotId};
use rustix::fs::OFlags;
use serde_json::{Value, json};
use thiserror::Error;

use crate::rollback::{Catalogue, RollbackError, SessionEntry, Status};

/// Maximum size in bytes of a file that is compared with its last version.
const COMPARED: u64 = 64 << 20;

/// Maximum size in bytes of a content that is printed; a larger one can be restored.
pub const LARGEST: u64 = 1 << 30;

#[derive(Debug, Error)]
pub enum FileLogError {
    #[error(transparent)]
    Rollback(#[from] RollbackError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("{text} is not a checkpoint, a session or a version of {}", path.display())]
    NoVersion { text: String, path: PathBuf },
    #[error("{} did not exist at that time", path.display())]
    Absent { path: PathBuf },
    #[error("that version of {} is no longer stored", path.display())]
    NotKept { path: PathBuf },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedVersion {
    /// Time of detection. ISO 8601, UTC.
    pub time: String,
    pub by: VersionAuthor,
    /// `None`: the file did not exist.
    pub old: Option<ContentHash>,
    pub new: Option<ContentHash>,
    /// Lines added and removed; `None` if unknown.
    pub lines: Option<(u64, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionAuthor {
    /// Author according to the project's history.
    Project(ChangedBy),
    /// A session, from its first to its last snapshot.
    Session { id: String, command: Vec<String> },
}

/// Sources of versions.
#[derive(Clone, Copy, Debug)]
pub struct FileLog<'a> {
    pub catalogue: &'a Catalogue,
    pub checkpoints: &'a CheckpointManager,
}

impl FileLog<'_> {
    /// Every version of a file (absolute, resolved path), newest first.
    pub fn versions(&self, path: &Path) -> Result<Vec<LoggedVersion>, FileLogError> {
        let known = self.checkpoints.versions(path)?;
        let mut sessions = Vec::new();
        for entry in self.catalogue.here(path.parent().unwrap_or(path))? {
            sessions.extend(of_session(self.catalogue, entry, path)?);
        }
        let mut versions = joined(known, sessions);
        versions.extend(since(versions.last(), path));
        for version in &mut versions {
            let counted = self.checkpoints.lines_between(path, version.old, version.new);
            version.lines = version.lines.or(counted);
        }
        versions.reverse();
        Ok(versions)
    }

    /// Content of a file at a checkpoint, before a session, or by a prefix of its digest.
    pub fn content(&self, text: &str, path: &Path) -> Result<Vec<u8>, FileLogError> {
        let gone = || FileLogError::NotKept { path: path.to_owned() };
        let absent = || FileLogError::Absent { path: path.to_owned() };
        match self.checkpoints.find(path, &CheckpointTarget::Text(text.to_owned())) {
            Ok(found) => {
                let content = self.checkpoints.content_at(path, &found.id)?.ok_or_else(absent)?;
                return self.checkpoints.content(path, content, LARGEST)?.ok_or_else(gone);
            }
            Err(
                CheckpointError::NotFound { .. }
                | CheckpointError::OtherProject { .. }
                | CheckpointError::NoProject { .. }
                | CheckpointError::TooBroad { .. },
            ) => {}
            Err(error) => return Err(error.into()),
        }
        if let Ok(entry) = self.catalogue.find(text) {
            let session = self.catalogue.open(entry)?;
            let at = content_at(session.engine(), Some(&SnapshotId::Number(0)), path);
            let content = at.map_err(RollbackError::from)?.ok_or_else(absent)?;
            return session.engine().content(content, LARGEST).ok().flatten().ok_or_else(gone);
        }
        let versions = self.versions(path)?;
        let contents = versions.iter().flat_map(|version| [version.new, version.old]).flatten();
        let mut named = contents.filter(|content| text.len() >= 6 && content.hex().starts_with(text));
        let none = || FileLogError::NoVersion { text: text.to_owned(), path: path.to_owned() };
        let content = named.next().ok_or_else(none)?;
        if let Some(bytes) = self.checkpoints.content(path, content, LARGEST).ok().flatten() {
            return Ok(bytes);
        }
        for entry in self.catalogue.here(path.parent().unwrap_or(path))? {
            let session = self.catalogue.open(entry)?;
            if let Some(bytes) = session.engine().content(content, LARGEST).ok().flatten() {
                return Ok(bytes);
            }
        }
        Err(gone())
    }
}

/// Metadata and digest of the current file, both `None` if there is no file. `None` altogether if that is unknown: it
/// cannot be read, or is too large.
fn now(path: &Path) -> Option<(Option<Metadata>, Option<ContentHash>)> {
    // Another process may have put a link or a FIFO there: neither follow nor wait.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path) else {
        return is_absent(path).then_some((None, None));
    };
    let meta = file.metadata().ok()?;
    if !meta.is_file() {
        return Some((None, None));
    }
    let mut bytes = Vec::new();
    file.take(COMPARED + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= COMPARED).then(|| (Some(meta), Some(content_hash(&bytes))))
}

/// Whether certainly no file exists there: a folder that cannot be searched leaves it unknown.
fn is_absent(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(meta) => !meta.is_file(),
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

/// The change made since the last known version, if any.
fn since(last: Option<&LoggedVersion>, path: &Path) -> Option<LoggedVersion> {
    let last = last?;
    let (meta, new) = now(path)?;
    let time = meta.and_then(|meta| meta.modified().ok()).unwrap_or_else(SystemTime::now);
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let time = nono_sys::time::iso(seconds).max(last.time.clone());
    let by = VersionAuthor::Project(ChangedBy::Others);
    (new != last.new).then_some(LoggedVersion { time, by, old: last.new, new, lines: None })
}

/// The change that an ended session made to a file, from its first to its last snapshot.
fn of_session(
    catalogue: &Catalogue,
    entry: SessionEntry,
    path: &Path,
) -> Result<Option<LoggedVersion>, FileLogError> {
    let is_tracked = entry.metadata.tracked_paths.iter().any(|root| path.starts_with(root));
    if !is_tracked || entry.status == Status::Live {
        return Ok(None);
    }
    let (id, command) = (entry.id.clone(), entry.metadata.command.clone());
    let time = entry.metadata.ended.clone().unwrap_or_else(|| entry.metadata.started.clone());
    let session = catalogue.open(entry)?;
    let at = |id: &SnapshotId| content_at(session.engine(), Some(id), path).map_err(RollbackError::from);
    let (old, new) = (at(&SnapshotId::Number(0))?, at(&session.last()?)?);
    let by = VersionAuthor::Session { id, command };
    Ok((old != new).then_some(LoggedVersion { time, by, old, new, lines: None }))
}

/// Both lists in one order, oldest first. Where a session's hooks reported each call, those stand for the session. A
/// change without a known author is attributed to a session that left exactly that content.
fn joined(known: Vec<FileVersion>, sessions: Vec<LoggedVersion>) -> Vec<LoggedVersion> {
    let version = |FileVersion { time, by, old, new }: FileVersion| {
        let by = VersionAuthor::Project(by);
        LoggedVersion { time, by, old, new, lines: None }
    };
    let mut all: Vec<LoggedVersion> = known.into_iter().map(version).collect();
    for session in sessions {
        let VersionAuthor::Session { id, .. } = &session.by else { continue };
        let is_of_run = |version: &LoggedVersion, by_agent: bool| match &version.by {
            VersionAuthor::Project(ChangedBy::Turn { key, .. }) => {
                key.run.as_ref() == Some(id) && key.agent.is_some() == by_agent
            }
            _ => false,
        };
        if all.iter().any(|version| is_of_run(version, true)) {
            continue;
        }
        // A run without hooks is one call in the project's history; the session has more details.
        all.retain(|version| !is_of_run(version, false));
        let unclaimed = |version: &&mut LoggedVersion| {
            matches!(version.by, VersionAuthor::Project(ChangedBy::Others | ChangedBy::Restore))
                && version.new == session.new
                && version.time >= session.time
        };
        match all.iter_mut().find(unclaimed) {
            Some(version) => *version = session,
            None => all.push(session),
        }
    }
    all.sort_by(|a, b| a.time.cmp(&b.time));
    all
}

/// Versions as JSON, newest first. Field names are stable.
pub fn json(path: &Path, versions: &[LoggedVersion]) -> Value {
    let one = |version: &LoggedVersion| {
        let mut value = match &version.by {
            VersionAuthor::Session { id, command } => {
                json!({ "by": "session", "session_id": id, "command": command })
            }
            VersionAuthor::Project(ChangedBy::Turn { key, prompt, tool, reason, at_once }) => json!({
                "by": "turn",
                "agent": key.agent,
                "session": key.session,
                "turn": key.turn,
                "run": key.run,
                "prompt": prompt,
                "tool": tool,
                "reason": reason,
                "calls_at_once": at_once,
            }),
            VersionAuthor::Project(ChangedBy::Restore) => json!({ "by": "restore" }),
            VersionAuthor::Project(ChangedBy::Others) => json!({ "by": "others" }),
            VersionAuthor::Project(ChangedBy::Beginning) => json!({ "by": "beginning" }),
        };
        value["time"] = json!(version.time);
        value["old"] = json!(version.old.map(|old| old.hex()));
        value["new"] = json!(version.new.map(|new| new.hex()));
        value["insertions"] = json!(version.lines.map(|lines| lines.0));
        value["deletions"] = json!(version.lines.map(|lines| lines.1));
        value
    };
    json!({ "path": crate::json::path(path), "versions": versions.iter().map(one).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use nono_checkpoint::call_log::TurnKey;
    use nono_snapshot::hash::content_hash;

    use super::*;

    fn change(time: &str, by: ChangedBy, old: &str, new: &str) -> FileVersion {
        let hash = |text: &str| Some(content_hash(text.as_bytes()));
        FileVersion { time: time.to_owned(), by, old: hash(old), new: hash(new) }
    }

    fn session(time: &str, id: &str, old: &str, new: &str) -> LoggedVersion {
        let FileVersion { time, old, new, .. } = change(time, ChangedBy::Others, old, new);
        let by = VersionAuthor::Session { id: id.to_owned(), command: vec!["make".to_owned()] };
        LoggedVersion { time, by, old, new, lines: None }
    }

    fn turn(agent: Option<&str>, run: &str) -> ChangedBy {
        let (agent, run) = (agent.map(str::to_owned), Some(run.to_owned()));
        let key = TurnKey { agent, run, ..TurnKey::default() };
        ChangedBy::Turn { key, prompt: None, tool: None, reason: None, at_once: 1 }
    }

    #[test]
    fn a_session_whose_hooks_spoke_is_told_by_them() {
        let known = vec![
            change("2", turn(Some("claude-code"), "s1"), "a", "b"),
            change("5", turn(None, "s2"), "b", "c"),
        ];
        let all = joined(known, vec![session("3", "s1", "a", "b"), session("5", "s2", "b", "c")]);
        assert_eq!(all.len(), 2);
        assert!(matches!(&all[0].by, VersionAuthor::Project(_)));
        assert!(matches!(&all[1].by, VersionAuthor::Session { id, .. } if id == "s2"));
    }

    #[test]
    fn an_unclaimed_version_belongs_to_the_session_that_left_it() {
        let known =
            vec![change("1", ChangedBy::Beginning, "", "a"), change("4", ChangedBy::Others, "a", "b")];
        let all = joined(known.clone(), vec![session("3", "s1", "a", "b")]);
        assert_eq!(all.len(), 2);
        assert!(matches!(&all[1].by, VersionAuthor::Session { id, .. } if id == "s1"));
        // A session that ended later, or left another content, is not its author.
        assert_eq!(joined(known.clone(), vec![session("5", "s1", "a", "b")]).len(), 3);
        assert_eq!(joined(known, vec![session("3", "s1", "a", "c")]).len(), 3);
    }
}
