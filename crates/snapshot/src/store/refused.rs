//! Remembers large files that did not fit, so that an unchanged one is not read again to find that out.
//!
//! Kept in the store's file `refused`: the stat of each file, and the minimum room it needs. It is only a hint: if it
//! cannot be read or written, a second attempt is made.

use std::os::fd::BorrowedFd;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::error::{Result, StoreError};
use super::files::{allocated, read_all, size_of};
use super::format::put_file;
use super::handle::Store;
use super::large_source::LargeSource;
use super::names::REFUSED;
use super::writer::Appender;

const NOTE: usize = 24;
/// Maximum number of remembered files; the oldest are forgotten first.
const MOST: usize = 1024;
/// Best assumed compression ratio: a file that needs more room even so is not tried.
const WELL: u64 = 32;

/// Fingerprint of a file in its current state, and of how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark([u8; 16]);

/// Refuse a file that cannot fit, without reading it; otherwise returns its mark, to remember a later refusal.
pub(super) fn check(appender: &Appender<'_>, source: BorrowedFd<'_>, known: &LargeSource) -> Result<Mark> {
    let stat = rustix::fs::fstat(source).map_err(|errno| StoreError::Source(errno.into()))?;
    let compresses = u64::from(appender.compresses());
    let numbers = [
        stat.st_dev,
        stat.st_ino,
        size_of(&stat),
        stat.st_mtime.cast_unsigned(),
        stat.st_mtime_nsec,
        stat.st_ctime.cast_unsigned(),
        stat.st_ctime_nsec,
        compresses,
    ];
    let mark = Mark(xxh3_128(&numbers.map(u64::to_le_bytes).concat()).to_le_bytes());
    let writer = appender.writer;
    let Some(left) = writer.room()? else { return Ok(mark) };
    let store = writer.store();
    let data = allocated(&stat).min(known.size);
    // A file captured before may have most of its chunks in the store.
    let by_size = if known.before.is_none() { data / WELL } else { 0 };
    let needed = store.needed(mark).max(by_size);
    if needed > left {
        return Err(StoreError::OverBudget { needed, left, dir: store.dir().to_owned() });
    }
    Ok(mark)
}

impl Store {
    fn refused(&self) -> Vec<([u8; 16], u64)> {
        let bytes = read_all(&self.root, REFUSED).map(|(bytes, _)| bytes).unwrap_or_default();
        let Some((notes, sum)) = bytes.split_last_chunk::<8>() else { return Vec::new() };
        if xxh3_64(notes) != u64::from_le_bytes(*sum) {
            return Vec::new();
        }
        let note = |note: &[u8]| {
            let (mark, needed) = note.split_first_chunk::<16>()?;
            Some((*mark, u64::from_le_bytes(*needed.first_chunk()?)))
        };
        notes.chunks_exact(NOTE).filter_map(note).collect()
    }

    /// Minimum room that this file needs, as far as known.
    fn needed(&self, mark: Mark) -> u64 {
        self.refused().iter().find(|(known, _)| *known == mark.0).map_or(0, |(_, needed)| *needed)
    }

    /// Remember that a file needs at least this much room.
    pub(super) fn remember_refused(&self, mark: Mark, needed: u64) {
        let mut notes = self.refused();
        notes.retain(|(known, _)| *known != mark.0);
        notes.drain(..notes.len().saturating_sub(MOST - 1));
        notes.push((mark.0, needed));
        let mut bytes: Vec<u8> = notes
            .iter()
            .flat_map(|(mark, needed)| mark.iter().copied().chain(needed.to_le_bytes()))
            .collect();
        let sum = xxh3_64(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        // Only a hint: failing to write it must not fail the capture, least of all on a full disk.
        let _ = put_file(&self.root, REFUSED, &bytes);
    }
}
