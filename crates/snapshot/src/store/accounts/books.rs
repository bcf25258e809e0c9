//! The file of the accounts: a value with a checksum, replaced by a rename.

use serde::{Deserialize, Serialize};

use super::super::error::Result;
use super::super::files::{Folder, failed, read_all};
use super::super::format::put_file;
use super::{Balance, Owner};
use crate::hash::content_hash;

const FORMAT: u32 = 1;

/// Room reserved by a writer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reserved {
    pub(super) id: String,
    pub(super) owner: Owner,
    pub(super) bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Books {
    format: u32,
    /// Bytes on disk of published files; never too few.
    pub(super) committed: u64,
    /// Whether it was counted, with no commit since.
    pub(super) exact: bool,
    pub(super) checkpoints: u64,
    checkpoints_exact: bool,
    checkpoints_written: u64,
    /// Limit on everything, as the last writer had it: for maintenance, which has no settings.
    pub(super) total_limit: u64,
    pub(super) beside: Vec<String>,
    pub(super) writers: Vec<Reserved>,
    checksum: String,
}

impl Books {
    /// Read the books; `None` if they are missing or damaged.
    pub(super) fn read(folder: &Folder, name: &str) -> Result<Option<Books>> {
        match read_all(folder, name) {
            Err(error) if error.is_not_found() || error.is_foreign() => Ok(None),
            read => Ok(Books::decode(&read?.0)),
        }
    }

    pub(super) fn write(&self, folder: &Folder, name: &str) -> Result<()> {
        let bytes = self.encode().map_err(|error| failed("write", &folder.path_of(name))(error.into()))?;
        put_file(folder, name, &bytes)
    }

    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut books = Books { format: FORMAT, checksum: String::new(), ..self.clone() };
        books.checksum = content_hash(&serde_json::to_vec(&books)?).hex();
        serde_json::to_vec(&books)
    }

    fn decode(bytes: &[u8]) -> Option<Books> {
        let books: Books = serde_json::from_slice(bytes).ok()?;
        (books.encode().ok()?.as_slice() == bytes).then_some(books)
    }

    /// Bytes reserved by all writers, or by those of one owner.
    pub(super) fn reserved(&self, owner: Option<Owner>) -> u64 {
        let mut bytes = 0u64;
        for writer in self.writers.iter().filter(|writer| owner.is_none_or(|owner| writer.owner == owner)) {
            bytes = bytes.saturating_add(writer.bytes);
        }
        bytes
    }

    /// Set a writer's total reservation; adds a writer that the books lost.
    pub(super) fn set_reserved(&mut self, id: &str, owner: Owner, bytes: u64) {
        match self.writers.iter_mut().find(|writer| writer.id == id) {
            Some(writer) => (writer.owner, writer.bytes) = (owner, bytes),
            None => self.writers.push(Reserved { id: id.to_owned(), owner, bytes }),
        }
    }

    pub(super) fn commit(&mut self, owner: Owner, used: u64) {
        self.committed = self.committed.saturating_add(used);
        self.exact &= used == 0;
        if owner == Owner::Checkpoint {
            self.checkpoints = self.checkpoints.saturating_add(used);
            self.checkpoints_written = self.checkpoints_written.saturating_add(used);
            self.checkpoints_exact &= used == 0;
        }
    }

    pub(super) fn set_checkpoints(&mut self, bytes: u64, written: u64) {
        let meanwhile = self.checkpoints_written.saturating_sub(written);
        self.checkpoints = bytes.saturating_add(meanwhile).min(self.committed);
        self.checkpoints_exact = meanwhile == 0;
    }

    pub(super) fn balance(&self) -> Balance {
        Balance {
            committed: self.committed,
            reserved: self.reserved(None),
            checkpoints: self.checkpoints,
            checkpoints_exact: self.checkpoints_exact,
            checkpoints_written: self.checkpoints_written,
        }
    }
}
