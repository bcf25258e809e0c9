//! Packs: written once, by appending, and read through their index.
//!
//! A pack appears in `packs/` right before its index does, so a pack without an index is an orphan. Packs are never
//! changed: [`settle`](super::settle) and [`gc`](super::gc) write new ones and then remove the old.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fs::Stat;
use xxhash_rust::xxh3::xxh3_64;

use super::error::{Damage, Result, StoreError};
use super::files::{
    Folder, Fsyncs, chmod, failed, file_stat, pread, pwrite_all, read_all, size_of, sync_file,
};
use super::index::{ObjectIndex, ObjectLocation, PackProperties, encode};
use super::key::ObjectKey;
use super::names::DURABLE;
use super::pack_record::{Codec, HEAD, Head, PACK_START, is_content_of, unpack};
use crate::pool::locked;

const BUFFER: usize = 1 << 20;
/// Size from which on payloads are written without copying them into the buffer.
const DIRECT: usize = BUFFER / 2;

/// A published pack.
#[derive(Debug)]
pub(super) struct Pack {
    pub(super) id: String,
    pub(super) index: ObjectIndex,
    /// Whether the index was damaged, and this one rebuilt from the pack.
    pub(super) remade: bool,
    /// Whether rebuilding stopped before the end of the pack: there may be more in it.
    pub(super) partial: bool,
    /// Whether it was written before the last boot and is not known to be durable: read, but not relied on.
    pub(super) suspect: bool,
    durable: AtomicBool,
    path: PathBuf,
    file: Mutex<Option<Arc<OpenPack>>>,
}

#[derive(Debug)]
pub(super) struct OpenPack {
    pub(super) file: File,
    pub(super) len: u64,
    pub(super) path: PathBuf,
}

pub(super) fn pack_name(id: &str) -> String {
    format!("{id}.pack")
}

pub(super) fn index_name(id: &str) -> String {
    format!("{id}.idx")
}

impl Pack {
    /// Load an index; if it is damaged, rebuild it from the pack, so that one bad bit does not hide every object.
    pub(super) fn load(packs: &Folder, id: &str, boot: [u8; 16]) -> Result<Pack> {
        let (bytes, stat) = read_all(packs, &index_name(id))?;
        let (index, remade, partial) = match ObjectIndex::decode(bytes) {
            Some(index) => (index, false, false),
            None => remake(packs, id).map(|(index, partial)| (index, true, partial))?,
        };
        let durable = is_durable(&stat) && !remade;
        Ok(Pack {
            id: id.to_owned(),
            remade,
            partial,
            suspect: !durable && index.about.boot != boot,
            index,
            durable: AtomicBool::new(durable),
            path: packs.path_of(&pack_name(id)),
            file: Mutex::new(None),
        })
    }

    pub(super) fn is_durable(&self) -> bool {
        self.durable.load(Ordering::Relaxed)
    }

    /// The open pack. It stays open: reading 80,000 objects must not open it 80,000 times.
    pub(super) fn open(&self, packs: &Folder) -> Result<Arc<OpenPack>> {
        let mut file = locked(&self.file);
        if let Some(open) = &*file {
            return Ok(Arc::clone(open));
        }
        let open = Arc::new(OpenPack::open(packs, &self.id)?);
        *file = Some(Arc::clone(&open));
        Ok(open)
    }

    pub(super) fn close(&self) {
        *locked(&self.file) = None;
    }

    pub(super) fn is_open(&self) -> bool {
        locked(&self.file).is_some()
    }

    /// Sync the data, then the index, so that a name never precedes its data. The caller syncs the folder last.
    pub(super) fn sync(&self, packs: &Folder, fsyncs: &Fsyncs) -> Result<()> {
        let index = index_name(&self.id);
        sync_file(&packs.open(&pack_name(&self.id))?, &self.path, false, fsyncs)?;
        sync_file(&packs.open(&index)?, &packs.path_of(&index), true, fsyncs)
    }

