//! Line-by-line comparison of two texts.
//!
//! The comparison is bounded by its work, not by time: the same two texts have the same hunks each time, because users
//! choose hunks by number. Lines end at `
//! ` only, as in git; a last line without one differs from the same line with it.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use super::words;
use super::{Hunk, LineKind, PatchLine, Segment};

/// Hunks with this many lines of context.
pub(super) fn hunks(old: &[u8], new: &[u8], context: usize) -> Vec<Hunk> {
    let (old, new) = (lines(old), lines(new));
    groups(&old, &new, context).iter().map(|ops| hunk(&old, &new, ops)).collect()
}

/// `new` with these hunks reverted; None if there is no such hunk.
pub(super) fn without(old: &[u8], new: &[u8], context: usize, taken_back: &[usize]) -> Option<Vec<u8>> {
    let (old, new) = (lines(old), lines(new));
    let groups = groups(&old, &new, context);
    if taken_back.iter().any(|number| *number >= groups.len()) {
        return None;
    }
    let mut result = Vec::new();
    let mut done = 0;
    for (number, ops) in groups.iter().enumerate() {
        let (theirs, ours) = ranges(ops);
        result.extend(new[done..ours.start].iter().copied().flatten());
        let chosen = if taken_back.contains(&number) { &old[theirs] } else { &new[ours.clone()] };
        result.extend(chosen.iter().copied().flatten());
        done = ours.end;
    }
    result.extend(new[done..].iter().copied().flatten());
    Some(result)
}

/// Lines of a text, each with its end.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn groups(old: &[&[u8]], new: &[&[u8]], context: usize) -> Vec<Vec<DiffOp>> {
    // Bounded as in git: a comparison that would take too long is split at a good enough point.
    let ops = capture_diff_slices(Algorithm::Myers, old, new);
    let groups = group_diff_ops(ops, context.min(old.len() + new.len()));
    groups.into_iter().filter(|ops| ops.iter().any(|op| !matches!(op, DiffOp::Equal { .. }))).collect()
}

fn ranges(ops: &[DiffOp]) -> (Range<usize>, Range<usize>) {
    match (ops.first(), ops.last()) {
        (Some(first), Some(last)) => {
            (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end)
        }
        _ => (0..0, 0..0),
    }
}

fn hunk(old: &[&[u8]], new: &[&[u8]], ops: &[DiffOp]) -> Hunk {
    let (theirs, ours) = ranges(ops);
    // An empty side refers to the line before it.
    let start = |range: &Range<usize>| if range.is_empty() { range.start } else { range.start + 1 };
    let mut lines = Vec::new();
    for op in ops {
        let (theirs, ours) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { .. } = op {
            lines.extend(theirs.zip(ours).map(|(theirs, ours)| {
                line(LineKind::Context, Some(theirs), Some(ours), old[theirs], words::whole(old[theirs]))
            }));
            continue;
        }
        let (removed, added) = words::compare(&old[theirs.clone()], &new[ours.clone()]);
        lines.extend(
            theirs
                .zip(removed)
                .map(|(number, segments)| line(LineKind::Removed, Some(number), None, old[number], segments)),
        );
        lines.extend(
            ours.zip(added)
                .map(|(number, segments)| line(LineKind::Added, None, Some(number), new[number], segments)),
        );
    }
    Hunk {
        old_start: start(&theirs),
        old_count: theirs.len(),
        new_start: start(&ours),
        new_count: ours.len(),
        lines,
    }
}

fn line(
    kind: LineKind,
    old: Option<usize>,
    new: Option<usize>,
    bytes: &[u8],
    segments: Vec<Segment>,
) -> PatchLine {
    PatchLine {
        kind,
        old_number: old.map(|number| number + 1),
        new_number: new.map(|number| number + 1),
        segments,
        unterminated: !bytes.ends_with(b"\n"),
    }
}
