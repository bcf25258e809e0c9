//! A `.git` in conflicts: it is judged as a whole, since its files mean nothing one by one.

use std::path::Path;
use std::sync::Arc;

use crate::diff::Aspects;
use crate::hash::TreeId;
use crate::node::{Entry, Name, Node, Omitted, Reason};
use crate::state::{Objects, Result, RootContent, SnapshotState};

/// A directory in a state that conflicts are judged by; `None` if it is not there.
pub(super) type Base = Option<Arc<Node>>;

/// A root in such a state, as the only entry of a directory.
pub(super) fn base(state: &SnapshotState, path: &Path) -> Node {
    match state.root(path).map(|root| root.content.clone()) {
        Some(RootContent::Captured(entry)) => Node { entries: vec![entry], omitted: Vec::new() },
        Some(RootContent::Absent) => Node::default(),
        Some(RootContent::Failed(reason)) => unknown(path, reason),
        None => unknown(path, Reason::Unstable),
    }
}

/// A directory whose content is unknown.
fn unknown(path: &Path, reason: Reason) -> Node {
    let name = path.file_name().and_then(|name| Name::new(name.as_encoded_bytes()));
    let omitted = name.map(|name| Omitted { name, is_dir: true, reason, stamp: None });
    Node { entries: Vec::new(), omitted: omitted.into_iter().collect() }
}

/// Whether the directory `now`, or anything in it that is not excluded, is in none of these states.
pub(super) fn is_changed(now: &Entry, bases: &[Base], objects: &dyn Objects) -> Result<bool> {
    let alone = Arc::new(Node { entries: vec![now.clone()], omitted: Vec::new() });
    let only = |base: &Base| {
        let node = base.as_ref()?;
        let entries = node.entry(now.name.as_bytes()).cloned().into_iter().collect();
        let omitted = node.omitted(now.name.as_bytes()).cloned().into_iter().collect();
        Some(Arc::new(Node { entries, omitted }))
    };
    let mut waiting = vec![(alone, bases.iter().map(only).collect::<Vec<Base>>())];
    while let Some((now, bases)) = waiting.pop() {
        if is_gone(&now, &bases) {
            return Ok(true);
        }
        for entry in &now.entries {
            if bases.iter().all(|base| is_other(entry, base.as_deref())) {
                return Ok(true);
            }
            let Some(tree) = entry.tree() else { continue };
            let below: Vec<Option<&Entry>> =
                bases.iter().map(|base| base.as_ref()?.entry(entry.name.as_bytes())).collect();
            // Equal to one of them down to the last file.
            if below.iter().flatten().any(|base| base.tree() == Some(tree)) {
                continue;
            }
            let trees = below.into_iter().map(|base| base.and_then(Entry::tree));
            let load = |tree: Option<TreeId>| tree.map(|tree| objects.node(tree)).transpose();
            let below = trees.map(load).collect::<Result<Vec<Base>, _>>()?;
            waiting.push((objects.node(tree)?, below));
        }
    }
    Ok(false)
}

/// Reason why an entry in a directory was not captured, if any.
pub(super) fn missing(dir: &Entry, objects: &dyn Objects) -> Result<Option<Reason>> {
    let mut waiting: Vec<TreeId> = dir.tree().into_iter().collect();
    while let Some(tree) = waiting.pop() {
        let node = objects.node(tree)?;
        // Entries excluded by permanent rules, and nono's own state, are not part of the repository.
        if let Some(omitted) = node.omitted.iter().find(|omitted| !super::presence::by_rule(&omitted.reason))
        {
            return Ok(Some(omitted.reason.clone()));
        }
        waiting.extend(node.entries.iter().filter_map(Entry::tree));
    }
    Ok(None)
}

/// Whether a name that all states have is missing now.
fn is_gone(now: &Node, bases: &[Base]) -> bool {
    let has = |node: &Node, name: &Name| {
        node.entry(name.as_bytes()).is_some() || node.omitted(name.as_bytes()).is_some()
    };
    let everywhere = |name: &Name| bases.iter().all(|base| base.as_ref().is_some_and(|base| has(base, name)));
    let first = bases.first().and_then(Option::as_ref);
    let mut names = first.into_iter().flat_map(|node| node.entries.iter().map(|entry| &entry.name));
    names.any(|name| !has(now, name) && everywhere(name))
}

/// Whether one state has another entry there.
fn is_other(entry: &Entry, base: Option<&Node>) -> bool {
    let Some(base) = base.and_then(|node| node.entry(entry.name.as_bytes())) else { return true };
    let aspects = Aspects::to_reach(entry, base);
    aspects.content || aspects.permissions()
}
