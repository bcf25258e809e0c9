//! Queue of requests that wait for an answer: one is put at a time, equal ones are merged, and their number is bounded.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::job::Waiter;
use super::pin_path::Identity;
use crate::approval::Question;
use crate::bucket::Bucket;

/// Rate of requests that a person can be asked.
const A_SECOND: u32 = 10;
const AT_ONCE: u32 = 5;
/// Limits on requests and on calls that wait for them. Each holds a descriptor, so they never take more than a part of
/// what this process may have: an approver needs some, too.
const MOST_QUESTIONS: usize = 64;
const MOST_WAITERS: usize = 256;
const PART: u64 = 4;

fn most_waiters() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let part = limit.map_or(MOST_WAITERS, |limit| usize::try_from(limit / PART).unwrap_or(MOST_WAITERS));
    part.clamp(1, MOST_WAITERS)
}

/// Request, and all calls that depend on its answer.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) question: Question,
    /// Directory that an answer with `Scope::Directory` would open.
    pub(super) folder: Option<PathBuf>,
    pub(super) waiters: Vec<Waiter>,
    matter: QuestionKey,
}

/// Key by which requests are merged. The approver sees a program and an object and answers for those: another program
/// must not share the answer, and neither must another object that is at the same path by now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct QuestionKey {
    path: PathBuf,
    rights: u8,
    object: Option<Identity>,
    program: PathBuf,
}

impl QuestionKey {
    fn of(waiter: &Waiter) -> QuestionKey {
        QuestionKey {
            path: waiter.path.clone(),
            rights: waiter.rights,
            object: waiter.target.identity(),
            program: waiter.open.program(),
        }
    }
}

#[derive(Debug)]
struct QuestionState {
    waiting: VecDeque<Pending>,
    /// Request being asked now: an equal call joins it.
    asking: Option<QuestionKey>,
    joined: Vec<Waiter>,
    bucket: Bucket,
    over: bool,
    next_id: u64,
}

#[derive(Debug)]
pub(super) struct Questions {
    state: Mutex<QuestionState>,
    changed: Condvar,
    most_waiters: usize,
}

impl Questions {
    pub(super) fn new() -> Questions {
        let state = QuestionState {
            waiting: VecDeque::new(),
            asking: None,
            joined: Vec::new(),
            bucket: Bucket::new(A_SECOND, AT_ONCE, Instant::now()),
            over: false,
            next_id: 1,
        };
        Questions { state: Mutex::new(state), changed: Condvar::new(), most_waiters: most_waiters() }
    }

    fn state(&self) -> MutexGuard<'_, QuestionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a request, unless there are too many: then the call is returned, to be refused.
    pub(super) fn put(
        &self,
        waiter: Waiter,
        question: impl FnOnce(u64) -> (Question, Option<PathBuf>),
    ) -> Result<(), Box<Waiter>> {
        let matter = QuestionKey::of(&waiter);
        let mut state = self.state();
        let waiters = state.joined.len() + state.waiting.iter().map(|p| p.waiters.len()).sum::<usize>();
        if state.over || waiters >= self.most_waiters {
            return Err(Box::new(waiter));
        }
        if state.asking.as_ref() == Some(&matter) {
            state.joined.push(waiter);
            return Ok(());
        }
        if let Some(pending) = state.waiting.iter_mut().find(|pending| pending.matter == matter) {
            pending.waiters.push(waiter);
            return Ok(());
        }
        if state.waiting.len() >= MOST_QUESTIONS || !state.bucket.take(Instant::now()) {
            return Err(Box::new(waiter));
        }
        let (question, folder) = question(state.next_id);
        state.next_id += 1;
        state.waiting.push_back(Pending { question, folder, waiters: vec![waiter], matter });
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Number for one more request, if the rate allows it; for requests that do not open a path.
    pub(super) fn may_ask(&self) -> Option<u64> {
        let mut state = self.state();
        if !state.bucket.take(Instant::now()) {
            return None;
        }
        state.next_id += 1;
        Some(state.next_id - 1)
    }

    /// Next request; `None` when the session is over.
    pub(super) fn next(&self) -> Option<Pending> {
        let mut state = self.state();
        loop {
            if state.over {
                return None;
            }
            if let Some(pending) = state.waiting.pop_front() {
                state.asking = Some(pending.matter.clone());
                return Some(pending);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Marks the current request as answered; returns the calls that joined it meanwhile.
    pub(super) fn answered(&self) -> Vec<Waiter> {
        let mut state = self.state();
        state.asking = None;
        std::mem::take(&mut state.joined)
    }

    /// Number of waiting requests, for reports.
    pub(super) fn waiting(&self) -> u64 {
        let state = self.state();
        state.waiting.len() as u64 + u64::from(state.asking.is_some())
    }

    /// Ends the queue; waiting calls are returned, to be refused.
    pub(super) fn end(&self) -> Vec<Waiter> {
        let mut state = self.state();
        state.over = true;
        self.changed.notify_all();
        state.waiting.drain(..).flat_map(|pending| pending.waiters).collect()
    }
}
