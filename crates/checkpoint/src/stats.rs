//! Changes of a step in files and lines. Files in a `.git` are not counted.

use std::path::Path;
use std::time::{Duration, Instant};

use nono_snapshot::{Change, ChangeType, ContentHash, SnapshotManager};
use similar::{Algorithm, DiffTag};

use crate::history::Stats;
use nono_history::git_of;

/// Maximum file size for counting lines.
const COUNTED: u64 = 4 << 20;
/// Time after which a coarser result is used, since two files may have nothing in common.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) fn count(manager: &SnapshotManager, changes: &[Change]) -> Stats {
    let mut stats = Stats::default();
    for change in changes.iter().filter(|change| !is_git(&change.path)) {
        stats.files += 1;
        if change.change_type == ChangeType::PermissionsChanged {
            continue;
        }
        let hash = |side: Option<&nono_snapshot::diff::Version>| side.and_then(|version| version.hash);
        let lines = between(manager, hash(change.old.as_ref()), hash(change.new.as_ref()));
        let (insertions, deletions) = lines.unwrap_or_default();
        stats.insertions += insertions;
        stats.deletions += deletions;
    }
    stats
}

/// Numbers of lines added and removed between two contents; `None` if one of them is binary or not kept.
pub(crate) fn between(
    manager: &SnapshotManager,
    old: Option<ContentHash>,
    new: Option<ContentHash>,
) -> Option<(u64, u64)> {
    Some(lines(&text(manager, old)?, &text(manager, new)?))
}

pub(crate) fn is_git(path: &Path) -> bool {
    git_of(path).is_some()
}

/// Bytes of one side, empty for a missing file; `None` for binary or lost content: damage must not prevent a list.
fn text(manager: &SnapshotManager, hash: Option<ContentHash>) -> Option<Vec<u8>> {
    let Some(hash) = hash else { return Some(Vec::new()) };
    manager.content(hash, COUNTED).ok().flatten().filter(|bytes| !bytes.contains(&0))
}

fn lines(old: &[u8], new: &[u8]) -> (u64, u64) {
    fn split(text: &[u8]) -> Vec<&[u8]> {
        text.split_inclusive(|byte| *byte == b'\n').collect()
    }
    let (old, new) = (split(old), split(new));
    let deadline = Instant::now() + PATIENCE;
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    let changed = ops.iter().filter(|op| op.tag() != DiffTag::Equal);
    changed.fold((0, 0), |(added, gone), op| {
        (added + op.new_range().len() as u64, gone + op.old_range().len() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn lines_that_came_and_went() {
        assert_eq!(lines(b"", b"a\nb\n"), (2, 0));
        assert_eq!(lines(b"a\nb\n", b""), (0, 2));
        assert_eq!(lines(b"a\nb\nc\n", b"a\nx\nc\n"), (1, 1));
        assert_eq!(lines(b"a\r\n", b"a\n"), (1, 1));
        assert_eq!(lines(b"a", b"a"), (0, 0));
    }
}
