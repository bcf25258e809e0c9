//! Content addresses: names of contents, trees and whole snapshots.
//!
//! A file's address is the SHA-256 of its bytes, so it can be checked with `sha256sum`. A file over [`CHUNKED_ABOVE`]
//! is addressed by a hash over the hashes of its chunks, with runs of zero chunks counted instead of read: the same for
//! a hole and for written zeros, and a hole of terabytes costs nothing. The two kinds cannot be confused, because the
//! size decides which one applies.

use std::fmt;
use std::str::FromStr;

use nono_sys::hex;
use once_cell::race::OnceBox;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Size above which files are addressed by chunks.
pub const CHUNKED_ABOVE: u64 = 1 << 30;
/// Size of one chunk.
pub const CHUNK: usize = 1 << 20;

macro_rules! digest {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// The address as 64 hexadecimal digits.
            pub fn hex(&self) -> String {
                self.to_string()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = NotADigest;

            fn from_str(text: &str) -> Result<Self, NotADigest> {
                hex::decode(text).and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or(NotADigest)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

digest! {
    /// Address of a file's content, or of any other stored object.
    ContentHash
}
digest! {
    /// Address of a directory's node: it commits to everything that is restored, and to the excluded entries.
    TreeId
}
digest! {
    /// Value of [`crate::Manifest::merkle_root`]: commits to names, kinds, permission bits, contents and link targets.
    MerkleRoot
}
digest! {
    /// Commits to every attribute that is restored, the frozen rules and the coverage of a whole snapshot.
    StateRoot
}

/// Text that is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256 in hexadecimal digits")]
pub struct NotADigest;

/// Method by which a file's address was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HashKind {
    /// SHA-256 of the bytes.
    Sha256,
    /// Over the chunks, with zero runs counted; for files over 1 GiB.
    Chunked,
}

impl HashKind {
    /// Kind for a file of this size.
    pub const fn of(size: u64) -> HashKind {
        if size > CHUNKED_ABOVE { HashKind::Chunked } else { HashKind::Sha256 }
    }
}

/// SHA-256 of `bytes`, as the address of a small file.
pub fn content_hash(bytes: &[u8]) -> ContentHash {
    ContentHash(digest(&ring::digest::digest(&SHA256, bytes)))
}

/// Address of a chunk of a large file: domain-separated from the address of a file.
pub(crate) fn chunk_hash(bytes: &[u8]) -> [u8; 32] {
    tagged(b"nono chunk v1\0", &[bytes])
}

/// SHA-256 over parts, after a tag that separates its purpose from all others.
pub(crate) fn tagged(tag: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Context::new(&SHA256);
    hash.update(tag);
    for part in parts {
        hash.update(part);
    }
    digest(&hash.finish())
}

fn digest(digest: &ring::digest::Digest) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

/// Computes the address of content that comes in pieces. The size must be known: it decides the kind.
#[derive(Clone)]
pub struct ContentHasher {
    size: u64,
    seen: u64,
    plain: Outer,
    chunks: Option<Chunks>,
}

/// The hash that becomes the address; for the chunked kind, with the bytes hashed after the tag.
#[derive(Clone)]
struct Outer {
    hash: Context,
    trail: Option<Vec<u8>>,
}

impl Outer {
    fn update(&mut self, bytes: impl AsRef<[u8]>) {
        self.hash.update(bytes.as_ref());
        if let Some(trail) = &mut self.trail {
            trail.extend_from_slice(bytes.as_ref());
        }
    }
}

const CHUNKED: &[u8] = b"nono chunked content v1\0";
const ZERO_RUN: u8 = 0;
const HASHED: u8 = 1;

/// One chunk of the chunked kind, as listed by [`Trail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownChunk {
    Zeros,
    Hash([u8; 32]),
}

/// Chunk hashes of a file over [`CHUNKED_ABOVE`]. The address is a hash of these bytes, so it proves them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trail(Vec<u8>);

impl Trail {
    /// `None` unless the address was made from these bytes.
    pub(crate) fn check(bytes: Vec<u8>, address: &ContentHash) -> Option<Trail> {
        (tagged(CHUNKED, &[&bytes]) == address.0).then_some(Trail(bytes))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn size(&self) -> u64 {
        self.0.first_chunk().map_or(0, |size| u64::from_le_bytes(*size))
    }

    /// Chunks in order, each with its repeat count.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (KnownChunk, u64)> + '_ {
        let mut rest = self.0.get(8..).unwrap_or_default();
        std::iter::from_fn(move || {
            let (kind, after) = rest.split_first()?;
            if *kind == ZERO_RUN {
                let (run, after) = after.split_first_chunk()?;
                rest = after;
                return Some((KnownChunk::Zeros, u64::from_le_bytes(*run)));
            }
            let (hash, after) = after.split_first_chunk()?;
            rest = after;
            Some((KnownChunk::Hash(*hash), 1))
        })
    }
}

impl fmt::Debug for ContentHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHasher({} of {} bytes)", self.seen, self.size)
    }
}

