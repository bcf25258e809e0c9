//! Text output of plans and outcomes. Names are escaped here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nono::diagnostic::{escape, shown};
use nono::json::counts;
use nono::rollback::{Conflicts, Done, Later, Merge, Plan};
use nono::snapshot::restore::{Skipped, Why};
use nono::snapshot::{Change, ChangeType, Changes, Lost, repository_of};

use crate::message;
use crate::units::{grouped, some};

/// Maximum number of lines of a list before a question.
const SOME: usize = 20;

/// Length of a list that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    All,
    /// Shortened, before a question; a dry run shows the rest.
    Cut,
    /// Shortened, in a report.
    Done,
}

/// Display of paths: relative to the root if there is only one, else absolute.
pub(crate) struct Below<'a> {
    root: Option<&'a Path>,
}

impl<'a> Below<'a> {
    pub(crate) fn new(roots: &'a [PathBuf]) -> Below<'a> {
        Below { root: if let [root] = roots { Some(root) } else { None } }
    }

    pub(crate) fn show(&self, path: &Path) -> String {
        match self.root.and_then(|root| path.strip_prefix(root).ok()) {
            Some(below) if below != Path::new("") => shown(below),
            _ => shown(path),
        }
    }
}

/// Lines of a plan.
pub(crate) fn plan(plan: &Plan, below: &Below<'_>, length: Length) -> Vec<String> {
    let mut lines = Vec::new();
    if !plan.changes.is_empty() {
        let words = ["bring back", "change", "remove", "set permissions of"];
        lines.push(sentence(&plan.changes, words));
        lines.extend(change_lines(&plan.changes, below, length));
        lines.extend(plan.may_be_others.then(|| message::MAY_BE_YOURS.to_owned()));
    } else if only_times(plan) {
        lines.push(format!("restore times or links of {}", some(plan.steps, "path")));
    }
    let what = "merge with later changes";
    lines.extend(merges(&plan.written_merges(), below, length, what));
    lines.extend(kept(&plan.kept, &plan.merges, below, length));
    lines.extend(lost(&plan.lost, below, length));
    lines.extend(still_executes(&plan.still_executes, below));
    lines.extend(notes(plan));
    lines
}

/// Whether only times or hard links differ. Not if something is kept: then the times of the folders around it have
/// changed for that reason.
pub(crate) fn only_times(plan: &Plan) -> bool {
    plan.steps > 0 && plan.changes.is_empty() && plan.kept.is_empty()
}

/// Notes on a plan, shown with and without a question.
pub(crate) fn notes(plan: &Plan) -> Vec<String> {
    plan.notes.iter().map(|note| escape(note)).collect()
}

/// Lines of a report.
pub(crate) fn done(done: &Done, below: &Below<'_>, length: Length) -> Vec<String> {
    let mut lines = Vec::new();
    if !done.changes.is_empty() {
        let words = ["brought back", "changed", "removed", "set permissions of"];
        lines.push(sentence(&done.changes, words));
        lines.extend(change_lines(&done.changes, below, length));
    } else if done.undo.is_some() && !done.interrupted && done.written_merges().is_empty() {
        lines.push("restored times or links".to_owned());
    }
    let what = "merged with later changes";
    lines.extend(merges(&done.written_merges(), below, length, what));
    lines.extend(kept(&done.kept, &done.merged, below, length));
    lines.extend(lost(&done.lost, below, length));
    lines.extend(still_executes(&done.still_executes, below));
    lines.extend(failed(&done.failed, below, length));
    lines.extend(done.notes.iter().map(|note| escape(note)));
    lines
}

/// One line per change. A git repository that is created or deleted is one line, and so are all changes of its history.
/// What git executes in a restored repository has its own lines, so that it is not overlooked.
fn change_lines(changes: &Changes, below: &Below<'_>, length: Length) -> Vec<String> {
    let comes_or_goes = |change: Change| {
        let git = repository_of(&change.path).filter(|git| change.path == git.join("HEAD"))?;
        matches!(change.change_type, ChangeType::Created | ChangeType::Deleted).then_some(git)
    };
    let whole: BTreeSet<PathBuf> = changes.iter().filter_map(comes_or_goes).collect();
    let repository = |change: &Change| {
        let harmless = change.change_type == ChangeType::Deleted || is_sample(&change.path);
        let around = || change.path.ancestors().find(|above| whole.contains(*above)).map(Path::to_owned);
        repository_of(&change.path).or_else(|| harmless.then(around).flatten())
    };
    let mut repositories: BTreeMap<PathBuf, Vec<ChangeType>> = BTreeMap::new();
    for change in changes.iter() {
        if let Some(git) = repository(&change) {
            repositories.entry(git).or_default().push(change.change_type);
        }
    }
    let folded: usize = repositories.values().map(Vec::len).sum();
    let rows = changes.len() - folded + repositories.len();
    let lines = changes.iter().filter_map(|change| match repository(&change) {
        None => Some(format!("{} {}", mark(change.change_type), below.show(&change.path))),
        // At the place of its first file.
        Some(git) => repositories.remove(&git).map(|kinds| {
            let of = if whole.contains(&git) { "" } else { " of its history" };
            repository_line(&git, &kinds, of, below)
        }),
    });
    cut_iter(lines, rows, length, |line| line)
}

fn failed(failed: &[(PathBuf, String)], below: &Below<'_>, length: Length) -> Vec<String> {
    let line = |(path, error): &(PathBuf, String)| format!("{}: {}", below.show(path), escape(error));
    titled("failed", "path", failed, length, line)
}

/// Sentence about changes: `bring back 3, change 1`.
fn sentence(changes: &Changes, words: [&str; 4]) -> String {
    let counts = counts(changes);
    let numbers = [counts.created, counts.modified, counts.deleted, counts.permissions_changed];
    let parts = words.iter().zip(numbers).filter(|(_, number)| *number > 0);
    parts.map(|(word, number)| format!("{word} {}", grouped(number))).collect::<Vec<_>>().join(", ")
}

/// Whether git never executes or reads a repository's file under this name.
fn is_sample(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "sample") || path.ends_with("description")
}

