//! Index of a pack: sorted keys, and the offsets of their records.
//!
//! It is kept as the bytes on disk and searched there: 80,000 objects cost 4 MB, and nothing is parsed. Its checksum
//! covers everything, `verify` compares it with the pack, and readers check each record against its key.

use xxhash_rust::xxh3::xxh3_64;

use super::key::{ObjectKey, ObjectKind};
use super::pack_record::{Codec, Head};

const MAGIC: [u8; 16] = *b"nono index v1\r\n\0";
const START: usize = 56;
const ENTRY: usize = 52;
const SETTLED: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectLocation {
    pub(super) key: ObjectKey,
    pub(super) codec: Codec,
    pub(super) raw: u32,
    pub(super) stored: u32,
    /// Offset of the record in the pack.
    pub(super) offset: u64,
}

impl ObjectLocation {
    pub(super) fn of(head: &Head, offset: u64) -> ObjectLocation {
        ObjectLocation { key: head.key, codec: head.codec, raw: head.raw, stored: head.stored, offset }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key.hash);
        out.extend_from_slice(&[self.key.kind.byte(), self.codec.byte(), 0, 0]);
        out.extend_from_slice(&self.raw.to_le_bytes());
        out.extend_from_slice(&self.stored.to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<ObjectLocation> {
        let mut hash = [0; 32];
        hash.copy_from_slice(bytes.get(..32)?);
        let key = ObjectKey { kind: ObjectKind::from_byte(bytes[32])?, hash };
        let codec = Codec::from_byte(bytes[33])?;
        let (raw, stored) = (small(bytes, 36)?, small(bytes, 40)?);
        Some(ObjectLocation { key, codec, raw, stored, offset: long(bytes, 44)? })
    }
}

fn small(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Properties of the whole pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackProperties {
    pub(super) pack_len: u64,
    /// Boot in which it was written.
    pub(super) boot: [u8; 16],
    /// Whether it was compressed and made durable.
    pub(super) settled: bool,
}

#[derive(Debug)]
pub(super) struct ObjectIndex {
    bytes: Vec<u8>,
    pub(super) about: PackProperties,
    /// Number of keys that start with a lower byte, for each byte.
    fanout: Box<[u32; 257]>,
}

/// Encode an index file.
pub(super) fn encode(entries: &mut [ObjectLocation], about: &PackProperties) -> Vec<u8> {
    entries.sort_unstable_by(|a, b| order(&a.key).cmp(&order(&b.key)));
    let mut out = Vec::with_capacity(START + entries.len() * ENTRY + 8);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&(entries.len() as u64).to_le_bytes());
    out.extend_from_slice(&about.pack_len.to_le_bytes());
    out.extend_from_slice(&about.boot);
    out.extend_from_slice(&(if about.settled { SETTLED } else { 0 }).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    for entry in entries.iter() {
        entry.encode(&mut out);
    }
    let sum = xxh3_64(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

fn order(key: &ObjectKey) -> (&[u8; 32], u8) {
    (&key.hash, key.kind.byte())
}

impl ObjectIndex {
    /// Decode an index; `None` if any bit was changed.
    pub(super) fn decode(bytes: Vec<u8>) -> Option<ObjectIndex> {
        let (all, sum) = bytes.split_last_chunk::<8>()?;
        if all.len() < START || all[..16] != MAGIC || u64::from_le_bytes(*sum) != xxh3_64(all) {
            return None;
        }
        let count = usize::try_from(long(all, 16)?).ok()?;
        if count.checked_mul(ENTRY)? != all.len() - START || u32::try_from(count).is_err() {
            return None;
        }
        let mut boot = [0; 16];
        boot.copy_from_slice(&all[32..48]);
        let about =
            PackProperties { pack_len: long(all, 24)?, boot, settled: small(all, 48)? & SETTLED != 0 };
        let fanout = fanout(&all[START..])?;
        Some(ObjectIndex { bytes, about, fanout })
    }

    pub(super) fn len(&self) -> usize {
        self.fanout[256] as usize
    }

    fn at(&self, place: usize) -> &[u8] {
        &self.bytes[START + place * ENTRY..][..ENTRY]
    }

    pub(super) fn find(&self, key: &ObjectKey) -> Option<ObjectLocation> {
        let first = usize::from(key.hash[0]);
        let (mut low, mut high) = (self.fanout[first] as usize, self.fanout[first + 1] as usize);
        while low < high {
            let middle = low.midpoint(high);
            let found = self.at(middle);
            match found[..32].cmp(&key.hash[..]).then(found[32].cmp(&key.kind.byte())) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return ObjectLocation::decode(found),
            }
        }
        None
    }

    /// All entries, by key. Invalid ones are skipped; `verify` counts them as missing.
    pub(super) fn entries(&self) -> impl Iterator<Item = ObjectLocation> + '_ {
        (0..self.len()).filter_map(|place| ObjectLocation::decode(self.at(place)))
    }
}

/// Counts by first byte; `None` if the keys are not in strictly rising order.
fn fanout(entries: &[u8]) -> Option<Box<[u32; 257]>> {
    let mut fanout = Box::new([0u32; 257]);
    let mut last: Option<&[u8]> = None;
    for entry in entries.chunks_exact(ENTRY) {
        let key = &entry[..33];
        if last.is_some_and(|last| last >= key) {
            return None;
        }
        fanout[usize::from(key[0]) + 1] += 1;
        last = Some(key);
    }
    for byte in 0..256 {
        fanout[byte + 1] += fanout[byte];
    }
    Some(fanout)
}
