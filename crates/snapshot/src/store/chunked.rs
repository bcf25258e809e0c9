//! Storing a large file as chunks. Its chunks are appended to the appender's chunk pack, which is rewound if the file
//! is not kept; only after that decision may others rely on them.

use std::collections::HashSet;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::Ordering;

use super::chunks::{ChunkList, FilePart, each_chunk};
use super::error::{Result, StoreError};
use super::files::{failed, pwrite_all, unique};
use super::hashing::Hashing;
use super::key::ObjectKey;
use super::large::LargeName;
use super::large_source::{LargeSource, source_failed};
use super::pack::{BuiltPack, Mark, PackBuilder, pack_name};
use super::pack_record::Codec;
use super::refused;
use super::spans::SpanPiece;
use super::writer::{Appender, Large, OVERHEAD, PACK};
use crate::hash::{ContentHash, chunk_hash};
use crate::pool::locked;

#[derive(Debug)]
pub(super) struct Chunked<'a, 'w> {
    appender: &'a mut Appender<'w>,
    /// Previous position in the chunk pack; `None` if there was none.
    mark: Option<Mark>,
    /// Packs that this file alone filled.
    closed: Vec<BuiltPack>,
    new: HashSet<[u8; 32]>,
    /// Temporary name of the chunk list, once it is written.
    list: Option<String>,
    cost: u64,
    kept: bool,
}

/// Read a file once: each chunk is cut, hashed and stored from the same buffer.
pub(super) fn stage<'a, 'w>(
    appender: &'a mut Appender<'w>,
    source: BorrowedFd<'_>,
    known: &LargeSource,
    mark: refused::Mark,
) -> Result<(Chunked<'a, 'w>, ContentHash)> {
    let mut buffer = std::mem::take(&mut appender.buffer);
    let mut staging = Chunked::begin(appender, known.size)?;
    let mut list = ChunkList::default();
    let (read, hasher) = std::thread::scope(|scope| {
        let mut hashing = Hashing::begin(scope, known.size);
        let read = each_chunk(source, known.size, known.sparse, &mut buffer, &source_failed, &mut |piece| {
            hashing.feed(piece);
            list.push(match piece {
                SpanPiece::Data(bytes) => {
                    FilePart { len: bytes.len() as u64, chunk: Some(staging.put(bytes)?) }
                }
                SpanPiece::Zeros(len) => FilePart { len, chunk: None },
            });
            Ok(())
        });
        (read, hashing.finish())
    });
    staging.appender.buffer = buffer;
    let written = read.and_then(|()| staging.write_list(&list));
    if let Err(StoreError::OverBudget { needed, .. }) = &written {
        staging.appender.writer.store().remember_refused(mark, staging.cost + needed);
    }
    written?;
    let hash = hasher.finish().ok_or(StoreError::SourceChanged)?;
    Ok((staging, hash))
}

impl<'a, 'w> Chunked<'a, 'w> {
    fn begin(appender: &'a mut Appender<'w>, size: u64) -> Result<Chunked<'a, 'w>> {
        // A file that may fill a pack gets its own, so that a full pack can be taken back as a whole.
        if appender.chunks.as_ref().is_some_and(|pack| pack.len() + size >= PACK) {
            let full = appender.chunks.take();
            appender.close_pack(full)?;
        }
        let mark = appender.chunks.as_ref().map(PackBuilder::mark);
        let (closed, new) = (Vec::new(), HashSet::new());
        Ok(Chunked { appender, mark, closed, new, list: None, cost: 0, kept: false })
    }

    fn reserve(&mut self, cost: u64) -> Result<()> {
        self.appender.writer.reserve(cost)?;
        self.cost += cost;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<[u8; 32]> {
        let hash = chunk_hash(bytes);
        let key = ObjectKey::chunk(hash);
        if self.new.contains(&hash) || self.appender.writer.took(&key) || self.appender.stored(&key, 0)? {
            return Ok(hash);
        }
        let packed = self.appender.compressed(bytes)?;
        let (codec, payload) = packed.as_deref().map_or((Codec::Raw, bytes), |packed| (Codec::Zstd, packed));
        self.reserve(payload.len() as u64 + OVERHEAD)?;
        // Only a pack without chunks of other files is closed on the way.
        if self.mark.is_none() && self.appender.chunks.as_ref().is_some_and(|pack| pack.len() >= PACK) {
            self.closed.extend(self.appender.chunks.take().map(PackBuilder::finish).transpose()?);
        }
        let temp = self.appender.writer.temp()?;
        let pack = match &mut self.appender.chunks {
            Some(pack) => pack,
            none => none.insert(PackBuilder::create(&temp.folder, &unique())?),
        };
        let raw = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        pack.append(key, codec, raw, payload)?;
        self.new.insert(hash);
        Ok(hash)
    }

    fn write_list(&mut self, list: &ChunkList) -> Result<()> {
        let (temp, name, bytes) = (self.appender.writer.temp()?, unique(), list.encode());
        self.reserve(bytes.len() as u64)?;
        let file = temp.folder.create(&name)?;
        self.list = Some(name.clone());
        pwrite_all(file.as_fd(), &bytes, 0).map_err(failed("write", &temp.folder.path_of(&name)))
    }

    /// Keep the file; false if it is stored already.
    pub(super) fn keep(mut self, hash: &ContentHash) -> Result<bool> {
        let Some(list) = self.list.clone() else { return Ok(false) };
        let writer = self.appender.writer;
        let large = || Large { files: vec![(LargeName::Chunks, list)], bytes: self.cost };
        if !writer.keep_large(hash, large)? {
            return Ok(false);
        }
        self.kept = true;
        for chunk in self.new.drain() {
            writer.promise(ObjectKey::chunk(chunk));
        }
        locked(&writer.built).append(&mut self.closed);
        Ok(true)
    }

    /// Remove everything that was stored of the file.
    fn take_back(&mut self) -> Result<()> {
        match (self.mark, &mut self.appender.chunks) {
            (Some(mark), Some(pack)) => pack.rewind(mark)?,
            (None, pack) => {
                let open = pack.take();
                let ids = open.iter().map(|pack| &pack.id).chain(self.closed.iter().map(|pack| &pack.id));
                let names: Vec<String> = ids.map(|id| pack_name(id)).chain(self.list.clone()).collect();
                self.remove(&names)?;
                return Ok(());
            }
            (Some(_), None) => {}
        }
        let list = self.list.clone();
        self.remove(list.as_slice())
    }

    fn remove(&self, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let temp = self.appender.writer.temp()?;
        names.iter().try_for_each(|name| temp.folder.unlink(name))
    }
}

impl Drop for Chunked<'_, '_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // A pack that cannot be rewound is in an unknown state: then nothing of this writer is published.
        match self.take_back() {
            Ok(()) => self.appender.writer.give_back(self.cost),
            Err(_) => self.appender.writer.failed.store(true, Ordering::SeqCst),
        }
    }
}
