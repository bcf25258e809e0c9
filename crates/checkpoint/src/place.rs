//! Where a folder stood, written down while it was there, so that one that is gone can be told from one whose disk is not
//! mounted: the file systems and inodes of the directories above it.
//!
//! A folder is gone when the nearest directory above it that is there is the very one that was there then, on the file
//! system that the folder itself was on. Where a disk was mounted another directory shows, of another file system or (for
//! a folder that was bound there) with another inode. Whatever cannot be told is no proof.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The place of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    filesystem: u64,
    /// From the one it stands in upwards.
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

impl Place {
    /// Of a folder that is there, by its resolved path.
    pub fn of(folder: &Path) -> Option<Place> {
        let filesystem = Directory::at(folder)?.filesystem;
        let above: Option<Vec<Directory>> = folder.ancestors().skip(1).map(Directory::at).collect();
        Some(Place { filesystem, above: above? })
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
        let place = Place::of(&folder).unwrap();
        let text = serde_json::to_string(&place).unwrap();
        assert_eq!(serde_json::from_str::<Place>(&text).unwrap(), place);
        assert!(!place.is_gone(&folder), "it is there");

        // The disk is not there: another directory shows where it was mounted.
        std::fs::rename(base.join("disk"), base.join("away")).unwrap();
        std::fs::create_dir(base.join("disk")).unwrap();
        assert!(!place.is_gone(&folder));
        std::fs::remove_dir(base.join("disk")).unwrap();
        std::fs::rename(base.join("away"), base.join("disk")).unwrap();

        // A file in its place, or a link that leads nowhere, is something.
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
        let here = Place::of(&folder).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        let other = Place { filesystem: here.filesystem ^ 1, ..here.clone() };
        assert!(here.is_gone(&folder) && !other.is_gone(&folder));
    }
}
