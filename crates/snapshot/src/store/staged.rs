//! Staging of large files, cloned or cut into chunks in the writer's temporary folder; kept only if the caller commits.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;

use super::chunked::{self, Chunked};
use super::clones::{self, Hashed};
use super::error::{Result, StoreError};
use super::files::{chmod, failed, file_stat, pwrite_all, size_of, unique};
use super::large::{LargeName, clone};
use super::large_source::LargeSource;
use super::names::{KEEP, NEW};
use super::refused;
use super::temp::Temp;
use super::usage::own_bytes;
use super::writer::{Appender, Large, Put, StoreWriter};
use crate::hash::ContentHash;

/// A staged large file, which is stored once it is committed. Dropped, it is removed.
#[derive(Debug)]
#[must_use = "it goes away unless it is committed"]
pub struct LargeStaged<'a, 'w> {
    form: StagedForm<'a, 'w>,
    hash: ContentHash,
    read: u64,
}

#[derive(Debug)]
enum StagedForm<'a, 'w> {
    Clone(Cloned<'w>),
    Chunks(Chunked<'a, 'w>),
}

impl LargeStaged<'_, '_> {
    pub fn hash(&self) -> ContentHash {
        self.hash
    }

    /// Number of its bytes that were read.
    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    /// Whether its data is shared with the source, not copied.
    pub fn is_shared(&self) -> bool {
        matches!(self.form, StagedForm::Clone(_))
    }

    /// Keep it: it becomes visible when the writer publishes.
    pub fn commit(self) -> Result<Put> {
        let kept = match self.form {
            StagedForm::Clone(clone) => clone.keep(&self.hash)?,
            StagedForm::Chunks(chunks) => chunks.keep(&self.hash)?,
        };
        Ok(if kept { Put::Stored } else { Put::AlreadyThere })
    }
}

impl<'w> Appender<'w> {
    /// Stage a large file with known properties, as [`Appender::put_large`] does.
    pub(crate) fn put_known(
        &mut self,
        source: BorrowedFd<'_>,
        known: &LargeSource,
    ) -> Result<LargeStaged<'_, 'w>> {
        if let Some((clone, hash, read)) = clone_from(self, source, known)? {
            return Ok(LargeStaged { form: StagedForm::Clone(clone), hash, read });
        }
        self.put_start(source, known)
    }

    /// The same in chunks: also for the first bytes of a longer file, which cannot share its data.
    pub(crate) fn put_start(
        &mut self,
        source: BorrowedFd<'_>,
        known: &LargeSource,
    ) -> Result<LargeStaged<'_, 'w>> {
        let mark = refused::check(self, source, known)?;
        let (chunks, hash) = chunked::stage(self, source, known, mark)?;
        Ok(LargeStaged { form: StagedForm::Chunks(chunks), hash, read: known.size })
    }

    /// The same, only by sharing its data; `None` if the filesystem cannot.
    pub(crate) fn clone_large(
        &mut self,
        source: BorrowedFd<'_>,
        known: &LargeSource,
    ) -> Result<Option<LargeStaged<'_, 'w>>> {
        let cloned = clone_from(self, source, known)?;
        Ok(cloned.map(|(clone, hash, read)| LargeStaged { form: StagedForm::Clone(clone), hash, read }))
    }
}

/// Share the source's data; `None` if the filesystem cannot. The clone is hashed, since the source may change.
fn clone_from<'w>(
    appender: &mut Appender<'w>,
    source: BorrowedFd<'_>,
    known: &LargeSource,
) -> Result<Option<(Cloned<'w>, ContentHash, u64)>> {
    if known.size == 0 {
        return Ok(None);
    }
    let (mut staging, file) = Cloned::create(appender.writer)?;
    if !clone(file.as_fd(), source).map_err(failed("write", &staging.path))? {
        return Ok(None);
    }
    let stat = file_stat(&file, &staging.path)?;
    staging.reserve(own_bytes(&file, &staging.path)?)?;
    if size_of(&stat) != known.size {
        return Err(StoreError::SourceChanged);
    }
    let store = appender.writer.store();
    let Hashed { hash, trail, read } =
        clones::hash(store, &file, &staging.path, known, &mut appender.buffer)?;
    if let Some(trail) = trail {
        staging.write_hashes(trail.as_bytes())?;
    }
    chmod(&file, &staging.path, NEW | KEEP)?;
    Ok(Some((staging, hash, read)))
}

/// A clone in the temporary folder, and its share of the budget.
#[derive(Debug)]
struct Cloned<'w> {
    writer: &'w StoreWriter<'w>,
    temp: Arc<Temp>,
    name: String,
    path: PathBuf,
    /// Temporary name of the hashes that its address was made from.
    hashes: Option<String>,
    cost: u64,
    kept: bool,
}

impl<'w> Cloned<'w> {
    fn create(writer: &'w StoreWriter<'w>) -> Result<(Cloned<'w>, File)> {
        let (temp, name) = (writer.temp()?, unique());
        let file = temp.folder.create(&name)?;
        let path = temp.folder.path_of(&name);
        Ok((Cloned { writer, temp, name, path, hashes: None, cost: 0, kept: false }, file))
    }

    fn reserve(&mut self, cost: u64) -> Result<()> {
        self.writer.reserve(cost)?;
        self.cost += cost;
        Ok(())
    }

    fn write_hashes(&mut self, bytes: &[u8]) -> Result<()> {
        self.reserve(bytes.len() as u64)?;
        let name = unique();
        let file = self.temp.folder.create(&name)?;
        self.hashes = Some(name.clone());
        pwrite_all(file.as_fd(), bytes, 0).map_err(failed("write", &self.temp.folder.path_of(&name)))
    }

    /// Keep the clone; false if the file is stored already.
    fn keep(mut self, hash: &ContentHash) -> Result<bool> {
        let hashes = self.hashes.clone().map(|name| (LargeName::Hashes, name));
        let files = || hashes.into_iter().chain([(LargeName::Plain, self.name.clone())]).collect();
        self.kept = self.writer.keep_large(hash, || Large { files: files(), bytes: self.cost })?;
        Ok(self.kept)
    }
}

impl Drop for Cloned<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // A file that cannot be removed now is removed with the writer's folder, or is debris; until then it counts.
        let names = std::iter::once(&self.name).chain(&self.hashes);
        if names.map(|name| self.temp.folder.unlink(name)).all(|removed| removed.is_ok()) {
            self.writer.give_back(self.cost);
        }
    }
}
