//! Id of a store: a random number that stays with it wherever it is moved. A copy has the same id.

use std::path::Path;

use super::error::{Damage, Result, StoreProblem, there};
use super::files::{failed, read_all};
use super::format::put_file;
use super::handle::Store;
use super::names::ID;

/// Content of the id file.
enum Id {
    Is(String),
    Damaged,
    Missing,
}

impl Store {
    /// The id; `None` if the store has none yet, or it cannot be read.
    pub fn id(&self) -> Result<Option<String>> {
        match self.read_id()? {
            Id::Is(id) => Ok(Some(id)),
            Id::Damaged | Id::Missing => Ok(None),
        }
    }

    /// Create an id, if there is none.
    pub(crate) fn ensure_id(&self) -> Result<()> {
        // Another writer may remove the temporary file as debris.
        for _ in 0..8 {
            if !matches!(self.read_id()?, Id::Missing) || there(self.put_id())?.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Create a new id, if the current one cannot be read. Returns whether that was so.
    pub(crate) fn repair_id(&self, dry_run: bool) -> Result<bool> {
        let damaged = matches!(self.read_id()?, Id::Damaged);
        if damaged && !dry_run {
            self.put_id()?;
        }
        Ok(damaged)
    }

    /// A damaged id, as a problem of the store.
    pub(super) fn check_id(&self) -> Result<Option<StoreProblem>> {
        let damaged = matches!(self.read_id()?, Id::Damaged);
        Ok(damaged.then(|| StoreProblem { file: self.root.path_of(ID), object: None, what: Damage::Format }))
    }

    fn read_id(&self) -> Result<Id> {
        let bytes = match there(read_all(&self.root, ID)) {
            Ok(Some((bytes, _))) => bytes,
            Ok(None) => return Ok(Id::Missing),
            Err(error) if error.is_foreign() => return Ok(Id::Damaged),
            Err(error) => return Err(error),
        };
        let id = std::str::from_utf8(&bytes).ok().and_then(|text| text.split(' ').next());
        match id {
            Some(id) if text(id).as_bytes() == bytes => Ok(Id::Is(id.to_owned())),
            _ => Ok(Id::Damaged),
        }
    }

    fn put_id(&self) -> Result<()> {
        let id = nono_sys::random::id::<16>().map_err(failed("read", Path::new("/dev/urandom")))?;
        put_file(&self.root, ID, text(&id).as_bytes())
    }
}

/// Text of the id file: the number, and a checksum.
fn text(id: &str) -> String {
    format!("{id} {:016x}\n", xxhash_rust::xxh3::xxh3_64(id.as_bytes()))
}
