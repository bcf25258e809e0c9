//! Changes as text: hunks with marked words, and a patch for `git apply` and `patch -p1`.

mod binary;
mod git;
mod hunks;
mod names;
mod words;

use std::io;
use std::os::unix::ffi::OsStrExt;

use nono_snapshot::diff::{FileKind, Version};
use nono_snapshot::{ContentHash, SnapshotManager};

use super::changes::{Item, ItemKind};
use super::error::RollbackError;
pub use git::write_patch;

/// Change of one file, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// Old and new permission bits, if they differ or one side is missing.
    pub old_mode: Option<u32>,
    pub new_mode: Option<u32>,
    pub body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    Text(Vec<Hunk>),
    Binary {
        old: Option<Blob>,
        new: Option<Blob>,
    },
    /// Too large for a line-by-line comparison.
    Large {
        old: Option<Blob>,
        new: Option<Blob>,
    },
    Symlink {
        old: Option<Vec<u8>>,
        new: Option<Vec<u8>>,
    },
    /// Only attributes changed, or it is an empty directory, a FIFO and the like: a description.
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blob {
    pub size: u64,
    pub hash: ContentHash,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Line number from 1, as in a unified diff (0 for an empty side).
    pub old_start: usize,
    pub old_count: usize,
    pub new_start: usize,
    pub new_count: usize,
    pub lines: Vec<PatchLine>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchLine {
    pub kind: LineKind,
    pub old_number: Option<usize>,
    pub new_number: Option<usize>,
    /// Bytes without the line's end, split where words begin or end to differ.
    pub segments: Vec<Segment>,
    /// No line end follows (last line of a file without one).
    pub unterminated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Context,
    Removed,
    Added,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub text: Vec<u8>,
    /// Whether this segment differs.
    pub differs: bool,
}

/// Limits on each side for a line-by-line comparison shown to the user.
const SHOWN_BYTES: u64 = 2 << 20;
const SHOWN_LINES: usize = 50_000;
/// Length of the prefix in which git looks for a zero byte to detect binary files.
const BINARY_PREFIX: usize = 8000;
/// Largest file that is read to detect binary content.
const LOOKED_INTO: u64 = 64 << 20;

impl LineKind {
    /// Mark of such a line.
    pub fn sign(self) -> char {
        match self {
            LineKind::Context => ' ',
            LineKind::Removed => '-',
            LineKind::Added => '+',
        }
    }
}

impl Hunk {
    pub fn header(&self) -> String {
        let Hunk { old_start, old_count, new_start, new_count, .. } = self;
        format!("@@ -{old_start},{old_count} +{new_start},{new_count} @@")
    }
}

/// Numbers of added and removed lines.
pub fn line_counts(hunks: &[Hunk]) -> (usize, usize) {
    let count = |kind| hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind).count();
    (count(LineKind::Added), count(LineKind::Removed))
}

/// Whether the content has a zero byte where git looks for one.
pub(in crate::rollback) fn looks_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(BINARY_PREFIX)].contains(&0)
}