    pub(super) fn mark_durable(&self, packs: &Folder) -> Result<()> {
        let index = index_name(&self.id);
        chmod(&packs.open(&index)?, &packs.path_of(&index), DURABLE)?;
        self.durable.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// Whether a file's mode marks it as durable.
pub(super) fn is_durable(stat: &Stat) -> bool {
    stat.st_mode & 0o200 == 0
}

impl OpenPack {
    pub(super) fn open(packs: &Folder, id: &str) -> Result<OpenPack> {
        let name = pack_name(id);
        let (file, path) = (packs.open(&name)?, packs.path_of(&name));
        let stat = file_stat(&file, &path)?;
        Ok(OpenPack { len: size_of(&stat), file, path })
    }

    pub(super) fn starts_well(&self) -> Result<bool> {
        let mut start = [0; PACK_START.len()];
        let read = pread(self.file.as_fd(), &mut start, 0).map_err(failed("read", &self.path))?;
        Ok(read == start.len() && start == PACK_START)
    }

    pub(super) fn damaged(&self, key: Option<ObjectKey>, damage: Damage) -> StoreError {
        StoreError::Damaged { file: self.path.clone(), object: key, damage }
    }

    pub(super) fn head(&self, offset: u64) -> Result<Head> {
        let mut head = [0; HEAD];
        let read = pread(self.file.as_fd(), &mut head, offset).map_err(failed("read", &self.path))?;
        let decoded = (read == HEAD).then(|| Head::decode(&head)).flatten();
        decoded.ok_or_else(|| self.damaged(None, Damage::Record { offset }))
    }

    /// Head and payload of an entry's record, in one read.
    pub(super) fn record(&self, entry: &ObjectLocation) -> Result<(Head, Vec<u8>)> {
        let damaged = |damage| self.damaged(Some(entry.key), damage);
        let offset = entry.offset;
        // Reserve no more memory than the file has bytes.
        if HEAD as u64 + u64::from(entry.stored) > self.len.saturating_sub(offset) {
            return Err(damaged(Damage::Record { offset }));
        }
        let mut record = vec![0; HEAD + entry.stored as usize];
        let read = pread(self.file.as_fd(), &mut record, offset).map_err(failed("read", &self.path))?;
        let head = record.first_chunk().filter(|_| read == record.len()).and_then(Head::decode);
        let head = head.ok_or_else(|| damaged(Damage::Record { offset }))?;
        if ObjectLocation::of(&head, offset) != *entry {
            return Err(damaged(Damage::Disagrees));
        }
        if xxh3_64(&record[HEAD..]) != head.sum {
            return Err(damaged(Damage::Payload { offset }));
        }
        record.drain(..HEAD);
        Ok((head, record))
    }

    /// A whole object, checked against its address.
    pub(super) fn object(&self, entry: &ObjectLocation) -> Result<Vec<u8>> {
        let (head, payload) = self.record(entry)?;
        let bytes = match head.codec {
            Codec::Raw => Some(payload),
            Codec::Zstd => unpack(head.raw, &payload),
        };
        bytes
            .filter(|bytes| is_content_of(&entry.key, bytes))
            .ok_or_else(|| self.damaged(Some(entry.key), Damage::Content))
    }

    /// Visit all records' heads with their offsets; returns the offset where that ended: the pack's end if all is well.
    pub(super) fn walk(&self, from: u64, each: &mut dyn FnMut(Head, u64)) -> Result<u64> {
        let mut offset = from;
        while offset < self.len {
            let head = match self.head(offset) {
                Ok(head) => head,
                Err(StoreError::Damaged { .. }) => return Ok(offset),
                Err(error) => return Err(error),
            };
            let next = offset + HEAD as u64 + u64::from(head.stored);
            if next > self.len {
                return Ok(offset);
            }
            each(head, offset);
            offset = next;
        }
        Ok(offset)
    }
}

/// Rebuild an index from the readable records of a pack; also returns whether that stopped before the end.
fn remake(packs: &Folder, id: &str) -> Result<(ObjectIndex, bool)> {
    let pack = OpenPack::open(packs, id)?;
    let mut entries = Vec::new();
    let end = pack
        .walk(PACK_START.len() as u64, &mut |head, offset| entries.push(ObjectLocation::of(&head, offset)))?;
    entries.sort_by_key(|entry| (entry.key.hash, entry.key.kind.byte()));
    entries.dedup_by_key(|entry| entry.key);
    let about = PackProperties { pack_len: end, boot: [0; 16], settled: false };
    let index = ObjectIndex::decode(encode(&mut entries, &about));
    Ok((index.ok_or_else(|| pack.damaged(None, Damage::Index))?, end < pack.len))
}

/// A pack being written, in a temporary folder.
#[derive(Debug)]
pub(super) struct PackBuilder {
    file: File,
    pub(super) id: String,
    path: PathBuf,
    buffer: Vec<u8>,
    written: u64,
    entries: Vec<ObjectLocation>,
}

/// A position in a pack being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    len: u64,
    entries: usize,
}

/// A pack that is complete but for its index.
#[derive(Debug)]
pub(super) struct BuiltPack {
    pub(super) id: String,
    len: u64,
    pub(super) entries: Vec<ObjectLocation>,
}

impl PackBuilder {
    pub(super) fn create(folder: &Folder, id: &str) -> Result<PackBuilder> {
        let name = pack_name(id);
        let file = folder.create(&name)?;
        let mut buffer = Vec::with_capacity(BUFFER);
        buffer.extend_from_slice(&PACK_START);
        Ok(PackBuilder {
            file,
            path: folder.path_of(&name),
            id: id.to_owned(),
            buffer,
            written: 0,
            entries: Vec::new(),
        })
    }

