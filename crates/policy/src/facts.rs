//! Facts about the file system that resolution needs, behind a trait.
//!
//! Resolution itself stays pure: it asks [`Facts`] and nothing else, so that tests can hand in a tree that exists
//! only in memory. [`HostFacts`] is the real one. It never opens a file and never follows a link it was not asked
//! to follow; a fact is true at the moment it is asked and may be stale a moment later, which is why the sandbox
//! binds its rules to inodes.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nono_sys::process;

/// Resolved path: every link followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Canonical and absolute.
    pub path: PathBuf,
    pub kind: FoundKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundKind {
    Directory,
    File,
    Device,
    Socket,
    Fifo,
    Other,
}

/// Kind of a directory entry, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    Directory,
    File,
    Symlink,
    Other,
}

/// The questions resolution may ask.
pub trait Facts {
    /// Follows every link of an absolute path.
    fn resolve(&self, path: &Path) -> io::Result<ResolvedPath>;

    /// The entries of a directory, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<(OsString, EntryKind)>>;

    fn hard_links(&self, path: &Path) -> io::Result<u64>;

    /// Target of a link, as it is written.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;

    /// Whether the link at `path`, whose folder has no link in its path, belongs to the system: no command that this
    /// user runs can have made it or put it there.
    fn is_system_link(&self, path: &Path) -> bool;

    /// Whether the last component of `path` is itself a link; tells a dangling link from a missing name.
    fn is_symlink(&self, path: &Path) -> bool {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return false };
        self.list(dir).is_ok_and(|entries| entries.iter().any(|(n, k)| n == name && *k == EntryKind::Symlink))
    }
}

/// The file system of this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostFacts;

impl Facts for HostFacts {
    fn resolve(&self, path: &Path) -> io::Result<ResolvedPath> {
        let (path, metadata) = nono_sys::fs::locate(path)?;
        Ok(ResolvedPath { path, kind: found_kind(metadata.file_type()) })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<(OsString, EntryKind)>> {
        fs::read_dir(dir)?
            .map(|entry| entry.and_then(|e| Ok((e.file_name(), entry_kind(e.file_type()?)))))
            .collect()
    }

    fn hard_links(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::symlink_metadata(path)?.nlink())
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(path)
    }

    fn is_system_link(&self, path: &Path) -> bool {
        // In a user namespace root may have another number, so the owner of `/` counts as root.
        let Ok(root) = fs::symlink_metadata("/").map(|meta| meta.uid()) else { return false };
        if path.starts_with("/proc") {
            return true;
        }
        if root == process::uid() {
            return is_systems_place(path);
        }
        let of_root = |path: &Path| fs::symlink_metadata(path).ok().filter(|meta| meta.uid() == root);
        let fixed = |dir: &Path| {
            of_root(dir).is_some_and(|meta| meta.mode() & STICKY != 0 || !nono_sys::fs::is_writable(dir))
        };
        of_root(path).is_some() && path.ancestors().skip(1).all(fixed)
    }

    fn is_symlink(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_symlink())
    }
}

/// Mode bit of a directory in which only the owner of a name can replace it.
const STICKY: u32 = 0o1000;

/// Whether the system itself keeps links here. Used for root, which also owns the links its commands make.
fn is_systems_place(link: &Path) -> bool {
    let Some(dir) = link.parent() else { return false };
    let whole = ["/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/dev", "/sys"];
    let directly = ["/", "/var", "/run", "/home", "/opt"];
    directly.iter().any(|place| dir == Path::new(place))
        || whole.iter().any(|place| dir.starts_with(place)) && !dir.starts_with("/usr/local")
}

fn found_kind(kind: fs::FileType) -> FoundKind {
    if kind.is_dir() {
        FoundKind::Directory
    } else if kind.is_file() {
        FoundKind::File
    } else if kind.is_socket() {
        FoundKind::Socket
    } else if kind.is_fifo() {
        FoundKind::Fifo
    } else if kind.is_char_device() || kind.is_block_device() {
        FoundKind::Device
    } else {
        FoundKind::Other
    }
}

fn entry_kind(kind: fs::FileType) -> EntryKind {
    if kind.is_dir() {
        EntryKind::Directory
    } else if kind.is_file() {
        EntryKind::File
    } else if kind.is_symlink() {
        EntryKind::Symlink
    } else {
        EntryKind::Other
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_host_follows_links_and_names_kinds() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::write(root.join("file"), "x").unwrap();
        symlink("file", root.join("link")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        let _socket = UnixListener::bind(root.join("sock")).unwrap();

        let found = HostFacts.resolve(&root.join("link")).unwrap();
        assert_eq!(found, ResolvedPath { path: root.join("file"), kind: FoundKind::File });
        assert_eq!(HostFacts.resolve(&root).unwrap().kind, FoundKind::Directory);
        assert_eq!(HostFacts.resolve(&root.join("sock")).unwrap().kind, FoundKind::Socket);
        assert_eq!(HostFacts.resolve(Path::new("/dev/null")).unwrap().kind, FoundKind::Device);
        assert_eq!(HostFacts.resolve(&root.join("dangling")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(HostFacts.is_symlink(&root.join("dangling")));
        assert!(!HostFacts.is_symlink(&root.join("missing")));
    }

    #[test]
    fn links_of_the_system_are_told_from_those_of_people() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        symlink("/etc", root.join("link")).unwrap();
        assert!(!HostFacts.is_system_link(&root.join("link")));
        assert!(HostFacts.is_system_link(Path::new("/proc/self")));
        for link in ["/bin", "/etc/mtab", "/var/run", "/dev/fd", "/usr/lib64"] {
            let link = Path::new(link);
            assert!(!HostFacts.is_symlink(link) || HostFacts.is_system_link(link), "{}", link.display());
        }
        for (link, is_its) in [("/usr/local/bin/x", false), ("/srv/x", false), ("/etc/alternatives/vi", true)]
        {
            assert_eq!(is_systems_place(Path::new(link)), is_its, "{link}");
        }
    }

    #[test]
    fn the_host_lists_without_following_and_counts_names() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        fs::hard_link(dir.path().join("file"), dir.path().join("twin")).unwrap();
        symlink("file", dir.path().join("link")).unwrap();
        let mut entries = HostFacts.list(dir.path()).unwrap();
        entries.sort();
        let kinds: Vec<_> = entries.iter().map(|(n, k)| (n.to_str().unwrap(), *k)).collect();
        assert_eq!(
            kinds,
            [("file", EntryKind::File), ("link", EntryKind::Symlink), ("twin", EntryKind::File)]
        );
        assert_eq!(HostFacts.hard_links(&dir.path().join("twin")).unwrap(), 2);
    }
}