fn repository_line(git: &Path, kinds: &[ChangeType], of: &str, below: &Below<'_>) -> String {
    let kind = match kinds {
        [first, rest @ ..] if rest.iter().all(|kind| kind == first) => *first,
        _ => ChangeType::Modified,
    };
    format!("{} {}: {}{of}", mark(kind), below.show(git), some(kinds.len(), "file"))
}

fn mark(kind: ChangeType) -> char {
    match kind {
        ChangeType::Created => '+',
        ChangeType::Modified => '~',
        ChangeType::Deleted => '-',
        ChangeType::PermissionsChanged => 'M',
    }
}

fn merges(merges: &[&Merge], below: &Below<'_>, length: Length, what: &str) -> Vec<String> {
    let line = |merge: &&Merge| {
        format!("{}{}", below.show(&merge.path), if merge.clean { "" } else { ": with conflict markers" })
    };
    titled(what, "file", merges, length, line)
}

fn kept(kept: &[Skipped], merges: &[Merge], below: &Below<'_>, length: Length) -> Vec<String> {
    let line = |one: &Skipped| {
        let tried = merges.iter().any(|merge| merge.path == one.path);
        let also = if tried { ", and it cannot be merged" } else { "" };
        format!("{}: {}{also}", below.show(&one.path), escape(&one.why.to_string()))
    };
    titled("kept unchanged", "path", kept, length, line)
}

/// Lines about paths that no restore brings back.
pub(crate) fn lost(lost: &[Lost], below: &Below<'_>, length: Length) -> Vec<String> {
    let line = |one: &Lost| {
        let reason = escape(&one.reason);
        let slash = if one.is_dir { "/" } else { "" };
        format!("{}, cannot be restored: {}{slash} ({reason})", one.how, below.show(&one.path))
    };
    // Not indented: they have no title.
    cut(lost, length, line).into_iter().map(|line| line.trim_start().to_owned()).collect()
}

/// Warnings about kept autorun files; never shortened.
fn still_executes(still: &[(PathBuf, Later)], below: &Below<'_>) -> Vec<String> {
    let line = |(path, later): &(PathBuf, Later)| {
        let (path, Later { what, why }) = (below.show(path), later);
        format!("warning: kept a file that will run later: {path} ({what}: {why})")
    };
    still.iter().map(line).collect()
}

