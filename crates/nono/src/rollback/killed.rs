//! Sessions whose supervisor was killed: the next command in the same place takes the last snapshot, and closes the record
//! and the log.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nono_audit::Log;
use nono_audit::event::{Event, Restore, SessionEnded};
use nono_snapshot::{Manifest, SnapshotId};
use nono_sys::time::now_ms;

use super::catalogue::{Catalogue, RollbackSession, SessionEntry, overlap, read_place};
use super::ending::Ending;
use super::error::RollbackError;
use super::folder;
use super::live::Live;
use super::recorder::{self, Closed, Recorder};
use super::settings::Settings;
use super::tracking::{RollbackReport, SharedObserver};
use crate::audit;

impl Catalogue {
    /// Sessions that tracked something around or below one of `roots`, and whose supervisor was killed. Without any it costs
    /// a look at a name or two for each session.
    pub fn killed(&self, roots: &[PathBuf]) -> Result<Vec<SessionEntry>, RollbackError> {
        let is_killed = |place: &PathBuf| folder::follow(place).is_ok_and(|dir| folder::was_killed(&dir));
        let places = self.places()?.into_iter().filter(is_killed);
        // One that cannot be read is told by whoever lists it.
        let entries = places.filter_map(|place| read_place(&place).ok());
        let tracked_here = |entry: &SessionEntry| {
            let mut tracked = entry.metadata.tracked_paths.iter();
            tracked.any(|path| path.exists() && roots.iter().any(|root| overlap(path, root)))
        };
        Ok(entries.filter(|entry| entry.metadata.ended.is_none() && tracked_here(entry)).collect())
    }

    /// End a session whose supervisor was killed: take its last snapshot now, and close its record and its log. None where
    /// somebody else is at it, or was.
    pub fn end_killed(
        &self,
        entry: SessionEntry,
        observer: SharedObserver,
        list: bool,
    ) -> Result<Option<RollbackReport>, RollbackError> {
        let warnings = self.complete_restores(&entry.metadata.tracked_paths, &())?;
        let Some(live) = Live::take_over(&entry.dir).map_err(RollbackError::io(&entry.dir))? else {
            return Ok(None);
        };
        self.refuse_restoring(&entry.metadata.tracked_paths, &entry.dir)?;
        let settings = Settings::load(&self.state_dir.join("config.toml"))?;
        // One with a store of its own is somebody else's.
        let Some(room) = self.room_of(&entry, &self.store_of(&entry)) else { return Ok(None) };
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
            room,
            recorder: log.clone(),
            lost: Vec::new(),
            warnings,
        };
        let mut report = ending.finish_killed(observer, list)?;
        report.warnings.extend(log.trouble());
        Ok(Some(report))
    }
}

/// End all of them around `roots`, for somebody who is about to take a first snapshot there; what to say about it.
pub(super) fn end_all(catalogue: &Catalogue, roots: &[PathBuf]) -> Result<Vec<String>, RollbackError> {
    let mut said = Vec::new();
    for entry in catalogue.killed(roots)? {
        let id = entry.id.clone();
        let outcome = match catalogue.end_killed(entry, Arc::new(()), false) {
            Ok(None) => continue,
            Ok(Some(_)) => "its last snapshot was taken now".to_owned(),
            Err(error) => format!("its last snapshot could not be taken: {error}"),
        };
        said.push(format!("session {id} ended without nono, which was killed; {outcome}"));
    }
    Ok(said)
}

/// The log of a session whose supervisor was killed.
#[derive(Debug)]
struct LateLog {
    /// None where there is no log, or it is closed.
    log: Option<Log>,
    trouble: Mutex<Option<String>>,
}

impl LateLog {
    fn open(state_dir: &Path, id: &str) -> LateLog {
        match audit::killed::resume(state_dir, id) {
            Ok(log) => LateLog { log, trouble: Mutex::default() },
            Err(error) => LateLog { log: None, trouble: Mutex::new(Some(error.to_string())) },
        }
    }

    /// Why it is not closed, if it is not.
    fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
        trouble.map(|why| format!("its audit log could not be closed: {why}"))
    }

    fn note(&self, event: &Event) {
        // What cannot be written is the log's own trouble, and closing it says so.
        let _ = self.log.as_ref().map(|log| log.note(event));
    }
}

impl Recorder for LateLog {
    fn taken(&self, manifest: &Manifest) {
        if let Some(log) = &self.log {
            audit::killed::note(log, "the last snapshot was taken, and this log closed");
        }
        self.note(&recorder::snapshot(manifest));
    }

    fn restored(&self, restore: Restore) {
        self.note(&Event::Restore(restore));
    }

    fn close(&self, last: Option<&Manifest>) -> Closed {
        let Some(log) = &self.log else { return Closed::default() };
        match log.finish(SessionEnded::interrupted(now_ms()), last.map(recorder::tree)) {
            Ok(finished) => {
                let trouble = finished.ledger.map(|error| error.to_string());
                *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
                recorder::closed(&finished.record)
            }
            Err(error) => {
                *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                Closed::default()
            }
        }
    }
}
