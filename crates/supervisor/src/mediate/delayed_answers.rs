//! Delayed refusals.
//!
//! A program that is refused thousands of times a second would keep the receiver from serving others. Each of its
//! threads waits in the kernel until it is answered, so answering later slows down only that program.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nono_sys::notify::Listener;

use crate::bucket::Bucket;

/// Refusals answered at once: more than a program meets that looks for its files in many places.
const A_SECOND: u32 = 1000;
const AT_ONCE: u32 = 2000;
/// Minimum delay of the others, and the interval between their answers: each answer is followed by the next call, so a
/// flood of a thousand threads must not come back faster than one of ten.
const DELAY: Duration = Duration::from_millis(20);
const APART: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Penalty {
    state: Mutex<PenaltyState>,
    changed: Condvar,
}

#[derive(Debug)]
struct PenaltyState {
    bucket: Bucket,
    /// Held refusals in the order of their time. At most one for each thread of the command.
    held: VecDeque<(Instant, u64, i32)>,
    over: bool,
}

impl Penalty {
    pub(super) fn new() -> Penalty {
        let state = PenaltyState {
            bucket: Bucket::new(A_SECOND, AT_ONCE, Instant::now()),
            held: VecDeque::new(),
            over: false,
        };
        Penalty { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, PenaltyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a call, now or after a delay.
    pub(super) fn refuse(&self, listener: &Listener, id: u64, errno: i32) {
        let now = Instant::now();
        let mut state = self.state();
        let last = state.held.back().map(|(at, ..)| *at);
        if state.over || last.is_none() && state.bucket.take(now) {
            drop(state);
            listener.respond_errno(id, errno);
        } else {
            let at = last.map_or(now + DELAY, |last| (last + APART).max(now + DELAY));
            state.held.push_back((at, id, errno));
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Answers held refusals until the session is over.
    pub(super) fn serve(self: &Arc<Self>, listener: &Listener) {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            match state.held.front().copied() {
                Some((at, id, errno)) if at <= now => {
                    state.held.pop_front();
                    drop(state);
                    listener.respond_errno(id, errno);
                    state = self.state();
                }
                Some((at, ..)) => {
                    let waited = self.changed.wait_timeout(state, at - now);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                None if state.over => return,
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Ends the delays: no process is left.
    pub(super) fn end(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }
}
