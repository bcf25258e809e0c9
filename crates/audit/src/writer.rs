//! Writer of a log file: complete records only, and no gap in their chain whatever goes wrong.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::event::AuditEvent;
use crate::files;
use crate::log::EVENTS;
use crate::record_format::{self, Chain, MAX_EVENT};
use crate::reserve::AllocatedAhead;

#[derive(Debug, Error)]
pub enum WriteError {
    #[error("{}: {}", .path.display(), nono_sys::errno::describe(.source))]
    Io { path: PathBuf, source: io::Error },
    /// The log is intact; later there may be space again.
    #[error("{}: no space left for another record", .path.display())]
    Full { path: PathBuf },
    #[error("{}: records were lost: {why}", .path.display())]
    Broken { path: PathBuf, why: String },
    #[error("{}: the log is closed", .path.display())]
    Closed { path: PathBuf },
    #[error("the event is too long for a record: {length} bytes")]
    TooLong { length: usize },
    #[error("cannot serialise the event: {0}")]
    Json(#[from] serde_json::Error),
}

/// Whether a process writes the log in `dir` now.
pub fn is_being_written(dir: &Path) -> bool {
    let file = files::open(&dir.join(EVENTS));
    file.and_then(|file| nono_sys::fs::is_locked(&file)).unwrap_or(false)
}

/// Space that must stay reserved after a record was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpaceToKeep {
    pub(crate) bytes: u64,
    /// Whether to reserve space for another record like this one.
    pub(crate) again: bool,
}

impl SpaceToKeep {
    pub(crate) const NOTHING: SpaceToKeep = SpaceToKeep { bytes: 0, again: false };

    pub(crate) fn bytes(bytes: u64) -> SpaceToKeep {
        SpaceToKeep { bytes, again: false }
    }
}

/// Bytes by which a later record of the same kind may be longer, for its digits.
pub(crate) const GROWTH: u64 = 64;

#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    file: File,
    /// End of the last complete record.
    end: u64,
    ahead: AllocatedAhead,
    chain: Chain,
    /// Whether there may be bytes behind the end.
    dirty: bool,
    text: Vec<u8>,
    line: Vec<u8>,
}

impl Writer {
    pub(crate) fn create(dir: &Path) -> Result<Writer, WriteError> {
        let path = dir.join(EVENTS);
        let file = files::create(&path).map_err(|source| WriteError::Io { path: path.clone(), source })?;
        // The lock tells a cleanup that the writer is alive. A file system without locks is not an error.
        let _ = file.lock();
        Ok(Writer {
            path,
            file,
            end: 0,
            ahead: AllocatedAhead::new(),
            chain: Chain::default(),
            dirty: false,
            text: Vec::new(),
            line: Vec::new(),
        })
    }

    /// Continues behind the last complete record of a log whose writer was killed: `chain` and `end` were read from
    /// `file`. An incomplete record and the reserved space behind it are removed.
    pub(crate) fn resume(path: PathBuf, file: File, chain: Chain, end: u64) -> Result<Writer, WriteError> {
        let (text, line) = (Vec::new(), Vec::new());
        let mut writer =
            Writer { path, file, end, ahead: AllocatedAhead::new(), chain, dirty: true, text, line };
        writer.cut().map_err(|error| writer.failed(error))?;
        Ok(writer)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn chain(&self) -> &Chain {
        &self.chain
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.ahead.is_kept()
    }

    /// Length of the line of the last event, written or not.
    pub(crate) fn last_length(&self) -> u64 {
        self.line.len() as u64
    }

    fn failed(&self, source: io::Error) -> WriteError {
        let path = self.path.clone();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => WriteError::Full { path },
            _ => WriteError::Io { path, source },
        }
    }

    /// Appends an event; it is in the file when this returns.
    pub(crate) fn append(&mut self, event: &AuditEvent, keep: SpaceToKeep) -> Result<(), WriteError> {
        self.put(event, keep, false)
    }

    /// Appends an event; it is on disk when this returns.
    pub(crate) fn append_durably(&mut self, event: &AuditEvent, keep: SpaceToKeep) -> Result<(), WriteError> {
        self.put(event, keep, true)
    }

