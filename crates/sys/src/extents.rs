//! Location of a file's data on its filesystem (FIEMAP), and whether it is shared.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Contiguous part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub logical: u64,
    pub physical: u64,
    pub len: u64,
    pub flags: u32,
}

const LAST: u32 = 0x1;
const UNKNOWN: u32 = 0x2;
const DELALLOC: u32 = 0x4;
const ENCODED: u32 = 0x8;
const ENCRYPTED: u32 = 0x80;
const NOT_ALIGNED: u32 = 0x100;
const INLINE: u32 = 0x200;
const TAIL: u32 = 0x400;
const UNWRITTEN: u32 = 0x800;
const SHARED: u32 = 0x2000;

impl Extent {
    /// Whether two files with an extent of the same physical address have the same bytes there. Not where the address
    /// is unknown, not allocated yet, that of a compressed or packed whole, or of a range that was never written.
    pub fn is_addressed(&self) -> bool {
        const VAGUE: u32 = UNKNOWN | DELALLOC | ENCODED | ENCRYPTED | NOT_ALIGNED | INLINE | TAIL | UNWRITTEN;
        self.flags & VAGUE == 0 && self.physical != 0
    }

    /// Whether another file has the same data.
    pub fn is_shared(&self) -> bool {
        self.flags & SHARED != 0
    }

    pub fn end(&self) -> u64 {
        self.logical.saturating_add(self.len)
    }
}

#[repr(C)]
struct FiemapRequest {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Raw {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

const AT_ONCE: usize = 256;

#[repr(C)]
struct Map {
    request: FiemapRequest,
    extents: [Raw; AT_ONCE],
}

/// Request `_IOWR('f', 11, struct fiemap)`: only the head counts.
const FIEMAP: libc::c_ulong = 0xc020_660b;
const FLAG_SYNC: u32 = 1;

/// All extents of a file, by their position in it; what is in none is a hole. With `sync`, data that is only in memory
/// is written first. `None` where the filesystem does not support it.
pub fn extents(file: impl AsFd, sync: bool) -> io::Result<Option<Vec<Extent>>> {
    let mut found: Vec<Extent> = Vec::new();
    let mut start = 0;
    loop {
        let Some(part) = extents_from(file.as_fd().as_raw_fd(), start, sync)? else { return Ok(None) };
        let Some(last) = part.last().copied() else { return Ok(Some(found)) };
        found.extend(part);
        // An answer that makes no progress would never end.
        if last.flags & LAST != 0 || last.end() <= start {
            return Ok(Some(found));
        }
        start = last.end();
    }
}

fn extents_from(fd: libc::c_int, start: u64, sync: bool) -> io::Result<Option<Vec<Extent>>> {
    let none = Raw { logical: 0, physical: 0, length: 0, reserved64: [0; 2], flags: 0, reserved: [0; 3] };
    let request = FiemapRequest {
        start,
        length: u64::MAX - start,
        flags: if sync { FLAG_SYNC } else { 0 },
        mapped: 0,
        count: AT_ONCE as u32,
        reserved: 0,
    };
    let mut map = Box::new(Map { request, extents: [none; AT_ONCE] });
    // SAFETY: the kernel fills at most `count` extents behind the head, and there is room for as many.
    let result = unsafe { libc::ioctl(fd, FIEMAP as _, &raw mut *map) };
    if result < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL | libc::EBADR) => Ok(None),
            _ => Err(error),
        };
    }
    let mapped = (map.request.mapped as usize).min(AT_ONCE);
    let extent = |raw: &Raw| Extent {
        logical: raw.logical,
        physical: raw.physical,
        len: raw.length,
        flags: raw.flags,
    };
    Ok(Some(map.extents[..mapped].iter().map(extent).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    #[test]
    fn the_data_of_a_file_is_found_and_its_hole_is_not() {
        let path = std::env::temp_dir().join(format!("nono-sys-extents-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all_at(&[7; 8192], 1 << 20).unwrap();
        match extents(&file, true).unwrap() {
            None => println!("skipped: the filesystem does not tell where data lies"),
            Some(extents) => {
                let covered =
                    |at: u64| extents.iter().any(|extent| extent.logical <= at && at < extent.end());
                assert!(covered((1 << 20) + 100), "{extents:?}");
                assert!(!covered(100), "{extents:?}");
                assert!(extents.iter().all(|extent| !extent.is_shared()), "{extents:?}");
            }
        }
    }
}
