//! Turns the tracked paths into the roots of a session.

use std::path::{Path, PathBuf};

use super::{Result, SnapshotError};
use crate::manifest::is_plain;
use crate::paths;
use crate::stat::stat_at;

/// Resolve the existing part of a path; the missing rest is kept as written.
fn resolve_missing(path: &Path) -> std::io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    for above in absolute.ancestors().skip(1) {
        if let (Ok(resolved), Ok(rest)) = (above.canonicalize(), absolute.strip_prefix(above)) {
            return Ok(resolved.join(rest));
        }
    }
    Ok(absolute)
}

/// Root of a tracked path: absolute, without links.
pub fn resolved(path: &Path) -> Result<PathBuf> {
    let failed = |source| SnapshotError::Root { path: path.to_owned(), source };
    let resolved = match path.canonicalize() {
        Ok(resolved) => resolved,
        // A root may be missing; the capture reports it.
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            resolve_missing(path).map_err(failed)?
        }
        Err(source) => return Err(failed(source)),
    };
    if is_plain(&resolved) { Ok(resolved) } else { Err(SnapshotError::NoName { path: path.to_owned() }) }
}

/// Resolve the paths and remove duplicates.
pub(super) fn resolve(paths: impl Iterator<Item = PathBuf>) -> Result<Vec<PathBuf>> {
    let mut roots: Vec<PathBuf> = paths.map(|path| resolved(&path)).collect::<Result<_, _>>()?;
    roots.sort();
    roots.dedup();
    Ok(roots)
}

/// Merge a tracked path inside another one into it: it is forced, whatever the rules of the outer one say. Returns the
/// remaining roots and the patterns that force the inner ones. A path on a filesystem of its own stays a root.
pub(super) fn merge_nested(mut roots: Vec<PathBuf>) -> (Vec<PathBuf>, Vec<String>) {
    let all = roots.clone();
    let mut forced = Vec::new();
    roots.retain(|root| {
        let outer = all.iter().find(|outer| *outer != root && root.starts_with(outer));
        let below = outer.and_then(|outer| root.strip_prefix(outer).ok()?.to_str());
        let Some((outer, below)) = outer.zip(below) else { return true };
        if mount(root).is_some_and(|here| mount(outer).is_some_and(|there| here != there)) {
            return true;
        }
        forced.push(format!("/{below}"));
        false
    });
    (roots, forced)
}

fn mount(path: &Path) -> Option<u64> {
    stat_at(rustix::fs::CWD, paths::bytes(path)).ok().map(|found| found.mount)
}
