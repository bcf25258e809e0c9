//! Audit log of a running session.
//!
//! A record is in the file when a call returns; `decide` also waits until it is on disk. A record that cannot be
//! written is counted as lost, and from then on every decision fails, so the caller has to deny. Aggregated events are
//! not lost on a full disk: their sum is written when the log is closed, into space reserved for it.

mod resume;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use thiserror::Error;

use crate::aggregate::{Sum, Tally, TallySlot};
use crate::clip;
use crate::event::{
    AuditEvent, Decision, Denial, DenialKey, Network, Seal, SessionEnded, SessionStarted, Warning,
};
use crate::files;
use crate::hash::ALGORITHM;
use crate::ledger::{Ledger, LedgerError, is_session_id};
use crate::reserve::{AHEAD, Reserve};
use crate::session::{SESSION, SessionError, SessionRecord};
use crate::sign::SigningKey;
use crate::summary::Summary;
use crate::writer::{SpaceToKeep, Writer};
pub use crate::writer::{WriteError, is_being_written};
pub use resume::ResumeError;

/// Name of the file with the records.
pub const EVENTS: &str = "events.ndjson";

/// Number of network events that get a record of their own; later ones are aggregated.
const SINGLES: u64 = 10_000;
/// Total size of the records of single network events.
const SINGLES_BYTES: u64 = 16 << 20;
/// Total size of one record of each kind of denial. A kind gets at most one more record with each power of ten, so that
/// a million denials stay far under 10 MB.
const DENIALS_BYTES: u64 = 1 << 20;
const NETWORK_BYTES: u64 = 640 << 10;
/// Space for the last records: the number of lost records, the end, the seal.
const LAST_BYTES: u64 = 64 << 10;

#[derive(Debug, Default)]
pub struct Options {
    /// Whether the log ends with a seal and an entry in the ledger.
    pub integrity: bool,
    /// Key to sign the seal with; implies a seal.
    pub key: Option<SigningKey>,
}

#[derive(Debug, Error)]
pub enum CreateError {
    #[error("{0:?} is not a session id")]
    SessionId(String),
    #[error("{}: {}", .path.display(), nono_sys::errno::describe(.source))]
    Io { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

#[derive(Debug, Error)]
pub enum FinishError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("{}: the log has no first record", .0.display())]
    NoBeginning(PathBuf),
}

/// Result of closing a log.
#[derive(Debug)]
pub struct Finished {
    pub record: SessionRecord,
    /// Reason why a sealed session is not in the ledger.
    pub ledger: Option<LedgerError>,
}

#[derive(Debug)]
pub struct AuditLog {
    dir: PathBuf,
    ledger: Ledger,
    options: Options,
    reserve: Reserve,
    remarks: Vec<String>,
    state: Mutex<LogState>,
}

#[derive(Debug)]
struct LogState {
    writer: Writer,
    summary: Summary,
    denials: Tally<Denial>,
    network: Tally<Network>,
    singles: u64,
    singles_bytes: u64,
    lost: u64,
    refused: u64,
    trouble: Option<String>,
    /// Whether the names of files and folders are on disk, and not only the contents of the files.
    settled: bool,
    /// Files to sync before the first decision, opened at the start: a command may use up all descriptors later.
    unsynced: Vec<(PathBuf, File)>,
    closed: bool,
}

