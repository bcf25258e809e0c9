//! Path sockets somebody listens on.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

/// Every bound path socket of this network namespace that exists under its name now.
///
/// `/proc/net/unix` keeps the name a socket was bound with, even when something else stands there today, so each is
/// looked at before it is believed.
pub(super) fn bound_sockets() -> Vec<PathBuf> {
    let Ok(table) = std::fs::read("/proc/net/unix") else { return Vec::new() };
    let mut paths: Vec<PathBuf> = table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.windows(2).position(|pair| pair == b" /").map(|at| &line[at + 1..]))
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket()));
    paths
}