/// State of the chunked kind: `outer` takes the completed chunks.
#[derive(Clone)]
struct Chunks {
    filled: usize,
    chunk: Context,
    all_zero: bool,
    zero_run: u64,
}

/// A chunk of zeros. Made on first use: as a constant it would add a megabyte to the binary.
fn zeros() -> &'static [u8] {
    static ZEROS: OnceBox<Vec<u8>> = OnceBox::new();
    ZEROS.get_or_init(|| Box::new(vec![0; CHUNK]))
}

impl ContentHasher {
    pub fn new(size: u64) -> ContentHasher {
        let mut plain = Outer { hash: Context::new(&SHA256), trail: None };
        let chunks = (HashKind::of(size) == HashKind::Chunked).then(|| {
            plain.update(CHUNKED);
            plain.update(size.to_le_bytes());
            Chunks { filled: 0, chunk: Context::new(&SHA256), all_zero: true, zero_run: 0 }
        });
        ContentHasher { size, seen: 0, plain, chunks }
    }

    /// The same, keeping the bytes that a chunked address is made from.
    pub(crate) fn with_trail(size: u64) -> ContentHasher {
        let mut hasher = ContentHasher::new(size);
        hasher.plain.trail = hasher.chunks.is_some().then(|| size.to_le_bytes().to_vec());
        hasher
    }

    /// Add the next chunk of the chunked kind without reading it. False if the position is not at a chunk's start.
    pub(crate) fn known(&mut self, chunk: KnownChunk) -> bool {
        let Some(chunks) = self.chunks.as_mut().filter(|chunks| chunks.filled == 0) else { return false };
        self.seen += CHUNK as u64;
        match chunk {
            KnownChunk::Zeros => chunks.zero_run += 1,
            KnownChunk::Hash(hash) => {
                chunks.close_zeros(&mut self.plain);
                self.plain.update([HASHED]);
                self.plain.update(hash);
            }
        }
        true
    }

    pub fn kind(&self) -> HashKind {
        HashKind::of(self.size)
    }

    /// Add the next bytes.
    pub fn data(&mut self, mut bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        let Some(chunks) = &mut self.chunks else { return self.plain.update(bytes) };
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - chunks.filled));
            chunks.take(now, is_zero(now));
            if chunks.filled == CHUNK {
                chunks.close(&mut self.plain);
            }
            bytes = later;
        }
    }

    /// Add `len` zero bytes, without reading them.
    pub fn zeros(&mut self, mut len: u64) {
        self.seen += len;
        while len > 0 {
            // At a chunk's start, whole zero chunks are only counted.
            if let Some(chunks) = self.chunks.as_mut().filter(|chunks| chunks.filled == 0) {
                let whole = len / CHUNK as u64;
                chunks.zero_run += whole;
                len -= whole * CHUNK as u64;
                if len == 0 {
                    return;
                }
            }
            let room = self.chunks.as_ref().map_or(CHUNK, |chunks| CHUNK - chunks.filled);
            let now = usize::try_from(len).unwrap_or(usize::MAX).min(room);
            self.seen -= now as u64;
            self.data(&zeros()[..now]);
            len -= now as u64;
        }
    }

    /// The address; `None` if the input was not exactly of the promised size.
    pub fn finish(self) -> Option<ContentHash> {
        self.finish_with_trail().map(|(hash, _)| hash)
    }

    pub(crate) fn finish_with_trail(mut self) -> Option<(ContentHash, Option<Trail>)> {
        if self.seen != self.size {
            return None;
        }
        if let Some(chunks) = &mut self.chunks {
            chunks.close(&mut self.plain);
            chunks.close_zeros(&mut self.plain);
        }
        let Outer { hash, trail } = self.plain;
        Some((ContentHash(digest(&hash.finish())), trail.map(Trail)))
    }
}

impl Chunks {
    fn take(&mut self, bytes: &[u8], zero: bool) {
        // A chunk that is zero so far was not hashed yet; hash its zeros once a non-zero byte follows.
        if self.all_zero && !zero {
            self.chunk.update(&zeros()[..self.filled]);
            self.all_zero = false;
        }
        if !self.all_zero {
            self.chunk.update(bytes);
        }
        self.filled += bytes.len();
    }

