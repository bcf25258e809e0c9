//! Stand-ins for absent files that configure an agent, so that a mount can hold their names.
//!
//! An absent name cannot be covered by a mount, and a command with write access to its folder could create it. So while
//! such a command runs, an empty folder or a file without settings stands there. Each stand-in is recorded in the
//! state folder before it is made. Every session that relies on stand-ins holds a shared lock; the last one to end
//! removes those that are recorded and unchanged. Removing one earlier would undo another session's protection, hence
//! the lock; the record of a killed session is left to the next one. In direct mode no process remains to clean up, so
//! its stand-ins stay.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nono_policy::data::DefaultSetting;
use nono_policy::resolved::{ClosedBy, ClosedHow, ClosedPath, PathKind};
use nono_policy::{PolicyData, ResolvedPolicy};
use nono_sandbox::ExecStrategy;
use nono_sys::{errno, fs};
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use serde::{Deserialize, Serialize};
use thiserror::Error;

const RECORD: &str = "stand-ins.json";
/// Held shared by sessions that rely on stand-ins, and exclusively to remove them.
const LOCK: &str = "stand-ins.lock";
/// Held to change the record while other sessions hold the shared lock.
const WRITING: &str = "stand-ins.writing";

/// Failure to hold an absent name.
#[derive(Debug, Error)]
#[error("cannot hold {path} read-only, which decides what {agent} runs: {}", errno::describe(.source), path = .path.display())]
pub struct HoldError {
    pub path: PathBuf,
    pub agent: String,
    pub source: io::Error,
}

/// Guard that keeps the stand-ins in place.
#[derive(Debug)]
pub(super) struct StandIns {
    state_dir: PathBuf,
    lock: File,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct StandInRecord {
    made: Vec<Made>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Made {
    #[serde(with = "nono_sys::path_serde")]
    path: PathBuf,
    agent: String,
}

/// Create missing stand-ins. `None`: the policy holds no such name.
pub(super) fn place(
    policy: &mut ResolvedPolicy,
    state_dir: &Path,
    strategy: ExecStrategy,
) -> Result<Option<StandIns>, HoldError> {
    let Some((path, agent)) = policy.closed.iter().find_map(held).map(|(path, agent)| (path.clone(), agent))
    else {
        return Ok(None);
    };
    let failed = |source| HoldError { path: path.clone(), agent: agent.clone(), source };
    let lock =
        open_lock(state_dir, LOCK).and_then(|lock| lock.lock_shared().map(|()| lock)).map_err(failed)?;
    let stand_ins = StandIns { state_dir: state_dir.to_owned(), lock };
    note(policy, state_dir, strategy).map_err(failed)?;
    for closed in &mut policy.closed {
        make(closed)?;
    }
    Ok(Some(stand_ins))
}

/// Record what will be made; in direct mode remove those names from the record, since no process will clean up.
fn note(policy: &ResolvedPolicy, state_dir: &Path, strategy: ExecStrategy) -> io::Result<()> {
    let writing = open_lock(state_dir, WRITING)?;
    writing.lock()?;
    let mut record = read(state_dir)?;
    let before = record.made.len();
    if strategy == ExecStrategy::Supervised {
        let missing = policy.closed.iter().filter(|closed| closed.kind == PathKind::Absent).filter_map(held);
        for (path, agent) in missing {
            let made = Made { path: path.clone(), agent };
            if !record.made.contains(&made) {
                record.made.push(made);
            }
        }
    } else {
        record.made.retain(|made| !policy.closed.iter().any(|closed| closed.resolved == made.path));
    }
    if record.made.len() == before { Ok(()) } else { write(state_dir, &record) }
}

fn held(closed: &ClosedPath) -> Option<(&PathBuf, String)> {
    match &closed.by {
        ClosedBy::Agent(agent) if closed.how == ClosedHow::Mask => Some((&closed.resolved, agent.clone())),
        _ => None,
    }
}

fn make(closed: &mut ClosedPath) -> Result<(), HoldError> {
    if closed.kind != PathKind::Absent {
        return Ok(());
    }
    let Some((path, agent)) = held(closed) else { return Ok(()) };
    let path = path.clone();
    let made = match default_setting(&path, &agent) {
        Some(DefaultSetting::Directory) => fs::make_dir(&path, 0o700).map(|()| PathKind::Directory),
        Some(DefaultSetting::File(text)) => {
            fs::make_file(&path, 0o600, text.as_bytes()).map(|()| PathKind::File)
        }
        None => Err(io::ErrorKind::NotFound.into()),
    };
    let made = match made {
        // It was created meanwhile. A dangling link was there before, and is an error.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => kind(&path),
        other => other,
    };
    match made {
        Ok(kind) => closed.kind = kind,
        // On a read-only filesystem the command cannot create it either.
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => closed.how = ClosedHow::NotGranted,
        Err(source) => return Err(HoldError { path, agent, source }),
    }
    Ok(())
}

fn kind(path: &Path) -> io::Result<PathKind> {
    let kind = path.symlink_metadata()?.file_type();
    match (kind.is_dir(), kind.is_file()) {
        (true, _) => Ok(PathKind::Directory),
        (_, true) => Ok(PathKind::File),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "it is a dangling link")),
    }
}

