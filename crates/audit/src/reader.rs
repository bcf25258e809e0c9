//! Reader of a log: record by record, each checked against all before it. Only one line is in memory, however large or
//! damaged the file is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::event::AuditEvent;
use crate::hash::ALGORITHM;
use crate::log::EVENTS;
use crate::record_format::{self, Chain, Flaw, MAX_LINE, VerifiedRecord};

#[derive(Debug, Error)]
pub enum ReadError {
    #[error("{}: {}", .path.display(), nono_sys::errno::describe(.source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: record {number}: {flaw}", .path.display())]
    Bad { path: PathBuf, number: u64, flaw: Flaw },
}

impl ReadError {
    /// Whether the file ends in the middle of a record, as a killed writer leaves it.
    pub fn is_torn(&self) -> bool {
        matches!(self, ReadError::Bad { flaw: Flaw::Torn, .. })
    }
}

/// Iterator over the records up to the first bad one; nothing after that one can be trusted.
#[derive(Debug)]
pub struct Reader<R> {
    path: PathBuf,
    input: R,
    chain: Chain,
    /// End of the last good record.
    end: u64,
    line: Vec<u8>,
    sealed: bool,
    over: bool,
}

impl Reader<BufReader<File>> {
    /// Opens the log in a session's folder. A link, or anything else that is not a regular file, is refused.
    pub fn open(dir: &Path) -> Result<Reader<BufReader<File>>, ReadError> {
        let path = dir.join(EVENTS);
        match crate::files::open(&path) {
            Ok(file) => Ok(Reader::new(path, BufReader::with_capacity(64 << 10, file))),
            Err(source) => Err(ReadError::Io { path, source }),
        }
    }
}

impl<R: BufRead> Reader<R> {
    /// Reader of `input`; errors name `path`.
    pub fn new(path: PathBuf, input: R) -> Reader<R> {
        Reader { path, input, chain: Chain::default(), end: 0, line: Vec::new(), sealed: false, over: false }
    }

    /// Chain of the good records so far.
    pub fn read(&self) -> &Chain {
        &self.chain
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    fn advance(&mut self) -> Result<Option<VerifiedRecord>, ReadError> {
        let number = self.chain.count();
        let bad = |flaw| ReadError::Bad { path: self.path.clone(), number, flaw };
        self.line.clear();
        let limit = MAX_LINE as u64 + 1;
        let read = self.input.by_ref().take(limit).read_until(b'\n', &mut self.line);
        read.map_err(|source| ReadError::Io { path: self.path.clone(), source })?;
        if self.line.is_empty() {
            return Ok(None);
        }
        if self.line.len() > MAX_LINE {
            return Err(bad(Flaw::TooLong));
        }
        if self.line.last() != Some(&b'\n') {
            return Err(bad(Flaw::Torn));
        }
        if self.sealed {
            return Err(bad(Flaw::AfterSeal));
        }
        let record = record_format::read(&self.line, &self.chain).map_err(bad)?;
        if let AuditEvent::Seal(seal) = &record.event {
            let (count, head, root) = (self.chain.count(), self.chain.head(), self.chain.root());
            let over = (seal.event_count, Some(seal.chain_head), Some(seal.merkle_root));
            if over != (count, head, root) || seal.hash_algorithm != ALGORITHM {
                return Err(bad(Flaw::Seal));
            }
            self.sealed = true;
        }
        self.chain.push(&record.link);
        self.end += self.line.len() as u64;
        Ok(Some(record))
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<VerifiedRecord, ReadError>;

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
    fn an_endless_line_is_bad_and_not_held() {
        let mut reader = Reader::new("log".into(), BufReader::new(io::repeat(b'x')));
        let error = reader.next().unwrap().unwrap_err();
        assert!(matches!(error, ReadError::Bad { number: 0, flaw: Flaw::TooLong, .. }), "{error}");
        assert!(reader.line.capacity() < 4 * MAX_LINE);
        assert!(reader.next().is_none());
    }
}
