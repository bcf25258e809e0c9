//! The names in a directory.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::RawDir;

/// Size of the listing buffer: a large one takes fewer system calls.
const BUFFER: usize = 64 << 10;

/// The names in a directory, sorted.
pub(super) struct Names {
    bytes: Vec<u8>,
    ends: Vec<(u32, u32)>,
}

impl Names {
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().map(|place| self.name(*place))
    }

    fn name(&self, (start, end): (u32, u32)) -> &[u8] {
        &self.bytes[start as usize..end as usize]
    }

    pub(super) fn contains(&self, name: &[u8]) -> bool {
        self.ends.binary_search_by(|place| self.name(*place).cmp(name)).is_ok()
    }
}

/// List a directory. `buffer` is for the kernel's entries.
pub(super) fn list(dir: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> io::Result<Names> {
    buffer.clear();
    buffer.reserve(BUFFER);
    let mut names = Names { bytes: Vec::new(), ends: Vec::new() };
    let mut entries = RawDir::new(dir, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let start = names.bytes.len();
        names.bytes.extend_from_slice(name);
        let place = |at: usize| u32::try_from(at).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge));
        names.ends.push((place(start)?, place(names.bytes.len())?));
    }
    let Names { bytes, ends } = &mut names;
    ends.sort_unstable_by(|a, b| bytes[a.0 as usize..a.1 as usize].cmp(&bytes[b.0 as usize..b.1 as usize]));
    Ok(names)
}
