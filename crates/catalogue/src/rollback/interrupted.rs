//! Sessions whose supervisor was killed: the next command on the same roots takes the final snapshot and closes the
//! record and the audit log.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nono_audit::AuditLog;
use nono_audit::event::{AuditEvent, Restore, SessionEnded};
use nono_snapshot::{Manifest, SnapshotId};
use nono_sys::time::now_ms;

use super::catalogue::{Catalogue, RollbackSession, overlap, read_place};
use super::ending::Ending;
use super::entry::SessionEntry;
use super::error::RollbackError;
use super::folder;
use super::live_lock::LiveLock;
use super::recorder::{self, Closed, Recorder};
use super::settings::RollbackSettings;
use super::tracking::{RollbackReport, SharedObserver};
use crate::audit;

impl Catalogue {
    /// Sessions whose supervisor was killed and whose roots overlap `roots`. If there are none, the cost is a stat or
    /// two for each session.
    pub fn killed(&self, roots: &[PathBuf]) -> Result<Vec<SessionEntry>, RollbackError> {
        let is_killed = |place: &PathBuf| folder::follow(place).is_ok_and(|dir| folder::was_killed(&dir));
        let places = self.places()?.into_iter().filter(is_killed);
        // Unreadable sessions are reported by the commands that list them.
        let entries = places.filter_map(|place| read_place(&place).ok());
        let tracked_here = |entry: &SessionEntry| {
            let mut tracked = entry.metadata.tracked_paths.iter();
            tracked.any(|path| path.exists() && roots.iter().any(|root| overlap(path, root)))
        };
        Ok(entries.filter(|entry| entry.metadata.ended.is_none() && tracked_here(entry)).collect())
    }

    /// End a session whose supervisor was killed: take its final snapshot now, close its record and its audit log. None
    /// if another process is doing so, or did.
    pub fn end_killed(
        &self,
        entry: SessionEntry,
        observer: SharedObserver,
        list: bool,
    ) -> Result<Option<RollbackReport>, RollbackError> {
        let warnings = self.complete_restores(&entry.metadata.tracked_paths, &())?;
        let Some(live) = LiveLock::take_over(&entry.dir).map_err(RollbackError::io(&entry.dir))? else {
            return Ok(None);
        };
        self.refuse_restoring(&entry.metadata.tracked_paths, &entry.dir)?;
        let settings = RollbackSettings::load(&self.state_dir.join("config.toml"))?;
        // A session with a store of its own was not made by the CLI.
        let Some(quota) = self.quota_of(&entry, &self.store_of(&entry)) else { return Ok(None) };
        let RollbackSession { entry, manager, .. } = self.open(entry)?;
        let baseline = manager.load_whole(&SnapshotId::Number(0))?;
        let log = Arc::new(LateLog::open(&self.state_dir, &entry.id));
        let ending = Ending {
            catalogue: self.clone(),
            session_dir: entry.dir,
            metadata: entry.metadata,
            settings,
            baseline,
            live,
            quota,
            recorder: log.clone(),
            lost: Vec::new(),
            warnings,
        };
        let mut report = ending.finish_killed(observer, list)?;
        report.warnings.extend(log.trouble());
        Ok(Some(report))
    }
}

/// End all such sessions around `roots` before a baseline is taken there; returns messages for the user.
pub(super) fn end_all(catalogue: &Catalogue, roots: &[PathBuf]) -> Result<Vec<String>, RollbackError> {
    let mut said = Vec::new();
    for entry in catalogue.killed(roots)? {
        let id = entry.id.clone();
        let outcome = match catalogue.end_killed(entry, Arc::new(()), false) {
            Ok(None) => continue,
            Ok(Some(_)) => "its last snapshot was taken now".to_owned(),
            Err(error) => format!("cannot take its last snapshot: {error}"),
        };
        said.push(format!("session {id} ended without nono, which was killed; {outcome}"));
    }
    Ok(said)
}

/// Audit log of a session whose supervisor was killed.
#[derive(Debug)]
struct LateLog {
    /// None if there is no log, or it is closed already.
    log: Option<AuditLog>,
    trouble: Mutex<Option<String>>,
}

impl LateLog {
    fn open(state_dir: &Path, id: &str) -> LateLog {
        match audit::interrupted::resume(state_dir, id) {
            Ok(log) => LateLog { log, trouble: Mutex::default() },
            Err(error) => LateLog { log: None, trouble: Mutex::new(Some(error.to_string())) },
        }
    }

    /// Reason why the log is not closed, if so.
    fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
        trouble.map(|why| format!("its audit log could not be closed: {why}"))
    }

    fn note(&self, event: &AuditEvent) {
        // A write error is kept in the log and reported when it is closed.
        let _ = self.log.as_ref().map(|log| log.note(event));
    }
}

impl Recorder for LateLog {
    fn taken(&self, manifest: &Manifest) {
        if let Some(log) = &self.log {
            audit::interrupted::note(log, "the last snapshot was taken, and this log closed");
        }
        self.note(&recorder::snapshot(manifest));
    }

    fn restored(&self, restore: Restore) {
        self.note(&AuditEvent::Restore(restore));
    }

    fn close(&self, last: Option<&Manifest>) -> Closed {
        let Some(log) = &self.log else { return Closed::default() };
        let ended = SessionEnded::interrupted(now_ms());
        let (trouble, closed) = match log.finish(ended, last.map(recorder::tree)) {
            Ok(finished) => {
                (finished.ledger.map(|error| error.to_string()), recorder::closed(&finished.record))
            }
            Err(error) => (Some(error.to_string()), Closed::default()),
        };
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
        closed
    }
}
