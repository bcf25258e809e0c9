//! Excluded entries that are gone or changed now: no restore brings them back, so they are reported.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::both_known;
use super::walk::{Depth, Pair, SideSlot, Visit, walk};
use crate::node::{Kind, Omitted, Reason, Stamp};
use crate::paths;
use crate::state::{Objects, Result, SnapshotState};

/// An excluded entry that is gone or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{how}, cannot be restored: {}{} ({reason})", path.display(), if *is_dir { "/" } else { "" })]
pub struct Lost {
    /// Absolute path.
    #[serde(with = "paths")]
    pub path: PathBuf,
    pub is_dir: bool,
    pub how: Loss,
    /// Reason why it is not in the snapshot.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    #[error("gone")]
    Gone,
    #[error("changed")]
    Changed,
}

impl Lost {
    /// The loss of an excluded entry, if it is worth reporting; `path` is called only then.
    pub(crate) fn of(then: &Omitted, now: &SideSlot<'_>, path: impl FnOnce() -> PathBuf) -> Option<Lost> {
        let how = loss(then, now)?;
        Some(Lost { path: path(), is_dir: then.is_dir, how, reason: then.reason.to_string() })
    }
}

fn loss(then: &Omitted, now: &SideSlot<'_>) -> Option<Loss> {
    match then.reason {
        // Never part of the snapshot, or purged on request.
        Reason::OwnState
        | Reason::OtherRoot
        | Reason::OtherFilesystem
        | Reason::RestoreTemp
        | Reason::Forgotten
        | Reason::NotHeld(_) => return None,
        _ => {}
    }
    let changed = match now {
        SideSlot::Nothing => return Some(Loss::Gone),
        SideSlot::Omitted(now) => {
            let emptied = then.stamp.is_none() && now.stamp == Some(Stamp::EMPTY);
            let differs = then.stamp.zip(now.stamp).is_some_and(|(then, now)| then != now);
            now.is_dir != then.is_dir || emptied || differs
        }
        SideSlot::Entry(now) => match (&now.kind, then.stamp) {
            // It is no longer excluded. Equal times suggest that it is unchanged; build output has no stamp.
            (Kind::Dir { .. }, stamp) if then.is_dir => stamp.is_none_or(|then| then.mtime != now.meta.mtime),
            (Kind::Dir { .. }, _) => true,
            (Kind::File { size, .. }, Some(then)) => (*size, now.meta.mtime) != (then.size, then.mtime),
            _ => then.is_dir,
        },
    };
    changed.then_some(Loss::Changed)
}

/// Entries that `a` excluded and that are gone or changed in `b`, sorted by path.
pub fn lost(a: &SnapshotState, b: &SnapshotState, objects: &dyn Objects) -> Result<Vec<Lost>> {
    let mut lost = Vec::new();
    for (a, b) in both_known(a, b) {
        let path = a.path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let mut search = Search { path, lost: &mut lost };
        walk(a.content.entry(), b.content.entry(), Depth::Differences, objects, &mut search)?;
    }
    lost.sort_by(|a: &Lost, b| super::by_components(&a.path, &b.path));
    Ok(lost)
}

struct Search<'a> {
    path: PathBuf,
    lost: &'a mut Vec<Lost>,
}

impl Visit for Search<'_> {
    fn pair(&mut self, pair: &Pair<'_>) -> Result<bool> {
        if let SideSlot::Omitted(then) = &pair.a {
            let path = || self.path.join(pair.name);
            self.lost.extend(Lost::of(then, &pair.b, path));
            return Ok(false);
        }
        // A path that did not exist in `a` cannot be lost.
        let descend = pair.a.entry().is_some_and(|entry| entry.is_dir());
        if descend {
            self.path.push(pair.name);
        }
        Ok(descend)
    }

    fn leave(&mut self) -> Result<()> {
        self.path.pop();
        Ok(())
    }
}

/// Whether two states differ in anything but the stamps and sizes of entries that both exclude.
pub(crate) fn is_same_but_left_out(
    a: &SnapshotState,
    b: &SnapshotState,
    objects: &dyn Objects,
) -> Result<bool> {
    let known = both_known(a, b);
    if a.roots.len() != b.roots.len() || known.len() != a.roots.len() {
        return Ok(a == b);
    }
    let mut compare = Compare { same: true };
    for (a, b) in known {
        walk(a.content.entry(), b.content.entry(), Depth::Differences, objects, &mut compare)?;
        if !compare.same {
            return Ok(false);
        }
    }
    Ok(true)
}

struct Compare {
    same: bool,
}

impl Visit for Compare {
    fn pair(&mut self, pair: &Pair<'_>) -> Result<bool> {
        let same = match (&pair.a, &pair.b) {
            (SideSlot::Omitted(a), SideSlot::Omitted(b)) => {
                a.is_dir == b.is_dir && a.reason.cause() == b.reason.cause()
            }
            // Only their content may differ.
            (SideSlot::Entry(a), SideSlot::Entry(b)) => {
                a.is_dir() && b.is_dir() && a.name == b.name && a.meta == b.meta
            }
            _ => false,
        };
        self.same &= same;
        Ok(self.same && pair.a.entry().is_some())
    }

    fn leave(&mut self) -> Result<()> {
        Ok(())
    }
}