/// Hint how to restore paths that were kept because they changed later. `conflicts`: what was done about them; `undo`:
/// the command that undoes the restore.
pub(crate) fn hint(kept: &[Skipped], conflicts: Conflicts, undo: &str) -> Option<String> {
    let conflict = kept.iter().any(|one| one.why == Why::ChangedSince);
    conflict.then(|| match conflicts {
        Conflicts::Merge { markers: false } => format!(
            "hint: --conflict-markers writes both versions into files that do not merge; \
--force overwrites them (`{undo}` takes that back)"
        ),
        Conflicts::Merge { markers: true } => {
            format!("hint: --force overwrites what does not merge (`{undo}` takes that back)")
        }
        Conflicts::Keep | Conflicts::Force => format!(
            "hint: --force also restores what changed later (`{undo}` takes that back), \
--merge merges text files"
        ),
    })
}

/// List below its title and number; nothing if it is empty.
fn titled<T>(
    title: &str,
    what: &str,
    list: &[T],
    length: Length,
    line: impl Fn(&T) -> String,
) -> Vec<String> {
    let title = (!list.is_empty()).then(|| format!("{title}: {}", some(list.len(), what)));
    title.into_iter().chain(cut(list, length, line)).collect()
}

fn cut<T>(list: &[T], length: Length, line: impl Fn(&T) -> String) -> Vec<String> {
    cut_iter(list.iter(), list.len(), length, line)
}

/// Shortens a list that is produced by an iterator.
fn cut_iter<T>(
    list: impl Iterator<Item = T>,
    len: usize,
    length: Length,
    line: impl Fn(T) -> String,
) -> Vec<String> {
    // One more entry takes no more room than the line about it.
    let shown = if length == Length::All || len <= SOME + 1 { len } else { SOME };
    let mut lines: Vec<String> = list.take(shown).map(|one| format!("  {}", line(one))).collect();
    if shown < len {
        let rest = grouped((len - shown) as u64);
        let hint = if length == Length::Cut { " (--dry-run shows all)" } else { "" };
        lines.push(format!("  ... and {rest} more{hint}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_but_never_for_one_line() {
        let list: Vec<usize> = (0..21).collect();
        assert_eq!(cut(&list, Length::Cut, usize::to_string).len(), 21);
        let list: Vec<usize> = (0..332).collect();
        let lines = cut(&list, Length::Cut, usize::to_string);
        assert_eq!(lines.len(), 21);
        assert_eq!(lines[20], "  ... and 312 more (--dry-run shows all)");
        assert_eq!(cut(&list, Length::All, usize::to_string).len(), 332);
    }

    #[test]
    fn a_hint_is_given_only_where_it_helps() {
        let kept = |why| [Skipped { path: PathBuf::from("/a"), why }];
        assert!(hint(&kept(Why::ChangedSince), Conflicts::Keep, "undo").is_some());
        assert_eq!(hint(&kept(Why::HoldsOthers), Conflicts::Keep, "undo"), None);
        assert_eq!(hint(&[], Conflicts::Keep, "undo"), None);
    }

    #[test]
    fn a_hint_never_names_the_flag_that_was_used() {
        let kept = [Skipped { path: PathBuf::from("/a"), why: Why::ChangedSince }];
        let said = |conflicts| hint(&kept, conflicts, "undo").unwrap();
        assert!(said(Conflicts::Keep).contains("--merge"));
        let merged = said(Conflicts::Merge { markers: false });
        assert!(merged.contains("--conflict-markers") && !merged.contains("--merge"), "{merged}");
        let marked = said(Conflicts::Merge { markers: true });
        assert!(marked.contains("--force") && !marked.contains("--conflict-markers"), "{marked}");
    }

    #[test]
    fn paths_are_below_the_only_root() {
        let one = [PathBuf::from("/a/b")];
        let two = [PathBuf::from("/a/b"), PathBuf::from("/c")];
        assert_eq!(Below::new(&one).show(Path::new("/a/b/c\u{1b}")), "c\\u{1b}");
        assert_eq!(Below::new(&one).show(Path::new("/a/b")), "/a/b");
        assert_eq!(Below::new(&two).show(Path::new("/a/b/c")), "/a/b/c");
    }
}
