//! Folders that are too much to be proposed because of one thing in them.

use std::path::Path;

/// Whether it is one of the folders that hold everything of some kind, and are never proposed as a whole.
pub fn is_system_folder(path: &Path) -> bool {
    SYSTEM_FOLDERS.iter().any(|folder| path == Path::new(folder))
}

const SYSTEM_FOLDERS: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/usr/share",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/tmp",
];
