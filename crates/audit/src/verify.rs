//! Verification of a session's folder: the log itself, its record against the log, and both against the ledger.
//!
//! A killed session leaves a log without an end: a valid prefix, which is *unfinished*. The folder alone cannot tell it
//! from a log that was truncated together with its record; the ledger can, if the session was sealed.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

use serde::Serialize;

use crate::event::AuditEvent;
use crate::hash::Digest;
use crate::ledger::{Ledger, LedgerEntry, LedgerError};
use crate::reader::{ReadError, Reader};
use crate::record_format::Chain;
use crate::session::{SessionError, SessionRecord};
use crate::sign::PublicKey;
use crate::summary::Summary;

#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Key that must have signed the seal, if any.
    pub public_key: Option<PublicKey>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogCondition {
    /// Closed with a seal.
    Sealed,
    /// Closed without a seal.
    Closed,
    /// Still running, or killed.
    Unfinished,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verification {
    pub ok: bool,
    pub session_id: Option<String>,
    pub state: LogCondition,
    /// Number of good records.
    pub event_count: u64,
    pub chain_head: Option<Digest>,
    pub merkle_root: Option<Digest>,
    /// Whether the last line is incomplete: not a record, and not an error in a log without an end.
    pub torn: bool,
    pub first_bad: Option<BadRecord>,
    /// Key of the valid signature in the seal.
    pub signed_by: Option<String>,
    pub ledger_sequence: Option<u64>,
    pub problems: Vec<LogProblem>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadRecord {
    pub record: u64,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogProblem {
    pub kind: ProblemKind,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// A file cannot be read.
    Unreadable,
    /// A record was edited, inserted, removed or moved.
    Record,
    /// The log was truncated.
    Truncated,
    /// The record of the session does not match its log.
    Session,
    Signature,
    /// The ledger does not have the session, or has another digest of it.
    Ledger,
}

/// Content read from one session.
struct SessionRecords {
    summary: Summary,
    chain: Chain,
    torn: bool,
    bad: Option<ReadError>,
}

/// Verifies the session in `dir`, by itself and against the ledger.
pub fn verify(dir: &Path, ledger: &Ledger, options: &Options) -> Verification {
    let found = read_log(dir);
    let mut check = Check { problems: Vec::new() };
    let first_bad = check.log(&found);
    check.place(dir, &found);
    let record = check.session(dir, &found);
    let signed_by = check.signature(&found, options);
    let entry = check.ledger(ledger, &found, record.as_ref());
    let finished = record.as_ref().is_some_and(|record| record.ended.is_some());
    let started = found.summary.started();
    Verification {
        ok: check.problems.is_empty(),
        session_id: started.map(|started| started.session_id.clone()),
        state: match found.summary.seal() {
            Some(_) if finished => LogCondition::Sealed,
            None if finished => LogCondition::Closed,
            _ => LogCondition::Unfinished,
        },
        event_count: found.chain.count(),
        chain_head: found.chain.head(),
        merkle_root: found.chain.root(),
        torn: found.torn,
        first_bad,
        signed_by,
        ledger_sequence: entry.map(|entry| entry.sequence),
        problems: check.problems,
    }
}

fn read_log(dir: &Path) -> SessionRecords {
    let mut found =
        SessionRecords { summary: Summary::default(), chain: Chain::default(), torn: false, bad: None };
    let mut reader = match Reader::open(dir) {
        Ok(reader) => reader,
        Err(error) => return SessionRecords { bad: Some(error), ..found },
    };
    for record in &mut reader {
        match record {
            Ok(record) => found.summary.add(&record.event),
            Err(error) if error.is_torn() => found.torn = true,
            Err(error) => found.bad = Some(error),
        }
    }
    found.chain = reader.read().clone();
    found
}

struct Check {
    problems: Vec<LogProblem>,
}

impl Check {
    fn problem(&mut self, kind: ProblemKind, message: impl Into<String>) {
        self.problems.push(LogProblem { kind, message: message.into() });
    }

    /// The value of a result; an error is a problem.
    fn read<T>(&mut self, kind: ProblemKind, result: Result<T, impl std::fmt::Display>) -> Option<T> {
        result.map_err(|error| self.problem(kind, error.to_string())).ok()
    }

    fn log(&mut self, found: &SessionRecords) -> Option<BadRecord> {
        match &found.bad {
            Some(ReadError::Bad { number, flaw, .. }) => {
                self.problem(ProblemKind::Record, format!("record {number}: {flaw}"));
                return Some(BadRecord { record: *number, why: flaw.to_string() });
            }
            Some(error) => self.problem(ProblemKind::Unreadable, error.to_string()),
            None if found.chain.count() > 0 && found.summary.started().is_none() => {
                self.problem(ProblemKind::Record, "record 0: not the start of a session");
            }
            None => {}
        }
        None
    }

    /// Checks that a valid log is in its own session's folder.
    fn place(&mut self, dir: &Path, found: &SessionRecords) {
        let Some(started) = found.summary.started() else { return };
        if dir.file_name() != Some(OsStr::new(&started.session_id)) {
            let message = format!("this is the log of session {}", started.session_id);
            self.problem(ProblemKind::Session, message);
        }
    }

    /// Checks that the record matches the log. (After a bad record there is nothing to compare it with.)
    fn session(&mut self, dir: &Path, found: &SessionRecords) -> Option<SessionRecord> {
        let (record, bytes) = match SessionRecord::read_exact(dir) {
            Err(SessionError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound && found.chain.count() <= 1 =>
            {
                // Killed before session.json was written.
                return None;
            }
            read => self.read(ProblemKind::Unreadable, read)?,
        };
        if found.bad.is_some() {
            return Some(record);
        }
        let due = if record.ended.is_none() {
            found.summary.opening()
        } else {
            self.end(&record, found);
            found.summary.closing(&found.chain, record.ledger_sequence)
        };
        let same = due.is_some_and(|due| due.bytes().is_ok_and(|due| due == bytes));
        if !same && self.problems.is_empty() {
            self.problem(ProblemKind::Session, "session.json does not match the log");
        }
        if record.ledger_sequence.is_some() && !record.sealed {
            self.problem(ProblemKind::Session, "session.json names a ledger entry, but the log has no seal");
        }
        Some(record)
    }

    /// Checks that a log has an end if its record says that it was closed.
    fn end(&mut self, record: &SessionRecord, found: &SessionRecords) {
        let (said, there) = (record.audit_event_count, found.chain.count());
        if found.torn {
            self.problem(ProblemKind::Truncated, format!("record {there}: the line is incomplete"));
        } else if said > there {
            self.problem(ProblemKind::Truncated, format!("the log has {there} of {said} records"));
        } else if record.sealed && found.summary.seal().is_none() {
            self.problem(ProblemKind::Truncated, "the log was sealed, but its seal is missing");
        } else if found.summary.ended().is_none() {
            self.problem(ProblemKind::Truncated, "the end of the session is missing from the log");
        }
    }

    fn signature(&mut self, found: &SessionRecords, options: &Options) -> Option<String> {
        let expected = options.public_key.as_ref();
        let (Some(seal), Some(started)) = (found.summary.seal(), found.summary.started()) else {
            if expected.is_some() {
                self.problem(ProblemKind::Signature, "the log is not sealed, so it has no signature");
            }
            return None;
        };
        if seal.signature.is_none() && expected.is_none() {
            return None;
        }
        let checked = seal.check_signature(&started.session_id, expected);
        self.read(ProblemKind::Signature, checked).map(|key| key.to_string())
    }

    fn ledger(
        &mut self,
        ledger: &Ledger,
        found: &SessionRecords,
        record: Option<&SessionRecord>,
    ) -> Option<LedgerEntry> {
        let started = found.summary.started()?;
        let looked_up = look_up(ledger, &started.session_id, started.ledger_head);
        let (entry, begun) = self.read(ProblemKind::Ledger, looked_up)?;
        if !begun {
            self.problem(
                ProblemKind::Ledger,
                "the ledger has lost entries that it had when the session began",
            );
        }
        let finished = record.filter(|record| record.ended.is_some());
        let sealed = found.summary.seal().is_some() || finished.is_some_and(|record| record.sealed);
        let Some(entry) = entry else {
            if sealed && finished.is_some() {
                self.problem(ProblemKind::Ledger, "the session was sealed, but is not in the ledger");
            }
            return None;
        };
        if entry.removed {
            self.problem(ProblemKind::Ledger, "according to the ledger the session was removed");
            return Some(entry);
        }
        // A writer that was killed between the ledger and the record left the record of the start.
        let closing = || found.summary.closing(&found.chain, Some(entry.sequence));
        let digest = match finished {
            Some(record) => record.digest().ok(),
            None => closing().and_then(|record| record.digest().ok()),
        };
        if digest != Some(entry.session_digest) {
            self.problem(ProblemKind::Ledger, "the ledger has another digest of the session");
        } else if finished.is_some_and(|record| record.ledger_sequence != Some(entry.sequence)) {
            self.problem(ProblemKind::Ledger, "session.json names another ledger entry");
        }
        Some(entry)
    }
}

/// Last entry of a session, and whether `head` was once the ledger's head.
fn look_up(
    ledger: &Ledger,
    session_id: &str,
    head: Option<Digest>,
) -> Result<(Option<LedgerEntry>, bool), LedgerError> {
    let (mut last, mut begun) = (None, head.is_none());
    for entry in ledger.entries()? {
        let entry = entry?;
        begun |= head == Some(entry.chain_hash);
        if entry.session_id == session_id {
            last = Some(entry);
        }
    }
    Ok((last, begun))
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LedgerVerification {
    pub ok: bool,
    pub entry_count: u64,
    pub head: Option<Digest>,
    /// Whether the last line is incomplete; the next writer cuts it off.
    pub torn: bool,
    /// First bad line, counted from 1, with the reason.
    pub first_bad: Option<BadLine>,
    /// Sessions that a cleanup removed and recorded as removed.
    pub removed: Vec<String>,
    /// Sessions that are only in the ledger.
    pub missing: Vec<String>,
    /// Sessions whose record does not match the ledger.
    pub changed: Vec<String>,
    /// Sealed sessions that are not in the ledger.
    pub unlisted: Vec<String>,
    /// Sessions that began when the ledger had entries that are now missing.
    pub orphaned: Vec<String>,
    /// Errors for what could not be read.
    pub unreadable: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadLine {
    pub line: u64,
    pub why: String,
}

/// Verifies the ledger in `audit`, and every session in it or in the folder. The logs are not read: see [`verify`].
pub fn verify_ledger(audit: &Path) -> LedgerVerification {
    let mut result = LedgerVerification::default();
    let (entries, heads) = read_ledger(audit, &mut result);
    if result.first_bad.is_none() {
        check_entries(audit, &entries, &mut result);
        check_folders(audit, &entries, &heads, &mut result);
    }
    let found = [&result.missing, &result.changed, &result.unlisted, &result.orphaned, &result.unreadable];
    result.ok = result.first_bad.is_none() && found.iter().all(|list| list.is_empty());
    result
}

type Latest = std::collections::BTreeMap<String, LedgerEntry>;

fn read_ledger(audit: &Path, result: &mut LedgerVerification) -> (Latest, HashSet<Digest>) {
    let (mut latest, mut heads) = (Latest::new(), HashSet::new());
    let mut entries = match Ledger::of(audit).entries() {
        Ok(entries) => entries,
        Err(error) => {
            result.unreadable.push(error.to_string());
            return (latest, heads);
        }
    };
    for entry in &mut entries {
        match entry {
            Ok(entry) => {
                result.entry_count += 1;
                result.head = Some(entry.chain_hash);
                heads.insert(entry.chain_hash);
                latest.insert(entry.session_id.clone(), entry);
            }
            Err(LedgerError::Bad { line, flaw, .. }) => {
                result.first_bad = Some(BadLine { line, why: flaw.to_string() });
            }
            Err(error) => result.unreadable.push(error.to_string()),
        }
    }
    result.torn = entries.torn();
    (latest, heads)
}

fn check_entries(audit: &Path, entries: &Latest, result: &mut LedgerVerification) {
    for (id, entry) in entries {
        let dir = audit.join(id);
        if entry.removed {
            result.removed.push(id.clone());
        } else if !dir.exists() {
            result.missing.push(id.clone());
        } else if !is_recorded(&dir, entry) {
            result.changed.push(id.clone());
        }
    }
}

/// Whether the record in `dir` is the one in the ledger, or would be if the session had not been killed while closing.
fn is_recorded(dir: &Path, entry: &LedgerEntry) -> bool {
    let record = match SessionRecord::read(dir) {
        Ok(record) if record.ended.is_some() => Some(record),
        Ok(_) => {
            let found = read_log(dir);
            found.summary.closing(&found.chain, Some(entry.sequence))
        }
        Err(_) => None,
    };
    record.is_some_and(|record| {
        record.session_id == entry.session_id
            && record.digest().is_ok_and(|digest| digest == entry.session_digest)
    })
}

fn check_folders(audit: &Path, entries: &Latest, heads: &HashSet<Digest>, result: &mut LedgerVerification) {
    let names = match std::fs::read_dir(audit) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => {
            let why = nono_sys::errno::describe(&error);
            result.unreadable.push(format!("{}: {why}", audit.display()));
            return;
        }
    };
    let mut ids: Vec<String> = names
        .filter_map(|name| name.ok()?.file_name().into_string().ok())
        .filter(|id| crate::ledger::is_session_id(id) && audit.join(id).is_dir())
        .collect();
    ids.sort();
    for id in ids {
        let dir = audit.join(&id);
        let first = Reader::open(&dir).ok().and_then(|mut reader| reader.next()?.ok());
        if let Some(AuditEvent::SessionStarted(started)) = first.map(|record| record.event)
            && started.ledger_head.is_some_and(|head| !heads.contains(&head))
        {
            result.orphaned.push(id.clone());
        }
        if !entries.contains_key(&id) && SessionRecord::read(&dir).is_ok_and(|record| record.sealed) {
            result.unlisted.push(id);
        }
    }
}