/// Whether the item's content is binary, by its first bytes. A file too large to read counts as binary.
pub fn is_binary(manager: &SnapshotManager, item: &Item) -> Result<bool, RollbackError> {
    for version in [&item.new, &item.old].into_iter().flatten() {
        let Some(hash) = version.hash else { continue };
        if manager.content(hash, LOOKED_INTO)?.is_none_or(|bytes| looks_binary(&bytes)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Change of one file as text. `context`: lines around each hunk; `usize::MAX` for the whole file.
pub fn file_diff(manager: &SnapshotManager, item: &Item, context: usize) -> Result<FileDiff, RollbackError> {
    let mode = |side: &Option<Version>| side.as_ref().map(|version| version.mode);
    let (old_mode, new_mode) = (mode(&item.old), mode(&item.new));
    let (old_mode, new_mode) = if old_mode == new_mode { (None, None) } else { (old_mode, new_mode) };
    Ok(FileDiff { old_mode, new_mode, body: body(manager, item, context)? })
}

fn body(manager: &SnapshotManager, item: &Item, context: usize) -> Result<Body, RollbackError> {
    let (old, new) = (item.old.as_ref(), item.new.as_ref());
    if let (Some(old), Some(new)) = (old, new)
        && old.kind != new.kind
    {
        return Ok(Body::Other(format!("was {}, is {} now", what(old), what(new))));
    }
    if let Some(history) = &item.history {
        return Ok(Body::Other(format!("history: {}", history.join("; "))));
    }
    match new.or(old).map(|version| version.kind) {
        Some(_) if item.kind == ItemKind::PermissionsChanged => Ok(Body::Other(permissions(old, new).into())),
        Some(FileKind::File) => file_body(manager, old, new, context),
        Some(FileKind::Symlink) => Ok(Body::Symlink { old: old.map(target), new: new.map(target) }),
        _ => Ok(Body::Other(new.or(old).map(what).unwrap_or_default())),
    }
}

fn permissions(old: Option<&Version>, new: Option<&Version>) -> &'static str {
    if old.map(|old| old.mode) == new.map(|new| new.mode) {
        "only its owner or its extended attributes changed"
    } else {
        "only its permissions changed"
    }
}

/// Description of a version.
fn what(version: &Version) -> String {
    match version.kind {
        FileKind::File => format!("a file of {} bytes", version.size.unwrap_or(0)),
        FileKind::Symlink => {
            format!("a symbolic link to {}", String::from_utf8_lossy(&target(version)))
        }
        FileKind::Directory => "an empty directory".to_owned(),
        FileKind::Fifo => "a FIFO".to_owned(),
        FileKind::Socket => "a socket".to_owned(),
        FileKind::CharDevice => "a character device".to_owned(),
        FileKind::BlockDevice => "a block device".to_owned(),
    }
}

fn target(version: &Version) -> Vec<u8> {
    version.target.as_ref().map(|target| target.as_os_str().as_bytes().to_vec()).unwrap_or_default()
}

/// Content of both sides, if it can be compared line by line.
enum Sides {
    Text { old: Vec<u8>, new: Vec<u8> },
    Binary,
    Large,
}

fn sides(
    manager: &SnapshotManager,
    old: Option<&Version>,
    new: Option<&Version>,
) -> Result<Sides, RollbackError> {
    let read = |version: Option<&Version>| match version.and_then(|version| version.hash) {
        Some(hash) => manager.content(hash, SHOWN_BYTES),
        None => Ok(Some(Vec::new())),
    };
    let (old, new) = (read(old)?, read(new)?);
    if [&old, &new].into_iter().flatten().any(|bytes| looks_binary(bytes)) {
        return Ok(Sides::Binary);
    }
    let fits = |bytes: &Vec<u8>| bytes.split(|byte| *byte == b'\n').count() <= SHOWN_LINES;
    match (old.filter(fits), new.filter(fits)) {
        (Some(old), Some(new)) => Ok(Sides::Text { old, new }),
        _ => Ok(Sides::Large),
    }
}

fn file_body(
    manager: &SnapshotManager,
    old: Option<&Version>,
    new: Option<&Version>,
    context: usize,
) -> Result<Body, RollbackError> {
    if old.is_some_and(|old| new.is_some_and(|new| old.hash == new.hash)) {
        return Ok(Body::Text(Vec::new()));
    }
    let blob = |version: &Version| Some(Blob { size: version.size.unwrap_or(0), hash: version.hash? });
    let blobs = (old.and_then(blob), new.and_then(blob));
    Ok(match sides(manager, old, new)? {
        Sides::Text { old, new } => Body::Text(hunks::hunks(&old, &new, context)),
        Sides::Binary => Body::Binary { old: blobs.0, new: blobs.1 },
        Sides::Large => Body::Large { old: blobs.0, new: blobs.1 },
    })
}

pub(in crate::rollback) fn without_hunks(
    manager: &SnapshotManager,
    item: &Item,
    context: usize,
    taken_back: &[usize],
) -> Result<Vec<u8>, RollbackError> {
    let is_file = |side: &Option<Version>| side.as_ref().is_none_or(|version| version.kind == FileKind::File);
    if is_file(&item.old)
        && is_file(&item.new)
        && let Sides::Text { old, new } = sides(manager, item.old.as_ref(), item.new.as_ref())?
        && let Some(bytes) = hunks::without(&old, &new, context, taken_back)
    {
        return Ok(bytes);
    }
    let source = io::Error::new(io::ErrorKind::InvalidInput, "it has no such hunks");
    Err(RollbackError::io(&item.path)(source))
}

#[cfg(test)]
mod tests;
