//! Reader of git's index: the tracked entries, not the cached file metadata.
//!
//! Versions 2, 3 and 4, with SHA-1 or SHA-256. Anything else (a split or sparse index, entries out of order or out of
//! bounds) is an error with a reason. Extensions in capital letters hold nothing that git could not recompute. The
//! checksum at the end is not checked: git can be told to omit it.

/// Lengths of an object id in bytes.
const ID_LENGTHS: [usize; 2] = [20, 32];
/// Maximum length of a path; a forged index could otherwise grow without bound.
const LONGEST: usize = 1 << 16;
const GITLINK: u32 = 0o160_000;
const ASSUME_VALID: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const LENGTH: u16 = 0x0fff;
const SKIP_WORKTREE: u16 = 0x4000;
const INTENT_TO_ADD: u16 = 0x2000;

const CUT: &str = "it is truncated";
const SPLIT: &str = "it is a split index";

/// Whether both are complete indexes with the same entries: `git status` rewrites an index with fresh times and inode
/// numbers. An index that is not understood is never the same, so that it is kept rather than replaced.
pub fn same_entries(a: &[u8], b: &[u8]) -> bool {
    ID_LENGTHS.into_iter().any(|id_len| compare(a, b, id_len) == Ok(true))
}

fn compare(a: &[u8], b: &[u8], id_len: usize) -> Result<bool, &'static str> {
    let (mut a, mut b) = (GitIndex::open(a, id_len)?, GitIndex::open(b, id_len)?);
    loop {
        let (one, other) = (a.entry()?, b.entry()?);
        if one != other || a.path != b.path {
            return Ok(false);
        }
        if one.is_none() {
            return Ok(true);
        }
    }
}

/// Relevant fields of an entry, besides its path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GitIndexEntry<'a> {
    mode: u32,
    id: &'a [u8],
    /// Flags, including the stage, without those for path length and extended flags.
    flags: u16,
    extended: u16,
}

impl GitIndexEntry<'_> {
    /// Whether this is a submodule.
    pub(crate) fn is_link(&self) -> bool {
        self.mode == GITLINK
    }
}

pub(crate) struct GitIndex<'a> {
    rest: &'a [u8],
    id_len: usize,
    version: u32,
    /// Number of entries left.
    left: u32,
    path: Vec<u8>,
    /// Path and stage of the entry before.
    last: (Vec<u8>, u16),
    /// Number of bytes of paths left: shared prefixes can blow up a small forged file, real ones stay far below.
    room: usize,
}

impl<'a> GitIndex<'a> {
    /// Start reading; `id_len` is the length of an object id.
    pub(crate) fn open(bytes: &'a [u8], id_len: usize) -> Result<GitIndex<'a>, &'static str> {
        let room = bytes.len().saturating_mul(8);
        let (path, last) = (Vec::new(), (Vec::new(), 0));
        let mut index = GitIndex { rest: bytes, id_len, version: 0, left: 0, path, last, room };
        if index.take(4)? != b"DIRC" {
            return Err("it has no index header");
        }
        index.version = index.number()?;
        if !(2..=4).contains(&index.version) {
            return Err("its version is unknown");
        }
        index.left = index.number()?;
        Ok(index)
    }

    /// Path of the entry that was read last.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Whether the entry that was read last is another stage of the path before.
    pub(crate) fn is_other_stage(&self) -> bool {
        self.path == self.last.0
    }

    /// Next entry. After the last one the rest of the index is checked.
    pub(crate) fn entry(&mut self) -> Result<Option<GitIndexEntry<'a>>, &'static str> {
        let Some(left) = self.left.checked_sub(1) else { return self.check_end().map(|()| None) };
        self.left = left;
        let start = self.rest.len();
        // Two times, device, inode; then, after the mode, owner, group and size.
        self.take(24)?;
        let mode = self.number()?;
        if !matches!(mode, 0o100_644 | 0o100_755 | 0o100_664 | 0o120_000 | GITLINK) {
            return Err("it has an entry of an unknown kind");
        }
        self.take(12)?;
        let id = self.take(self.id_len)?;
        let flags = self.short()?;
        if flags & EXTENDED != 0 && self.version < 3 {
            return Err("it has flags that its version does not have");
        }
        let extended = if flags & EXTENDED == 0 { 0 } else { self.short()? };
        if extended & !(SKIP_WORKTREE | INTENT_TO_ADD) != 0 {
            return Err("it has unknown flags");
        }
        self.next_path(start, flags & LENGTH)?;
        let stage = flags & STAGE;
        if (&self.last.0, self.last.1) >= (&self.path, stage) {
            return Err("its entries are out of order");
        }
        self.last.1 = stage;
        Ok(Some(GitIndexEntry { mode, id, flags: flags & (ASSUME_VALID | STAGE), extended }))
    }

