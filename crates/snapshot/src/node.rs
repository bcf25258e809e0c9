//! Nodes: one per directory, with its entries and the excluded names.
//!
//! Children are referenced by the address of their own node, so equal subtrees are one node, on disk and in comparison,
//! and nothing here recurses. A node's bytes are checked when they are read: names are single components in strictly
//! rising order, so no node can name a path outside its root, and each node has one encoding only.

use std::fmt;
use std::path::Path;

use crate::bytes::{Malformed, Reader, Writer};
use crate::hash::{ContentHash, MerkleRoot, TreeId, tagged};
use crate::paths;

/// Seconds and nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time {
    pub seconds: i64,
    pub nanos: u32,
}

/// An excluded entry and its reason. The reason is part of the node, so coverage is as exact as the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omitted {
    pub name: Name,
    pub is_dir: bool,
    pub reason: Reason,
    /// Set if a change of the entry is worth reporting.
    pub stamp: Option<Stamp>,
}

/// Size and times of an excluded entry, to detect later changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Size of a file, or of all files in a directory whose size was measured.
    pub size: u64,
    pub mtime: Time,
    pub ctime: Time,
}

impl Stamp {
    /// Stamp of build output that is an empty directory. Other build output has no stamp: it changes all the time.
    pub(crate) const EMPTY: Stamp =
        Stamp { size: 0, mtime: Time { seconds: 0, nanos: 0 }, ctime: Time { seconds: 0, nanos: 0 } };
}

/// Reason why an entry is not in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reason {
    /// An ignore file's rule: its line, and the file it stands in.
    #[error("ignored by `{rule}` in {file}")]
    Ignored { rule: String, file: String },
    #[error("excluded by the pattern `{0}`")]
    Pattern(String),
    #[error("excluded by the glob `{0}`")]
    Glob(String),
    /// Description of a build artifact, from the table of artifacts.
    #[error("{0}")]
    Artifact(String),
    #[error("cannot be read: {0}")]
    Unreadable(Errno),
    #[error("changed each time it was read")]
    Unstable,
    #[error("does not fit the disk budget ({size} bytes)")]
    OverBudget { size: u64 },
    /// Too large to copy on this filesystem.
    #[error("a large git pack ({size} bytes), not copied")]
    LargePack { size: u64 },
    /// Over the caller's limit, on a filesystem that cannot share its data.
    #[error("larger than {limit} bytes ({size} bytes), not copied")]
    TooLarge { size: u64, limit: u64 },
    #[error("an ignored folder of more than {limit} bytes")]
    LargeFolder { limit: u64 },
    #[error("a git repository of more than {limit} bytes")]
    LargeRepository { limit: u64 },
    #[error("another filesystem is mounted there")]
    OtherFilesystem,
    #[error("nono's own state")]
    OwnState,
    #[error("tracked as a root of its own")]
    OtherRoot,
    #[error("forgotten: its contents were removed")]
    Forgotten,
    /// Not available in the source of the snapshot; why.
    #[error("{0}")]
    NotHeld(String),
    #[error("a temporary file of an interrupted restore")]
    RestoreTemp,
    /// Part of a group of files that must be captured together and could not be; which, and why.
    #[error("{0}")]
    Unit(String),
}

/// An error number of the system.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = std::io::Error::from_raw_os_error(self.0).to_string();
        f.write_str(text.split(" (os error").next().unwrap_or(&text))
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({}: {self})", self.0)
    }
}

/// A name in a directory: any bytes but `/` and NUL, not empty, not `.` or `..`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<[u8]>);

