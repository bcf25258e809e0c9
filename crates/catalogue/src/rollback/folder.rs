//! Reading a session's folder: id, location, status.
//!
//! Nothing in `rollbacks/` is trusted: it may be damaged, incomplete or made by another program.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nono_snapshot::session::{Session, SnapshotList};
use nono_snapshot::{SessionMetadata, SnapshotId};

use super::entry::{SessionEntry, Status};
use super::error::RollbackError;
use super::live_lock::is_live;
pub(crate) use crate::own_file::read;

/// File in a session's place below the state folder that holds the session's actual path.
pub const ELSEWHERE: &str = "elsewhere";
pub const METADATA: &str = "session.json";
pub const RECORD: &str = "record.json";
const PINNED: &str = "pinned";
const LIVE: &str = "live";

/// Contents of a file; `None` if there is no such file.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, RollbackError> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RollbackError::Io { path: path.to_owned(), source }),
    }
}

/// Whether this folder holds a session.
pub fn is_session(dir: &Path) -> bool {
    [RECORD, METADATA].iter().any(|name| dir.join(name).symlink_metadata().is_ok())
        && dir.join("snapshots").is_dir()
}

/// Directory of the session at this place: the place itself, or the path that it refers to.
pub fn follow(place: &Path) -> Result<PathBuf, RollbackError> {
    let note = place.join(ELSEWHERE);
    let Some(bytes) = read_if_there(&note)? else { return Ok(place.to_owned()) };
    let dir = PathBuf::from(std::ffi::OsString::from_vec(bytes));
    if !dir.is_absolute() {
        return Err(RollbackError::damaged(note, "it should hold the path of a session"));
    }
    if !dir.is_dir() {
        let source = io::Error::from(io::ErrorKind::NotFound);
        return Err(RollbackError::Io { path: dir, source });
    }
    Ok(dir)
}

/// Read a session's folder. `id`: the name it must have; None for a folder made by another program.
pub fn read_session(dir: &Path, id: Option<&str>) -> Result<SessionEntry, RollbackError> {
    let path = dir.join(METADATA);
    let described = match read_if_there(&path)? {
        Some(bytes) => {
            serde_json::from_slice(&bytes).map(Some).map_err(|error| RollbackError::damaged(&path, error))
        }
        None => Ok(None),
    };
    let metadata = match described {
        Ok(Some(metadata)) => metadata,
        Ok(None) => made_up(dir, id)?,
        // An unreadable description is replaced by what the record says; without a record the session is damaged.
        Err(damaged) => made_up(dir, id).map_err(|_| damaged)?,
    };
    // Sessions made by the CLI use the common store and have a record of snapshots.
    let theirs = || dir.join("store").is_dir() || dir.join(RECORD).symlink_metadata().is_err();
    let foreign = id.is_none() || metadata.sequence.is_none() && theirs();
    let id = match id {
        // Commands take the folder's name as the id, whatever its description says.
        Some(id) if foreign || metadata.session_id == id => id.to_owned(),
        Some(_) => {
            let what = format!("it belongs to session {}", metadata.session_id);
            return Err(RollbackError::damaged(path, what));
        }
        None => metadata.session_id.clone(),
    };
    Ok(SessionEntry {
        status: status(dir, &metadata),
        pinned: is_pinned(dir),
        project: project(&metadata.tracked_paths),
        dir: dir.to_owned(),
        id,
        metadata,
        foreign,
    })
}

/// Whether the process ended without ending the session.
pub fn was_killed(dir: &Path) -> bool {
    dir.join(LIVE).symlink_metadata().is_ok() && !is_live(dir)
}

fn status(dir: &Path, metadata: &SessionMetadata) -> Status {
    if is_live(dir) {
        return Status::Live;
    }
    if metadata.ended.is_some() && !metadata.interrupted { Status::Finished } else { Status::Interrupted }
}

/// Describe a session without `session.json` from its record. Its last snapshot counts as its end if there is one
/// besides the baseline: later changes are not the session's.
pub(super) fn made_up(dir: &Path, id: Option<&str>) -> Result<SessionMetadata, RollbackError> {
    let nothing = RollbackError::NoSession { path: dir.to_owned(), what: "it has no record of snapshots" };
    let record = Session::new(dir).record()?.ok_or(nothing)?;
    let name = dir.file_name().unwrap_or(OsStr::new("session")).to_string_lossy();
    let mut metadata = SessionMetadata::new(id.unwrap_or(&name), Vec::new(), record.roots.clone());
    let numbered = numbered(&record);
    metadata.started = numbered.first().map(|recorded| recorded.timestamp.clone()).unwrap_or_default();
    if numbered.len() > 1 {
        metadata.ended = numbered.last().map(|recorded| recorded.timestamp.clone());
        metadata.final_snapshot = record.last_number();
    }
    metadata.snapshot_count = u32::try_from(numbered.len()).unwrap_or(u32::MAX);
    metadata.merkle_roots = numbered.iter().map(|recorded| recorded.merkle_root).collect();
    Ok(metadata)
}

/// Numbered snapshots in order; safety snapshots have no number.
pub fn numbered(record: &SnapshotList) -> Vec<&nono_snapshot::session::Recorded> {
    record.snapshots.iter().filter(|recorded| matches!(recorded.id, SnapshotId::Number(_))).collect()
}

fn project(tracked: &[PathBuf]) -> PathBuf {
    let folder = tracked.iter().find(|path| path.is_dir());
    folder.or(tracked.first()).cloned().unwrap_or_default()
}

pub fn is_pinned(dir: &Path) -> bool {
    dir.join(PINNED).symlink_metadata().is_ok()
}

pub fn set_pinned(dir: &Path, pinned: bool) -> Result<(), RollbackError> {
    let path = dir.join(PINNED);
    let done = if pinned { nono_sys::fs::make_file(&path, 0o600, b"") } else { std::fs::remove_file(&path) };
    match done {
        // Already in the wanted state.
        Err(error) if pinned && error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if !pinned && error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(RollbackError::io(path)),
    }
}
