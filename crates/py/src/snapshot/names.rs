//! Mapping between tracked paths as given and the engine's roots (absolute, without links): paths are shown below the
//! tracked path as it was given.

use std::path::{Path, PathBuf};

use nono::snapshot::SnapshotState;

#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Roots and their given paths, where they differ.
    pairs: Vec<(PathBuf, PathBuf)>,
}

impl Names {
    pub(crate) fn new(pairs: impl IntoIterator<Item = (PathBuf, PathBuf)>) -> Names {
        Names { pairs: pairs.into_iter().filter(|(root, given)| root != given).collect() }
    }

    /// Path as the caller sees it.
    pub(crate) fn given(&self, path: PathBuf) -> PathBuf {
        swap(&path, self.pairs.iter().map(|(root, given)| (root, given))).unwrap_or(path)
    }

    /// Path as the engine sees it.
    pub(crate) fn root(&self, path: PathBuf) -> PathBuf {
        let known = swap(&path, self.pairs.iter().map(|(root, given)| (given, root)));
        // A path without an absolute form (an empty one) is refused by the engine.
        known.unwrap_or_else(|| std::path::absolute(&path).unwrap_or(path))
    }

    /// State with its roots as they were given.
    pub(crate) fn state(&self, state: &SnapshotState) -> SnapshotState {
        let mut state = state.clone();
        for root in &mut state.roots {
            root.path = self.given(std::mem::take(&mut root.path));
        }
        state
    }
}

/// The innermost of the pairs that `path` is below.
fn swap<'a>(path: &Path, pairs: impl Iterator<Item = (&'a PathBuf, &'a PathBuf)>) -> Option<PathBuf> {
    let found = pairs.filter_map(|(from, to)| Some((from, to, path.strip_prefix(from).ok()?)));
    let (_, to, below) = found.max_by_key(|(from, ..)| from.components().count())?;
    Some(if below.as_os_str().is_empty() { to.clone() } else { to.join(below) })
}
