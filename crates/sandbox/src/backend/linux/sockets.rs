//! Path sockets that processes listen on.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

/// Every bound path socket of this network namespace that exists under its name now.
///
/// `/proc/net/unix` keeps the name a socket was bound with, even when another object is there today, so each is
/// checked.
pub(super) fn bound_sockets() -> Vec<PathBuf> {
    let Ok(table) = std::fs::read("/proc/net/unix") else { return Vec::new() };
    let mut paths: BTreeSet<PathBuf> = table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.windows(2).position(|pair| pair == b" /").map(|at| &line[at + 1..]))
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect();
    // A socket may have been linked or renamed beside the name it was bound with (ssh's control sockets are).
    let mut folders: BTreeSet<PathBuf> =
        paths.iter().filter_map(|path| Some(path.parent()?.to_owned())).collect();
    folders.extend(relative_folders(&table));
    for folder in folders {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
        paths.extend(sockets.map(|entry| entry.path()));
    }
    paths.retain(|path| path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket()));
    let paths: BTreeSet<PathBuf> = paths.into_iter().map(by_its_own_name).collect();
    paths.into_iter().collect()
}

/// Replaces a name in `/proc` by the real path. Sockets of this process may be bound through a directory's descriptor,
/// as those of another session are: such a name is a link in `/proc`, and means something else to every other process.
fn by_its_own_name(path: PathBuf) -> PathBuf {
    let resolved = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    if path.starts_with("/proc") { resolved().unwrap_or(path) } else { path }
}

/// Directories where sockets bound with a relative name may be: below the working directories of the visible processes.
/// Nothing better is known about them.
fn relative_folders(table: &[u8]) -> Vec<PathBuf> {
    let lines = table.split(|byte| *byte == b'\n').skip(1);
    let names: Vec<&[u8]> = lines
        .filter_map(|line| line.splitn(7, |byte| *byte == b' ').last())
        .map(<[u8]>::trim_ascii_start)
        .filter_map(|rest| rest.splitn(2, |byte| *byte == b' ').nth(1))
        .filter(|name| !name.is_empty() && name[0] != b'/' && name[0] != b'@')
        .collect();
    if names.is_empty() {
        return Vec::new();
    }
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let homes: BTreeSet<PathBuf> =
        processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok()).collect();
    homes
        .iter()
        .flat_map(|home| names.iter().map(move |name| home.join(OsStr::from_bytes(name))))
        .filter_map(|path| Some(path.parent()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_bound_through_a_descriptor_has_its_own_name() {
        let dir = tempfile::tempdir().unwrap();
        let folder = std::fs::File::open(dir.path()).unwrap();
        let listener = UnixListener::bind(format!("/proc/self/fd/{}/s", folder.as_raw_fd())).unwrap();
        let bound = bound_sockets();
        drop(listener);
        assert!(bound.contains(&dir.path().canonicalize().unwrap().join("s")), "{bound:?}");
        assert!(!bound.iter().any(|path| path.starts_with("/proc")), "{bound:?}");
    }
}
