//! Test whether one path lies inside another, by bytes.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether `path` is `dir` or lies below it. Both are normal absolute paths, so bytes decide: this runs for every pair
/// of a grant and a closed path, and `Path::starts_with` was most of the time of a whole resolution.
pub fn is_within(path: &Path, dir: &Path) -> bool {
    let (path, dir) = (path.as_os_str().as_bytes(), dir.as_os_str().as_bytes());
    path.starts_with(dir) && (path.len() == dir.len() || dir == b"/" || path[dir.len()] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_goes_by_components() {
        let within = |a: &str, b: &str| is_within(Path::new(a), Path::new(b));
        assert!(within("/a/b", "/a") && within("/a", "/a") && within("/a", "/"));
        assert!(!within("/ab", "/a") && !within("/a", "/a/b"));
    }
}
