//! Text of counts, plans and outcomes, for the full screen and the plain prompt.

use std::collections::BTreeMap;
use std::path::Path;

use nono::diagnostic::escape;
use nono::rollback::{ChangeCounts, ChangeSet, Done, Plan, RestoreChoice};
use nono::snapshot::{Change, ChangeType, Coverage, Lost, SnapshotId};

use super::text;
use crate::message;
use crate::paint::{Span, Style};

fn title(text: impl Into<String>) -> Span {
    Span::new(text, Style::Title)
}

/// Something is kept, or was not done.
fn warning(text: impl Into<String>) -> Span {
    Span::new(text, Style::Warning)
}

/// Number with a noun: `12 changes`, `1 change`.
pub(super) fn several(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// Counts as `+5 ~6 -1`, with modes and renames if there are any.
pub(super) fn counts(counts: &ChangeCounts) -> String {
    let ChangeCounts { created, modified, deleted, permissions_changed, renamed } = *counts;
    let parts = [('+', created), ('~', modified), ('-', deleted), ('M', permissions_changed), ('R', renamed)];
    let part = |(mark, count): &(char, u64)| (*count > 0).then(|| format!("{mark}{count}"));
    parts.iter().filter_map(part).collect::<Vec<_>>().join(" ")
}

/// Number of autorun items.
pub(super) fn later(set: &ChangeSet) -> usize {
    set.items.iter().filter(|item| item.executes_later.is_some()).count()
}

/// Summary: `12 changes (+5 ~6 -1), 1 will execute later`.
pub(super) fn summary(set: &ChangeSet) -> String {
    let all = format!("{} ({})", several(set.items.len(), "change"), counts(&set.counts()));
    match later(set) {
        0 => all,
        later => format!("{all}, {later} will execute later"),
    }
}

/// Name of the snapshot that a restore goes to.
pub(super) fn point(id: &SnapshotId) -> String {
    match id {
        SnapshotId::Number(0) => "snapshot 0, before the command".to_owned(),
        id => format!("snapshot {id}"),
    }
}

fn deed(change: &Change) -> &'static str {
    match change.change_type {
        ChangeType::Created => "bring back ",
        ChangeType::Modified => "change back",
        ChangeType::Deleted => "remove     ",
        ChangeType::PermissionsChanged => "set mode of",
    }
}

pub(super) fn plan(
    set: &ChangeSet,
    plan: &Plan,
    choice: &RestoreChoice,
    coverage: Option<&Coverage>,
) -> Vec<Span> {
    let name = |path: &Path| text::name(&set.shown(path));
    let hunks: BTreeMap<&Path, usize> =
        choice.hunks.iter().map(|(item, hunks)| (item.path.as_path(), hunks.len())).collect();
    let change = |change: Change| {
        let part = hunks.get(change.path.as_path()).map(|count| format!(" ({})", several(*count, "hunk")));
        Span::plain(format!("{} {}{}", deed(&change), name(&change.path), part.unwrap_or_default()))
    };
    let mut said = vec![title(format!("Restore to {}", point(&set.from)))];
    if plan.changes.is_empty() && plan.merges.is_empty() {
        said.push(Span::plain("nothing to do: everything marked is as it was, or is kept"));
    }
    if plan.cannot_tell_conflicts {
        said.push(warning(
            "the session has no final snapshot, so nono cannot tell your later changes from the command's",
        ));
    }
    said.extend(plan.changes.iter().map(change));
    if plan.may_be_others && !plan.changes.is_empty() {
        said.push(Span::plain(message::MAY_BE_YOURS));
    }
    said.extend(plan.merges.iter().map(|merge| {
        let how = if merge.clean { "merge      " } else { "with conflict markers:" };
        Span::plain(format!("{how} {}", name(&merge.path)))
    }));
    if !plan.kept.is_empty() {
        said.push(title(format!("Kept: {}", several(plan.kept.len(), "path"))));
        said.extend(plan.kept.iter().map(|kept| warning(format!("{}: {}", name(&kept.path), kept.why))));
    }
    said.extend(lost(&plan.lost));
    said.extend(plan.notes.iter().map(|note| warning(escape(note))));
    said.extend(coverage.into_iter().flat_map(not_covered));
    said
}

