//! Hashes a clone using an earlier clone of the same file: only the differing parts are read.
//!
//! Two files whose extents have the same address on the filesystem share the bytes there. Both files are clones in the
//! store, made before the comparison and never written, so a process that writes to its own file meanwhile cannot
//! falsify the result; it can only make its file share data with the earlier clone, and then the bytes are the same.
//! Extents whose address says nothing (compressed, inline, not written yet) count as different. The filesystem may move
//! data meanwhile: the extents of the earlier clone are read twice, and must be equal.
//!
//! The address of a file up to 1 GiB needs all its bytes: if it differs anywhere, it is read in full.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::path::Path;

use nono_sys::extents::{Extent, extents};

use super::error::{Result, StoreError, there};
use super::files::{failed, file_stat, read_all, size_of};
use super::handle::Store;
use super::large::{LargeName, feed, folder_name, is_suspect, name_of};
use super::large_source::LargeSource;
use super::spans::{SpanPiece, each_piece};
use crate::hash::{CHUNK, ContentHash, ContentHasher, HashKind, Trail};

/// Hash of a clone.
pub(super) struct Hashed {
    pub(super) hash: ContentHash,
    /// Bytes that the hash was made from; only for files over 1 GiB.
    pub(super) trail: Option<Trail>,
    /// Number of bytes read for it.
    pub(super) read: u64,
}

pub(super) fn hash(
    store: &Store,
    clone: &File,
    path: &Path,
    known: &LargeSource,
    buffer: &mut Vec<u8>,
) -> Result<Hashed> {
    let before = match known.before {
        Some(hash) => Before::open(store, hash)?,
        None => None,
    };
    let Some(before) = before else { return Reading::new(clone, path, known.size, buffer).all() };
    let same = before.same_stretches(clone, path, known.size)?;
    if before.size == known.size && covers(&same, &(0..known.size)) {
        return Ok(Hashed { hash: before.hash, trail: before.trail(store)?, read: 0 });
    }
    let reading = Reading::new(clone, path, known.size, buffer);
    match before.trail(store)? {
        Some(trail) if HashKind::of(known.size) == HashKind::Chunked => reading.with(&trail, &same),
        _ => reading.all(),
    }
}

/// Clone of the file's previous content.
struct Before {
    hash: ContentHash,
    file: File,
    size: u64,
}

impl Before {
    /// `None` if it is not stored as a clone, or may have been damaged by a power loss.
    fn open(store: &Store, hash: ContentHash) -> Result<Option<Before>> {
        let found = store
            .large
            .open_folder(&folder_name(hash.as_bytes()))
            .and_then(|folder| Ok((folder.open(&name_of(hash.as_bytes(), LargeName::Plain))?, folder)));
        let Some((file, folder)) = there(found)? else { return Ok(None) };
        let stat = file_stat(&file, folder.path())?;
        let before = Before { hash, file, size: size_of(&stat) };
        Ok((!is_suspect(&stat)).then_some(before))
    }

    /// Ranges in which both clones have the same bytes, in order.
    fn same_stretches(&self, clone: &File, path: &Path, size: u64) -> Result<Vec<Range<u64>>> {
        let ask = |file: &File| extents(file, true).map_err(failed("read", path));
        let (first, now, again) = (ask(&self.file)?, ask(clone)?, ask(&self.file)?);
        Ok(match (first, now) {
            (Some(before), Some(now)) if again.as_ref() == Some(&before) => {
                same(&before, &now, size.min(self.size))
            }
            _ => Vec::new(),
        })
    }

    /// Its chunk hashes, if they are stored.
    fn trail(&self, store: &Store) -> Result<Option<Trail>> {
        if HashKind::of(self.size) != HashKind::Chunked {
            return Ok(None);
        }
        let folder = store.large.open_folder(&folder_name(self.hash.as_bytes()))?;
        let found = there(read_all(&folder, &name_of(self.hash.as_bytes(), LargeName::Hashes)))?;
        Ok(found.and_then(|(bytes, _)| Trail::check(bytes, &self.hash)))
    }
}

/// A clone being hashed.
struct Reading<'a> {
    clone: &'a File,
    path: &'a Path,
    size: u64,
    buffer: &'a mut Vec<u8>,
    hasher: ContentHasher,
    read: u64,
}

