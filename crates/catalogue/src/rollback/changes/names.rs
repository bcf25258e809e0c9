//! Display names of paths below their roots.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Path relative to its root. With several roots it begins with the root's name; for a single root that is a file it is
/// the file's name. A path outside of all roots is returned unchanged.
pub(super) fn below_root(roots: &[PathBuf], path: &Path) -> PathBuf {
    // The longest match: roots may be nested.
    let root = roots.iter().enumerate().filter(|(_, root)| path.starts_with(root));
    let Some((index, root)) = root.max_by_key(|(_, root)| root.components().count()) else {
        return path.to_path_buf();
    };
    let below = path.strip_prefix(root).unwrap_or(path);
    let here = below.as_os_str().is_empty();
    if roots.len() > 1 {
        let name = PathBuf::from(unique_name(roots, index));
        return if here { name } else { name.join(below) };
    }
    if here { PathBuf::from(name(root)) } else { below.to_path_buf() }
}

/// Unique name of a root. The second of two roots with the same name is `name-2`, unless another root has that name.
fn unique_name(roots: &[PathBuf], index: usize) -> OsString {
    let mut taken: Vec<OsString> = Vec::with_capacity(index + 1);
    for root in &roots[..=index] {
        let plain = name(root).to_os_string();
        let others = roots.iter().filter(|other| *other != root).map(|other| name(other));
        let others: Vec<&OsStr> = others.collect();
        let mut called = plain.clone();
        let mut number = 2;
        while taken.contains(&called) || (called != plain && others.contains(&called.as_os_str())) {
            called.clone_from(&plain);
            called.push(format!("-{number}"));
            number += 1;
        }
        taken.push(called);
    }
    taken.pop().unwrap_or_default()
}

fn name(root: &Path) -> &OsStr {
    root.file_name().unwrap_or(root.as_os_str())
}
