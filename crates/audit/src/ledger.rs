//! Ledger of a user's sessions: one entry for each sealed session, chained to all entries before it, so that a session
//! cannot be removed without a trace.
//!
//! Entries are only appended, under a lock on the file. An incomplete line of a killed writer is cut off by the next
//! writer. A session that was cleaned up gets a second entry, whose digest is all zeros.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::files;
use crate::hash::{Digest, LEDGER_CHAIN_DOMAIN};
use crate::session::SessionRecord;
use nono_sys::time::iso_ms as iso;

/// Name of the file, beside the folders of the sessions.
pub const LEDGER: &str = "ledger.ndjson";
const MAX_LINE: usize = 4096;

#[derive(Debug, Error)]
pub enum LedgerError {
    #[error("{}: {}", .path.display(), nono_sys::errno::describe(.source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: line {line}: {flaw}", .path.display())]
    Bad { path: PathBuf, line: u64, flaw: LedgerFlaw },
    #[error("{0:?} is not a session id")]
    SessionId(String),
    #[error("cannot serialise the ledger entry: {0}")]
    Json(#[from] serde_json::Error),
}

#[derive(Debug, Error)]
pub enum LedgerFlaw {
    #[error("not a ledger entry: {0}")]
    Shape(serde_json::Error),
    #[error("longer than {MAX_LINE} bytes")]
    TooLong,
    #[error("unexpected sequence number {0}")]
    Sequence(u64),
    #[error("it does not follow the line before it")]
    Previous,
    #[error("its chain hash is wrong")]
    Chain,
    #[error("it has other content than a session and its hashes")]
    NotExact,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    pub sequence: u64,
    /// `null` in the first entry, but never missing.
    #[serde(deserialize_with = "Option::deserialize")]
    pub prev_chain: Option<Digest>,
    pub session_id: String,
    /// Digest of the session's record; all zeros if a cleanup removed the session.
    pub session_digest: Digest,
    pub completed_at: String,
    pub chain_hash: Digest,
    /// Whether the session was removed. For readers of the file; the digest implies it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

#[derive(Serialize)]
struct Hashed<'a> {
    sequence: u64,
    session_id: &'a str,
    session_digest: Digest,
    completed_at: &'a str,
}

impl LedgerEntry {
    pub fn new(
        sequence: u64,
        prev_chain: Option<Digest>,
        session_id: &str,
        session_digest: Digest,
        completed_at: &str,
    ) -> Result<LedgerEntry, serde_json::Error> {
        let hashed = serde_json::to_vec(&Hashed { sequence, session_id, session_digest, completed_at })?;
        let prev = prev_chain.unwrap_or(Digest::ZERO);
        Ok(LedgerEntry {
            sequence,
            prev_chain,
            session_id: session_id.to_owned(),
            session_digest,
            completed_at: completed_at.to_owned(),
            chain_hash: Digest::of(LEDGER_CHAIN_DOMAIN, &[prev.as_bytes(), &hashed]),
            removed: session_digest == Digest::ZERO,
        })
    }

    fn next(
        before: Option<&LedgerEntry>,
        session_id: &str,
        session_digest: Digest,
        completed_at: &str,
    ) -> Result<LedgerEntry, serde_json::Error> {
        let sequence = before.map_or(0, |entry| entry.sequence.saturating_add(1));
        let prev_chain = before.map(|entry| entry.chain_hash);
        LedgerEntry::new(sequence, prev_chain, session_id, session_digest, completed_at)
    }

    fn line(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }

    /// Parses `line`, with its end, and checks that it is the next entry after `before`, byte for byte.
    fn read(line: &[u8], before: Option<&LedgerEntry>) -> Result<LedgerEntry, LedgerFlaw> {
        let found: LedgerEntry = serde_json::from_slice(line).map_err(LedgerFlaw::Shape)?;
        let due = found.due(before)?;
        if due.line().map_err(LedgerFlaw::Shape)? != line {
            return Err(LedgerFlaw::NotExact);
        }
        Ok(due)
    }