    fn next_path(&mut self, start: usize, length: u16) -> Result<(), &'static str> {
        std::mem::swap(&mut self.path, &mut self.last.0);
        self.path.clear();
        if self.version == 4 {
            let keep = self.last.0.len().checked_sub(self.offset()?).ok_or("a path prefix is too long")?;
            self.path.extend_from_slice(&self.last.0[..keep]);
        }
        let new = self.until_nul()?;
        self.path.extend_from_slice(new);
        if self.version != 4 {
            // One NUL was read; more follow up to a multiple of eight from the entry's start.
            let padding = (8 - (start - self.rest.len()) % 8) % 8;
            if self.take(padding)?.iter().any(|byte| *byte != 0) {
                return Err("its padding is not zero");
            }
        }
        if self.path.len().min(usize::from(LENGTH)) != usize::from(length) {
            return Err("the length of a path is wrong");
        }
        check_path(&self.path)?;
        self.room = self.room.checked_sub(self.path.len()).ok_or("its paths are too long")?;
        Ok(())
    }

    /// Check what follows the entries: extensions, then the checksum. Only extensions in capital letters may be skipped.
    fn check_end(&mut self) -> Result<(), &'static str> {
        while self.rest.len() > self.id_len {
            let name = self.take(4)?;
            let length = usize::try_from(self.number()?).map_err(|_| CUT)?;
            match name {
                b"link" => return Err(SPLIT),
                b"sdir" => return Err("it is a sparse index"),
                [b'A'..=b'Z', ..] => self.take(length)?,
                _ => return Err("it has an unknown extension"),
            };
        }
        if self.rest.len() < self.id_len { Err(CUT) } else { Ok(()) }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(CUT)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, &'static str> {
        self.take(4)?.try_into().map(u32::from_be_bytes).map_err(|_| CUT)
    }

    fn short(&mut self) -> Result<u16, &'static str> {
        self.take(2)?.try_into().map(u16::from_be_bytes).map_err(|_| CUT)
    }

    /// Bytes up to a NUL, which is consumed too.
    fn until_nul(&mut self) -> Result<&'a [u8], &'static str> {
        let len = self.rest.iter().take(LONGEST + 1).position(|byte| *byte == 0).ok_or(CUT)?;
        let taken = self.take(len)?;
        self.take(1)?;
        Ok(taken)
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// Run a shell line in a folder, without user settings; returns the index after it.
    fn index(dir: &Path, script: &str) -> Vec<u8> {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(dir).env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1");
        let done = command.output().unwrap();
        assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
        std::fs::read(dir.join(".git/index")).unwrap()
    }

    const TREE: &str = "mkdir -p a/b; echo x > a/b/file; echo y > a/b/filed; echo z > top; ln -sf top link; \
: > $(printf 'n%.0s' $(seq 200)); git add -A";

    #[test]
    fn every_version_and_hash_as_git_writes_them() {
        for format in ["sha1", "sha256"] {
            for version in [2, 4] {
                let dir = tempfile::tempdir().unwrap();
                let at = dir.path();
                let init =
                    format!("git init -q --object-format={format} .; git config index.version {version}");
                let first = index(at, &format!("{init}; {TREE}"));
                assert_eq!(first[7], version, "git wrote another version");
                // Another inode and another time, and what else git caches of a tree.
                let again = "cp top new; mv new top; touch -d 2001-02-03 a/b/file; git update-index --untracked-cache; git status";
                let fresh = index(at, again);
                assert!(first != fresh && same_entries(&first, &fresh), "{format}, {version}");
                // The same entries in another version are equal.
                let other = index(at, "git update-index --index-version 3 --force-write-index");
                assert!(same_entries(&first, &other));

                let steps = [
                    "git update-index --assume-unchanged top",
                    "git update-index --no-assume-unchanged top; git update-index --skip-worktree top",
                    "git update-index --no-skip-worktree top; echo > later; git add -N later",
                    "git rm -q --cached later; git update-index --chmod=+x top",
                    "git update-index --chmod=-x top; echo more >> top; git add top",
                    "echo z > top; git add top; git rm -q --cached a/b/filed",
                ];
                for step in steps {
                    let changed = index(at, step);
                    assert!(!same_entries(&first, &changed), "{step}: {format}, {version}");
                    assert!(same_entries(&changed, &changed), "{step}: {format}, {version}");
                }
                let back = index(at, "git add a/b/filed");
                assert!(same_entries(&first, &back), "{format}, {version}");
            }
        }
    }

    #[test]
    fn a_split_or_sparse_index_is_never_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let whole = index(dir.path(), &format!("git init -q .; {TREE}"));
        assert!(same_entries(&whole, &whole));
        let split = index(dir.path(), "git update-index --split-index");
        assert!(!same_entries(&split, &split));
        let sparse = "git update-index --no-split-index; git -c user.name=n -c user.email=e commit -qm one; \
git sparse-checkout set --cone --sparse-index nothing";
        let sparse = index(dir.path(), sparse);
        assert!(sparse.windows(4).any(|name| name == b"sdir"), "git made no sparse index");
        assert!(!same_entries(&sparse, &sparse));
    }

    #[test]
    fn damage_is_a_difference_and_no_panic() {
        let dir = tempfile::tempdir().unwrap();
        for version in [2, 4] {
            let make = format!("rm -rf .git; git init -q .; git config index.version {version}; {TREE}");
            let whole = index(dir.path(), &make);
            for cut in 0..whole.len() {
                assert!(!same_entries(&whole[..cut], &whole[..cut]), "{cut} of {} bytes", whole.len());
            }
            for at in 0..whole.len() {
                for value in [0, 0x7f, 0xff] {
                    let mut other = whole.clone();
                    other[at] = value;
                    // Arbitrary bytes: it ends, with the same result for both orders.
                    assert_eq!(same_entries(&whole, &other), same_entries(&other, &whole));
                }
            }
        }
        assert!(!same_entries(b"", b"") && !same_entries(b"DIRC", b"DIRC"));
    }
}
