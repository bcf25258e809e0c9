//! Large files in content-defined chunks: the cut points, and the list from which a file is put together.
//!
//! A cut depends only on the bytes around it, so a change moves the cuts next to it and no others: of a changed file
//! only the few new chunks are stored. Chunks are objects of their own kind in packs; a file is
//! `large/<xx>/<address>.chunks`, a list of chunks and holes with a checksum. A hole ends a chunk, and takes no space.
//!
//! A chunk is read only through a list: it is live as long as the list of a live file names it.

use std::collections::HashSet;
use std::io;
use std::os::fd::BorrowedFd;

use fastcdc::v2020::FastCDC;
use xxhash_rust::xxh3::xxh3_64;

use super::error::{Damage, Result, StoreError, StoreProblem, there};
use super::files::{pread, read_all};
use super::handle::Store;
use super::key::{ObjectKey, ObjectKind};
use super::large_names::{LargeName, folder_name, name_of, parse_name};
use super::spans::{SpanPiece, span};

/// Minimum chunk size. With half a megabyte on average, the list of a large file is as small as one changed chunk.
const LEAST: usize = 128 << 10;
const AVERAGE: usize = 512 << 10;
const MOST: usize = 2 << 20;
/// Bytes read before cutting: the cutter needs to see as much as the largest chunk holds.
const WINDOW: usize = 2 * MOST;
/// Maximum chunk size in a list, whatever sizes another version cuts at.
const LONGEST: u64 = 64 << 20;

const MAGIC: [u8; 8] = *b"nonoChk1";
const START: usize = 24;
const PART: usize = 40;
/// Marks a hole in place of an address.
const HOLE: [u8; 32] = [0; 32];

/// A part of a file: a chunk, or a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilePart {
    pub(super) len: u64,
    /// Address of the chunk; `None` for a hole.
    pub(super) chunk: Option<[u8; 32]>,
}

/// Chunk list of a large file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkList {
    pub(super) size: u64,
    pub(super) parts: Vec<FilePart>,
}