    /// The entry that has to follow `before` for this session; an error if this is another one.
    pub fn due(&self, before: Option<&LedgerEntry>) -> Result<LedgerEntry, LedgerFlaw> {
        let due = LedgerEntry::next(before, &self.session_id, self.session_digest, &self.completed_at)
            .map_err(LedgerFlaw::Shape)?;
        if self.sequence != due.sequence {
            return Err(LedgerFlaw::Sequence(self.sequence));
        }
        if self.prev_chain != due.prev_chain {
            return Err(LedgerFlaw::Previous);
        }
        if self.chain_hash != due.chain_hash {
            return Err(LedgerFlaw::Chain);
        }
        Ok(due)
    }
}

/// Whether `id` is 1 to 64 letters, digits, `-` and `_`, so that it is safe as the name of a folder.
pub fn is_session_id(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// Ledger of the sessions in `audit`; it need not exist yet.
    pub fn of(audit: &Path) -> Ledger {
        Ledger { path: audit.join(LEDGER) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, source: io::Error) -> LedgerError {
        LedgerError::Io { path: self.path.clone(), source }
    }

    /// All entries, each checked against those before it. Holds a shared lock, so that no writer is in the middle of a
    /// line.
    pub fn entries(&self) -> Result<Entries, LedgerError> {
        Ok(self.entries_of(self.open_shared()?))
    }

    fn entries_of(&self, file: Option<File>) -> Entries {
        let input = file.map(BufReader::new);
        Entries { ledger: self.clone(), input, last: None, torn: false, over: false }
    }

    /// The file, locked against writers; `None` if there is none yet.
    fn open_shared(&self) -> Result<Option<File>, LedgerError> {
        match files::open(&self.path) {
            Ok(file) => {
                lock(&file, FlockOperation::LockShared).map_err(|error| self.failed(error))?;
                Ok(Some(file))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Last chain hash; `None` for an empty ledger.
    pub fn head(&self) -> Result<Option<Digest>, LedgerError> {
        let last = self.open_shared()?.map(|file| self.tail(&file)).transpose()?;
        Ok(last.and_then(|(_, entry)| entry).map(|entry| entry.chain_hash))
    }

    /// Locks the ledger for writing; no other process writes while the lock is held.
    pub fn lock(&self) -> Result<Locked<'_>, LedgerError> {
        let failed = |error| self.failed(error);
        let file = files::open_or_create(&self.path).map_err(failed)?;
        lock(&file, FlockOperation::LockExclusive).map_err(failed)?;
        let (end, last) = self.tail(&file)?;
        if file.metadata().map_err(failed)?.len() > end {
            file.set_len(end).map_err(failed)?;
        }
        Ok(Locked { ledger: self, file, end, last })
    }

    /// Records the removal of sessions. Returns how many of them were in the ledger.
    pub fn removed(&self, ids: &[&str], time_ms: u64) -> Result<u64, LedgerError> {
        let mut ledger = self.lock()?;
        let mut known = HashSet::new();
        // The lock is held already.
        let file = files::open(&self.path).map_err(|error| self.failed(error))?;
        for entry in self.entries_of(Some(file)) {
            let entry = entry?;
            if entry.removed {
                known.remove(&entry.session_id);
            } else {
                known.insert(entry.session_id);
            }
        }
        let mut told = 0;
        for id in ids {
            if known.remove(*id) {
                ledger.append(id, Digest::ZERO, &iso(time_ms))?;
                told += 1;
            }
        }
        Ok(told)
    }

    /// End of the last complete line, and its entry. Only that line is read and checked; `verify` checks all of them.
    fn tail(&self, file: &File) -> Result<(u64, Option<LedgerEntry>), LedgerError> {
        let length = file.metadata().map_err(|error| self.failed(error))?.len();
        let start = length.saturating_sub(2 * MAX_LINE as u64);
        let mut bytes = Vec::new();
        let mut file = file;
        file.seek(SeekFrom::Start(start)).map_err(|error| self.failed(error))?;
        file.take(2 * MAX_LINE as u64).read_to_end(&mut bytes).map_err(|error| self.failed(error))?;
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            // No complete line yet; in a longer file this means that it is not a ledger.
            return if start == 0 { Ok((0, None)) } else { Err(self.bad(0, LedgerFlaw::TooLong)) };
        };
        let begin = bytes[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let entry: LedgerEntry = serde_json::from_slice(&bytes[begin..end])
            .map_err(|error| self.bad(0, LedgerFlaw::Shape(error)))?;
        Ok((start + end as u64 + 1, Some(entry)))
    }

    fn bad(&self, line: u64, flaw: LedgerFlaw) -> LedgerError {
        LedgerError::Bad { path: self.path.clone(), line, flaw }
    }
}

/// Locks the file until it is closed.
fn lock(file: &File, operation: FlockOperation) -> io::Result<()> {
    loop {
        match rustix::fs::flock(file, operation) {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

#[derive(Debug)]
pub struct Locked<'a> {
    ledger: &'a Ledger,
    file: File,
    end: u64,
    last: Option<LedgerEntry>,
}

impl Locked<'_> {
    /// Sequence number of the next entry.
    pub fn next_sequence(&self) -> u64 {
        self.last.as_ref().map_or(0, |entry| entry.sequence.saturating_add(1))
    }

    pub fn add(&mut self, record: &SessionRecord) -> Result<LedgerEntry, LedgerError> {
        self.append(&record.session_id, record.digest()?, record.completed_at())
    }

    fn append(&mut self, id: &str, digest: Digest, completed_at: &str) -> Result<LedgerEntry, LedgerError> {
        if !is_session_id(id) {
            return Err(LedgerError::SessionId(id.to_owned()));
        }
        let entry = LedgerEntry::next(self.last.as_ref(), id, digest, completed_at)?;
        let line = entry.line()?;
        let written = self.file.write_all_at(&line, self.end).and_then(|()| self.file.sync_all());
        // With the first line the new file's name has to reach the disk too.
        let named = || if self.end == 0 { nono_sys::fs::sync_parent(&self.ledger.path) } else { Ok(()) };
        let written = written.and_then(|()| named());
        if let Err(error) = written {
            // Best effort: the next writer cuts off an incomplete line as well. The original error is returned.
            let _ = self.file.set_len(self.end);
            return Err(self.ledger.failed(error));
        }
        self.end += line.len() as u64;
        self.last = Some(entry.clone());
        Ok(entry)
    }
}

#[derive(Debug)]
pub struct Entries {
    ledger: Ledger,
    input: Option<BufReader<File>>,
    last: Option<LedgerEntry>,
    torn: bool,
    over: bool,
}

impl Entries {
    /// Whether the last line is incomplete.
    pub fn torn(&self) -> bool {
        self.torn
    }

    fn advance(&mut self) -> Result<Option<LedgerEntry>, LedgerError> {
        let Some(input) = &mut self.input else { return Ok(None) };
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line);
        read.map_err(|error| self.ledger.failed(error))?;
        let number = self.last.as_ref().map_or(1, |entry| entry.sequence.saturating_add(2));
        if line.len() > MAX_LINE {
            return Err(self.ledger.bad(number, LedgerFlaw::TooLong));
        }
        if line.last() != Some(&b'\n') {
            self.torn = !line.is_empty();
            return Ok(None);
        }
        let entry =
            LedgerEntry::read(&line, self.last.as_ref()).map_err(|flaw| self.ledger.bad(number, flaw))?;
        self.last = Some(entry.clone());
        Ok(Some(entry))
    }
}

impl Iterator for Entries {
    type Item = Result<LedgerEntry, LedgerError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.advance().transpose();
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_golden_line() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::of(dir.path());
        let entry = ledger.lock().unwrap().add(&crate::session::golden()).unwrap();
        let chain = "8b6dbc155d44df05e6b5e9948fb8fff142222b4b41fb37284fb0d1217000e9bb";
        assert_eq!((entry.sequence, entry.prev_chain, entry.chain_hash.hex().as_str()), (0, None, chain));
        assert_eq!(ledger.head().unwrap(), Some(entry.chain_hash));
    }
}
