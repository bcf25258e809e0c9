//! Plans and results of restores and undos.

use std::path::PathBuf;

use nono_snapshot::restore::{FailedPath, RestoreError, RestorePlan, Skipped, Why};
use nono_snapshot::{Changes, Lost, Restored};
use serde::Serialize;

/// Plan of a restore.
#[derive(Debug, Default)]
pub struct Plan {
    pub changes: Changes,
    /// Number of steps, including changes of times and hard links, which are not listed as changes.
    pub steps: usize,
    /// Paths left as they are, with the reason.
    pub kept: Vec<Skipped>,
    /// Merged files, including those that do not merge cleanly and are kept.
    pub merges: Vec<Merge>,
    /// Paths left out of the snapshot that are gone or changed: no restore brings them back.
    pub lost: Vec<Lost>,
    /// The owner's changes cannot be told from those of others: all of them are reverted.
    pub cannot_tell_conflicts: bool,
    /// Changes by others while the owner worked are unknown: they are reverted, too.
    pub may_be_others: bool,
    /// Repositories that differ and are left alone.
    pub repositories: Vec<PathBuf>,
    /// Kept paths that the owner changed and that run later, with the reason.
    pub still_executes: Vec<(PathBuf, Later)>,
    pub notes: Vec<String>,
}

/// Result of a restore.
#[derive(Debug, Default)]
pub struct Done {
    /// Id that undoes it; None if nothing was changed.
    pub undo: Option<String>,
    pub changes: Changes,
    pub kept: Vec<Skipped>,
    /// This one and the next four are as in a [`Plan`].
    pub merged: Vec<Merge>,
    pub lost: Vec<Lost>,
    pub cannot_tell_conflicts: bool,
    pub repositories: Vec<PathBuf>,
    pub still_executes: Vec<(PathBuf, Later)>,
    pub failed: Vec<(PathBuf, String)>,
    /// Whether a failure may succeed later; a file owner that cannot be set does not count.
    pub failed_for_now: bool,
    /// Interrupted before it was complete: the next command completes it.
    pub interrupted: bool,
    /// Reason why it is missing from the audit log.
    pub unrecorded: Option<String>,
    pub notes: Vec<String>,
}

/// A file merged three ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    pub path: PathBuf,
    pub clean: bool,
}

/// Reason why a changed file runs later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Later {
    /// Short label: `git hook`, `editor task`, `package script`.
    pub what: &'static str,
    /// When it runs: "git runs it at every commit".
    pub why: &'static str,
}

impl Plan {
    /// Files that would be written with the changes of others merged in.
    pub fn written_merges(&self) -> Vec<&Merge> {
        written(&self.merges, &self.kept)
    }

    pub(crate) fn absorb(&mut self, plan: &RestorePlan) {
        self.changes.extend(plan.changes());
        self.steps += plan.len();
        self.kept.extend_from_slice(plan.skipped());
        add_lost(&mut self.lost, plan.lost());
        let linked = plan.notes().iter().map(|note| {
            format!("{} has hard links elsewhere, which keep the current content", note.path.display())
        });
        self.notes.extend(linked);
    }
}

impl Done {
    /// Result of a plan that changes nothing.
    pub fn nothing(plan: Plan) -> Done {
        let Plan { kept, merges: merged, lost, still_executes, repositories, cannot_tell_conflicts, .. } =
            plan;
        Done { kept, merged, lost, cannot_tell_conflicts, repositories, still_executes, ..Done::default() }
    }

    /// Files that were written with the changes of others merged in.
    pub fn written_merges(&self) -> Vec<&Merge> {
        written(&self.merged, &self.kept)
    }

    /// Whether the restore was complete: nothing was kept, lost or failed.
    pub fn is_whole(&self) -> bool {
        self.kept.is_empty() && self.lost.is_empty() && self.failed.is_empty() && !self.interrupted
    }

    /// Whether another attempt may do more: by force, or when an obstacle is gone.
    pub(crate) fn is_left(&self) -> bool {
        let stays = |kept: &Skipped| {
            matches!(
                kept.why,
                Why::RootFailed(_)
                    | Why::RootUnknown
                    | Why::NotCaptured(_)
                    | Why::NotFound
                    | Why::Repository
                    | Why::IncompleteRepository(_)
                    | Why::StillWritten
            )
        };
        self.failed_for_now || !self.kept.iter().all(stays)
    }

    pub(crate) fn absorb(&mut self, restored: Restored) {
        let outcome = restored.outcome;
        self.interrupted |= outcome.cancelled;
        self.changes.extend(outcome.changes);
        self.kept.extend(outcome.skipped);
        add_lost(&mut self.lost, &outcome.lost);
        let is_left = |failed: &FailedPath| !matches!(failed.error, RestoreError::Owner { .. });
        self.failed_for_now |= outcome.failed.iter().any(is_left);
        let failed = outcome.failed.into_iter().map(|failed| (failed.path, plain(&failed.error.to_string())));
        self.failed.extend(failed);
    }
}

/// Merges that are written: a file that does not merge is kept, unless markers are requested.
fn written<'a>(merges: &'a [Merge], kept: &[Skipped]) -> Vec<&'a Merge> {
    merges.iter().filter(|merge| !kept.iter().any(|one| one.path == merge.path)).collect()
}

/// Add each path once, however many steps reported it.
fn add_lost(all: &mut Vec<Lost>, more: &[Lost]) {
    for one in more {
        if !all.iter().any(|known| known.path == one.path) {
            all.push(one.clone());
        }
    }
}

/// Sort by path, and drop duplicates.
pub(crate) fn tidy(kept: &mut Vec<Skipped>) {
    kept.sort_by(|a, b| a.path.cmp(&b.path));
    kept.dedup();
}

/// Message without Rust's "(os error N)", wherever it contains a system error.
pub(crate) fn plain(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once(')') {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => text + rest,
        // Not Rust's: part of a name.
        _ => text + " (os error " + part,
    })
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn messages_have_no_numbers() {
        let error = std::io::Error::from_raw_os_error(1);
        assert!(error.to_string().contains("os error 1"), "{error}");
        assert_eq!(plain(&format!("cannot change it: {error}")), "cannot change it: Operation not permitted");
        assert_eq!(
            plain(&format!("{error}; {error}, twice")),
            "Operation not permitted; Operation not permitted, twice"
        );
        assert_eq!(plain("a (os error x) b"), "a (os error x) b");
        assert_eq!(plain("a (os error "), "a (os error ");
    }
}