impl AuditLog {
    /// Creates a log in `audit/<session id>`, with its first record; `audit` is created if missing. A caller that gets
    /// no log must not start the command.
    pub fn create(audit: &Path, started: SessionStarted, options: Options) -> Result<AuditLog, CreateError> {
        if !is_session_id(&started.session_id) {
            return Err(CreateError::SessionId(started.session_id));
        }
        let failed = |path: &Path, source| CreateError::Io { path: path.to_owned(), source };
        match nono_sys::fs::make_dir(audit, 0o700) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(failed(audit, error));
            }
            _ => {}
        }
        let dir = audit.join(&started.session_id);
        nono_sys::fs::make_dir(&dir, 0o700).map_err(|error| failed(&dir, error))?;
        let log = Self::begin(audit, &dir, started, options);
        if log.is_err() {
            // Best effort: the original error is returned, and an empty folder does no harm.
            let _ = nono_sys::fs::remove_tree(&dir);
        }
        log
    }

    fn begin(
        audit: &Path,
        dir: &Path,
        mut started: SessionStarted,
        options: Options,
    ) -> Result<AuditLog, CreateError> {
        let failed = |path: &Path, source| CreateError::Io { path: path.to_owned(), source };
        let (ledger, mut remarks) = (Ledger::of(audit), Vec::new());
        started.ledger_head = match ledger.head() {
            Ok(head) => head,
            // A damaged ledger does not prevent a log; `verify` reports the details.
            Err(error @ LedgerError::Bad { .. }) => {
                remarks.push(error.to_string());
                None
            }
            Err(error) => return Err(error.into()),
        };
        let reserve = Reserve::create(dir).map_err(|error| failed(dir, error))?;
        let mut state = LogState::new(Writer::create(dir)?);
        let mut first = AuditEvent::SessionStarted(started);
        clip::event(&mut first);
        state.write(&first, SpaceToKeep::bytes(LAST_BYTES + AHEAD))?;
        if let Some(record) = state.summary.opening() {
            record.write(dir, false)?;
            state.unsynced = unsynced(dir).map_err(|error| failed(dir, error))?;
        }
        if !state.writer.is_reserved() {
            let path = state.writer.path().display();
            remarks.push(format!("{path}: this file system cannot reserve space: a full disk stops the log"));
        }
        Ok(AuditLog { dir: dir.to_owned(), ledger, options, reserve, remarks, state: Mutex::new(state) })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Warnings from the creation of the log.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Reason why decisions fail, if they do.
    pub fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// Number of records so far.
    pub fn count(&self) -> u64 {
        self.state().writer.chain().count()
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        // A panic while locked leaves a consistent state: the end of the file moves last.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the event of a decision; it is on disk when this returns.
    pub fn decide(&self, event: &AuditEvent) -> Result<(), WriteError> {
        let mut event = event.clone();
        clip::event(&mut event);
        let mut state = self.state();
        state.check_open()?;
        if let Some(why) = state.trouble.clone() {
            state.refused += 1;
            return Err(WriteError::Broken { path: state.writer.path().to_owned(), why });
        }
        let keep = state.kept_back();
        let written = self.settle(&mut state).and_then(|()| state.write_durably(&event, keep));
        if let Err(error) = &written {
            state.refused += 1;
            // Nothing is lost, since the caller denies. Only a full disk can be expected to recover.
            if !matches!(error, WriteError::Full { .. }) {
                state.trouble = Some(error.to_string());
            }
        }
        written
    }

    /// Syncs the file's name and folders before the first decision: a power loss must not take away the whole file. A
    /// session without decisions does not wait for the disk.
    fn settle(&self, state: &mut LogState) -> Result<(), WriteError> {
        if state.settled {
            return Ok(());
        }
        let failed = |path: &Path, source| WriteError::Io { path: path.to_owned(), source };
        if state.unsynced.is_empty() {
            state.unsynced = unsynced(&self.dir).map_err(|error| failed(&self.dir, error))?;
        }
        for (path, file) in &state.unsynced {
            file.sync_all().map_err(|error| failed(path, error))?;
        }
        state.unsynced.clear();
        state.settled = true;
        Ok(())
    }

    /// Writes an event; it is in the file when this returns.
    pub fn note(&self, event: &AuditEvent) -> Result<(), WriteError> {
        let mut event = event.clone();
        clip::event(&mut event);
        let mut state = self.state();
        state.check_open()?;
        let keep = state.kept_back();
        let written = state.write(&event, keep);
        if let Err(error) = &written {
            state.lost += 1;
            state.trouble.get_or_insert_with(|| error.to_string());
        }
        written
    }

    /// Counts a denial. Never lost as long as the log can be closed.
    pub fn denied(&self, time_ms: u64, what: DenialKey, pid: u32) -> Result<(), WriteError> {
        let mut what = what;
        clip::denial(&mut what);
        let mut state = self.state();
        state.check_open()?;
        match state.denials.add(Denial { time_ms, what, pid, count: 1 }) {
            Some(place) => state.tell(|state| &mut state.denials, place),
            None => Ok(()),
        }
    }

    /// Counts a network event. Never lost as long as the log can be closed.
    pub fn network(&self, event: Network) -> Result<(), WriteError> {
        let mut event = event;
        clip::network(&mut event);
        let mut state = self.state();
        state.check_open()?;
        let single = event.decision == Decision::Allowed
            && event.count == 1
            && state.singles < SINGLES
            && state.singles_bytes < SINGLES_BYTES;
        if single {
            let keep = state.kept_back();
            if state.write(&AuditEvent::Network(event.clone()), keep).is_ok() {
                state.singles += 1;
                state.singles_bytes += state.writer.last_length();
                return Ok(());
            }
            // It is counted below instead; if the log is really broken, that fails too.
        }
        match state.network.add(event) {
            Some(place) => state.tell(|state| &mut state.network, place),
            None => Ok(()),
        }
    }

    /// Writes the sums, the end and the seal; then the ledger entry and the record of the session. `tree` is the seal's
    /// summary of the tracked files.
    pub fn finish(&self, ended: SessionEnded, tree: Option<Value>) -> Result<Finished, FinishError> {
        let mut state = self.state();
        if state.closed {
            return Err(state.is_closed().into());
        }
        // Nothing may follow a seal, so there is no second attempt.
        state.closed = true;
        // Frees the reserved blocks. If that fails, there may still be space.
        let _ = self.reserve.release();
        state.tell_rest(ended.time_ms)?;
        let time_ms = ended.time_ms;
        let mut last = AuditEvent::SessionEnded(ended);
        clip::event(&mut last);
        if state.summary.ended().is_none() {
            state.write(&last, SpaceToKeep::NOTHING)?;
        }
        let has_seal = state.summary.seal().is_some();
        let sealed = self.options.integrity || self.options.key.is_some() || has_seal;
        if sealed && !has_seal {
            let seal = self.seal(&state, time_ms, tree)?;
            state.write(&AuditEvent::Seal(seal), SpaceToKeep::NOTHING)?;
        }
        let durably = sealed || state.settled;
        if durably {
            state.writer.sync()?;
        }
        state.writer.release()?;
        let (record, ledger) = self.enter(&state, sealed, has_seal)?;
        record.write(&self.dir, durably)?;
        if durably {
            state.settled = false;
            // session.json was replaced by another file.
            state.unsynced.clear();
            self.settle(&mut state)?;
        }
        Ok(Finished { record, ledger })
    }

    fn seal(&self, state: &LogState, time_ms: u64, tree: Option<Value>) -> Result<Seal, FinishError> {
        let chain = state.writer.chain();
        let nothing = || FinishError::NoBeginning(self.dir.clone());
        let mut seal = Seal {
            time_ms,
            hash_algorithm: ALGORITHM.to_owned(),
            event_count: chain.count(),
            chain_head: chain.head().ok_or_else(nothing)?,
            merkle_root: chain.root().ok_or_else(nothing)?,
            tree,
            signature: None,
        };
        if let (Some(key), Some(started)) = (&self.options.key, state.summary.started()) {
            seal.signature = Some(key.sign(&seal, &started.session_id).map_err(WriteError::Json)?);
        }
        Ok(seal)
    }

    /// Adds the ledger entry, then writes the record. In this order, a record that names a missing entry cannot be the
    /// result of an interruption.
    fn enter(
        &self,
        state: &LogState,
        sealed: bool,
        was_sealed: bool,
    ) -> Result<(SessionRecord, Option<LedgerError>), FinishError> {
        let closing = |sequence| {
            let record = state.summary.closing(state.writer.chain(), sequence);
            record.ok_or_else(|| FinishError::NoBeginning(self.dir.clone()))
        };
        if !sealed {
            return Ok((closing(None)?, None));
        }
        if was_sealed && let Some(sequence) = self.line_in_ledger(state) {
            return Ok((closing(Some(sequence))?, None));
        }
        let mut ledger = match self.ledger.lock() {
            Ok(ledger) => ledger,
            Err(error) => return Ok((closing(None)?, Some(error))),
        };
        let record = closing(Some(ledger.next_sequence()))?;
        match ledger.add(&record) {
            Ok(_) => Ok((record, None)),
            Err(error) => Ok((closing(None)?, Some(error))),
        }
    }
}

/// Opens session.json, the session's folder and the folder of all sessions.
fn unsynced(dir: &Path) -> io::Result<Vec<(PathBuf, File)>> {
    let summary = dir.join(SESSION);
    let mut files = vec![(summary.clone(), files::open(&summary)?)];
    for folder in [dir, dir.parent().unwrap_or(dir)] {
        files.push((folder.to_owned(), File::open(folder)?));
    }
    Ok(files)
}

impl LogState {
    fn new(writer: Writer) -> LogState {
        LogState {
            writer,
            summary: Summary::default(),
            denials: Tally::new(DENIALS_BYTES),
            network: Tally::new(NETWORK_BYTES),
            singles: 0,
            singles_bytes: 0,
            lost: 0,
            refused: 0,
            trouble: None,
            settled: false,
            unsynced: Vec::new(),
            closed: false,
        }
    }

    fn check_open(&self) -> Result<(), WriteError> {
        // A resumed log may have its end already.
        if self.closed || self.summary.ended().is_some() { Err(self.is_closed()) } else { Ok(()) }
    }

    fn is_closed(&self) -> WriteError {
        WriteError::Closed { path: self.writer.path().to_owned() }
    }

    /// Space that closing the log will need.
    fn kept_back(&self) -> SpaceToKeep {
        SpaceToKeep::bytes(LAST_BYTES + self.denials.cost() + self.network.cost())
    }

    fn write(&mut self, event: &AuditEvent, keep: SpaceToKeep) -> Result<(), WriteError> {
        self.writer.append(event, keep)?;
        self.summary.add(event);
        Ok(())
    }

    fn write_durably(&mut self, event: &AuditEvent, keep: SpaceToKeep) -> Result<(), WriteError> {
        self.writer.append_durably(event, keep)?;
        self.summary.add(event);
        Ok(())
    }

    /// Writes a record of one kind. On a full disk it is postponed: its sum is not lost.
    fn tell<T: Sum>(
        &mut self,
        tally: impl Fn(&mut LogState) -> &mut Tally<T>,
        place: TallySlot,
    ) -> Result<(), WriteError> {
        let (event, new) = (tally(self).event(place), tally(self).is_new(place));
        match self.write(&event, SpaceToKeep { again: new, ..self.kept_back() }) {
            Ok(()) => {
                let length = self.writer.last_length();
                tally(self).measured(place, length);
                tally(self).recorded(place);
            }
            Err(WriteError::Full { .. }) if new => tally(self).forget(place),
            Err(WriteError::Full { .. }) => {}
            Err(error) => {
                self.trouble.get_or_insert_with(|| error.to_string());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes the remaining sums, without reserving space any more.
    fn tell_rest(&mut self, time_ms: u64) -> Result<(), WriteError> {
        for place in self.denials.pending() {
            let event = self.denials.event(place);
            self.write(&event, SpaceToKeep::NOTHING)?;
            self.denials.recorded(place);
        }
        for place in self.network.pending() {
            let event = self.network.event(place);
            self.write(&event, SpaceToKeep::NOTHING)?;
            self.network.recorded(place);
        }
        if self.lost == 0 && self.refused == 0 {
            return Ok(());
        }
        let why = self.trouble.as_deref().unwrap_or("no space left");
        let (lost, refused) = (self.lost, self.refused);
        let message = format!("{lost} records were lost and {refused} decisions refused: {why}");
        let mut event = AuditEvent::Warning(Warning { time_ms, message });
        clip::event(&mut event);
        self.write(&event, SpaceToKeep::NOTHING)
    }
}