    pub(super) fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Append one object. `raw` is its length, `payload` its stored bytes.
    pub(super) fn append(&mut self, key: ObjectKey, codec: Codec, raw: u32, payload: &[u8]) -> Result<()> {
        let offset = self.len();
        let size = payload.len() as u64;
        let stored =
            u32::try_from(size).map_err(|_| StoreError::TooLarge { size, dir: self.path.clone() })?;
        let head = Head { key, codec, raw, stored, sum: xxh3_64(payload) };
        if self.buffer.len() + HEAD > BUFFER {
            self.flush()?;
        }
        self.buffer.extend_from_slice(&head.encode());
        if self.buffer.len() + payload.len() > BUFFER {
            self.flush()?;
        }
        if payload.len() >= DIRECT {
            self.flush()?;
            self.write(payload)?;
            self.written += payload.len() as u64;
        } else {
            self.buffer.extend_from_slice(payload);
        }
        self.entries.push(ObjectLocation::of(&head, offset));
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        pwrite_all(self.file.as_fd(), bytes, self.written).map_err(failed("write", &self.path))
    }

    fn flush(&mut self) -> Result<()> {
        self.write(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { len: self.len(), entries: self.entries.len() }
    }

    /// Rewind to a position, dropping everything appended since.
    pub(super) fn rewind(&mut self, mark: Mark) -> Result<()> {
        if mark.len < self.written {
            let failed = |source| failed("cut", &self.path)(source);
            crate::disk::step().map_err(failed)?;
            rustix::fs::ftruncate(&self.file, mark.len).map_err(|errno| failed(errno.into()))?;
            self.written = mark.len;
            self.buffer.clear();
        } else {
            self.buffer.truncate(usize::try_from(mark.len - self.written).unwrap_or(0));
        }
        self.entries.truncate(mark.entries);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<BuiltPack> {
        self.flush()?;
        Ok(BuiltPack { id: self.id, len: self.written, entries: self.entries })
    }
}

impl BuiltPack {
    /// Write the index and move both into `packs`: the pack first, so that an index always finds its pack.
    pub(super) fn publish(
        mut self,
        from: &Folder,
        packs: &Folder,
        boot: [u8; 16],
        durable: Option<&Fsyncs>,
    ) -> Result<u64> {
        let (pack, index) = (pack_name(&self.id), index_name(&self.id));
        let about = PackProperties { pack_len: self.len, boot, settled: durable.is_some() };
        let bytes = encode(&mut self.entries, &about);
        let file = from.create(&index)?;
        let path = from.path_of(&index);
        pwrite_all(file.as_fd(), &bytes, 0).map_err(failed("write", &path))?;
        if let Some(fsyncs) = durable {
            sync_file(&from.open(&pack)?, &from.path_of(&pack), false, fsyncs)?;
            chmod(&file, &path, DURABLE)?;
            sync_file(&file, &path, true, fsyncs)?;
        }
        from.rename(&pack, packs, &pack)?;
        from.rename(&index, packs, &index)?;
        if let Some(fsyncs) = durable {
            packs.sync(fsyncs)?;
        }
        Ok(self.len + bytes.len() as u64)
    }
}
