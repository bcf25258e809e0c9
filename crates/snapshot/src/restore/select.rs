//! Selected paths, as a tree of their components.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use super::Selection;

/// Relation of a path to the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// Selected, with everything below.
    Whole,
    /// Something below it may be selected; the index of its node in the tree.
    Below(usize),
    No,
}

#[derive(Debug)]
pub(super) struct PathSelection {
    places: Vec<SelectionNode>,
    start: Chosen,
}

#[derive(Debug, Default)]
struct SelectionNode {
    next: HashMap<Box<[u8]>, usize>,
    end: Option<PathBuf>,
}

impl PathSelection {
    pub(super) fn new(selection: &Selection) -> PathSelection {
        let Selection::Paths(paths) = selection else {
            return PathSelection { places: Vec::new(), start: Chosen::Whole };
        };
        let mut choice = PathSelection { places: vec![SelectionNode::default()], start: Chosen::Below(0) };
        for path in paths {
            choice.add(path);
        }
        choice
    }

    fn add(&mut self, path: &Path) {
        let mut at = 0;
        for name in normal(path) {
            let fresh = self.places.len();
            at = *self.places[at].next.entry(name.into()).or_insert(fresh);
            if at == fresh {
                self.places.push(SelectionNode::default());
            }
        }
        self.places[at].end = Some(path.to_path_buf());
    }

    /// Node of a directory, from the top.
    pub(super) fn of(&self, path: &Path) -> Chosen {
        normal(path).fold(self.whole(self.start), |chosen, name| self.child(chosen, name))
    }

    pub(super) fn child(&self, chosen: Chosen, name: &[u8]) -> Chosen {
        match chosen {
            Chosen::Below(at) => {
                let next = self.places.get(at).and_then(|place| place.next.get(name));
                next.map_or(Chosen::No, |next| self.whole(Chosen::Below(*next)))
            }
            Chosen::Whole | Chosen::No => chosen,
        }
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.places.iter().filter_map(|place| place.end.as_ref())
    }

    fn whole(&self, chosen: Chosen) -> Chosen {
        match chosen {
            Chosen::Below(at) if self.places.get(at).is_some_and(|it| it.end.is_some()) => Chosen::Whole,
            other => other,
        }
    }
}

fn normal(path: &Path) -> impl Iterator<Item = &[u8]> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.as_encoded_bytes()),
        _ => None,
    })
}