impl ChunkList {
    pub(super) fn push(&mut self, part: FilePart) {
        self.size += part.len;
        self.parts.push(part);
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(START + self.parts.len() * PART + 8);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.size.to_le_bytes());
        out.extend_from_slice(&(self.parts.len() as u64).to_le_bytes());
        for part in &self.parts {
            out.extend_from_slice(&part.len.to_le_bytes());
            out.extend_from_slice(&part.chunk.unwrap_or(HOLE));
        }
        let sum = xxh3_64(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    /// Decode a list; `None` if any bit was changed.
    pub(super) fn decode(bytes: &[u8]) -> Option<ChunkList> {
        let (all, sum) = bytes.split_last_chunk::<8>()?;
        let (start, parts) = all.split_at_checked(START)?;
        if start[..8] != MAGIC || u64::from_le_bytes(*sum) != xxh3_64(all) {
            return None;
        }
        let number = |at: usize| start[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let (size, count) = (number(8)?, usize::try_from(number(16)?).ok()?);
        if count.checked_mul(PART) != Some(parts.len()) {
            return None;
        }
        let parts: Vec<FilePart> = parts_of(parts).collect();
        let longest = |part: &FilePart| if part.chunk.is_some() { LONGEST } else { u64::MAX };
        let fits = |sum: u64, part: &FilePart| {
            sum.checked_add(part.len).filter(|_| part.len > 0 && part.len <= longest(part))
        };
        let sum = parts.iter().try_fold(0, fits)?;
        (sum == size).then_some(ChunkList { size, parts })
    }
}

fn parts_of(bytes: &[u8]) -> impl Iterator<Item = FilePart> + '_ {
    bytes.chunks_exact(PART).filter_map(|part| {
        let (len, hash) = part.split_first_chunk::<8>()?;
        let hash: [u8; 32] = *hash.first_chunk()?;
        Some(FilePart { len: u64::from_le_bytes(*len), chunk: (hash != HOLE).then_some(hash) })
    })
}

/// Go through a file of this size, chunk by chunk. `failed` maps read errors; a file that ends early is one.
pub(super) fn each_chunk(
    fd: BorrowedFd<'_>,
    size: u64,
    holes: bool,
    buffer: &mut Vec<u8>,
    failed: &dyn Fn(io::Error) -> StoreError,
    each: &mut dyn FnMut(SpanPiece<'_>) -> Result<()>,
) -> Result<()> {
    let mut at = 0;
    while at < size {
        let span = span(fd, at, size, holes).map_err(failed)?;
        let end = span.offset + span.len;
        if span.hole {
            each(SpanPiece::Zeros(span.len))?;
        } else {
            cut_span(fd, at, end, buffer, failed, each)?;
        }
        at = end;
    }
    Ok(())
}

fn cut_span(
    fd: BorrowedFd<'_>,
    mut at: u64,
    end: u64,
    buffer: &mut Vec<u8>,
    failed: &dyn Fn(io::Error) -> StoreError,
    each: &mut dyn FnMut(SpanPiece<'_>) -> Result<()>,
) -> Result<()> {
    let window = usize::try_from(end - at).unwrap_or(WINDOW).min(WINDOW);
    buffer.resize(window.max(buffer.len()), 0);
    let (mut start, mut filled) = (0, 0);
    while start < filled || at < end {
        if filled - start < MOST && at < end {
            buffer.copy_within(start..filled, 0);
            (start, filled) = (0, filled - start);
            let now = usize::try_from(end - at).unwrap_or(WINDOW).min(window - filled);
            let read = pread(fd, &mut buffer[filled..filled + now], at).map_err(failed)?;
            if read < now {
                return Err(failed(io::ErrorKind::UnexpectedEof.into()));
            }
            filled += now;
            at += now as u64;
        }
        let rest = &buffer[start..filled];
        let (_, len) = FastCDC::new(rest, LEAST, AVERAGE, MOST).cut(0, rest.len());
        each(SpanPiece::Data(&rest[..len]))?;
        start += len;
    }
    Ok(())
}

/// Chunks of some files.
#[derive(Debug, Default)]
pub(super) struct ChunksOf {
    named: HashSet<[u8; 32]>,
    /// Damaged lists. The chunks that can still be read from them are among the named ones.
    pub(super) problems: Vec<StoreProblem>,
}

impl ChunksOf {
    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        self.named.contains(&key.hash)
    }
}

impl Store {
    /// Chunks of a large object; none if it is stored in another form.
    pub(crate) fn chunks_in(&self, key: ObjectKey) -> Result<Vec<ObjectKey>> {
        if key.kind != ObjectKind::Blob {
            return Ok(Vec::new());
        }
        let list = self.large.open_folder(&folder_name(&key.hash));
        let list = list.and_then(|folder| read_all(&folder, &name_of(&key.hash, LargeName::Chunks)));
        let Some((bytes, _)) = there(list)? else { return Ok(Vec::new()) };
        let parts = parts_of(bytes.get(START..).unwrap_or_default());
        let key = |hash| ObjectKey { kind: ObjectKind::Chunk, hash };
        Ok(parts.filter_map(|part| part.chunk).map(key).collect())
    }

    /// Chunks of all files that are `wanted`.
    pub(super) fn chunks_of(&self, wanted: &dyn Fn(ObjectKey) -> bool) -> Result<ChunksOf> {
        let mut found = ChunksOf::default();
        for name in self.large.names()? {
            let folder = self.large.open_folder(&name)?;
            for name in folder.names()? {
                let Some((hash, LargeName::Chunks)) = parse_name(&name) else { continue };
                let key = ObjectKey { kind: ObjectKind::Blob, hash };
                if !wanted(key) {
                    continue;
                }
                // Otherwise another process collected it.
                let Some((bytes, _)) = there(read_all(&folder, &name))? else { continue };
                if ChunkList::decode(&bytes).is_none() {
                    let file = folder.path_of(&name);
                    found.problems.push(StoreProblem { file, object: Some(key), what: Damage::List });
                }
                let parts = parts_of(bytes.get(START..).unwrap_or_default());
                found.named.extend(parts.filter_map(|part| part.chunk));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part() -> impl Strategy<Value = FilePart> {
        (1..LONGEST, proptest::option::of(any::<[u8; 32]>()))
            .prop_map(|(len, chunk)| FilePart { len, chunk: chunk.filter(|hash| *hash != HOLE) })
    }

    proptest! {
        #[test]
        fn a_list_comes_back_and_a_changed_bit_is_seen(parts in proptest::collection::vec(part(), 0..20), at in any::<usize>()) {
            let mut list = ChunkList::default();
            for part in parts {
                list.push(part);
            }
            let mut bytes = list.encode();
            prop_assert_eq!(ChunkList::decode(&bytes), Some(list));
            let at = at % (bytes.len() * 8);
            bytes[at / 8] ^= 1 << (at % 8);
            prop_assert_eq!(ChunkList::decode(&bytes), None);
            bytes.truncate(at / 8);
            prop_assert_eq!(ChunkList::decode(&bytes), None);
        }
    }
}
