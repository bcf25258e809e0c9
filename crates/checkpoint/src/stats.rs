//! What a step changed, in files and lines. What is in a `.git` is nobody's file.

use std::path::Path;
use std::time::{Duration, Instant};

use nono_snapshot::{Change, ChangeType, ContentHash, SnapshotManager};
use similar::{Algorithm, DiffTag};

use crate::history::Stats;
use nono_history::git_of;

/// Lines of larger files are not counted.
const COUNTED: u64 = 4 << 20;
/// After so long a coarser answer is taken: two files may have nothing in common.
const PATIENCE: Duration = Duration::from_millis(500);

/// Count them.
pub(crate) fn count(manager: &SnapshotManager, changes: &[Change]) -> Stats {
    let mut stats = Stats::default();
    for change in changes.iter().filter(|change| !is_git(&change.path)) {
        stats.files += 1;
        if change.change_type == ChangeType::PermissionsChanged {
            continue;
        }
        let hash = |side: Option<&nono_snapshot::diff::Version>| side.and_then(|version| version.hash);
        let old = text(manager, hash(change.old.as_ref()));
        let new = text(manager, hash(change.new.as_ref()));
        if let (Some(old), Some(new)) = (old, new) {
            let (insertions, deletions) = lines(&old, &new);
            stats.insertions += insertions;
            stats.deletions += deletions;
        }
    }
    stats
}

/// Lines that came and went between two contents of a file; none where one of them has no lines or is not kept.
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

/// The bytes of one side, nothing being no bytes; `None` for what has no lines. A content that is lost has none either:
/// a list is no place to say so, and has to be there in spite of it.
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
