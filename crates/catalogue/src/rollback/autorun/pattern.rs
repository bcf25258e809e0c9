//! Globs over the last names of a path.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use nono_policy::glob::Pattern;

/// Names of the path's components in lower case.
pub(super) fn names(path: &Path) -> Vec<Vec<u8>> {
    let normal = path.components().filter(|component| matches!(component, Component::Normal(_)));
    normal.map(|component| component.as_os_str().as_bytes().to_ascii_lowercase()).collect()
}

/// Pattern of paths whose last names match the glob, which is in lower case. `**` at its end is at least one name.
pub(super) fn ending(glob: &str) -> Option<Pattern> {
    let below = glob.ends_with("/**").then_some("*");
    let parts = std::iter::once("**").chain(glob.split('/')).chain(below);
    Pattern::parse(parts.map(str::as_bytes)).ok()
}