    fn close(&mut self, outer: &mut Outer) {
        if self.filled == 0 {
            return;
        }
        if self.all_zero && self.filled == CHUNK {
            self.zero_run += 1;
        } else {
            if self.all_zero {
                self.chunk.update(&zeros()[..self.filled]);
            }
            self.close_zeros(outer);
            outer.update([HASHED]);
            outer.update(std::mem::replace(&mut self.chunk, Context::new(&SHA256)).finish());
        }
        self.filled = 0;
        self.all_zero = true;
    }

    fn close_zeros(&mut self, outer: &mut Outer) {
        if self.zero_run > 0 {
            outer.update([ZERO_RUN]);
            outer.update(self.zero_run.to_le_bytes());
            self.zero_run = 0;
        }
    }
}

pub fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(4096).all(|block| *block == zeros()[..block.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_goes_there_and_back() {
        let hash = content_hash(b"abc");
        assert_eq!(hash.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hash.hex().parse(), Ok(hash));
        assert_eq!("ba78".parse::<ContentHash>(), Err(NotADigest));
        assert_eq!("z".repeat(64).parse::<ContentHash>(), Err(NotADigest));
    }

    #[test]
    fn pieces_give_the_same_address_as_the_whole() {
        let bytes: Vec<u8> = (0..100_000u32).map(|n| n.to_le_bytes()[0]).collect();
        let mut hasher = ContentHasher::new(bytes.len() as u64);
        bytes.chunks(777).for_each(|piece| hasher.data(piece));
        assert_eq!(hasher.finish(), Some(content_hash(&bytes)));
    }

    #[test]
    fn another_size_than_promised_has_no_address() {
        let mut hasher = ContentHasher::new(3);
        hasher.data(b"ab");
        assert_eq!(hasher.finish(), None);
    }

    /// A hole, written zeros, and zeros in odd pieces are the same content; one byte more makes another.
    #[test]
    fn holes_and_written_zeros_are_the_same() {
        let size = CHUNKED_ABOVE + 2 * CHUNK as u64 + 5;
        let address = |feed: &dyn Fn(&mut ContentHasher)| {
            let mut hasher = ContentHasher::new(size);
            feed(&mut hasher);
            hasher.finish().unwrap()
        };
        let by_hole = address(&|hasher| {
            hasher.data(b"start");
            hasher.zeros(size - 5);
        });
        let by_writing = address(&|hasher| {
            hasher.data(b"start");
            let mut left = size - 5;
            while left > 0 {
                let now = left.min(999_983);
                hasher.data(&zeros()[..usize::try_from(now).unwrap()]);
                left -= now;
            }
        });
        assert_eq!(by_hole, by_writing);
        let other = address(&|hasher| {
            hasher.data(b"start");
            hasher.zeros(size - 6);
            hasher.data(b"x");
        });
        assert_ne!(by_hole, other);
        let moved = address(&|hasher| {
            hasher.zeros(1);
            hasher.data(b"start");
            hasher.zeros(size - 6);
        });
        assert_ne!(by_hole, moved);
    }

    /// Known chunks need not be read: the address is the same, and so are the bytes it was made from.
    #[test]
    fn known_chunks_give_the_same_address() {
        let size = CHUNKED_ABOVE + CHUNK as u64 + 77;
        let mut read = ContentHasher::with_trail(size);
        read.data(&vec![7; 3 * CHUNK]);
        read.zeros(size - 4 * CHUNK as u64);
        read.data(&vec![8; CHUNK]);
        let (address, trail) = read.finish_with_trail().unwrap();
        let trail = Trail::check(trail.unwrap().as_bytes().to_vec(), &address).unwrap();
        assert_eq!(trail.size(), size);
        let mut known = ContentHasher::with_trail(size);
        let mut left = size / CHUNK as u64;
        for (chunk, times) in trail.runs() {
            for _ in 0..times.min(left) {
                assert!(known.known(chunk));
                left -= 1;
            }
        }
        known.data(&[8; 77]);
        assert_eq!(known.finish_with_trail(), Some((address, Some(trail.clone()))));
        let mut bytes = trail.as_bytes().to_vec();
        bytes[20] ^= 1;
        assert_eq!(Trail::check(bytes, &address), None);
    }

    #[test]
    fn a_hole_of_terabytes_costs_nothing() {
        let mut hasher = ContentHasher::new(8 << 40);
        hasher.zeros(8 << 40);
        assert!(hasher.finish().is_some());
    }
}
