//! Rate limit on the checkpoints that a command may request.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Rate limit on checkpoints: a flood must not push older ones out of the history.
#[derive(Debug, Default)]
pub(super) struct CheckpointQuota {
    taken: VecDeque<Instant>,
}

const BURST: usize = 30;

const SPAN: Duration = Duration::from_secs(150);

impl CheckpointQuota {
    pub(super) fn left(&mut self) -> bool {
        while self.taken.front().is_some_and(|first| first.elapsed() > SPAN) {
            self.taken.pop_front();
        }
        self.taken.len() < BURST
    }

    pub(super) fn take(&mut self) {
        self.taken.push_back(Instant::now());
    }
}
