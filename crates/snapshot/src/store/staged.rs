//! Large files on their way in: cloned, compressed or copied into the writer's temporary folder, hashed as stored, and
//! kept only when the caller says so.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;

use super::error::StoreError;
use super::files::{allocated, chmod, failed, file_stat, size_of, unique};
use super::large::{LargePacker, clone, feed};
use super::spans::{Target, each_piece};
use super::writer::{Large, Put, StoreWriter};
use super::{KEEP, NEW, Temp};
use crate::hash::{ContentHash, ContentHasher};

/// A large file that was taken in, and is stored once it is committed. Dropped, it goes away.
#[derive(Debug)]
#[must_use = "it goes away unless it is committed"]
pub struct LargeStaged<'w> {
    staging: Staging<'w>,
    hash: ContentHash,
}

impl LargeStaged<'_> {
    pub fn hash(&self) -> ContentHash {
        self.hash
    }

    /// Whether its data is shared with the source, not copied.
    pub fn is_shared(&self) -> bool {
        self.staging.form == Form::Clone
    }

    /// Keep it: it becomes visible when the writer publishes.
    pub fn commit(mut self) -> Result<Put, StoreError> {
        let staging = &mut self.staging;
        let large = || Large {
            name: staging.name.clone(),
            packed: staging.form == Form::Packed,
            bytes: staging.cost,
        };
        if !staging.writer.keep_large(&self.hash, large)? {
            return Ok(Put::AlreadyThere);
        }
        staging.kept = true;
        Ok(Put::Stored)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Copy,
    Packed,
    Clone,
}

/// The temporary file, and its share of the budget.
#[derive(Debug)]
struct Staging<'w> {
    writer: &'w StoreWriter<'w>,
    temp: Arc<Temp>,
    name: String,
    path: PathBuf,
    size: u64,
    cost: u64,
    form: Form,
    kept: bool,
}

pub(super) fn stage<'w>(
    writer: &'w StoreWriter<'w>,
    source: BorrowedFd<'_>,
    size: u64,
    sparse: bool,
    buffer: &mut Vec<u8>,
) -> Result<LargeStaged<'w>, StoreError> {
    let (mut staging, file) = Staging::create(writer, size)?;
    if let Some(hash) = staging.clone_from(&file, source, buffer)? {
        return Ok(LargeStaged { staging, hash });
    }
    if !writer.compresses() {
        let hash = staging.copy_from(&file, source, sparse, buffer)?;
        return Ok(LargeStaged { staging, hash });
    }
    if let Some(hash) = staging.pack_from(&file, source, sparse, buffer)? {
        return Ok(LargeStaged { staging, hash });
    }
    drop(staging);
    let (mut staging, file) = Staging::create(writer, size)?;
    let hash = staging.copy_from(&file, source, sparse, buffer)?;
    Ok(LargeStaged { staging, hash })
}

/// Only by sharing the source's data.
pub(super) fn stage_clone<'w>(
    writer: &'w StoreWriter<'w>,
    source: BorrowedFd<'_>,
    size: u64,
    buffer: &mut Vec<u8>,
) -> Result<Option<LargeStaged<'w>>, StoreError> {
    let (mut staging, file) = Staging::create(writer, size)?;
    let hash = staging.clone_from(&file, source, buffer)?;
    Ok(hash.map(|hash| LargeStaged { staging, hash }))
}

impl<'w> Staging<'w> {
    fn create(writer: &'w StoreWriter<'w>, size: u64) -> Result<(Staging<'w>, File), StoreError> {
        let (temp, name) = (writer.temp()?, unique());
        let file = temp.folder.create(&name)?;
        let path = temp.folder.path_of(&name);
        Ok((Staging { writer, temp, name, path, size, cost: 0, form: Form::Copy, kept: false }, file))
    }

    fn reserve(&mut self, cost: u64) -> Result<(), StoreError> {
        self.writer.reserve(cost)?;
        self.cost += cost;
        Ok(())
    }

    fn give_back(&mut self, cost: u64) {
        self.writer.give_back(cost);
        self.cost -= cost;
    }

    fn write_failed(&self) -> impl Fn(std::io::Error) -> StoreError + use<> {
        let path = self.path.clone();
        move |source| failed("write", &path)(source)
    }

    /// Share the source's data; nothing where the filesystem cannot. The clone is what is hashed: the source may change.
    fn clone_from(
        &mut self,
        file: &File,
        source: BorrowedFd<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<ContentHash>, StoreError> {
        if self.size == 0 || !clone(file.as_fd(), source).map_err(self.write_failed())? {
            return Ok(None);
        }
        self.form = Form::Clone;
        let stat = file_stat(file, &self.path)?;
        self.reserve(allocated(&stat))?;
        if size_of(&stat) != self.size {
            return Err(StoreError::SourceChanged);
        }
        let mut hasher = ContentHasher::new(self.size);
        let failed = |source| failed("read", &self.path)(source);
        each_piece(file.as_fd(), self.size, true, buffer, &failed, &mut |_, piece| {
            feed(&mut hasher, piece);
            Ok(())
        })?;
        chmod(file, &self.path, NEW | KEEP)?;
        hasher.finish().map(Some).ok_or(StoreError::SourceChanged)
    }

    /// Hash and write the same bytes, once read.
    fn copy_from(
        &mut self,
        file: &File,
        source: BorrowedFd<'_>,
        sparse: bool,
        buffer: &mut Vec<u8>,
    ) -> Result<ContentHash, StoreError> {
        let failed = self.write_failed();
        let mut target = Target::new(file.as_fd(), sparse);
        let mut hasher = ContentHasher::new(self.size);
        each_piece(source, self.size, sparse, buffer, &source_failed, &mut |at, piece| {
            feed(&mut hasher, piece);
            let (room, before) = (target.room(piece), target.written());
            self.reserve(room)?;
            target.piece(at, piece).map_err(&failed)?;
            self.give_back(room - (target.written() - before));
            Ok(())
        })?;
        target.finish(self.size).map_err(&failed)?;
        hasher.finish().ok_or(StoreError::SourceChanged)
    }

    /// Compress on the way; nothing when that saves nothing.
    fn pack_from(
        &mut self,
        file: &File,
        source: BorrowedFd<'_>,
        sparse: bool,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<ContentHash>, StoreError> {
        let mut packer = LargePacker::new(file, self.path.clone())?;
        let mut hasher = ContentHasher::new(self.size);
        let mut worth = true;
        let read = each_piece(source, self.size, sparse, buffer, &source_failed, &mut |at, piece| {
            worth = packer.promises();
            if !worth {
                // Only to stop: it is not looked at.
                return Err(StoreError::SourceChanged);
            }
            feed(&mut hasher, piece);
            self.reserve(packer.piece(at, piece)?)
        });
        if !worth {
            return Ok(None);
        }
        read?;
        self.reserve(packer.finish(self.size)?)?;
        self.form = Form::Packed;
        hasher.finish().map(Some).ok_or(StoreError::SourceChanged)
    }
}

fn source_failed(error: std::io::Error) -> StoreError {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => StoreError::SourceChanged,
        _ => StoreError::Source(error),
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // What cannot be removed now goes with the writer's whole folder, or is debris; then it still counts.
        if self.temp.folder.unlink(&self.name).is_ok() {
            self.writer.give_back(self.cost);
        }
    }
}
