//! Globs over the last names of a path: `*` within a name, `**` for any names, possibly none.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Names of the path's components in lower case.
pub(super) fn names(path: &Path) -> Vec<Vec<u8>> {
    let normal = path.components().filter(|component| matches!(component, Component::Normal(_)));
    normal.map(|component| component.as_os_str().as_bytes().to_ascii_lowercase()).collect()
}

/// Whether the last names match the glob, which is in lower case.
pub(super) fn matches(glob: &str, names: &[Vec<u8>]) -> bool {
    let (above, last) = glob.rsplit_once('/').map_or((None, glob), |(above, last)| (Some(above), last));
    // Most globs fail at their last name.
    let Some((name, rest)) = names.split_last() else { return false };
    if last == "**" {
        return above.is_some_and(|above| (1..=names.len()).any(|at| matches(above, &names[..at - 1])));
    }
    name_matches(last.as_bytes(), name) && above.is_none_or(|above| all_above(above, rest))
}

fn all_above(above: &str, names: &[Vec<u8>]) -> bool {
    match above.rsplit_once('/') {
        // `**`: the rest of the glob may end at any of the names.
        Some((rest, "**")) => (0..=names.len()).any(|at| matches(rest, &names[..at])),
        _ => matches(above, names),
    }
}

fn name_matches(glob: &[u8], name: &[u8]) -> bool {
    match glob.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) if !rest.contains(&b'*') => name.ends_with(rest),
        Some((b'*', rest)) => (0..=name.len()).any(|at| name_matches(rest, &name[at..])),
        Some((byte, rest)) => {
            name.split_first().is_some_and(|(first, name)| first == byte && name_matches(rest, name))
        }
    }
}
