//! The limits a parent has to watch: time and the memory of the whole tree.

use std::time::{Duration, Instant};

use nono_policy::resolved::Limits;

/// Which limit ended the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitHit {
    Time(Duration),
    Memory { limit: u64, seen: u64 },
    FileSize(u64),
}

/// How the memory limit is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMethod {
    /// The resident memory of all processes, added up this often; the kernel holds a far higher one per process.
    Polled(Duration),
}

/// How often memory is added up.
const POLL: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Watch {
    deadline: Option<(Instant, Duration)>,
    memory: Option<u64>,
    init: i32,
}

impl Watch {
    pub(crate) fn new(limits: &Limits, init: i32) -> Watch {
        let deadline = limits.time.and_then(|time| Instant::now().checked_add(time).map(|at| (at, time)));
        Watch { deadline, memory: limits.memory, init }
    }

    /// How long the loop may sleep.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let until = self.deadline.map(|(at, _)| at.saturating_duration_since(Instant::now()));
        match (until, self.memory) {
            (Some(until), Some(_)) => Some(until.min(POLL)),
            (None, Some(_)) => Some(POLL),
            (until, None) => until,
        }
    }

    pub(crate) fn check(&self) -> Option<LimitHit> {
        if let Some((at, time)) = self.deadline
            && Instant::now() >= at
        {
            return Some(LimitHit::Time(time));
        }
        let limit = self.memory?;
        let seen = tree_memory(self.init);
        (seen > limit).then_some(LimitHit::Memory { limit, seen })
    }
}

pub(crate) fn memory_method(limits: &Limits) -> Option<MemoryMethod> {
    limits.memory.map(|_| MemoryMethod::Polled(POLL))
}

/// Whether the processes below `init` can be added up at all: a hidden `/proc` would make every sum zero.
pub(crate) fn can_measure(init: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{init}/task/{init}/children")).is_ok()
}

/// Resident bytes of everything below `init`. A process that ends while we look counts as nothing.
fn tree_memory(init: i32) -> u64 {
    let mut waiting = children(init);
    let mut total = 0;
    while let Some(pid) = waiting.pop() {
        total += resident(pid);
        waiting.extend(children(pid));
    }
    total
}

fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| {
            list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()
        })
        .collect()
}

fn resident(pid: i32) -> u64 {
    const PAGE: u64 = 4096;
    std::fs::read_to_string(format!("/proc/{pid}/statm"))
        .ok()
        .and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok())
        .map_or(0, |pages| pages * PAGE)
}
