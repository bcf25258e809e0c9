//! Results of steps, and merging the results of several threads.

use std::path::PathBuf;

use super::place_entry::NotDone;
use super::plan::DirIndex;
use super::{FailedPath, RestoreOutcome, Skipped};

/// A directory with steps that come after everything else.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) index: DirIndex,
    /// Indexes of steps that found the disk full; empty for steps that need the result of all others.
    pub(super) again: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepAttempt {
    First,
    Last,
}

/// Whether there was space for a step; if not, it is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepSpace {
    Enough,
    None,
}

impl RestoreOutcome {
    pub(super) fn join(&mut self, other: RestoreOutcome) {
        self.done += other.done;
        self.skipped.extend(other.skipped);
        self.failed.extend(other.failed);
        self.kept.extend(other.kept);
    }

    pub(super) fn sort(&mut self) {
        self.skipped.sort_by(|a, b| a.path.cmp(&b.path));
        self.failed.sort_by(|a, b| a.path.cmp(&b.path));
        self.kept.sort_by(|a, b| a.path.cmp(&b.path));
    }

    pub(super) fn note(&mut self, path: PathBuf, not_done: NotDone) {
        match not_done {
            NotDone::Skipped(why) => self.skipped.push(Skipped { path, why }),
            NotDone::Failed(error) => self.failed.push(FailedPath { path, error }),
        }
    }
}
