//! Reads the paths in git's index.
//!
//! Versions 2, 3 and 4, with SHA-1 or SHA-256. Anything else (a split or sparse index, entries out of order or out of
//! bounds) is an error with a reason; the caller then sets the ignore rules aside, so nothing is lost. The checksum at
//! the end is not checked: git can be told to omit it, and a wrong path can only change coverage.

use super::paths::PathSet;

/// Paths that git tracks in one repository, relative to its top.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tracked {
    pub(super) files: PathSet,
    /// Submodules: directories that are tracked as such.
    pub(super) links: PathSet,
}

/// Maximum length of a path, so that a forged index cannot grow without bound.
const LONGEST: usize = 1 << 16;
const GITLINK: u32 = 0o160_000;
const EXTENDED: u16 = 0x4000;
const LENGTH: u16 = 0x0fff;

/// Parse a whole index; `id_len` is the length of an object id.
pub(super) fn parse(bytes: &[u8], id_len: usize, fold: bool) -> Result<Tracked, &'static str> {
    let mut from = Cursor { bytes, at: 0 };
    if from.take(4)? != b"DIRC" {
        return Err("it has no index header");
    }
    let version = from.number()?;
    if !(2..=4).contains(&version) {
        return Err("its version is unknown");
    }
    let count = from.number()?;
    let mut tracked = Tracked::default();
    let mut last: Vec<u8> = Vec::new();
    let mut last_stage = 0;
    // Prefix compression can inflate a small forged file; real ones stay far below this limit.
    let mut room = bytes.len().saturating_mul(8);
    for number in 0..count {
        let entry = IndexedPath::parse(&mut from, id_len, version)?;
        let path = entry.path(&mut from, version, &last)?;
        check_path(&path)?;
        room = room.checked_sub(path.len()).ok_or("its paths are too long")?;
        if number > 0 && (&last, last_stage) >= (&path, entry.stage) {
            return Err("its entries are out of order");
        }
        if last != path {
            tracked.add(entry.mode, &path)?;
        }
        last = path;
        last_stage = entry.stage;
    }
    extensions(&mut from, id_len)?;
    if fold {
        tracked.files.fold();
        tracked.links.fold();
    }
    Ok(tracked)
}

impl Tracked {
    fn add(&mut self, mode: u32, path: &[u8]) -> Result<(), &'static str> {
        let set = if mode == GITLINK { &mut self.links } else { &mut self.files };
        set.push(path).then_some(()).ok_or("it is too large")
    }
}

struct IndexedPath {
    /// Offset of the entry: it is padded to a multiple of eight from there.
    start: usize,
    mode: u32,
    stage: u16,
    length: usize,
}

impl IndexedPath {
    fn parse(from: &mut Cursor<'_>, id_len: usize, version: u32) -> Result<IndexedPath, &'static str> {
        let start = from.at;
        // ctime, mtime, device and inode.
        from.take(24)?;
        let mode = from.number()?;
        if !matches!(mode, 0o100_644 | 0o100_755 | 0o100_664 | 0o120_000 | GITLINK) {
            return Err("it has an entry of an unknown kind");
        }
        // Owner, group, size, object id.
        from.take(12 + id_len)?;
        let flags = from.short()?;
        if flags & EXTENDED != 0 {
            if version < 3 {
                return Err("it has flags that its version does not have");
            }
            from.short()?;
        }
        Ok(IndexedPath { start, mode, stage: flags >> 12 & 3, length: usize::from(flags & LENGTH) })
    }

    fn path(&self, from: &mut Cursor<'_>, version: u32, last: &[u8]) -> Result<Vec<u8>, &'static str> {
        if version == 4 {
            let keep = last.len().checked_sub(from.offset()?).ok_or("a path prefix is too long")?;
            let suffix = from.until_nul()?;
            return Ok([&last[..keep], suffix].concat());
        }
        let path = from.until_nul()?;
        if self.length < usize::from(LENGTH) && path.len() != self.length {
            return Err("the length of a path is wrong");
        }
        // One NUL was read; more follow up to the next multiple of eight.
        let padding = (8 - (from.at - self.start) % 8) % 8;
        if from.take(padding)?.iter().any(|byte| *byte != 0) {
            return Err("its padding is not zero");
        }
        Ok(path.to_vec())
    }
}

fn check_path(path: &[u8]) -> Result<(), &'static str> {
    // An entry without a name belongs to a split index.
    if path.is_empty() {
        return Err(SPLIT);
    }
    let odd = |part: &[u8]| part.is_empty() || part == b"." || part == b"..";
    if path.len() > LONGEST || path.split(|byte| *byte == b'/').any(odd) {
        return Err("it has an invalid path");
    }
    Ok(())
}

/// Parse what follows the entries: extensions, then the checksum. Only extensions in capital letters may be skipped.
fn extensions(from: &mut Cursor<'_>, id_len: usize) -> Result<(), &'static str> {
    while from.left() > id_len {
        let name = from.take(4)?;
        let length = usize::try_from(from.number()?).map_err(|_| CUT)?;
        match name {
            b"link" => return Err(SPLIT),
            b"sdir" => return Err("it is a sparse index"),
            [b'A'..=b'Z', ..] => from.take(length)?,
            _ => return Err("it has an unknown extension"),
        };
    }
    if from.left() < id_len { Err(CUT) } else { Ok(()) }
}

const CUT: &str = "it is truncated";
const SPLIT: &str = "it is a split index";

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], &'static str> {
        let taken = self.bytes[self.at..].get(..len).ok_or(CUT)?;
        self.at += len;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, &'static str> {
        let bytes = self.take(4)?;
        bytes.try_into().map(u32::from_be_bytes).map_err(|_| CUT)
    }

    fn short(&mut self) -> Result<u16, &'static str> {
        let bytes = self.take(2)?;
        bytes.try_into().map(u16::from_be_bytes).map_err(|_| CUT)
    }

    /// Bytes up to a NUL, which is consumed too.
    fn until_nul(&mut self) -> Result<&'a [u8], &'static str> {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().take(LONGEST + 1).position(|byte| *byte == 0).ok_or(CUT)?;
        self.at += len + 1;
        Ok(&rest[..len])
    }

    /// Number in the offset encoding of git's packs.
    fn offset(&mut self) -> Result<usize, &'static str> {
        let mut value = 0usize;
        loop {
            let byte = self.take(1)?[0];
            value |= usize::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            if value > LONGEST {
                return Err("a path prefix is too long");
            }
            value = (value + 1) << 7;
        }
    }
}
