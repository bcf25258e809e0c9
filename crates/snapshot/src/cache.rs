//! The stat cache: the result of the last scan of a root, in one block of bytes.
//!
//! The next scan keeps the address of every unchanged file and the node of every unchanged directory. The cache is an
//! optimisation and never a source of truth: when it is missing, damaged, of another filesystem or of a tree that is no
//! longer stored, it is ignored and every file is read.

use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3Default;

use crate::bytes::{Malformed, Reader, Writer};
use crate::dirs::DirId;
use crate::file;
use crate::hash::{MerkleRoot, TreeId, tagged};
use crate::stat::PACKED;

const MAGIC: &[u8; 8] = b"nonoscn1";

/// Result of the last scan of one root.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    bytes: Arc<Vec<u8>>,
    dirs: Vec<RecordSpan>,
    pub(crate) about: CachedRoot,
}

/// Identity of the root that a cache describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CachedRoot {
    pub(crate) root: Vec<u8>,
    /// Filesystem id (`f_fsid`): device numbers change from boot to boot.
    pub(crate) filesystem: [u8; 8],
    /// Stat of the root directory when it was scanned.
    pub(crate) stat: [u8; PACKED],
    /// Boot id at the time of writing: objects stored before the last boot may not have reached the disk.
    pub(crate) boot: [u8; 16],
}

impl CachedRoot {
    /// Whether both describe the same root: path, filesystem and inode. The rest of the stat may have changed.
    pub(crate) fn is_of(&self, now: &CachedRoot) -> bool {
        let inode = |stat: &[u8; PACKED]| crate::stat::Stat::unpack(stat).ino;
        self.root == now.root && self.filesystem == now.filesystem && inode(&self.stat) == inode(&now.stat)
    }
}

#[derive(Clone, Copy, Debug)]
struct RecordSpan {
    start: usize,
    entries: usize,
    end: usize,
}

/// One directory of the last scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedDir<'a> {
    pub(crate) tree: TreeId,
    pub(crate) merkle: MerkleRoot,
    /// Digest of the exclusion rules in force.
    pub(crate) rules: &'a [u8; 32],
    pub(crate) entries: &'a [u8],
    pub(crate) omitted: &'a [u8],
}

const DIR_HEAD: usize = 96;

impl Cache {
    pub(crate) fn dir(&self, id: DirId) -> Option<CachedDir<'_>> {
        let place = self.dirs.get(id as usize)?;
        let head = self.bytes.get(place.start..place.start + DIR_HEAD)?;
        let (tree, rest) = head.split_first_chunk()?;
        let (merkle, rest) = rest.split_first_chunk()?;
        Some(CachedDir {
            tree: TreeId::from_bytes(*tree),
            merkle: MerkleRoot::from_bytes(*merkle),
            rules: rest.first_chunk()?,
            entries: self.bytes.get(place.start + DIR_HEAD..place.entries)?,
            omitted: self.bytes.get(place.entries..place.end)?,
        })
    }

    /// Entries of a directory, shared with the cache.
    pub(crate) fn entries(&self, id: DirId) -> Option<CachedBytes> {
        let place = self.dirs.get(id as usize)?;
        let (start, end) = (place.start + DIR_HEAD, place.entries);
        self.bytes.get(start..end)?;
        Some(CachedBytes::Shared { bytes: self.bytes.clone(), start, end })
    }

    /// Node of the root directory.
    pub(crate) fn tree(&self) -> Option<TreeId> {
        self.dir(0).map(|dir| dir.tree)
    }

    pub(crate) fn load(path: &Path) -> io::Result<Option<Cache>> {
        Ok(file::read_existing(path)?.and_then(|bytes| Cache::decode(bytes).ok()))
    }

    fn decode(bytes: Vec<u8>) -> Result<Cache, Malformed> {
        let mut from = Reader::new(&bytes);
        if from.array::<8>()? != *MAGIC {
            return Err(Malformed("a stat cache"));
        }
        let sum = u64::from_le_bytes(from.array()?);
        if xxhash_rust::xxh3::xxh3_64(from.rest()) != sum {
            return Err(Malformed("a stat cache's checksum"));
        }
        let about = CachedRoot {
            root: from.bytes()?.to_vec(),
            filesystem: from.array()?,
            stat: from.array()?,
            boot: from.array()?,
        };
        let dirs = from.list(|from| {
            let entries = usize::try_from(from.number()?).map_err(|_| Malformed("a length"))?;
            let omitted = usize::try_from(from.number()?).map_err(|_| Malformed("a length"))?;
            Ok((entries, omitted))
        })?;
        let mut start = bytes.len() - from.left();
        let place = |(entries, omitted): (usize, usize)| {
            let at = start;
            let entries = at.checked_add(DIR_HEAD)?.checked_add(entries)?;
            start = entries.checked_add(omitted)?;
            Some(RecordSpan { start: at, entries, end: start })
        };
        let dirs: Option<Vec<RecordSpan>> = dirs.into_iter().map(place).collect();
        let dirs = dirs.filter(|_| start == bytes.len()).ok_or(Malformed("a stat cache's length"))?;
        Ok(Cache { bytes: Arc::new(bytes), dirs, about })
    }
}