fn default_setting(path: &Path, agent: &str) -> Option<DefaultSetting<'static>> {
    PolicyData::embedded().default_setting(agent, path.file_name()?)
}

/// Open a lock file of the state folder, which is made if it is missing.
pub(super) fn open_lock(state_dir: &Path, name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(state_dir.join(name))
}

fn read(state_dir: &Path) -> io::Result<StandInRecord> {
    match std::fs::read(state_dir.join(RECORD)) {
        // With an unreadable record the stand-ins are not removed.
        Ok(text) => Ok(serde_json::from_slice(&text).unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(StandInRecord::default()),
        Err(error) => Err(error),
    }
}

/// All current stand-ins of all sessions; they are left out of snapshots and checkpoints.
pub fn on_record(state_dir: &Path) -> Vec<PathBuf> {
    // Without a record no file is known to be a stand-in, so all are captured.
    read(state_dir).unwrap_or_default().made.into_iter().map(|made| made.path).collect()
}

fn write(state_dir: &Path, record: &StandInRecord) -> io::Result<()> {
    fs::write_atomic(&state_dir.join(RECORD), &serde_json::to_vec(record)?)
}

impl StandIns {
    /// Remove the stand-ins if this is the last session that relies on them. Those that cannot be removed stay
    /// recorded.
    fn clear(&self) -> io::Result<()> {
        match self.lock.unlock().map_err(TryLockError::Error).and_then(|()| self.lock.try_lock()) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let record = read(&self.state_dir)?;
        if record.made.is_empty() {
            return Ok(());
        }
        let left = record.made.into_iter().filter(|made| !remove(made)).collect();
        write(&self.state_dir, &StandInRecord { made: left })
    }
}

impl Drop for StandIns {
    fn drop(&mut self) {
        // On failure the record stays for the next session.
        let _ = self.clear();
    }
}

/// Remove a stand-in. True if it can be dropped from the record: removed, or changed and no longer ours.
fn remove(made: &Made) -> bool {
    let gone = |result: io::Result<()>| match result {
        Ok(()) => true,
        Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty),
    };
    // After a killed session any link may be on the way, and could lead to another file: open without following links.
    let (Some(dir), Some(name)) = (made.path.parent(), made.path.file_name()) else { return true };
    let Ok(folder) = fs::open_path(dir) else { return true };
    let unlink = |flags| gone(unlinkat(&folder, name, flags).map_err(io::Error::from));
    match (default_setting(&made.path, &made.agent), kind(&made.path)) {
        (Some(DefaultSetting::Directory), Ok(PathKind::Directory)) => unlink(AtFlags::REMOVEDIR),
        (Some(DefaultSetting::File(text)), Ok(PathKind::File)) => {
            !has_text(&folder, name, text.as_bytes()) || unlink(AtFlags::empty())
        }
        _ => true,
    }
}

/// Whether a file has exactly this content; reads no more than that takes.
fn has_text(folder: &OwnedFd, name: &OsStr, text: &[u8]) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(file) = openat(folder, name, flags, Mode::empty()) else { return false };
    let mut found = Vec::new();
    let read = File::from(file).take(text.len() as u64 + 1).read_to_end(&mut found);
    read.is_ok() && found == text
}
