//! How many files the ignore rules leave out. Rules that leave almost nothing protect nothing: a `.gitignore` of `*`, or
//! one made for a packaging branch, would turn a snapshot into an empty promise.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{AtFlags, FileType, RawDir};

use crate::dirs::{Dirs, open_dir};
use crate::scan::Ignored;

/// Of a hundred regular files the rules must leave this many.
const LEAST_PERCENT: u64 = 5;

/// Whether the rules leave less than that. Counts no further than it has to.
pub(crate) fn leaves_too_little(dirs: &Dirs, ignored: &[Ignored], left: u64) -> bool {
    // left / (left + ignored) < 5 %
    let enough = left * (100 - LEAST_PERCENT) / LEAST_PERCENT;
    let mut count = 0;
    for one in ignored {
        let Ok(parent) = dirs.reopen(one.dir) else { continue };
        if one.is_dir {
            count += files_below(parent, &one.name, enough.saturating_sub(count));
        } else if is_file(&parent, &one.name) {
            count += 1;
        }
        if count > enough {
            return true;
        }
    }
    false
}

fn is_file(dir: &OwnedFd, name: &[u8]) -> bool {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

/// Regular files below a directory, up to one more than `enough`. What cannot be opened holds nothing that could be
/// captured either. A directory that waits keeps only its parent open.
fn files_below(parent: OwnedFd, name: &[u8], enough: u64) -> u64 {
    let mut count = 0;
    let mut waiting: Vec<(Rc<OwnedFd>, Box<[u8]>)> = vec![(Rc::new(parent), name.into())];
    while let Some((parent, name)) = waiting.pop() {
        let Ok(dir) = open_dir(parent.as_fd(), &name).map(Rc::new) else { continue };
        drop(parent);
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut entries = RawDir::new(dir.as_fd(), &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name().to_bytes();
            match entry.file_type() {
                FileType::RegularFile => count += 1,
                FileType::Unknown if is_file(&dir, name) => count += 1,
                FileType::Directory | FileType::Unknown if name != b"." && name != b".." => {
                    waiting.push((dir.clone(), name.into()));
                }
                _ => {}
            }
            if count > enough {
                return count;
            }
        }
    }
    count
}
