//! List of contents that restores displaced and no snapshot holds: the file `kept`.

use std::path::PathBuf;

use super::{Result, Session, SessionError};
use crate::file::{self, Sync};
use crate::hash::{ContentHash, content_hash};

impl Session {
    fn kept_path(&self) -> PathBuf {
        self.dir.join("kept")
    }

    /// Contents that a restore displaced and no snapshot holds: they stay in the store with the session.
    pub fn kept(&self) -> Result<Vec<ContentHash>> {
        let (kept, damaged) = self.read_kept()?;
        damaged.map_or(Ok(kept), Err)
    }

    /// The same, with the addresses that are still readable in a damaged list.
    pub(crate) fn kept_keys(&self) -> Result<Vec<ContentHash>> {
        Ok(self.read_kept()?.0)
    }

    fn read_kept(&self) -> Result<(Vec<ContentHash>, Option<SessionError>)> {
        let path = self.kept_path();
        let read = file::read_existing(&path).map_err(SessionError::io(&path))?;
        let Some(bytes) = read else { return Ok((Vec::new(), None)) };
        let (sum, hashes) = bytes.split_at(bytes.len().min(32));
        let chunks = hashes.chunks_exact(32);
        let good = content_hash(hashes).as_bytes() == sum && chunks.remainder().is_empty();
        let kept = chunks.filter_map(|chunk| chunk.first_chunk().copied().map(ContentHash::from_bytes));
        let damaged = SessionError::damaged(&path, "its checksum is wrong");
        Ok((kept.collect(), (!good).then_some(damaged)))
    }

    pub(crate) fn note_kept(&self, hash: ContentHash) -> Result<()> {
        let (mut all, damaged) = self.read_kept()?;
        if damaged.is_none() && all.contains(&hash) {
            return Ok(());
        }
        all.push(hash);
        self.save_kept(&all)
    }

    pub(crate) fn save_kept(&self, all: &[ContentHash]) -> Result<()> {
        let hashes = all.iter().map(|hash| hash.as_bytes().as_slice()).collect::<Vec<_>>().concat();
        let path = self.kept_path();
        let bytes = [content_hash(&hashes).as_bytes().as_slice(), &hashes].concat();
        file::replace(&path, &bytes, Sync::Yes).map_err(SessionError::io(&path))
    }
}
