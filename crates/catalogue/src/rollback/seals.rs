//! Ledger of seals: one line for each session that ended, each chained to the line before.
//!
//! A session's folder can be forged as a whole, with every digest in it made to fit. Its line here records
//! `session.json` and the numbered snapshots at the time it ended. The ledger is in nono's own state, which no command
//! under nono can reach; a process that can write there can write a new ledger, which only an external anchor would
//! reveal. Lines of removed sessions stay. An incomplete last line (its writer was killed) is cut off by the next
//! writer.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nono_snapshot::ContentHash;
use nono_snapshot::hash::content_hash;
use nono_snapshot::session::{Session, SnapshotList};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::catalogue::Catalogue;
use super::error::RollbackError;
use super::folder::{self, METADATA};

pub(super) const FILE: &str = "seals.ndjson";

/// Digests of a session at the time it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    pub(crate) sequence: u64,
    pub(crate) session: String,
    /// SHA-256 of `session.json`, byte for byte.
    pub(crate) metadata: ContentHash,
    /// SHA-256 over number, Merkle root and state root of each numbered snapshot.
    pub(crate) snapshots: ContentHash,
    /// The `hash` of the line before; zeros in the first.
    pub(crate) previous: ContentHash,
    /// SHA-256 of this line without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<ContentHash>,
}

const FIRST: ContentHash = ContentHash::from_bytes([0; 32]);

impl Seal {
    fn own_hash(&self) -> Result<ContentHash, serde_json::Error> {
        let bare = Seal { hash: None, ..self.clone() };
        Ok(content_hash(&serde_json::to_vec(&bare)?))
    }
}

/// Digest of a record's numbered snapshots. Safety snapshots come later and do not count; thinned ones keep their
/// digests.
pub(crate) fn snapshots_digest(record: &SnapshotList) -> ContentHash {
    let mut text = String::new();
    for recorded in folder::numbered(record) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} {} {}",
            recorded.snapshot(),
            recorded.merkle_root.hex(),
            recorded.state_root.hex()
        );
    }
    content_hash(text.as_bytes())
}

/// Append the seal of a session that just ended: its `session.json` is written, its last snapshot taken.
pub fn seal(catalogue: &Catalogue, id: &str, dir: &Path) -> Result<(), RollbackError> {
    let path = dir.join(METADATA);
    let metadata = content_hash(&folder::read(&path).map_err(RollbackError::io(&path))?);
    let record = Session::new(dir).record()?.unwrap_or_default();
    let seal = Seal {
        sequence: 0,
        session: id.to_owned(),
        metadata,
        snapshots: snapshots_digest(&record),
        previous: FIRST,
        hash: None,
    };
    append(&catalogue.sessions_dir(), seal)
}

fn append(dir: &Path, mut seal: Seal) -> Result<(), RollbackError> {
    let path = dir.join(FILE);
    let io = |source| RollbackError::Io { path: path.clone(), source };
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(flags);
    let mut file = options.open(&path).map_err(io)?;
    file.lock().map_err(io)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(io)?;
    let whole = whole_lines(&bytes);
    if whole.len() < bytes.len() {
        file.set_len(whole.len() as u64).map_err(io)?;
    }
    let lines = lines(whole);
    seal.sequence = lines.len() as u64;
    seal.previous = lines.last().map_or(FIRST, |line| link(line));
    let encode = |seal: &Seal| serde_json::to_vec(seal).map_err(|error| RollbackError::damaged(&path, error));
    seal.hash = Some(seal.own_hash().map_err(|error| RollbackError::damaged(&path, error))?);
    let mut line = encode(&seal)?;
    line.push(b'\n');
    file.write_all(&line).map_err(io)?;
    file.sync_data().map_err(io)?;
    // Closing is not enough: a child between fork and exec still has the descriptor.
    file.unlock().map_err(io)?;
    if lines.is_empty() {
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(io)?;
    }
    Ok(())
}

fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    bytes.get(..end).unwrap_or_default()
}

fn lines(whole: &[u8]) -> Vec<&[u8]> {
    let whole = whole.strip_suffix(b"\n").unwrap_or(whole);
    if whole.is_empty() { Vec::new() } else { whole.split(|byte| *byte == b'\n').collect() }
}

/// Digest that the next line refers to: this line's hash or, for an invalid line, the hash of its bytes, so that the
/// chain continues.
fn link(line: &[u8]) -> ContentHash {
    let seal: Option<Seal> = serde_json::from_slice(line).ok();
    seal.and_then(|seal| seal.hash).unwrap_or_else(|| content_hash(line))
}

/// Ledger of seals, read and checked.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    seals: Vec<Seal>,
    /// Positions where the chain is broken.
    pub(crate) problems: Vec<String>,
}

impl Ledger {
    pub(crate) fn read(catalogue: &Catalogue) -> Result<Ledger, RollbackError> {
        let path = catalogue.sessions_dir().join(FILE);
        let bytes = folder::read_if_there(&path)?.unwrap_or_default();
        let mut ledger = Ledger::default();
        let mut previous = FIRST;
        for (at, line) in lines(whole_lines(&bytes)).into_iter().enumerate() {
            match check(line, at as u64, previous) {
                Ok(seal) => ledger.seals.push(seal),
                Err(what) => ledger.problems.push(format!("{}: line {}: {what}", path.display(), at + 1)),
            }
            previous = link(line);
        }
        Ok(ledger)
    }

    /// Seal of a session: the last one, if it was sealed again.
    pub(crate) fn of(&self, session: &str) -> Option<&Seal> {
        self.seals.iter().rev().find(|seal| seal.session == session)
    }
}

/// Defect of a line of the ledger.
#[derive(Debug, Error)]
enum SealProblem {
    #[error("it is not a seal: {0}")]
    NotSeal(#[source] serde_json::Error),
    #[error(transparent)]
    Hash(serde_json::Error),
    #[error("the seal of session {0} was altered")]
    Altered(String),
    #[error("the seal of session {0} does not follow the one before it")]
    OutOfOrder(String),
}

fn check(line: &[u8], sequence: u64, previous: ContentHash) -> Result<Seal, SealProblem> {
    let seal: Seal = serde_json::from_slice(line).map_err(SealProblem::NotSeal)?;
    let own = seal.own_hash().map_err(SealProblem::Hash)?;
    let same = serde_json::to_vec(&seal).is_ok_and(|bytes| bytes == line);
    if seal.hash != Some(own) || !same {
        return Err(SealProblem::Altered(seal.session));
    }
    if seal.previous != previous || seal.sequence != sequence {
        return Err(SealProblem::OutOfOrder(seal.session));
    }
    Ok(seal)
}
