//! Files that a process has mapped writable.
//!
//! A store into a page that is already dirty does not change the file's times (on tmpfs no store does), so a file with
//! such a mapping is read at each capture, whatever its stat says. Mappings of processes that we may not inspect are
//! not seen, and neither is one on tmpfs that was made, written and removed between two captures.

use std::collections::HashSet;
use std::fs;
use std::io::Read;

use crate::stat::FoundStat;

/// Inodes of files with a writable shared mapping. Inodes alone: an overlay shows the device of the lower layer in
/// `maps`, and its own in `stat`; another file with the same number is only read once more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mapped(HashSet<u64>);

impl Mapped {
    /// Inspect all processes.
    pub(crate) fn now() -> Mapped {
        let mut mapped = Mapped::default();
        let mut text = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            if !entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
                continue;
            }
            text.clear();
            // Skip processes that ended or that we may not inspect.
            let read =
                fs::File::open(entry.path().join("maps")).and_then(|mut maps| maps.read_to_end(&mut text));
            if read.is_ok() {
                mapped.0.extend(text.split(|byte| *byte == b'\n').filter_map(shared_writable));
            }
        }
        mapped
    }

    pub(crate) fn contains(&self, found: &FoundStat) -> bool {
        !self.0.is_empty() && self.0.contains(&found.stat.ino)
    }
}

/// Parse `start-end perms offset dev inode path`: the inode of a shared writable mapping of a file.
fn shared_writable(line: &[u8]) -> Option<u64> {
    let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let perms = fields.nth(1)?;
    if perms.get(1) != Some(&b'w') || perms.get(3) != Some(&b's') {
        return None;
    }
    std::str::from_utf8(fields.nth(2)?).ok()?.parse().ok().filter(|inode| *inode != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shared_writable_mappings_of_files_count() {
        let line = b"7f0-7f1 rw-s 00000000 fd:01 1234                       /home/u/a b";
        assert_eq!(shared_writable(line), Some(1234));
        for other in [
            &b"7f0-7f1 rw-p 00000000 fd:01 1234 /home/u/a"[..],
            b"7f0-7f1 r--s 00000000 fd:01 1234 /home/u/a",
            b"7f0-7f1 rw-s 00000000 00:00 0 ",
            b"",
        ] {
            assert_eq!(shared_writable(other), None);
        }
    }
}
