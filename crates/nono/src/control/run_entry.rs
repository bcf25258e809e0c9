//! A running session's entry in the state folder: `<state>/run/<id>/` with its `session.json`, its `control.sock`, and
//! a lock that shows that it runs.

use std::io;
use std::path::{Path, PathBuf};

use nono_supervisor::channel::{CONTROL_SOCKET, Listening, SessionInfo};
use nono_sys::fs;

use crate::audit::{self, AuditError};
use crate::rollback::live_lock::{LiveLock, is_live};
use crate::session::folder::{is_orphan, make_private};

pub(super) const RECORD: &str = "session.json";

/// Folder of all entries, below nono's state folder.
pub(super) fn base(state_dir: &Path) -> PathBuf {
    state_dir.join("run")
}

/// A session's entry; removed when dropped.
#[derive(Debug)]
pub(crate) struct SessionSocket {
    dir: PathBuf,
    _live: LiveLock,
}

impl SessionSocket {
    /// Make the entry with its socket, and remove those of dead sessions. `own`: a name unique to this process, which
    /// shows that it is alive before the lock is held.
    pub(crate) fn make(
        state_dir: &Path,
        info: &SessionInfo,
        own: &str,
    ) -> io::Result<(SessionSocket, Listening)> {
        let base = base(state_dir);
        make_private(&base)?;
        sweep(state_dir, &base);
        // Under this name other processes do not take it for dead before the lock is held, nor for a session before it
        // is complete.
        let unfinished = base.join(format!(".{own}"));
        fs::make_dir(&unfinished, 0o700)?;
        let dir = base.join(&info.id);
        match furnish(&unfinished, &dir, info) {
            Ok((live, listening)) => Ok((SessionSocket { dir, _live: live }, listening)),
            Err(error) => {
                // Best effort: the error that matters is the one returned.
                let _ = fs::remove_tree(&unfinished);
                Err(error)
            }
        }
    }
}

fn furnish(unfinished: &Path, dir: &Path, info: &SessionInfo) -> io::Result<(LiveLock, Listening)> {
    let live = LiveLock::begin(unfinished)?;
    fs::make_file(&unfinished.join(RECORD), 0o600, &serde_json::to_vec_pretty(info)?)?;
    let listening = Listening::bind(unfinished, CONTROL_SOCKET)?;
    std::fs::rename(unfinished, dir)?;
    Ok((live, listening))
}

impl Drop for SessionSocket {
    fn drop(&mut self) {
        // If this fails, the next run removes it.
        let _ = fs::remove_tree(&self.dir);
    }
}

/// Entries of sessions whose supervisor was killed, including incomplete ones.
pub(super) fn dead(base: &Path) -> Vec<PathBuf> {
    let is_dead = |path: &PathBuf| match path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_prefix('.'))
    {
        Some(own) => is_orphan(Path::new(own)),
        None => !is_live(path),
    };
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_dead).collect()
}

/// Close the log of a dead session, unless its last snapshot is still to be taken, and remove its entry. Returns
/// whether there was a log to close.
pub(super) fn clear(state_dir: &Path, dir: &Path, info: &SessionInfo) -> Result<bool, AuditError> {
    let closed = match info.rollback {
        Some(_) => Ok(false),
        None => audit::interrupted::close(state_dir, &info.id),
    };
    // Best effort: the entry does no harm.
    let _ = fs::remove_tree(dir);
    closed
}

/// Remove the entries of dead sessions. `nono audit verify` reports a log that could not be closed.
fn sweep(state_dir: &Path, base: &Path) {
    for dir in dead(base) {
        match super::read(&dir) {
            Ok(session) => drop(clear(state_dir, &dir, &session.info)),
            Err(_) => drop(fs::remove_tree(&dir)),
        }
    }
}

pub(super) fn running(state_dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(base(state_dir)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut places = Vec::new();
    for entry in entries {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") && is_live(&entry.path()) {
            places.push(entry.path());
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use nono_sys::process;

    use super::*;

    fn info(id: &str) -> SessionInfo {
        SessionInfo {
            id: id.to_owned(),
            name: None,
            pid: std::process::id(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            command: vec!["true".to_owned()],
            workdir: "/".into(),
            strategy: "supervised".to_owned(),
            grants: 0,
            rollback: None,
        }
    }

    #[test]
    fn it_is_private_goes_with_its_session_and_dead_ones_are_swept() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path();
        let mode = |path: &Path| path.symlink_metadata().unwrap().permissions().mode() & 0o777;
        let (first, socket) = SessionSocket::make(state, &info("1"), "1.1.1").unwrap();
        assert_eq!(mode(&first.dir), 0o700);
        assert_eq!(mode(&base(state)), 0o700);
        assert_eq!(mode(&first.dir.join(CONTROL_SOCKET)), 0o600);
        let dead = base(state).join("dead");
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join("live"), "").unwrap();
        let half = base(state).join(format!(".3b9ac9ff.1.{:x}", process::pid_namespace()));
        std::fs::create_dir(&half).unwrap();
        let begun = base(state).join(".1.1.1");
        std::fs::create_dir(&begun).unwrap();
        let (second, _socket) = SessionSocket::make(state, &info("2"), "2.2.2").unwrap();
        assert!(!dead.exists() && !half.exists(), "swept");
        assert!(begun.exists(), "of another namespace: perhaps alive");
        let mut found = running(state).unwrap();
        found.sort();
        assert_eq!(found, [first.dir.clone(), second.dir.clone()]);
        drop((first, socket));
        assert_eq!(running(state).unwrap(), std::slice::from_ref(&second.dir));
    }

    #[test]
    fn a_folder_of_another_user_is_not_used() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", temp.path().join("run")).unwrap();
        let error = SessionSocket::make(temp.path(), &info("1"), "1.1.1").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
