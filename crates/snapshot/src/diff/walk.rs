//! Walks two trees side by side in the order of names, with an explicit stack instead of recursion.
//!
//! Equal entries and everything below them are skipped, so the work follows the differences. Entries on one side only
//! are walked too, as long as the visitor wants to descend.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::hash::{MerkleRoot, TreeId};
use crate::node::{Entry, Kind, Name, Node, Omitted};
use crate::state::{ObjectError, ObjectName, Objects, Result};

/// An entry, kept alive by its node.
#[derive(Clone)]
pub(crate) struct EntryRef {
    node: Arc<Node>,
    at: usize,
}

impl EntryRef {
    /// An entry that is in no other node: a root, or one without its siblings.
    pub(crate) fn alone(entry: Entry) -> EntryRef {
        EntryRef { node: Arc::new(Node { entries: vec![entry], omitted: Vec::new() }), at: 0 }
    }
}

impl std::ops::Deref for EntryRef {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.node.entries[self.at]
    }
}

impl fmt::Debug for EntryRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Content of one side at a name.
#[derive(Debug)]
pub(crate) enum SideSlot<'a> {
    Nothing,
    Entry(EntryRef),
    Omitted(&'a Omitted),
}

impl SideSlot<'_> {
    pub(crate) fn entry(&self) -> Option<&EntryRef> {
        match self {
            SideSlot::Entry(entry) => Some(entry),
            SideSlot::Nothing | SideSlot::Omitted(_) => None,
        }
    }

    pub(crate) fn is_omitted(&self) -> bool {
        matches!(self, SideSlot::Omitted(_))
    }
}

/// One name, with both sides.
#[derive(Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) name: &'a Name,
    pub(crate) a: SideSlot<'a>,
    pub(crate) b: SideSlot<'a>,
    /// The nodes that contain the name.
    pub(crate) nodes: [Option<Arc<Node>>; 2],
}

pub(crate) trait Visit {
    /// Called for a name whose sides differ. True: descend into directories, and [`Visit::leave`] follows.
    fn pair(&mut self, pair: &Pair<'_>) -> Result<bool>;

    fn leave(&mut self) -> Result<()>;
}

/// Entries that a walk skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Skip equal entries and everything below them.
    Differences,
    Nothing,
}

/// Walk the two trees that start at these entries.
pub(crate) fn walk(
    a: Option<&Entry>,
    b: Option<&Entry>,
    depth: Depth,
    objects: &dyn Objects,
    visit: &mut impl Visit,
) -> Result<()> {
    let root = |entry: &Entry| Arc::new(Node { entries: vec![entry.clone()], omitted: Vec::new() });
    let mut stack = vec![DiffFrame::new(a.map(root), b.map(root))];
    while let Some(frame) = stack.last_mut() {
        let Some((pair, tree_a, tree_b)) = frame.next() else {
            stack.pop();
            if !stack.is_empty() {
                visit.leave()?;
            }
            continue;
        };
        let equal = match (&pair.a, &pair.b) {
            (SideSlot::Entry(a), SideSlot::Entry(b)) => **a == **b,
            _ => false,
        };
        if (equal && depth == Depth::Differences) || !visit.pair(&pair)? || tree_a.or(tree_b).is_none() {
            continue;
        }
        let below = if tree_a == tree_b && depth == Depth::Differences {
            DiffFrame::new(None, None)
        } else {
            let load = |tree: Option<Sealed>| tree.map(|tree| tree.load(objects)).transpose();
            DiffFrame::new(load(tree_a)?, load(tree_b)?)
        };
        stack.push(below);
    }
    Ok(())
}

#[derive(Debug)]
struct DiffFrame {
    a: WalkSide,
    b: WalkSide,
}

#[derive(Debug)]
struct WalkSide {
    node: Option<Arc<Node>>,
    entry: usize,
    omitted: usize,
}

type Next<'a> = (Pair<'a>, Option<Sealed>, Option<Sealed>);

/// A directory's node as referenced by its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sealed {
    tree: TreeId,
    merkle: MerkleRoot,
}

impl Sealed {
    /// Load the node, and check it against the Merkle root of the snapshot.
    fn load(self, objects: &dyn Objects) -> Result<Arc<Node>> {
        let node = objects.node(self.tree)?;
        if node.merkle() == self.merkle {
            return Ok(node);
        }
        Err(ObjectError::Damaged { what: ObjectName::Tree(self.tree) })
    }
}

impl DiffFrame {
    fn new(a: Option<Arc<Node>>, b: Option<Arc<Node>>) -> DiffFrame {
        let side = |node| WalkSide { node, entry: 0, omitted: 0 };
        DiffFrame { a: side(a), b: side(b) }
    }

    fn next(&mut self) -> Option<Next<'_>> {
        let nodes = [self.a.node.clone(), self.b.node.clone()];
        let order = match (self.a.peek(), self.b.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(b),
        };
        let a = if order.is_le() { self.a.take() } else { None };
        let b = if order.is_ge() { self.b.take() } else { None };
        let name = a.as_ref().or(b.as_ref())?.0;
        let tree = |slot: &SideSlot<'_>| match &slot.entry()?.kind {
            Kind::Dir { tree, merkle } => Some(Sealed { tree: *tree, merkle: *merkle }),
            _ => None,
        };
        let a = a.map_or(SideSlot::Nothing, |(_, slot)| slot);
        let b = b.map_or(SideSlot::Nothing, |(_, slot)| slot);
        let trees = (tree(&a), tree(&b));
        Some((Pair { name, a, b, nodes }, trees.0, trees.1))
    }
}

impl WalkSide {
    fn peek(&self) -> Option<&Name> {
        let node = self.node.as_ref()?;
        let entry = node.entries.get(self.entry).map(|entry| &entry.name);
        let omitted = node.omitted.get(self.omitted).map(|omitted| &omitted.name);
        match (entry, omitted) {
            (Some(entry), Some(omitted)) => Some(entry.min(omitted)),
            (one, other) => one.or(other),
        }
    }

    fn take(&mut self) -> Option<(&Name, SideSlot<'_>)> {
        let node = self.node.as_ref()?;
        let entry = node.entries.get(self.entry);
        let omitted = node.omitted.get(self.omitted);
        match (entry, omitted) {
            (Some(entry), omitted) if omitted.is_none_or(|omitted| entry.name < omitted.name) => {
                let slot = SideSlot::Entry(EntryRef { node: node.clone(), at: self.entry });
                self.entry += 1;
                Some((&entry.name, slot))
            }
            (_, Some(omitted)) => {
                self.omitted += 1;
                Some((&omitted.name, SideSlot::Omitted(omitted)))
            }
            (_, None) => None,
        }
    }
}