impl Name {
    pub fn new(bytes: &[u8]) -> Option<Name> {
        let fine = !bytes.is_empty()
            && bytes != b"."
            && bytes != b".."
            && !bytes.iter().any(|b| *b == b'/' || *b == 0);
        fine.then(|| Name(bytes.into()))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<Path> for Name {
    fn as_ref(&self) -> &Path {
        paths::from_bytes(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// A captured entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: Name,
    pub meta: Meta,
    pub kind: Kind,
}

/// Attributes that every kind of file has.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Meta {
    /// The 12 permission bits.
    pub mode: u16,
    pub mtime: Time,
    pub uid: u32,
    pub gid: u32,
    /// Inode number of a file with several names: names with the same number are one file.
    pub link: Option<u64>,
    /// Whether the file has more names than were found in the tree.
    pub linked_outside: bool,
    /// Extended attributes, sorted by name; they include access control lists.
    pub xattrs: Vec<Xattr>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Xattr {
    pub name: Box<[u8]>,
    pub value: Box<[u8]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `sparse`: it had holes, which a restore makes again.
    File {
        hash: ContentHash,
        size: u64,
        sparse: bool,
    },
    Dir {
        tree: TreeId,
        merkle: MerkleRoot,
    },
    Symlink {
        target: Box<[u8]>,
    },
    Fifo,
    Socket,
    CharDevice {
        rdev: u64,
    },
    BlockDevice {
        rdev: u64,
    },
}

/// The content of one directory, sorted by name.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Node {
    pub entries: Vec<Entry>,
    pub omitted: Vec<Omitted>,
}

const VERSION: u8 = 1;

impl Node {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.byte(VERSION);
        out.list(&self.entries, Entry::encode);
        out.list(&self.omitted, Omitted::encode);
        out.finish()
    }

    pub fn decode(bytes: &[u8]) -> Result<Node, Malformed> {
        let mut from = Reader::new(bytes);
        if from.byte()? != VERSION {
            return Err(Malformed("the version of a tree node"));
        }
        let entries: Vec<Entry> = from.list(Entry::decode)?;
        let omitted: Vec<Omitted> = from.list(Omitted::decode)?;
        from.end()?;
        let rising =
            entries.is_sorted_by(|a, b| a.name < b.name) && omitted.is_sorted_by(|a, b| a.name < b.name);
        let apart =
            || omitted.iter().all(|omitted| entries.binary_search_by(|e| e.name.cmp(&omitted.name)).is_err());
        if !rising || !apart() {
            return Err(Malformed("the order of a tree node's names"));
        }
        Ok(Node { entries, omitted })
    }

    pub fn entry(&self, name: &[u8]) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.name.as_bytes().cmp(name)).ok()?;
        self.entries.get(at)
    }

    pub fn omitted(&self, name: &[u8]) -> Option<&Omitted> {
        let at = self.omitted.binary_search_by(|omitted| omitted.name.as_bytes().cmp(name)).ok()?;
        self.omitted.get(at)
    }

    /// Hash over names, kinds, permission bits, contents and link targets below this directory, and nothing else.
    pub fn merkle(&self) -> MerkleRoot {
        let mut leaves = Vec::with_capacity(self.entries.len() * 32);
        self.entries.iter().for_each(|entry| leaves.extend_from_slice(&entry.leaf()));
        MerkleRoot::from_bytes(tagged(&[1], &[&leaves]))
    }
}

/// The address of a node's bytes.
pub fn tree_id(encoded: &[u8]) -> TreeId {
    TreeId::from_bytes(tagged(b"nono tree v1\0", &[encoded]))
}

impl Entry {
    pub fn is_dir(&self) -> bool {
        matches!(self.kind, Kind::Dir { .. })
    }

    /// Node of a directory.
    pub(crate) fn tree(&self) -> Option<TreeId> {
        match self.kind {
            Kind::Dir { tree, .. } => Some(tree),
            _ => None,
        }
    }

