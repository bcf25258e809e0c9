//! Scan result of one directory as packed bytes: the form in which it is kept from one capture to the next.
//!
//! An unchanged entry is carried over by copying its bytes. Records are read back only from our own files, which have a
//! checksum, but are checked like all other input.

use rustix::fs::FileType;

use crate::bytes::{Malformed, Reader, Writer};
use crate::dirs::DirId;
use crate::hash::ContentHash;
use crate::node::{Entry, Kind, Meta, Name, Omitted, Xattr};
use crate::stat::{PACKED, Stat};

/// Every change since the content was read shows in `ctime`.
pub(crate) const TRUSTED: u8 = 1;
/// Captured although a rule matches; judged again each time.
pub(crate) const ANYWAY: u8 = 2;
/// The file had holes.
pub(crate) const SPARSE: u8 = 4;

/// Data of an entry besides its stat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    File(ContentHash),
    Dir(DirId),
    Link(Box<[u8]>),
    Device(u64),
    Nothing,
}

/// One entry of a record.
#[derive(Clone, Debug)]
pub(crate) struct RecordedEntry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) flags: u8,
    pub(crate) packed: &'a [u8; PACKED],
    pub(crate) payload: Payload,
    pub(crate) xattrs: Vec<Xattr>,
    /// The whole encoded entry, to be carried over.
    pub(crate) raw: &'a [u8],
}

/// Write an entry.
pub(crate) fn put(
    out: &mut Writer,
    name: &[u8],
    flags: u8,
    packed: &[u8; PACKED],
    payload: &Payload,
    xattrs: &[Xattr],
) {
    out.bytes(name);
    out.byte(flags);
    out.raw(packed);
    match payload {
        Payload::File(hash) => out.raw(hash.as_bytes()),
        Payload::Dir(id) => out.raw(&id.to_le_bytes()),
        Payload::Link(target) => out.bytes(target),
        Payload::Device(rdev) => out.number(*rdev),
        Payload::Nothing => {}
    }
    Xattr::encode_all(xattrs, out);
}

/// Iterator over the entries of a record.
#[derive(Debug)]
pub(crate) struct Entries<'a>(Reader<'a>);

impl<'a> Entries<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Entries<'a> {
        Entries(Reader::new(bytes))
    }

    fn read(&mut self) -> Result<RecordedEntry<'a>, Malformed> {
        let from = &mut self.0;
        let start = from.rest();
        let name = from.bytes()?;
        let flags = from.byte()?;
        let packed = from.raw(PACKED)?.first_chunk().ok_or(Malformed("a record"))?;
        let kind = FileType::from_raw_mode(Stat::unpack(packed).mode);
        let payload = match kind {
            FileType::RegularFile => Payload::File(ContentHash::from_bytes(from.array()?)),
            FileType::Directory => Payload::Dir(DirId::from_le_bytes(from.array()?)),
            FileType::Symlink => Payload::Link(from.bytes()?.into()),
            FileType::CharacterDevice | FileType::BlockDevice => Payload::Device(from.number()?),
            FileType::Fifo | FileType::Socket => Payload::Nothing,
            FileType::Unknown => return Err(Malformed("a record")),
        };
        let xattrs = Xattr::decode_all(from)?;
        let raw = start.get(..start.len() - from.left()).ok_or(Malformed("a record"))?;
        Ok(RecordedEntry { name, flags, packed, payload, xattrs, raw })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<RecordedEntry<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.0.left() > 0).then(|| self.read())
    }
}

impl RecordedEntry<'_> {
    pub(crate) fn stat(&self) -> Stat {
        Stat::unpack(self.packed)
    }

    /// Convert to a node's entry; `dir` gives the node of a directory.
    pub(crate) fn entry(
        &self,
        links: &Links,
        dir: impl Fn(DirId) -> Option<Kind>,
    ) -> Result<Entry, Malformed> {
        let stat = self.stat();
        let meta = Meta {
            mode: stat.permissions(),
            mtime: stat.mtime,
            uid: stat.uid,
            gid: stat.gid,
            link: (!stat.is_dir() && stat.nlink > 1).then_some(stat.ino),
            linked_outside: links.reach_outside(&stat),
            xattrs: self.xattrs.clone(),
        };
        let kind = match &self.payload {
            Payload::File(hash) => {
                Kind::File { hash: *hash, size: stat.size, sparse: self.flags & SPARSE != 0 }
            }
            Payload::Dir(id) => dir(*id).ok_or(Malformed("a record's directory"))?,
            Payload::Link(target) => Kind::Symlink { target: target.clone() },
            Payload::Device(rdev) if stat.kind() == FileType::BlockDevice => {
                Kind::BlockDevice { rdev: *rdev }
            }
            Payload::Device(rdev) => Kind::CharDevice { rdev: *rdev },
            Payload::Nothing if stat.kind() == FileType::Fifo => Kind::Fifo,
            Payload::Nothing => Kind::Socket,
        };
        Ok(Entry { name: Name::new(self.name).ok_or(Malformed("a name"))?, meta, kind })
    }
}

/// Number of names found in the whole tree, for each file with several names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links(std::collections::HashMap<u64, u32>);

impl Links {
    pub(crate) fn count(&mut self, stat: &Stat) {
        if !stat.is_dir() && stat.nlink > 1 {
            *self.0.entry(stat.ino).or_default() += 1;
        }
    }

    pub(crate) fn merge(&mut self, other: Links) {
        for (ino, count) in other.0 {
            *self.0.entry(ino).or_default() += count;
        }
    }

    fn reach_outside(&self, stat: &Stat) -> bool {
        !stat.is_dir() && stat.nlink > 1 && self.0.get(&stat.ino).is_none_or(|found| *found < stat.nlink)
    }
}

/// Write the excluded entries.
pub(crate) fn put_omitted(omitted: &[Omitted]) -> Vec<u8> {
    let mut out = Writer::new();
    for omitted in omitted {
        omitted.encode(&mut out);
    }
    out.finish()
}

pub(crate) fn omitted(bytes: &[u8]) -> Result<Vec<Omitted>, Malformed> {
    let mut from = Reader::new(bytes);
    let mut all = Vec::new();
    while from.left() > 0 {
        all.push(Omitted::decode(&mut from)?);
    }
    Ok(all)
}
