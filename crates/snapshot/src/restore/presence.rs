//! Looks up a selected path in both states, so that a path in neither is reported.

use std::path::Path;

use super::Why;
use crate::diff::EntryRef;
use crate::node::{Entry, Kind, Reason};
use crate::state::{Objects, Result};

/// Result of the lookup.
pub(super) enum SideEntry {
    Entry,
    LeftOut(Why),
    Nothing,
}

pub(super) fn look(
    path: &Path,
    root: &Path,
    new: Option<&Entry>,
    old: Option<&Entry>,
    objects: &dyn Objects,
) -> Result<SideEntry> {
    let Ok(rest) = path.strip_prefix(root) else { return Ok(SideEntry::Entry) };
    let was = look_in(new, rest, objects)?;
    if let Err(reason) = was {
        return Ok(SideEntry::LeftOut(Why::NotCaptured(reason)));
    }
    let is = look_in(old, rest, objects)?;
    Ok(match (was, is) {
        (Ok(Some(())), _) | (_, Ok(Some(()))) => SideEntry::Entry,
        (_, Err(reason)) => SideEntry::LeftOut(Why::NotStored(reason)),
        _ => SideEntry::Nothing,
    })
}

type InOne = Result<Option<()>, Reason>;

/// Whether one side has the path; the error is the reason why it was excluded.
fn look_in(side: Option<&Entry>, rest: &Path, objects: &dyn Objects) -> Result<InOne> {
    let mut kind = side.map(|side| side.kind.clone());
    for component in rest.components() {
        let name = component.as_os_str().as_encoded_bytes();
        let Some(Kind::Dir { tree, .. }) = kind else { return Ok(Ok(None)) };
        let node = objects.node(tree)?;
        if let Some(omitted) = node.omitted(name) {
            return Ok(Err(omitted.reason.clone()));
        }
        kind = node.entry(name).map(|entry| entry.kind.clone());
    }
    Ok(Ok(kind.map(|_| ())))
}

/// Whether the current entry is the restored file without its bytes: after a power loss the name and attributes set by
/// the restore may survive while its data is lost. A later change by a process would change the time.
pub(super) fn is_torn(new: Option<&EntryRef>, old: Option<&EntryRef>) -> bool {
    let (Some(new), Some(old)) = (new, old) else { return false };
    let files = matches!((&new.kind, &old.kind), (Kind::File { .. }, Kind::File { .. }));
    files && (new.meta.mtime, new.meta.mode) == (old.meta.mtime, old.meta.mode)
}

/// Whether the reason is a permanent rule, which needs no report.
pub(super) fn by_rule(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::Ignored { .. }
            | Reason::Pattern(_)
            | Reason::Glob(_)
            | Reason::Artifact(_)
            | Reason::OwnState
            | Reason::OtherRoot
    )
}
