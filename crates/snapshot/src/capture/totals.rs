//! Sums over the roots of a capture, and the estimate of the space needed when it does not fit.

use std::path::PathBuf;

use super::CaptureError;
use crate::cache::NewCache;
use crate::coverage::{Cause, Coverage, Example};
use crate::hash::ContentHash;
use crate::scan::ScanCounts;
use crate::state::SnapshotState;

/// Sums over the roots of a capture.
#[derive(Default)]
pub(super) struct Totals {
    /// Bytes of files that did not fit.
    pub(super) over_budget: u64,
    /// Roots that are themselves files that did not fit.
    pub(super) short_roots: Vec<Example>,
    pub(super) state: SnapshotState,
    pub(super) rules: Vec<Option<ContentHash>>,
    pub(super) coverage: Coverage,
    pub(super) counts: ScanCounts,
    pub(super) linked_outside: u64,
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// New caches, saved once everything is stored.
    pub(super) caches: Vec<(PathBuf, NewCache)>,
}

impl Totals {
    /// Error with an estimate of the space for everything: what did not fit is assumed to compress like what did.
    pub(super) fn no_room(&self, spent: u64, more: u64) -> CaptureError {
        let read = self.counts.read_bytes.max(1);
        let missing = u128::from(self.over_budget) * u128::from(spent.min(read)) / u128::from(read);
        // If next to nothing was stored, the compression ratio is unknown.
        let known = spent >= self.over_budget / 16;
        let missing = if known { u64::try_from(missing).unwrap_or(u64::MAX) } else { self.over_budget };
        let left_out = self.coverage.left_out.iter().find(|left_out| left_out.cause == Cause::OverBudget);
        let examples = left_out.map(|left_out| left_out.examples.as_slice()).unwrap_or_default();
        CaptureError::NoRoom {
            needed: spent.saturating_add(missing).saturating_add(missing / 16).saturating_add(more),
            files: left_out.map_or(0, |left_out| left_out.entries) + self.short_roots.len() as u64,
            bytes: self.over_budget,
            examples: self.short_roots.iter().chain(examples).map(|one| one.path.clone()).collect(),
        }
    }
}
