//! Counts the files that ignore rules exclude. Rules that exclude almost everything protect nothing: a `.gitignore` of
//! `*`, or one made for a packaging branch, would make the snapshot empty.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, RawDir};

use crate::dirs::{DirId, Dirs, open_dir};
use crate::scan::{Ignored, Listing};
use crate::scan_record::Entries;

/// Minimum percentage of regular files that the rules must leave.
const LEAST_PERCENT: u64 = 5;

/// Whether the rules leave less than [`LEAST_PERCENT`]. Counts no further than necessary. Files inside `.git` do not
/// count as left: a repository has dozens of them, however little of its tree is left.
pub(crate) fn leaves_too_little(dirs: &Dirs, ignored: &[Ignored], listings: &[Listing], left: u64) -> bool {
    let left = left.saturating_sub(files_of_git(dirs, listings));
    // left / (left + ignored) < 5 %
    let enough = left * (100 - LEAST_PERCENT) / LEAST_PERCENT;
    let mut count = 0;
    for one in ignored {
        let Ok(parent) = dirs.reopen(one.dir) else { continue };
        if one.is_dir {
            count += files_below(&parent, &one.name, enough.saturating_sub(count));
        } else if is_file(&parent, &one.name) {
            count += 1;
        }
        if count > enough {
            return true;
        }
    }
    false
}

/// Number of regular files in directories called `.git`.
fn files_of_git(dirs: &Dirs, listings: &[Listing]) -> u64 {
    let mut inside: HashSet<DirId> = HashSet::new();
    let mut count = 0;
    // A directory's number is greater than its parent's.
    for listing in listings {
        let Some((parent, name)) = dirs.entry(listing.id) else { continue };
        if &*name != b".git" && !inside.contains(&parent) {
            continue;
        }
        inside.insert(listing.id);
        let files = Entries::new(&listing.entries).flatten().filter(|known| known.stat().is_file());
        count += files.count() as u64;
    }
    count
}

fn is_file(dir: &OwnedFd, name: &[u8]) -> bool {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

/// Number of regular files below a directory, at most `enough + 1`. A directory that cannot be opened counts as empty:
/// nothing in it could be captured. Only one directory is open at a time; the way back up is `..`.
fn files_below(parent: &OwnedFd, name: &[u8], enough: u64) -> u64 {
    let Ok(mut dir) = open_dir(parent.as_fd(), name) else { return 0 };
    let mut count = 0;
    let mut above: Vec<Vec<Box<[u8]>>> = Vec::new();
    let mut below = files_in(&dir, enough, &mut count);
    while count <= enough {
        if let Some(name) = below.pop() {
            let Ok(next) = open_dir(dir.as_fd(), &name) else { continue };
            dir = next;
            above.push(std::mem::replace(&mut below, files_in(&dir, enough, &mut count)));
        } else {
            let Some(rest) = above.pop() else { break };
            let Ok(up) = open_dir(dir.as_fd(), b"..") else { break };
            dir = up;
            below = rest;
        }
    }
    count
}

/// Count the regular files in a directory and return its subdirectories.
fn files_in(dir: &OwnedFd, enough: u64, count: &mut u64) -> Vec<Box<[u8]>> {
    let mut dirs = Vec::new();
    let mut buffer = [MaybeUninit::uninit(); 16 << 10];
    let mut entries = RawDir::new(dir.as_fd(), &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name().to_bytes();
        match entry.file_type() {
            FileType::RegularFile => *count += 1,
            FileType::Unknown if is_file(dir, name) => *count += 1,
            FileType::Directory | FileType::Unknown if name != b"." && name != b".." => {
                dirs.push(name.into());
            }
            _ => {}
        }
        if *count > enough {
            break;
        }
    }
    dirs
}
