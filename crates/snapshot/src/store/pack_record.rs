//! One record of a pack: a fixed head, then one object's bytes as they are stored.
//!
//! The head has a checksum of itself and one of the payload, so that every changed bit is found without decoding, and
//! the object's address, so that an index can be checked against its pack, or rebuilt from it. Lengths in a head are
//! trusted only as far as there are bytes.

use std::cell::RefCell;
use std::io::Read as _;

use xxhash_rust::xxh3::xxh3_64;

use super::key::{ObjectKey, ObjectKind};
use crate::hash::content_hash;
use crate::node::tree_id;

/// First bytes of a pack.
pub(super) const PACK_START: [u8; 16] = *b"nono pack v1 \r\n\0";
/// Length of a record's head.
pub(super) const HEAD: usize = 64;

const MAGIC: [u8; 4] = *b"nRec";
/// Maximum stated length for which memory is reserved at once.
const TRUSTED: usize = 16 << 20;
/// Compression level, chosen by measuring: level 1 is 10 % faster and 5 % larger, level 5 takes twice the time for 8 %.
pub(super) const LEVEL: i32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Codec {
    Raw = 0,
    Zstd = 1,
}

impl Codec {
    /// Number of the codec on disk.
    pub(super) fn byte(self) -> u8 {
        self as u8
    }

    pub(super) fn from_byte(byte: u8) -> Option<Codec> {
        [Codec::Raw, Codec::Zstd].into_iter().find(|codec| codec.byte() == byte)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) key: ObjectKey,
    pub(super) codec: Codec,
    /// Length of the object.
    pub(super) raw: u32,
    /// Length of the payload.
    pub(super) stored: u32,
    /// xxh3 of the payload.
    pub(super) sum: u64,
}

impl Head {
    pub(super) fn encode(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&MAGIC);
        head[4] = self.key.kind.byte();
        head[5] = self.codec.byte();
        head[8..12].copy_from_slice(&self.raw.to_le_bytes());
        head[12..16].copy_from_slice(&self.stored.to_le_bytes());
        head[16..48].copy_from_slice(&self.key.hash);
        head[48..56].copy_from_slice(&self.sum.to_le_bytes());
        let sum = xxh3_64(&head[..56]);
        head[56..].copy_from_slice(&sum.to_le_bytes());
        head
    }

    /// Decode a head; `None` if any bit was changed.
    pub(super) fn decode(head: &[u8; HEAD]) -> Option<Head> {
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let long = |at: usize| u64::from(number(at)) | u64::from(number(at + 4)) << 32;
        if head[..4] != MAGIC || long(56) != xxh3_64(&head[..56]) {
            return None;
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(&head[16..48]);
        let key = ObjectKey { kind: ObjectKind::from_byte(head[4])?, hash };
        let codec = Codec::from_byte(head[5])?;
        let head = Head { key, codec, raw: number(8), stored: number(12), sum: long(48) };
        (codec == Codec::Zstd || head.raw == head.stored).then_some(head)
    }
}

/// Whether these bytes match the key.
pub(super) fn is_content_of(key: &ObjectKey, bytes: &[u8]) -> bool {
    key.hash
        == match key.kind {
            // Packs hold no chunked content, which begins at 1 GiB, but an exact check is cheap.
            ObjectKind::Blob if bytes.len() as u64 > crate::hash::CHUNKED_ABOVE => {
                let mut hasher = crate::hash::ContentHasher::new(bytes.len() as u64);
                hasher.data(bytes);
                return hasher.finish().is_some_and(|hash| *hash.as_bytes() == key.hash);
            }
            ObjectKind::Blob | ObjectKind::Rules => *content_hash(bytes).as_bytes(),
            ObjectKind::Tree => *tree_id(bytes).as_bytes(),
            ObjectKind::Chunk => crate::hash::chunk_hash(bytes),
        }
}

thread_local! {
    /// Reused decoder: making one takes longer than decoding a small object.
    static DECODER: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Decompress a payload; `None` if it does not give exactly `raw` bytes.
pub(super) fn unpack(raw: u32, payload: &[u8]) -> Option<Vec<u8>> {
    let raw = usize::try_from(raw).ok()?;
    let bytes = if raw <= TRUSTED {
        DECODER.with_borrow_mut(|decoder| match decoder {
            Some(decoder) => decoder.decompress(payload, raw).ok(),
            none => none.insert(zstd::bulk::Decompressor::new().ok()?).decompress(payload, raw).ok(),
        })?
    } else {
        let mut bytes = Vec::new();
        let decoder = zstd::stream::read::Decoder::with_buffer(payload).ok()?;
        decoder.take(raw as u64 + 1).read_to_end(&mut bytes).ok()?;
        bytes
    };
    (bytes.len() == raw).then_some(bytes)
}

/// Compresses objects; those that do not become smaller stay as they are.
pub(super) struct Packer(zstd::bulk::Compressor<'static>);

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Packer")
    }
}

impl Packer {
    pub(super) fn new() -> std::io::Result<Packer> {
        zstd::bulk::Compressor::new(LEVEL).map(Packer)
    }

    /// Compressed bytes; `None` if compression is not worth it.
    pub(super) fn pack(&mut self, bytes: &[u8]) -> std::io::Result<Option<Vec<u8>>> {
        if bytes.len() < 64 {
            return Ok(None);
        }
        let packed = self.0.compress(bytes)?;
        Ok((packed.len() < bytes.len() - bytes.len() / 32).then_some(packed))
    }
}
