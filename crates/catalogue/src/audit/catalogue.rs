//! Finding recorded sessions.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use nono_audit::ledger::{Ledger, is_session_id};
use nono_audit::log::is_being_written;
use nono_audit::reader::Reader;
use nono_audit::session::{EventCounts, SessionRecord};
use nono_audit::summary::Summary;

use super::error::AuditError;
use crate::own_file;
use crate::rollback::live_lock::is_live;
use crate::session_ref::{self, SessionRef};

/// Finds logs below nono's state folder: `audit/<id>/`, with one ledger beside them.
#[derive(Clone, Debug)]
pub struct Catalogue {
    state_dir: PathBuf,
}

/// State of a recorded session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditState {
    /// The log is being written.
    Running,
    /// The session ended, and its last record is a seal over all others.
    Sealed,
    /// The session ended without a seal.
    Unsealed,
    /// The writer was killed.
    Interrupted,
}

impl AuditState {
    pub fn word(self) -> &'static str {
        match self {
            AuditState::Running => "running",
            AuditState::Sealed => "sealed",
            AuditState::Unsealed => "unsealed",
            AuditState::Interrupted => "interrupted",
        }
    }
}

/// One session in a list.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    pub id: String,
    pub dir: PathBuf,
    pub state: AuditState,
    /// Content of its `session.json`, unverified.
    pub record: SessionRecord,
}

impl AuditEntry {
    pub fn is_running(&self) -> bool {
        self.state == AuditState::Running
    }

    /// Counts of its record; for a session without an end, counts of its log so far.
    pub fn counts(&self) -> Result<EventCounts, AuditError> {
        if self.record.ended.is_some() {
            return Ok(self.record.counts.clone());
        }
        let mut summary = Summary::default();
        // Records after an invalid one mean nothing; `verify` reports what is wrong.
        for record in Reader::open(&self.dir)?.map_while(Result::ok) {
            summary.add(&record.event);
        }
        Ok(summary.counts())
    }
}

impl SessionRef for AuditEntry {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> Option<&str> {
        self.record.name.as_deref()
    }
}

impl Catalogue {
    pub fn new(state_dir: impl Into<PathBuf>) -> Catalogue {
        Catalogue { state_dir: state_dir.into() }
    }

    /// `audit/`, whether it exists or not.
    pub fn dir(&self) -> PathBuf {
        super::dir(&self.state_dir)
    }

    pub fn ledger(&self) -> Ledger {
        Ledger::of(&self.dir())
    }

    /// All sessions, newest first. An unreadable folder is an entry of the second list and does not fail the call.
    pub fn list(&self) -> Result<(Vec<AuditEntry>, Vec<AuditError>), AuditError> {
        let (mut sessions, mut problems) = (Vec::new(), Vec::new());
        for place in self.places()? {
            match self.read(&place) {
                Ok(entry) => sessions.push(entry),
                // Removed while the list was made.
                Err(_) if place.symlink_metadata().is_err() => {}
                Err(error) => problems.push(error),
            }
        }
        sessions.sort_by_cached_key(|entry| {
            Reverse(session_ref::age_in(&entry.dir, &entry.record.started, &entry.id))
        });
        Ok((sessions, problems))
    }

    /// Folders of sessions, by name. Files next to them and the rest of an interrupted cleanup are skipped.
    pub(super) fn places(&self) -> Result<Vec<PathBuf>, AuditError> {
        let dir = self.dir();
        let is_place = |entry: &DirEntry| {
            Ok(!entry.file_type()?.is_file() && !entry.file_name().as_encoded_bytes().starts_with(b"."))
        };
        own_file::entries(&dir, is_place).map_err(AuditError::io(&dir))
    }

    fn read(&self, place: &Path) -> Result<AuditEntry, AuditError> {
        let strange = |what| AuditError::NoSession { path: place.to_owned(), what };
        let meta = place.symlink_metadata().map_err(AuditError::io(place))?;
        if !meta.is_dir() {
            return Err(strange("it is not a directory"));
        }
        let id = place.file_name().and_then(OsStr::to_str).filter(|id| is_session_id(id));
        let id = id.ok_or_else(|| strange("its name is not a session id"))?.to_owned();
        let record = SessionRecord::read(place)?;
        if record.session_id != id {
            return Err(strange("its record belongs to another session"));
        }
        let state = match &record.ended {
            Some(_) if record.sealed => AuditState::Sealed,
            Some(_) => AuditState::Unsealed,
            None if self.runs(&id) => AuditState::Running,
            None => AuditState::Interrupted,
        };
        Ok(AuditEntry { id, dir: place.to_owned(), state, record })
    }

    /// Whether the log is being written: it is locked, or (where there are no locks) the session is listed in `run/`.
    pub(super) fn runs(&self, id: &str) -> bool {
        is_being_written(&self.dir().join(id)) || is_live(&self.state_dir.join("run").join(id))
    }

    /// Find a session by full id, unique prefix of an id, name, or `last`.
    pub fn find(&self, text: &str) -> Result<AuditEntry, AuditError> {
        let (mut sessions, problems) = self.list()?;
        if text == "last" {
            // With nothing but damaged sessions, the damage is the error.
            let none = || problems.into_iter().next().unwrap_or(AuditError::NoSessions);
            return sessions.into_iter().next().ok_or_else(none);
        }
        if let Some(at) = session_ref::exact(&sessions, text) {
            return Ok(sessions.swap_remove(at));
        }
        // An unreadable session: report the reason, not that it is missing.
        let place = self.dir().join(text);
        if is_session_id(text) && place.symlink_metadata().is_ok() {
            return self.read(&place);
        }
        let mut found = session_ref::beginning(sessions, text);
        match found.len() {
            0 | 1 => found.pop().ok_or_else(|| AuditError::NotFound { text: text.to_owned() }),
            _ => {
                let ids = found.into_iter().map(|entry| entry.id).collect();
                Err(AuditError::Ambiguous { text: text.to_owned(), ids })
            }
        }
    }
}