/// Owned bytes, or a range of a cache's bytes, so that unchanged entries are in memory once.
#[derive(Clone, Debug)]
pub(crate) enum CachedBytes {
    Own(Vec<u8>),
    Shared { bytes: Arc<Vec<u8>>, start: usize, end: usize },
}

impl Deref for CachedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            CachedBytes::Own(bytes) => bytes,
            CachedBytes::Shared { bytes, start, end } => bytes.get(*start..*end).unwrap_or_default(),
        }
    }
}

/// One directory of a new cache.
#[derive(Debug)]
pub(crate) struct NewDir {
    pub(crate) tree: TreeId,
    pub(crate) merkle: MerkleRoot,
    pub(crate) rules: [u8; 32],
    pub(crate) entries: CachedBytes,
    pub(crate) omitted: Vec<u8>,
}

/// A cache to be saved; `dirs` are in the order of their numbers.
#[derive(Debug)]
pub(crate) struct NewCache {
    pub(crate) about: CachedRoot,
    pub(crate) dirs: Vec<NewDir>,
}

/// Offset of the checksum; it covers everything after it.
const SUM: usize = 8;
const SUMMED: usize = 16;
const BUFFER: usize = 256 << 10;

impl NewCache {
    /// Size on disk in bytes.
    pub(crate) fn size(&self) -> u64 {
        let mut bytes = 0u64;
        // The callback never fails.
        let _ = self.pieces(&mut |piece| {
            bytes += piece.len() as u64;
            Ok(())
        });
        bytes.next_multiple_of(4096)
    }

    /// Replace the file at `path` atomically. Not synced: after a power loss the checksum detects damage. Written in
    /// pieces, because one block would take as much memory again as the scan.
    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        file::replace_by(path, file::Sync::No, |file| {
            let mut hasher = Xxh3Default::new();
            let mut out = io::BufWriter::with_capacity(BUFFER, &mut *file);
            let mut first = true;
            self.pieces(&mut |piece| {
                hasher.update(if first { piece.get(SUMMED..).unwrap_or_default() } else { piece });
                first = false;
                out.write_all(piece)
            })?;
            out.flush()?;
            drop(out);
            file.seek(SeekFrom::Start(SUM as u64))?;
            file.write_all(&hasher.digest().to_le_bytes())
        })
    }

    /// Decode it as if it were read from a file.
    pub(crate) fn into_cache(self) -> Result<Cache, Malformed> {
        let mut bytes = Vec::new();
        let appended: io::Result<()> = self.pieces(&mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        });
        appended.map_err(|_| Malformed("a stat cache"))?;
        drop(self);
        let sum = xxhash_rust::xxh3::xxh3_64(bytes.get(SUMMED..).unwrap_or_default());
        if let Some(place) = bytes.get_mut(SUM..SUMMED) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
        Cache::decode(bytes)
    }

    /// Emit the file's bytes in pieces, zeros for the checksum; the first one has all up to the directories.
    fn pieces(&self, put: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut out = Writer::new();
        out.raw(MAGIC);
        out.raw(&[0; 8]);
        out.bytes(&self.about.root);
        out.raw(&self.about.filesystem);
        out.raw(&self.about.stat);
        out.raw(&self.about.boot);
        out.number(self.dirs.len() as u64);
        for dir in &self.dirs {
            out.number(dir.entries.len() as u64);
            out.number(dir.omitted.len() as u64);
        }
        put(&out.finish())?;
        for dir in &self.dirs {
            for piece in [dir.tree.as_bytes(), dir.merkle.as_bytes(), &dir.rules] {
                put(piece)?;
            }
            put(&dir.entries)?;
            put(&dir.omitted)?;
        }
        Ok(())
    }
}

/// Path of a root's cache in a store.
pub(crate) fn path(store: &Path, root: &Path) -> PathBuf {
    let name = tagged(b"nono root v1\0", &[root.as_os_str().as_encoded_bytes()]);
    store.join("cache").join(nono_sys::hex::encode(&name[..16]))
}
