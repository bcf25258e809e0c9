//! The order in which sessions began and restores were made: a counter in `rollbacks/`. A clock that was ahead once, or two
//! sessions of one second, change nothing about it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use rustix::fs::OFlags;

use super::catalogue::{Catalogue, SessionEntry};
use super::error::RollbackError;
use super::history::History;
use crate::pick;

/// In `rollbacks/`: the last number that was given.
pub(super) const FILE: &str = ".sequence";

impl Catalogue {
    /// The next number; nothing where there is no place for sessions.
    pub(super) fn next_sequence(&self) -> Result<Option<u64>, RollbackError> {
        let path = self.sessions_dir().join(FILE);
        let io = |source| RollbackError::Io { path: path.clone(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let opened = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(&path);
        let mut file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(io)?,
        };
        file.lock().map_err(io)?;
        let taken = self.count_up(&mut file);
        // Closing is not enough: a process that is just being forked has the descriptor until it executes.
        file.unlock().map_err(io)?;
        taken.map(Some)
    }

    fn count_up(&self, file: &mut File) -> Result<u64, RollbackError> {
        let path = self.sessions_dir().join(FILE);
        let io = |source| RollbackError::Io { path: path.clone(), source };
        let mut text = String::new();
        let read = file.read_to_string(&mut text);
        let last = match read {
            Err(error) if error.kind() != io::ErrorKind::InvalidData => return Err(io(error)),
            _ => text.strip_suffix('\n').and_then(|number| number.parse::<u64>().ok()),
        };
        // Lost with the power: every number that was given stands in a session.
        let last = match last {
            Some(last) => last,
            None => self.highest()?,
        };
        let next = last.saturating_add(1);
        let text = format!("{next:020}\n");
        file.write_all_at(text.as_bytes(), 0).and_then(|()| file.set_len(text.len() as u64)).map_err(io)?;
        Ok(next)
    }

    fn highest(&self) -> Result<u64, RollbackError> {
        let (sessions, _) = self.list()?;
        let mut highest = 0;
        for entry in sessions {
            let restores = History::load(&entry.dir)?.restores;
            let restored = restores.iter().filter_map(|restore| restore.sequence).max();
            highest = highest.max(entry.metadata.sequence.unwrap_or(0)).max(restored.unwrap_or(0));
        }
        Ok(highest)
    }
}

/// Where a session stands among others: by its number; those of before there were numbers first, by their times.
pub(super) fn order(entry: &SessionEntry) -> impl Ord + use<> {
    (entry.metadata.sequence.unwrap_or(0), pick::age(&entry.metadata.started, &entry.id))
}
