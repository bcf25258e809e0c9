//! Observer of a run.

use crate::rollback::tracking::Baseline;

/// Receiver of progress and events around the command.
pub trait RunObserver: Send + Sync {
    /// Progress of a capture: number of files so far.
    fn capturing(&self, files: u64);
    /// The baseline was taken; the command is about to start.
    fn baseline(&self, baseline: &Baseline<'_>);
    /// Whether the report lists each change or only counts them.
    fn wants_list(&self) -> bool {
        true
    }
    /// Whether to cancel the first capture, or the command of a [`HostStreams`](super::HostStreams). Polled a few times a second.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Observer that ignores everything.
impl RunObserver for () {
    fn capturing(&self, _files: u64) {}

    fn baseline(&self, _baseline: &Baseline<'_>) {}
}
