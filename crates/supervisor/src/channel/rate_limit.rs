//! Limits of a channel: connections at once, requests per second, and each id only once. What exceeds them is refused
//! at once and counted.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::message::RequestProblem;
use crate::bucket::Bucket;

#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub connections: usize,
    pub per_second: u32,
    pub burst: u32,
    /// Time a client may take to send its request.
    pub patience: Duration,
    /// Requests in one session. Their ids are remembered, so the number is bounded.
    pub requests: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            connections: 64,
            per_second: 50,
            burst: 100,
            patience: Duration::from_secs(5),
            requests: 1 << 18,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelCounts {
    pub served: u64,
    pub malformed: u64,
    pub strangers: u64,
    pub too_many_connections: u64,
    pub too_fast: u64,
    pub replayed: u64,
    pub used_up: u64,
    pub too_slow: u64,
}

impl ChannelCounts {
    fn add(&mut self, problem: RequestProblem) {
        match problem {
            RequestProblem::Malformed => self.malformed += 1,
            RequestProblem::Stranger => self.strangers += 1,
            RequestProblem::TooManyConnections => self.too_many_connections += 1,
            RequestProblem::TooFast => self.too_fast += 1,
            RequestProblem::Replayed => self.replayed += 1,
            RequestProblem::UsedUp => self.used_up += 1,
            RequestProblem::TooSlow => self.too_slow += 1,
            // The counts are not read any more.
            RequestProblem::Ending => {}
        }
    }
}

#[derive(Debug)]
pub(super) struct RateLimit {
    pub(super) bounds: Bounds,
    hasher: RandomState,
    state: Mutex<GateState>,
}

#[derive(Debug)]
struct GateState {
    open: usize,
    bucket: Bucket,
    /// Keyed hashes of the ids, eight bytes each: a client cannot choose ids that collide.
    seen: HashSet<u64>,
    counts: ChannelCounts,
}

impl RateLimit {
    pub(super) fn new(bounds: Bounds) -> Arc<RateLimit> {
        let bucket = Bucket::new(bounds.per_second, bounds.burst, Instant::now());
        let state = GateState { open: 0, bucket, seen: HashSet::new(), counts: ChannelCounts::default() };
        Arc::new(RateLimit { bounds, hasher: RandomState::new(), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        // Every change below is one step: a thread that panicked left nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits one more connection, for as long as the pass is held.
    pub(super) fn enter(self: &Arc<RateLimit>) -> Result<Pass, RequestProblem> {
        let mut state = self.state();
        let problem = if state.open >= self.bounds.connections {
            RequestProblem::TooManyConnections
        } else if !state.bucket.take(Instant::now()) {
            RequestProblem::TooFast
        } else {
            state.open += 1;
            return Ok(Pass(self.clone()));
        };
        state.counts.add(problem);
        Err(problem)
    }

    /// Registers an id; each can be used once.
    pub(super) fn first_time(&self, id: &str) -> Result<(), RequestProblem> {
        let hash = self.hasher.hash_one(id);
        let mut state = self.state();
        if state.seen.len() >= self.bounds.requests {
            return Err(RequestProblem::UsedUp);
        }
        if state.seen.insert(hash) { Ok(()) } else { Err(RequestProblem::Replayed) }
    }

    pub(super) fn count(&self, problem: RequestProblem) {
        self.state().counts.add(problem);
    }

    pub(super) fn served(&self) {
        self.state().counts.served += 1;
    }

    pub(super) fn counts(&self) -> ChannelCounts {
        self.state().counts
    }
}

/// Counted connection; uncounted when dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct Pass(Arc<RateLimit>);

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.state().open -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10, 5, start);
        let taken = |bucket: &mut Bucket, at| (0..100).filter(|_| bucket.take(start + at)).count();
        assert_eq!(taken(&mut bucket, Duration::ZERO), 5);
        assert_eq!(taken(&mut bucket, Duration::from_millis(250)), 2);
        assert_eq!(taken(&mut bucket, Duration::from_millis(300)), 1);
        assert_eq!(taken(&mut bucket, Duration::from_secs(3600)), 5, "never more than the burst");
        assert_eq!(taken(&mut bucket, Duration::ZERO), 0, "a clock that goes back gives nothing");
    }

    #[test]
    fn connections_are_counted_while_they_last() {
        let gate = RateLimit::new(Bounds { connections: 2, ..Bounds::default() });
        let first = gate.enter().unwrap();
        let _second = gate.enter().unwrap();
        assert_eq!(gate.enter().unwrap_err(), RequestProblem::TooManyConnections);
        drop(first);
        let _third = gate.enter().unwrap();
        assert_eq!(gate.counts().too_many_connections, 1);
    }

    #[test]
    fn an_id_is_good_once_and_there_is_an_end_to_ids() {
        let gate = RateLimit::new(Bounds { requests: 2, ..Bounds::default() });
        assert_eq!(gate.first_time("a"), Ok(()));
        assert_eq!(gate.first_time("a"), Err(RequestProblem::Replayed));
        assert_eq!(gate.first_time("b"), Ok(()));
        assert_eq!(gate.first_time("c"), Err(RequestProblem::UsedUp));
    }
}
