//! Location of a folder, recorded while it existed, to tell a deleted folder from one whose disk is not mounted: the
//! file systems and inodes of the directories above it.
//!
//! A folder is gone if the nearest existing directory above it is the same as before, on the file system that the
//! folder was on. Where a disk was mounted, another directory appears, of another file system or (for a bind mount)
//! with another inode. In doubt the folder does not count as gone.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Recorded location of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectPath {
    filesystem: u64,
    /// Directories above it, from its parent upwards.
    above: Vec<Directory>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Directory {
    filesystem: u64,
    inode: u64,
}

impl Directory {
    fn at(path: &Path) -> Option<Directory> {
        let filesystem = rustix::fs::statvfs(path).ok()?.f_fsid;
        let inode = path.symlink_metadata().ok().filter(std::fs::Metadata::is_dir)?.ino();
        Some(Directory { filesystem, inode })
    }
}

impl ProjectPath {
    /// Location of an existing folder, by its resolved path.
    pub fn of(folder: &Path) -> Option<ProjectPath> {
        let filesystem = Directory::at(folder)?.filesystem;
        let above: Option<Vec<Directory>> = folder.ancestors().skip(1).map(Directory::at).collect();
        Some(ProjectPath { filesystem, above: above? })
    }

    /// Whether the folder is gone for certain.
    pub fn is_gone(&self, folder: &Path) -> bool {
        let missing =
            |path: &Path| path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        if !missing(folder) {
            return false;
        }
        let mut above = folder.ancestors().skip(1).zip(&self.above);
        let nearest = above.find(|(path, _)| !missing(path));
        nearest.is_some_and(|(path, then)| {
            then.filesystem == self.filesystem && Directory::at(path).as_ref() == Some(then)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gone_is_what_went_from_the_directory_that_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let folder = base.join("disk/deep/project");
        std::fs::create_dir_all(&folder).unwrap();
        let place = ProjectPath::of(&folder).unwrap();
        let text = serde_json::to_string(&place).unwrap();
        assert_eq!(serde_json::from_str::<ProjectPath>(&text).unwrap(), place);
        assert!(!place.is_gone(&folder), "it is there");

        // The disk is not mounted: another directory appears at its mount point.
        std::fs::rename(base.join("disk"), base.join("away")).unwrap();
        std::fs::create_dir(base.join("disk")).unwrap();
        assert!(!place.is_gone(&folder));
        std::fs::remove_dir(base.join("disk")).unwrap();
        std::fs::rename(base.join("away"), base.join("disk")).unwrap();

        // A file in its place, or a dangling link, means that it is not gone.
        std::fs::remove_dir(&folder).unwrap();
        std::fs::write(&folder, "").unwrap();
        assert!(!place.is_gone(&folder));
        std::fs::remove_file(&folder).unwrap();
        assert!(place.is_gone(&folder));
        std::fs::remove_dir_all(base.join("disk")).unwrap();
        assert!(place.is_gone(&folder), "with the directories above it");
    }

    /// The folder was the root of a mounted disk, or the disk was mounted above it.
    #[test]
    fn another_file_system_is_no_proof() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let folder = base.join("project");
        std::fs::create_dir(&folder).unwrap();
        let here = ProjectPath::of(&folder).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        let other = ProjectPath { filesystem: here.filesystem ^ 1, ..here.clone() };
        assert!(here.is_gone(&folder) && !other.is_gone(&folder));
    }
}
