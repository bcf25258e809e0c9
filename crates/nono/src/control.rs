//! Running sessions seen from outside: listing, inspecting and stopping them.

mod run_entry;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nono_catalogue::session_ref::{self, SessionRef};
use nono_supervisor::channel::{
    CONTROL_SOCKET, ChannelResponse, ClientError, ControlRequest, RunningStatus, SessionInfo, Wait, exchange,
    new_id,
};
use nono_sys::errno;
use thiserror::Error;

use crate::audit::AuditError;
use crate::rollback::catalogue::overlap;
pub(crate) use run_entry::SessionSocket;

/// Reasons why a running session could not be found or reached.
#[derive(Debug, Error)]
pub enum ControlError {
    #[error("no session is running")]
    NoSessions,
    #[error("no running session is called \"{text}\"")]
    NotFound { text: String },
    #[error("{text} matches several sessions: {}", .ids.join(", "))]
    Ambiguous { text: String, ids: Vec<String> },
    #[error("{}: {}", path.display(), errno::describe(.source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("session {id} does not answer: {error}")]
    NoAnswer { id: String, error: ClientError },
    #[error("session {id} sent an unexpected response")]
    WrongAnswer { id: String },
}

#[derive(Clone, Debug)]
pub struct Running {
    pub info: SessionInfo,
    dir: PathBuf,
}

impl SessionRef for Running {
    fn id(&self) -> &str {
        &self.info.id
    }

    fn name(&self) -> Option<&str> {
        self.info.name.as_deref()
    }
}

/// Time limit for an answer of a supervisor, which normally answers at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// All running sessions, newest first. One that cannot be read is an entry of the second list.
pub fn list(state_dir: &Path) -> Result<(Vec<Running>, Vec<ControlError>), ControlError> {
    let unreadable = |source| ControlError::Io { path: run_entry::base(state_dir), source };
    let (mut sessions, mut problems) = (Vec::new(), Vec::new());
    for dir in run_entry::running(state_dir).map_err(unreadable)? {
        match read(&dir) {
            Ok(session) => sessions.push(session),
            // It ended while the list was made.
            Err(_) if dir.symlink_metadata().is_err() => {}
            Err(error) => problems.push(error),
        }
    }
    sessions.sort_by_cached_key(|session| {
        std::cmp::Reverse(session_ref::age_in(&session.dir, &session.info.started, &session.info.id))
    });
    Ok((sessions, problems))
}

fn read(dir: &Path) -> Result<Running, ControlError> {
    let path = dir.join(run_entry::RECORD);
    let text = std::fs::read(&path).map_err(|source| ControlError::Io { path: path.clone(), source })?;
    let info = serde_json::from_slice(&text)
        .map_err(|error| ControlError::Damaged { path, what: error.to_string() })?;
    Ok(Running { info, dir: dir.to_owned() })
}

/// A session without snapshots whose supervisor was killed.
#[derive(Debug)]
pub struct Killed {
    pub info: SessionInfo,
    /// Whether it had a log, which is closed now; or the reason why it could not be closed.
    pub closed: Result<bool, AuditError>,
}

/// Close the logs of killed sessions without snapshots that worked above or below `cwd`. Those with snapshots are ended
/// with their last snapshot ([`crate::rollback::Catalogue::end_killed`]).
pub fn end_killed(state_dir: &Path, cwd: &Path) -> Vec<Killed> {
    // `list` reports what cannot be listed.
    let dead = run_entry::dead(&run_entry::base(state_dir)).into_iter();
    let untracked = dead.filter_map(|dir| Some((read(&dir).ok()?.info, dir)));
    untracked
        .filter(|(info, _)| info.rollback.is_none() && overlap(&info.workdir, cwd))
        .map(|(info, dir)| Killed { closed: run_entry::clear(state_dir, &dir, &info), info })
        .collect()
}

/// Find a session by full id, unique prefix, name, or `last`.
pub fn find(state_dir: &Path, text: &str) -> Result<Running, ControlError> {
    let (mut sessions, problems) = list(state_dir)?;
    if text == "last" || sessions.is_empty() {
        let none = || problems.into_iter().next().unwrap_or(ControlError::NoSessions);
        return sessions.into_iter().next().ok_or_else(none);
    }
    if let Some(at) = session_ref::exact(&sessions, text) {
        return Ok(sessions.swap_remove(at));
    }
    let mut found = session_ref::beginning(sessions, text);
    match found.len() {
        0 | 1 => found.pop().ok_or_else(|| ControlError::NotFound { text: text.to_owned() }),
        _ => {
            let ids = found.into_iter().map(|session| session.info.id).collect();
            Err(ControlError::Ambiguous { text: text.to_owned(), ids })
        }
    }
}

impl Running {
    pub fn inspect(&self) -> Result<RunningStatus, ControlError> {
        match self.ask(&ControlRequest::Status { id: new_id() })? {
            ChannelResponse::StatusResponse { status, .. } => Ok(*status),
            _ => Err(self.wrong_answer()),
        }
    }

    /// End the session with all its processes. Returns as soon as the supervisor has begun.
    pub fn stop(&self) -> Result<(), ControlError> {
        match self.ask(&ControlRequest::Stop { id: new_id() })? {
            ChannelResponse::StopResponse { stopping: true, .. } => Ok(()),
            _ => Err(self.wrong_answer()),
        }
    }

    fn wrong_answer(&self) -> ControlError {
        ControlError::WrongAnswer { id: self.info.id.clone() }
    }

    fn ask(&self, request: &ControlRequest) -> Result<ChannelResponse, ControlError> {
        let answer =
            exchange(&self.dir.join(CONTROL_SOCKET), request, Wait { patience: Some(PATIENCE), until: None });
        let (response, _) =
            answer.map_err(|error| ControlError::NoAnswer { id: self.info.id.clone(), error })?;
        Ok(response)
    }
}
