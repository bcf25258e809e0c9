//! Lookup of whether the rules the command started with allow an open, by its path alone, without locks or allocation.
//!
//! A yes lets the kernel carry the call out, and Landlock judges it again by what the path really leads to. So a wrong
//! answer here can only cost a request (yes instead of no) or the slow path (no instead of yes), never open anything;
//! that is why prefixes are known only by a 64-bit hash, and names by their bytes and not by what they resolve to.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nono_policy::{AccessMode, ResolvedPolicy, RuleAccess};

/// Rights as bits.
pub(super) const READ: u8 = 1;
pub(super) const WRITE: u8 = 2;

pub(super) fn bits(access: AccessMode) -> u8 {
    (if access.reads() { READ } else { 0 }) | (if access.writes() { WRITE } else { 0 })
}

#[derive(Clone, Copy, Debug, Default)]
struct TableSlot {
    /// Hash of the path; 0 if the slot is empty.
    hash: u64,
    /// Rights here and below, and here alone.
    below: u8,
    here: u8,
    /// Whether this table decides nothing here and below.
    closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableAnswer {
    Allowed {
        /// All rights granted there.
        rights: u8,
        /// Hash of the normalised path.
        hash: u64,
    },
    /// Needs the slow path.
    Unknown,
}

#[derive(Debug)]
pub(super) struct Table {
    slots: Box<[TableSlot]>,
}

impl Table {
    pub(super) fn new(policy: &ResolvedPolicy) -> Table {
        let size = (4 * (policy.rules.len() + policy.closed.len() + 16)).next_power_of_two();
        let mut table = Table { slots: vec![TableSlot::default(); size].into_boxed_slice() };
        for rule in &policy.rules {
            let slot = table.slot(&rule.path);
            match rule.access {
                RuleAccess::List => slot.here |= READ,
                RuleAccess::Mode(access) if rule.is_file => slot.here |= bits(access),
                RuleAccess::Mode(access) => slot.below |= bits(access),
            }
        }
        for closed in &policy.closed {
            table.slot(&closed.resolved).closed = true;
        }
        table
    }

    /// Allows directories that are private to the command, whatever the policy says.
    pub(super) fn allow(&mut self, folders: &[PathBuf]) {
        // There is room: the table is at most half full.
        for folder in folders.iter().take(self.slots.len() / 4) {
            self.slot(folder).below |= READ | WRITE;
        }
    }

    fn slot(&mut self, path: &Path) -> &mut TableSlot {
        let hash = PrefixHashes::from(path.as_os_str().as_bytes(), b"")
            .map_or(ROOT, |walk| walk.last().unwrap_or(ROOT));
        let mut index = self.index(hash);
        while self.slots[index].hash != 0 && self.slots[index].hash != hash {
            index = (index + 1) % self.slots.len();
        }
        self.slots[index].hash = hash;
        &mut self.slots[index]
    }

    #[allow(clippy::cast_possible_truncation, reason = "only the low bits choose a slot")]
    fn index(&self, hash: u64) -> usize {
        (hash ^ (hash >> 29)) as usize & (self.slots.len() - 1)
    }

    fn find(&self, hash: u64) -> TableSlot {
        let mut index = self.index(hash);
        loop {
            let slot = self.slots[index];
            if slot.hash == hash || slot.hash == 0 {
                return slot;
            }
            index = (index + 1) % self.slots.len();
        }
    }

    /// Looks up `path`, which starts at `base` unless it is absolute.
    pub(super) fn look_up(&self, base: &[u8], path: &[u8]) -> TableAnswer {
        let walk = if path.first() == Some(&b'/') {
            PrefixHashes::from(path, b"")
        } else {
            PrefixHashes::from(base, path)
        };
        let Some(walk) = walk else { return TableAnswer::Unknown };
        let root = self.find(ROOT);
        let (mut rights, mut here, mut last) = (root.below, root.here, ROOT);
        for hash in walk {
            let slot = self.find(hash);
            if slot.closed {
                return TableAnswer::Unknown;
            }
            rights |= slot.below;
            here = slot.here;
            last = hash;
        }
        TableAnswer::Allowed { rights: rights | here, hash: last }
    }
}

/// Hash of the empty prefix, `/`.
const ROOT: u64 = 0xcbf2_9ce4_8422_2325;

/// Hashes of a path's prefixes, from the first component to the whole. Repeated slashes and `.` do not count.
struct PrefixHashes<'a> {
    first: &'a [u8],
    second: &'a [u8],
    hash: u64,
}

impl<'a> PrefixHashes<'a> {
    /// Starts a walk; `None` if there is a `..`, since only the file system knows where that leads.
    fn from(first: &'a [u8], second: &'a [u8]) -> Option<PrefixHashes<'a>> {
        let climbs = |path: &[u8]| path.split(|byte| *byte == b'/').any(|part| part == b"..");
        (!climbs(first) && !climbs(second)).then_some(PrefixHashes { first, second, hash: ROOT })
    }
}

impl Iterator for PrefixHashes<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if self.first.is_empty() {
                self.first = std::mem::take(&mut self.second);
                if self.first.is_empty() {
                    return None;
                }
            }
            let end = self.first.iter().position(|byte| *byte == b'/').unwrap_or(self.first.len());
            let (part, rest) = self.first.split_at(end);
            self.first = rest.get(1..).unwrap_or_default();
            if part.is_empty() || part == b"." {
                continue;
            }
            let mut hash = (self.hash ^ u64::from(b'/')).wrapping_mul(PRIME);
            for byte in part {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
            }
            // 0 means an empty slot.
            self.hash = hash | 1;
            return Some(self.hash);
        }
    }
}

const PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use nono_policy::{CapabilitySet, CapabilitySetBuilder};

    use super::*;

    fn table(dir: &Path) -> Table {
        std::fs::create_dir_all(dir.join("read")).unwrap();
        std::fs::create_dir_all(dir.join("both")).unwrap();
        std::fs::write(dir.join("file"), "").unwrap();
        let caps = CapabilitySet::builder()
            .allow_path(dir.join("read"), AccessMode::Read)
            .and_then(|set| set.allow_path(dir.join("both"), AccessMode::ReadWrite))
            .and_then(|set| set.allow_file(dir.join("file"), AccessMode::Read))
            .and_then(CapabilitySetBuilder::build)
            .unwrap();
        Table::new(&caps.to_policy().unwrap())
    }

    #[test]
    fn rules_hold_for_what_is_below_them_however_it_is_written() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        let table = table(&dir);
        let rights = |base: &str, path: &str| {
            let path = path.replace("DIR", dir.to_str().unwrap());
            match table.look_up(base.replace("DIR", dir.to_str().unwrap()).as_bytes(), path.as_bytes()) {
                TableAnswer::Allowed { rights, .. } => Some(rights),
                TableAnswer::Unknown => None,
            }
        };
        assert_eq!(rights("/", "DIR/read/a/b"), Some(READ));
        assert_eq!(rights("/", "DIR//read/./a"), Some(READ));
        assert_eq!(rights("DIR/read", "a"), Some(READ));
        assert_eq!(rights("DIR", "both/new"), Some(READ | WRITE));
        assert_eq!(rights("DIR/both", "."), Some(READ | WRITE));
        assert_eq!(rights("/", "DIR/readx"), Some(0));
        assert_eq!(rights("/", "DIR/file"), Some(READ));
        assert_eq!(rights("/", "DIR/file/x"), Some(0), "a file's rule is for the file");
        assert_eq!(rights("/", "/"), Some(0));
        assert_eq!(rights("DIR/read", "../read/a"), None, "only the file system knows where .. leads");
    }
}
