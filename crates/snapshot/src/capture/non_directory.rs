//! A root that is not a directory: a file, a link, or a special file, which is never opened.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::FileType;

use crate::node::{Entry, Errno, Kind, Meta, Name, Reason, Xattr};
use crate::read::{self, Moment, ReadOptions, ReadOutcome};
use crate::scan::Worker;
use crate::stat::FoundStat;
use crate::store::StoreError;
use crate::unlock::Unlock;

pub(super) fn meta(found: &FoundStat, xattrs: &[Xattr]) -> Meta {
    Meta {
        mode: found.stat.permissions(),
        mtime: found.stat.mtime,
        uid: found.stat.uid,
        gid: found.stat.gid,
        link: None,
        linked_outside: !found.stat.is_dir() && found.stat.nlink > 1,
        xattrs: xattrs.to_vec(),
    }
}

/// A root in its parent directory.
pub(super) struct Top {
    pub(super) parent: OwnedFd,
    pub(super) name: Name,
    pub(super) found: FoundStat,
}

pub(super) fn single_entry(
    Top { parent, name, found }: &Top,
    unlock: &dyn Unlock,
    worker: &mut Worker<'_>,
) -> Result<Result<Entry, Reason>, StoreError> {
    let dir = parent.as_fd();
    let bytes = name.as_bytes();
    if found.stat.is_file() {
        return Ok(match worker.read(dir, bytes, found, ReadOptions::default(), unlock)? {
            ReadOutcome::Content(content) => {
                if content.moment == Moment::Growing {
                    worker.found.growing.push((0, Box::default(), content.stat.size));
                }
                let found = FoundStat { stat: content.stat, ..*found };
                let kind = Kind::File { hash: content.hash, size: content.stat.size, sparse: content.sparse };
                Ok(Entry { name: name.clone(), meta: meta(&found, &content.xattrs), kind })
            }
            ReadOutcome::LeftOut(reason) => Err(reason),
            ReadOutcome::Replaced => Err(Reason::Unstable),
        });
    }
    let kind = match found.stat.kind() {
        FileType::Symlink => match read::link(dir, bytes) {
            Ok(target) => Kind::Symlink { target },
            Err(errno) => return Ok(Err(Reason::Unreadable(Errno(errno.raw_os_error())))),
        },
        FileType::CharacterDevice => Kind::CharDevice { rdev: found.rdev },
        FileType::BlockDevice => Kind::BlockDevice { rdev: found.rdev },
        FileType::Fifo => Kind::Fifo,
        _ => Kind::Socket,
    };
    Ok(match read::xattrs_at(dir, bytes) {
        Ok(xattrs) => Ok(Entry { name: name.clone(), meta: meta(found, &xattrs), kind }),
        Err(errno) => Err(Reason::Unreadable(Errno(errno.raw_os_error()))),
    })
}