impl<'a> Reading<'a> {
    fn new(clone: &'a File, path: &'a Path, size: u64, buffer: &'a mut Vec<u8>) -> Reading<'a> {
        Reading { clone, path, size, buffer, hasher: ContentHasher::with_trail(size), read: 0 }
    }

    fn all(mut self) -> Result<Hashed> {
        self.stretch(0..self.size)?;
        self.finish()
    }

    /// Hash using known chunks. Equal chunks are not read, except an incomplete last one.
    fn with(mut self, trail: &Trail, same: &[Range<u64>]) -> Result<Hashed> {
        let whole = self.size.min(trail.size()) / CHUNK as u64;
        let mut from = 0;
        let mut number = 0;
        for (chunk, times) in trail.runs() {
            for _ in 0..times {
                let place = number * CHUNK as u64..(number + 1) * CHUNK as u64;
                if number >= whole {
                    break;
                }
                if covers(same, &place) {
                    self.stretch(from..place.start)?;
                    self.hasher.known(chunk);
                    from = place.end;
                }
                number += 1;
            }
        }
        self.stretch(from..self.size)?;
        self.finish()
    }

    fn stretch(&mut self, part: Range<u64>) -> Result<()> {
        let failed = |source| failed("read", self.path)(source);
        let (hasher, read) = (&mut self.hasher, &mut self.read);
        each_piece(self.clone.as_fd(), part, true, self.buffer, &failed, &mut |_, piece: SpanPiece<'_>| {
            feed(hasher, piece);
            *read += piece.data_len();
            Ok(())
        })
    }

    fn finish(self) -> Result<Hashed> {
        let (hash, trail) = self.hasher.finish_with_trail().ok_or(StoreError::SourceChanged)?;
        Ok(Hashed { hash, trail, read: self.read })
    }
}

fn covers(stretches: &[Range<u64>], wanted: &Range<u64>) -> bool {
    let place = stretches.partition_point(|stretch| stretch.end < wanted.end);
    stretches.get(place).is_some_and(|stretch| stretch.start <= wanted.start)
}

/// Content of a file at an offset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Here {
    Hole,
    At(u64),
    /// Unknown until the data is read.
    Unknown,
}

/// Content at `at`, and where it ends.
fn here(extent: Option<&Extent>, at: u64, end: u64) -> (Here, u64) {
    match extent {
        None => (Here::Hole, end),
        Some(extent) if extent.logical > at => (Here::Hole, extent.logical.min(end)),
        Some(extent) if extent.is_addressed() => {
            (Here::At(extent.physical + (at - extent.logical)), extent.end().min(end))
        }
        Some(extent) => (Here::Unknown, extent.end().min(end)),
    }
}

/// Ranges in which two files have the same extents, up to `end`.
fn same(before: &[Extent], now: &[Extent], end: u64) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    let (mut before, mut now) = (before, now);
    let mut at = 0;
    while at < end {
        before = &before[before.partition_point(|extent| extent.end() <= at)..];
        now = &now[now.partition_point(|extent| extent.end() <= at)..];
        let (one, one_end) = here(before.first(), at, end);
        let (other, other_end) = here(now.first(), at, end);
        let next = one_end.min(other_end).max(at + 1);
        if one == other && one != Here::Unknown {
            match found.last_mut() {
                Some(last) if last.end == at => last.end = next,
                _ => found.push(at..next),
            }
        }
        at = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPRESSED: u32 = 0x8;
    const UNWRITTEN: u32 = 0x800;

    fn at(logical: u64, physical: u64, len: u64, flags: u32) -> Extent {
        Extent { logical, physical, len, flags }
    }

    #[test]
    fn only_the_same_address_at_the_same_place_is_the_same() {
        let before = [at(0, 1000, 100, 0), at(100, 5000, 100, 0), at(300, 7000, 100, 0)];
        assert_eq!(same(&before, &before, 500), std::slice::from_ref(&(0..500)), "holes are the same, too");
        // The second differs, the third begins elsewhere.
        let now = [at(0, 1000, 100, 0), at(100, 6000, 100, 0), at(290, 7000, 100, 0)];
        assert_eq!(same(&before, &now, 500), [0..100, 200..290, 400..500]);
        // A part of an extent, and a shorter file.
        let now = [at(0, 1000, 50, 0), at(50, 9000, 50, 0), at(100, 5000, 60, 0)];
        assert_eq!(same(&before, &now, 150), [0..50, 100..150]);
        let moved = [at(0, 1050, 50, 0)];
        assert_eq!(same(&before, &moved, 50), []);
    }

    #[test]
    fn an_address_that_says_nothing_is_never_the_same() {
        for flags in [0x2, 0x4, COMPRESSED, 0x80, 0x100, 0x200, 0x400, UNWRITTEN] {
            let vague = [at(0, 1000, 100, flags)];
            assert_eq!(same(&vague, &vague, 100), [], "flag {flags:#x}");
        }
        let nowhere = [at(0, 0, 100, 0)];
        assert_eq!(same(&nowhere, &nowhere, 100), []);
    }

    #[test]
    fn a_stretch_is_covered_by_one_that_holds_all_of_it() {
        let stretches = [0..100, 200..300];
        for (wanted, is) in
            [(0..100, true), (10..20, true), (90..110, false), (100..200, false), (250..300, true)]
        {
            assert_eq!(covers(&stretches, &wanted), is, "{wanted:?}");
        }
    }
}
