//! SQLite databases in a restore: all files of one or none, since one beside a log of another state is corrupt.

use super::Why;
use crate::diff::{EntryRef, Pair};
use crate::node::{Name, Node};
use crate::units::{LOG_INDEX, SUFFIXES, database_of, names_of};

/// Another file of the same database, on both sides.
pub(super) struct DatabaseFile {
    pub(super) name: Name,
    pub(super) new: Option<EntryRef>,
    pub(super) old: Option<EntryRef>,
    /// Reason, if one of the sides does not have its content.
    pub(super) left_out: Option<Why>,
}

/// Other files of the database that a name belongs to, if any, without the log's index, which SQLite rebuilds.
pub(super) fn others(pair: &Pair<'_>) -> Vec<DatabaseFile> {
    let name = pair.name.as_bytes();
    let there = |name: &[u8]| pair.nodes.iter().flatten().any(|node| has(node, name));
    let database = database_of(name).filter(|database| there(database)).unwrap_or(name);
    if database == name && !SUFFIXES.iter().any(|suffix| there(&[name, suffix].concat())) {
        return Vec::new();
    }
    let names = names_of(database).filter(|other| other != name && !other.ends_with(LOG_INDEX));
    names.filter(|name| there(name)).filter_map(|name| Some(other(pair, Name::new(&name)?))).collect()
}

fn has(node: &Node, name: &[u8]) -> bool {
    node.entry(name).is_some() || node.omitted(name).is_some()
}

fn other(pair: &Pair<'_>, name: Name) -> DatabaseFile {
    let [new, old] = &pair.nodes;
    let entry =
        |node: Option<&Node>| node.and_then(|node| node.entry(name.as_bytes())).cloned().map(EntryRef::alone);
    let reason = |node: Option<&Node>| {
        node.and_then(|node| node.omitted(name.as_bytes())).map(|omitted| omitted.reason.clone())
    };
    let (new, old) = (new.as_deref(), old.as_deref());
    let left_out = reason(old).map(Why::NotStored).or_else(|| reason(new).map(Why::NotCaptured));
    DatabaseFile { new: entry(new), old: entry(old), left_out, name }
}
