//! Comparison of two git indexes: the tracked entries, not the cached file metadata.
//!
//! `git status` rewrites the index with fresh times and inode numbers. Versions 2, 3 and 4, with SHA-1 or SHA-256;
//! anything not understood (a split or sparse index, anything out of bounds) counts as a difference, so that it is kept
//! rather than replaced. Extensions in capital letters hold nothing that git could not recompute; the checksum at the
//! end is ignored.

/// Lengths of an object id in bytes.
const ID_LENGTHS: [usize; 2] = [20, 32];
/// Maximum length of a path; a forged index could otherwise grow without bound.
const LONGEST: usize = 1 << 16;
const ASSUME_VALID: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const LENGTH: u16 = 0x0fff;
const SKIP_WORKTREE: u16 = 0x4000;
const INTENT_TO_ADD: u16 = 0x2000;

/// Whether both are complete indexes with the same entries.
pub(crate) fn same_entries(a: &[u8], b: &[u8]) -> bool {
    ID_LENGTHS.into_iter().any(|id_len| compare(a, b, id_len) == Some(true))
}

/// Compare two indexes; None if one of them is not understood.
fn compare(a: &[u8], b: &[u8], id_len: usize) -> Option<bool> {
    let (mut a, mut b) = (GitIndex::open(a, id_len)?, GitIndex::open(b, id_len)?);
    if a.left != b.left {
        return Some(false);
    }
    while a.left > 0 {
        if a.entry()? != b.entry()? || a.path != b.path {
            return Some(false);
        }
    }
    (a.is_well_ended() && b.is_well_ended()).then_some(true)
}

/// Relevant fields of an entry, besides its path.
#[derive(Debug, PartialEq, Eq)]
struct GitIndexEntry<'a> {
    mode: &'a [u8],
    id: &'a [u8],
    /// Flags, including the stage.
    flags: u16,
    extended: u16,
}

struct GitIndex<'a> {
    rest: &'a [u8],
    id_len: usize,
    version: u32,
    /// Number of entries left.
    left: u32,
    /// Path of the last entry.
    path: Vec<u8>,
    /// Number of bytes of paths left: shared prefixes can blow up a small forged file, real ones stay far below.
    room: usize,
}

impl<'a> GitIndex<'a> {
    fn open(bytes: &'a [u8], id_len: usize) -> Option<GitIndex<'a>> {
        let room = bytes.len().saturating_mul(8);
        let mut index = GitIndex { rest: bytes, id_len, version: 0, left: 0, path: Vec::new(), room };
        let known = index.take(4)? == b"DIRC";
        index.version = index.number()?;
        index.left = index.number()?;
        (known && (2..=4).contains(&index.version)).then_some(index)
    }

    fn entry(&mut self) -> Option<GitIndexEntry<'a>> {
        let start = self.rest.len();
        // Two times, device, inode; then, after the mode, owner, group and size.
        self.take(24)?;
        let mode = self.take(4)?;
        self.take(12)?;
        let id = self.take(self.id_len)?;
        let flags = self.short()?;
        let extended = if flags & EXTENDED == 0 { 0 } else { self.short()? };
        if extended & !(SKIP_WORKTREE | INTENT_TO_ADD) != 0 || (self.version < 3 && flags & EXTENDED != 0) {
            return None;
        }
        self.next_path(start, usize::from(flags & LENGTH))?;
        self.left -= 1;
        // The flags for path length and extended flags are left out.
        Some(GitIndexEntry { mode, id, flags: flags & (ASSUME_VALID | STAGE), extended })
    }

    fn next_path(&mut self, start: usize, length: usize) -> Option<()> {
        if self.version == 4 {
            let keep = self.path.len().checked_sub(self.offset()?)?;
            self.path.truncate(keep);
        } else {
            self.path.clear();
        }
        let new = self.until_nul()?;
        self.path.extend_from_slice(new);
        if self.version != 4 {
            // One NUL was read; more follow up to a multiple of eight from the entry's start.
            let padding = (8 - (start - self.rest.len()) % 8) % 8;
            let filled = self.take(padding)?.iter().all(|byte| *byte == 0);
            filled.then_some(())?;
        }
        let fits = self.path.len().min(usize::from(LENGTH)) == length;
        // An entry without a name belongs to a split index.
        let sound = fits && !self.path.is_empty() && self.path.len() <= LONGEST;
        self.room = self.room.checked_sub(self.path.len())?;
        sound.then_some(())
    }

    /// Whether only optional extensions and the checksum follow the entries.
    fn is_well_ended(&mut self) -> bool {
        while self.rest.len() > self.id_len {
            let Some(name) = self.take(4) else { return false };
            let length = self.number().and_then(|length| usize::try_from(length).ok());
            if !name[0].is_ascii_uppercase() || length.and_then(|length| self.take(length)).is_none() {
                return false;
            }
        }
        self.rest.len() == self.id_len
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// Bytes up to a NUL, which is consumed too.
    fn until_nul(&mut self) -> Option<&'a [u8]> {
        let len = self.rest.iter().take(LONGEST + 1).position(|byte| *byte == 0)?;
        let taken = self.take(len)?;
        self.take(1)?;
        Some(taken)
    }

    /// Number in the encoding of offsets in git's packs.
    fn offset(&mut self) -> Option<usize> {
        let mut value = 0usize;
        loop {
            let byte = self.take(1)?[0];
            value |= usize::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Some(value);
            }
            if value > LONGEST {
                return None;
            }
            value = (value + 1) << 7;
        }
    }
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