    /// The entry's contribution to the Merkle root.
    pub fn leaf(&self) -> [u8; 32] {
        let mode = self.meta.mode.to_le_bytes();
        let length = (self.name.as_bytes().len() as u64).to_le_bytes();
        let device = match &self.kind {
            Kind::CharDevice { rdev } | Kind::BlockDevice { rdev } => rdev.to_le_bytes(),
            _ => [0; 8],
        };
        let (tag, content): (u8, &[u8]) = match &self.kind {
            Kind::File { hash, .. } => (b'f', hash.as_bytes()),
            Kind::Dir { merkle, .. } => (b'd', merkle.as_bytes()),
            Kind::Symlink { target } => (b'l', target),
            Kind::Fifo => (b'p', b""),
            Kind::Socket => (b's', b""),
            Kind::CharDevice { .. } => (b'c', &device),
            Kind::BlockDevice { .. } => (b'b', &device),
        };
        tagged(&[0, tag], &[&mode, &length, self.name.as_bytes(), content])
    }

    pub(crate) fn encode(&self, out: &mut Writer) {
        out.bytes(self.name.as_bytes());
        self.meta.encode(out);
        match &self.kind {
            Kind::File { hash, size, sparse } => {
                out.byte(if *sparse { b'F' } else { b'f' });
                out.number(*size);
                out.raw(hash.as_bytes());
            }
            Kind::Dir { tree, merkle } => {
                out.byte(b'd');
                out.raw(tree.as_bytes());
                out.raw(merkle.as_bytes());
            }
            Kind::Symlink { target } => {
                out.byte(b'l');
                out.bytes(target);
            }
            Kind::Fifo => out.byte(b'p'),
            Kind::Socket => out.byte(b's'),
            Kind::CharDevice { rdev } => out.tagged_number(b'c', *rdev),
            Kind::BlockDevice { rdev } => out.tagged_number(b'b', *rdev),
        }
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Result<Entry, Malformed> {
        let name = from.name()?;
        let meta = Meta::decode(from)?;
        let tag = from.byte()?;
        let kind = match tag {
            b'f' | b'F' => Kind::File {
                size: from.number()?,
                hash: ContentHash::from_bytes(from.array()?),
                sparse: tag == b'F',
            },
            b'd' => Kind::Dir {
                tree: TreeId::from_bytes(from.array()?),
                merkle: MerkleRoot::from_bytes(from.array()?),
            },
            b'l' => Kind::Symlink { target: from.bytes()?.into() },
            b'p' => Kind::Fifo,
            b's' => Kind::Socket,
            b'c' => Kind::CharDevice { rdev: from.number()? },
            b'b' => Kind::BlockDevice { rdev: from.number()? },
            _ => return Err(Malformed("the kind of an entry")),
        };
        Ok(Entry { name, meta, kind })
    }
}

impl Xattr {
    pub(crate) fn encode_all(xattrs: &[Xattr], out: &mut Writer) {
        out.list(xattrs, |xattr, out| {
            out.bytes(&xattr.name);
            out.bytes(&xattr.value);
        });
    }

