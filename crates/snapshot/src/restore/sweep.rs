//! Removes the files that an interrupted restore left under its temporary names, in the directories of its plan.
//!
//! Such a file is either new and perhaps incomplete, or displaced and not yet checked. The two cannot be told apart, so
//! its content is stored before it is removed. A directory with such a name belongs to the user and was moved aside at
//! that moment; it stays and is reported.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Dir, FileType};

use super::displace::{self, DisplaceVerdict};
use super::place_entry::TargetDir;
use super::plan::RestorePlan;
use super::verify::each_dir;
use super::{FailedPath, KeptAside, KeptContent, RestoreError, RestoreId, Result};
use crate::disk;
use crate::node::Name;
use crate::state::Objects;

#[derive(Debug, Default)]
pub struct Swept {
    pub removed: u64,
    pub kept: Vec<KeptAside>,
    pub failed: Vec<FailedPath>,
}

/// Remove the temporary files of the restore `id`, whose plan this was.
pub fn sweep(plan: &RestorePlan, id: RestoreId, objects: &dyn Objects) -> Swept {
    let mut swept = Swept::default();
    let prefix = id.prefix();
    each_dir(plan, &mut |index, dir| match dir {
        Ok(dir) => sweep_dir(dir, &prefix, objects, &|| plan.path_of(index, None), &mut swept),
        // Not created yet, removed already, or replaced by now.
        Err(error) if is_absent(&error) => {}
        // A directory is accessible while it is worked in: a closed one was not entered yet, or is done.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {}
        Err(error) => swept.fail(plan.path_of(index, None), "open it", error),
    });
    swept
}

fn is_absent(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let absent = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP];
    error.kind() == std::io::ErrorKind::NotFound
        || Errno::from_io_error(error).is_some_and(|errno| absent.contains(&errno))
}

fn sweep_dir(
    dir: BorrowedFd<'_>,
    prefix: &str,
    objects: &dyn Objects,
    path: &dyn Fn() -> PathBuf,
    swept: &mut Swept,
) {
    let names = match temporary_names(dir, prefix) {
        Ok(names) => names,
        Err(source) => return swept.fail(path(), "list it", source),
    };
    for name in names {
        let path = || path().join(&name);
        match dispose(dir, name.as_bytes(), objects) {
            Ok(kept) => {
                swept.removed += 1;
                swept.kept.extend(kept.map(|content| KeptAside { path: path(), content }));
            }
            Err(error) => swept.failed.push(FailedPath { path: path(), error }),
        }
    }
}

fn temporary_names(dir: BorrowedFd<'_>, prefix: &str) -> std::io::Result<Vec<Name>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name.starts_with(prefix.as_bytes()) {
            names.extend(Name::new(name));
        }
    }
    Ok(names)
}

fn dispose(dir: BorrowedFd<'_>, name: &[u8], objects: &dyn Objects) -> Result<Option<KeptContent>> {
    let unlink = || -> std::io::Result<()> {
        disk::step()?;
        Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?)
    };
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let stat = stat.map_err(RestoreError::io("stat it"))?;
    let kept = match displace::kind_of(&stat) {
        FileType::RegularFile => match displace::file(dir, name, None, objects)? {
            DisplaceVerdict::Stored(stored) => {
                unlink().map_err(RestoreError::io("remove it"))?;
                return stored.unlinked(objects);
            }
            // A program writes to it: it was displaced, and stays under a permanent name.
            DisplaceVerdict::Busy | DisplaceVerdict::Other => {
                let beside = TargetDir::new(dir, objects).keep_beside(name, b"displaced")?;
                return Err(RestoreError::Beside { name: String::from_utf8_lossy(&beside).into_owned() });
            }
        },
        FileType::Symlink => {
            let target = crate::read::link(dir, name).map_err(RestoreError::io("read the link"))?;
            Some(KeptContent::Symlink { target })
        }
        FileType::Directory => {
            return Err(RestoreError::io("remove it")(rustix::io::Errno::ISDIR));
        }
        _ => None,
    };
    unlink().map_err(RestoreError::io("remove it"))?;
    Ok(kept)
}

impl Swept {
    fn fail(&mut self, path: PathBuf, doing: &'static str, source: std::io::Error) {
        self.failed.push(FailedPath { path, error: RestoreError::Io { doing, source } });
    }
}