    fn put(&mut self, event: &AuditEvent, keep: SpaceToKeep, durably: bool) -> Result<(), WriteError> {
        self.text.clear();
        self.line.clear();
        serde_json::to_writer(&mut self.text, event)?;
        if self.text.len() > MAX_EVENT {
            return Err(WriteError::TooLong { length: self.text.len() });
        }
        let link = self.chain.link(&self.text);
        let text = std::str::from_utf8(&self.text).map_err(|error| self.failed(io::Error::other(error)))?;
        record_format::write(&link, text, &mut self.line)?;
        self.make_room(keep)?;
        if self.write().is_err() {
            // Perhaps only a part was written. Try once more from the end of the last record.
            self.make_room(keep)?;
            self.write().map_err(|error| self.failed(error))?;
        }
        if durably && let Err(error) = self.file.sync_data() {
            // The caller will deny, so the record must not stay in the file.
            self.dirty = true;
            // Tried again before the next record; the error that matters is the one returned.
            let _ = self.cut();
            return Err(self.failed(error));
        }
        self.end += self.line.len() as u64;
        self.chain.push(&link);
        Ok(())
    }

    fn make_room(&mut self, keep: SpaceToKeep) -> Result<(), WriteError> {
        let line = self.line.len() as u64;
        let need = line + keep.bytes + if keep.again { line + GROWTH } else { 0 };
        self.ahead.ensure(&self.file, self.end, need).map_err(|error| self.failed(error))
    }

    fn write(&mut self) -> io::Result<()> {
        self.cut()?;
        let written = self.file.write_all_at(&self.line, self.end);
        if written.is_err() {
            self.dirty = true;
            // Tried again before the next record; the error that matters is the one returned.
            let _ = self.cut();
        }
        written
    }

    /// Truncates the file behind the last complete record.
    fn cut(&mut self) -> io::Result<()> {
        if self.dirty {
            self.file.set_len(self.end)?;
            self.ahead.lost(self.end);
            self.dirty = false;
        }
        Ok(())
    }

    /// Syncs the file to disk.
    pub(crate) fn sync(&self) -> Result<(), WriteError> {
        self.file.sync_data().map_err(|error| self.failed(error))
    }

    /// Frees the reserved space.
    pub(crate) fn release(&mut self) -> Result<(), WriteError> {
        self.dirty = true;
        self.cut().map_err(|error| self.failed(error))
    }
}

#[cfg(test)]
impl Writer {
    /// Simulates a disk failure in the middle of a write.
    pub(crate) fn leave_half_a_record(&mut self) {
        self.file.write_all_at(b"{\"sequence\":", self.end).unwrap();
        self.dirty = true;
    }

    /// Makes all further writes fail.
    pub(crate) fn become_read_only(&mut self) {
        self.file = files::open(&self.path).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Warning;
    use crate::reader::Reader;

    fn event(number: u64) -> AuditEvent {
        AuditEvent::Warning(Warning { time_ms: number, message: "x".repeat(100) })
    }

    fn read(dir: &Path) -> Vec<AuditEvent> {
        Reader::open(dir).unwrap().map(|record| record.unwrap().event).collect()
    }

    #[test]
    fn half_a_record_is_cut_off_and_the_chain_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(dir.path()).unwrap();
        writer.append(&event(0), SpaceToKeep::NOTHING).unwrap();
        writer.leave_half_a_record();
        writer.append(&event(1), SpaceToKeep::NOTHING).unwrap();
        writer.append_durably(&event(2), SpaceToKeep::NOTHING).unwrap();
        assert_eq!(read(dir.path()), [event(0), event(1), event(2)]);
    }

    #[test]
    fn a_write_that_fails_leaves_whole_records() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(dir.path()).unwrap();
        writer.append(&event(0), SpaceToKeep::NOTHING).unwrap();
        let (head, good) = (writer.chain().head(), writer.file.try_clone().unwrap());
        writer.become_read_only();
        assert!(matches!(writer.append(&event(1), SpaceToKeep::NOTHING), Err(WriteError::Io { .. })));
        assert!(matches!(writer.append_durably(&event(1), SpaceToKeep::NOTHING), Err(WriteError::Io { .. })));
        assert_eq!(writer.chain().head(), head);
        assert_eq!(read(dir.path()), [event(0)]);
        writer.file = good;
        writer.append(&event(2), SpaceToKeep::NOTHING).unwrap();
        assert_eq!(read(dir.path()), [event(0), event(2)]);
    }

    #[test]
    fn an_event_that_is_too_long_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(dir.path()).unwrap();
        let long = AuditEvent::Warning(Warning { time_ms: 0, message: "\u{1}".repeat(MAX_EVENT) });
        assert!(matches!(writer.append(&long, SpaceToKeep::NOTHING), Err(WriteError::TooLong { .. })));
        // The longest allowed event: even with every letter escaped twice, its line can be read.
        let message = "\u{1}".repeat(MAX_EVENT / 6 - 100);
        writer.append(&AuditEvent::Warning(Warning { time_ms: 0, message }), SpaceToKeep::NOTHING).unwrap();
        assert_eq!(read(dir.path()).len(), 1);
    }
}