    pub(crate) fn decode_all(from: &mut Reader<'_>) -> Result<Vec<Xattr>, Malformed> {
        from.list(|from| Ok(Xattr { name: from.bytes()?.into(), value: from.bytes()?.into() }))
    }
}

impl Meta {
    pub(crate) fn encode(&self, out: &mut Writer) {
        out.number(u64::from(self.mode));
        out.time(self.mtime);
        out.number(u64::from(self.uid));
        out.number(u64::from(self.gid));
        let flags = u8::from(self.link.is_some()) | u8::from(self.linked_outside) << 1;
        out.byte(flags);
        if let Some(link) = self.link {
            out.number(link);
        }
        Xattr::encode_all(&self.xattrs, out);
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Result<Meta, Malformed> {
        let mode = u16::try_from(from.number()?).ok().filter(|mode| *mode <= 0o7777);
        let mode = mode.ok_or(Malformed("permission bits"))?;
        let mtime = from.time()?;
        let uid = from.small("a user id")?;
        let gid = from.small("a group id")?;
        let flags = from.byte()?;
        if flags > 3 {
            return Err(Malformed("the flags of an entry"));
        }
        let link = (flags & 1 != 0).then(|| from.number()).transpose()?;
        let xattrs = Xattr::decode_all(from)?;
        if !xattrs.is_sorted_by(|a, b| a.name < b.name) {
            return Err(Malformed("the order of attributes"));
        }
        Ok(Meta { mode, mtime, uid, gid, link, linked_outside: flags & 2 != 0, xattrs })
    }
}

impl Omitted {
    pub(crate) fn encode(&self, out: &mut Writer) {
        out.bytes(self.name.as_bytes());
        out.byte(u8::from(self.is_dir) | u8::from(self.stamp.is_some()) << 1);
        self.reason.encode(out);
        if let Some(stamp) = &self.stamp {
            out.number(stamp.size);
            out.time(stamp.mtime);
            out.time(stamp.ctime);
        }
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Result<Omitted, Malformed> {
        let name = from.name()?;
        let flags = from.byte()?;
        if flags > 3 {
            return Err(Malformed("the kind of what was left out"));
        }
        let reason = Reason::decode(from)?;
        // Nodes of earlier versions have no stamp.
        let stamp = (flags & 2 != 0).then(|| Stamp::decode(from)).transpose()?;
        Ok(Omitted { name, is_dir: flags & 1 != 0, reason, stamp })
    }
}

impl Stamp {
    fn decode(from: &mut Reader<'_>) -> Result<Stamp, Malformed> {
        Ok(Stamp { size: from.number()?, mtime: from.time()?, ctime: from.time()? })
    }
}

impl Reason {
    pub(crate) fn encode(&self, out: &mut Writer) {
        match self {
            Reason::Ignored { rule, file } => {
                out.byte(1);
                out.bytes(rule.as_bytes());
                out.bytes(file.as_bytes());
            }
            Reason::Pattern(text) => out.tagged_text(2, text),
            Reason::Glob(text) => out.tagged_text(3, text),
            Reason::Artifact(text) => out.tagged_text(4, text),
            Reason::Unreadable(errno) => out.tagged_number(5, u64::from(errno.0.unsigned_abs())),
            Reason::Unstable => out.byte(6),
            Reason::OverBudget { size } => out.tagged_number(7, *size),
            Reason::LargePack { size } => out.tagged_number(8, *size),
            Reason::OtherFilesystem => out.byte(9),
            Reason::OwnState => out.byte(10),
            Reason::OtherRoot => out.byte(11),
            Reason::Forgotten => out.byte(13),
            Reason::NotHeld(text) => out.tagged_text(14, text),
            Reason::RestoreTemp => out.byte(15),
            Reason::Unit(text) => out.tagged_text(16, text),
            Reason::LargeFolder { limit } => out.tagged_number(17, *limit),
            Reason::LargeRepository { limit } => out.tagged_number(18, *limit),
            Reason::TooLarge { size, limit } => {
                out.tagged_number(12, *size);
                out.number(*limit);
            }
        }
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Result<Reason, Malformed> {
        Ok(match from.byte()? {
            1 => Reason::Ignored { rule: from.text()?, file: from.text()? },
            2 => Reason::Pattern(from.text()?),
            3 => Reason::Glob(from.text()?),
            4 => Reason::Artifact(from.text()?),
            5 => Reason::Unreadable(Errno(from.small("an error number")?.cast_signed())),
            6 => Reason::Unstable,
            7 => Reason::OverBudget { size: from.number()? },
            8 => Reason::LargePack { size: from.number()? },
            9 => Reason::OtherFilesystem,
            10 => Reason::OwnState,
            11 => Reason::OtherRoot,
            13 => Reason::Forgotten,
            14 => Reason::NotHeld(from.text()?),
            15 => Reason::RestoreTemp,
            16 => Reason::Unit(from.text()?),
            17 => Reason::LargeFolder { limit: from.number()? },
            18 => Reason::LargeRepository { limit: from.number()? },
            12 => Reason::TooLarge { size: from.number()?, limit: from.number()? },
            _ => return Err(Malformed("the reason why something was left out")),
        })
    }
}
