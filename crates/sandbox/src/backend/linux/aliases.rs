//! Other names of masked paths.
//!
//! Landlock's rules apply to inodes, under any name; a mask applies to one name. A masked path that another mount of
//! its file system shows elsewhere (a bind mount, ostree's `/sysroot`) is masked there too. Mounts that appear later do
//! not reach the child's private namespace.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nono_policy::is_within;

use super::blueprint::MountStep;

/// One line of `/proc/self/mountinfo`: `root` of the file system on `device` is mounted `at`.
struct Mount {
    device: String,
    root: PathBuf,
    at: PathBuf,
}

/// Additional masks that the masks among `steps` need.
pub(super) fn aliases(steps: &[MountStep]) -> Vec<MountStep> {
    let masks: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            MountStep::Mask { source, target, must } if source != target => Some((source, target, *must)),
            _ => None,
        })
        .collect();
    let held: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            MountStep::Hold { path } | MountStep::Copy { target: path, .. } => Some(path),
            _ => None,
        })
        .collect();
    if masks.is_empty() && held.is_empty() {
        return Vec::new();
    }
    let mounts = mounts();
    let kept: Vec<_> = steps
        .iter()
        .filter_map(|step| if let MountStep::Keep { path } = step { Some(path) } else { None })
        .collect();
    // Other names elsewhere are read-only anyway.
    let writable = |path: &PathBuf| kept.iter().any(|kept| is_within(path, kept));
    let holds = held.into_iter().flat_map(|path| other_names(path, &mounts)).filter(writable);
    let holds: Vec<_> = holds.map(|path| MountStep::Hold { path }).collect();
    let mask = |(source, target, must): (&PathBuf, &PathBuf, bool)| {
        let others = other_names(target, &mounts);
        others
            .into_iter()
            .map(move |target| MountStep::Mask { source: source.clone(), target, must })
            .collect::<Vec<_>>()
    };
    masks.into_iter().flat_map(mask).chain(holds).collect()
}

/// Other paths of the file or directory at `path`, checked by its identity.
fn other_names(path: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    let own = mounts.iter().rev().filter(|mount| is_within(path, &mount.at));
    let Some(own) = own.max_by_key(|mount| mount.at.components().count()) else { return Vec::new() };
    let Ok(inside) = path.strip_prefix(&own.at).map(|rest| own.root.join(rest)) else { return Vec::new() };
    let identity = |path: &Path| path.symlink_metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    let Some(here) = identity(path) else { return Vec::new() };
    mounts
        .iter()
        .filter(|mount| mount.device == own.device)
        .filter_map(|mount| inside.strip_prefix(&mount.root).ok().map(|rest| join(&mount.at, rest)))
        .filter(|alias| alias != path && identity(alias) == Some(here))
        .collect()
}

/// Joins two paths; joining an empty rest would add a slash.
fn join(at: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { at.to_owned() } else { at.join(rest) }
}

fn mounts() -> Vec<Mount> {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let table = String::from_utf8_lossy(&table);
    let line = |line: &str| {
        let mut fields = line.split(' ').skip(2);
        let (device, root, at) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Mount { device: device.to_owned(), root: unescape(root), at: unescape(at) })
    };
    table.lines().filter_map(line).collect()
}

/// Decodes blanks and backslashes, which the kernel writes as `\\ooo`.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let octal = rest.strip_prefix('\\').and_then(|tail| u8::from_str_radix(tail.get(..3)?, 8).ok());
        bytes.push(octal.unwrap_or(first));
        rest = rest.get(if octal.is_some() { 4 } else { 1 }..).unwrap_or_default();
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_blanks_come_back() {
        assert_eq!(unescape("/a\\040b\\134c"), Path::new("/a b\\c"));
        assert_eq!(unescape("/plain\\x"), Path::new("/plain\\x"));
    }
}
