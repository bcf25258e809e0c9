//! Nested roots: which of them a path belongs to, and the order in which they are restored.

use std::path::Path;

use crate::state::{RootContent, RootState, SnapshotState};

/// Roots of a target.
#[derive(Clone, Copy)]
pub(super) struct Nested<'a>(&'a [RootState]);

impl<'a> Nested<'a> {
    pub(super) fn new(target: &'a SnapshotState) -> Nested<'a> {
        Nested(&target.roots)
    }

    /// Roots in order: first those that are to be removed, the innermost first, so that their parents can be removed;
    /// then the others, outer ones first, because they create the parents of inner ones.
    pub(super) fn in_order(self) -> impl Iterator<Item = &'a RootState> {
        let (gone, mut others): (Vec<&RootState>, Vec<&RootState>) =
            self.0.iter().partition(|root| self.goes(&root.path));
        let depth = |root: &&RootState| root.path.components().count();
        others.sort_by_key(depth);
        let mut gone = gone;
        gone.sort_by_key(|root| std::cmp::Reverse(depth(root)));
        gone.into_iter().chain(others)
    }

    /// Whether the root is inside another root and is to be removed.
    pub(super) fn goes(self, path: &Path) -> bool {
        let gone = |root: &RootState| root.path == path && root.content == RootContent::Absent;
        self.0.iter().any(gone) && path.parent().is_some_and(|parent| self.is_inside(parent))
    }

    /// Whether this directory belongs to a root.
    pub(super) fn is_inside(self, dir: &Path) -> bool {
        self.0.iter().any(|root| dir.starts_with(&root.path))
    }

    /// Whether a path belongs to this root and to none inside it, or contains it.
    pub(super) fn answers(self, root: &Path, path: &Path) -> bool {
        let inner = |other: &RootState| other.path != root && other.path.starts_with(root);
        let asked = self.0.iter().any(|other| inner(other) && path.starts_with(&other.path));
        (path.starts_with(root) && !asked) || root.starts_with(path)
    }
}