/// Lines about what the snapshot does not cover, so that no restore touches it.
fn not_covered(coverage: &Coverage) -> Vec<Span> {
    if coverage.left_out.is_empty() {
        return Vec::new();
    }
    let mut said = vec![title("Not covered, so never touched")];
    for left in &coverage.left_out {
        let total = usize::try_from(left.entries).unwrap_or(usize::MAX);
        let shown = left
            .examples
            .iter()
            .map(|example| Span::plain(escape(&format!("{}: {}", example.path.display(), example.reason))));
        said.extend(shown);
        let more = total.saturating_sub(left.examples.len());
        if more > 0 {
            said.push(Span::plain(format!("... and {more} more")));
        }
    }
    said
}

/// Lines about what no restore brings back.
fn lost(lost: &[Lost]) -> impl Iterator<Item = Span> + '_ {
    lost.iter().map(|lost| warning(escape(&lost.to_string())))
}

pub(super) fn done(set: &ChangeSet, done: &Done) -> Vec<Span> {
    let name = |path| text::name(&set.shown(path));
    let count = done.changes.len() + done.merged.len();
    let mut said = vec![title(match count {
        0 => "Nothing was restored".to_owned(),
        count => format!("Restored {}", several(count, "path")),
    })];
    said.extend(
        done.failed.iter().map(|(path, why)| warning(format!("failed: {}: {}", name(path), escape(why)))),
    );
    said.extend(done.kept.iter().map(|kept| warning(format!("kept: {}: {}", name(&kept.path), kept.why))));
    said.extend(lost(&done.lost));
    if done.interrupted {
        said.push(warning("interrupted: `nono rollback recover` completes it"));
    }
    if !done.kept.is_empty() {
        said.push(Span::plain("`nono rollback restore --force` or `--merge` restores these too"));
    }
    said.extend(done.unrecorded.as_deref().map(message::unrecorded).map(warning));
    if let Some(undo) = &done.undo {
        said.push(Span::plain(format!("undo this with: nono rollback undo {undo}")));
    }
    said
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use nono::snapshot::restore::{Skipped, Why};
    use nono::snapshot::{Cause, Example, LeftOut};

    use super::*;

    fn texts(said: &[Span]) -> Vec<&str> {
        said.iter().map(|said| said.text.as_str()).collect()
    }

    #[test]
    fn a_plan_says_what_it_does_keeps_and_does_not_cover() {
        let set =
            ChangeSet { from: 2.into(), to: 5.into(), roots: vec![PathBuf::from("/r")], items: Vec::new() };
        let changes = [ChangeType::Created, ChangeType::Modified, ChangeType::Deleted];
        let change = |change_type| Change {
            path: "/r/f\x1b".into(),
            change_type,
            size_delta: 0,
            old: None,
            new: None,
        };
        let plan = Plan {
            changes: changes.into_iter().map(change).collect(),
            kept: vec![Skipped { path: "/r/mine".into(), why: Why::ChangedSince }],
            notes: vec!["a note".to_owned()],
            ..Plan::default()
        };
        let example = Example { path: "/r/target".into(), reason: "build output".to_owned() };
        let left_out =
            LeftOut { cause: Cause::Artifact, entries: 3, directories: 3, examples: vec![example] };
        let coverage = Coverage { left_out: vec![left_out], ..Coverage::default() };
        let said = super::plan(&set, &plan, &RestoreChoice::everything(), Some(&coverage));
        let expected = [
            "Restore to snapshot 2",
            "bring back  f\\u{1b}",
            "change back f\\u{1b}",
            "remove      f\\u{1b}",
            "Kept: 1 path",
            "mine: changed later",
            "a note",
            "Not covered, so never touched",
            "/r/target: build output",
            "... and 2 more",
        ];
        assert_eq!(texts(&said), expected);
        assert_eq!(said[5].style, Style::Warning);
    }

    #[test]
    fn an_outcome_says_what_went_wrong_and_how_to_go_back() {
        let set =
            ChangeSet { from: 0.into(), to: 5.into(), roots: vec![PathBuf::from("/r")], items: Vec::new() };
        let done = Done {
            undo: Some("u7".to_owned()),
            failed: vec![("/r/x".into(), "no room".to_owned())],
            interrupted: true,
            ..Done::default()
        };
        let expected = [
            "Nothing was restored",
            "failed: x: no room",
            "interrupted: `nono rollback recover` completes it",
            "undo this with: nono rollback undo u7",
        ];
        assert_eq!(texts(&super::done(&set, &done)), expected);
    }
}
