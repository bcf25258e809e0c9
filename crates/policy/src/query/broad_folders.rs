//! Folders that are too wide to be suggested as a grant.

use std::path::Path;

/// Whether the path is a top-level folder of the system, which is never suggested as a whole.
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
