//! Memory limit of a run. (Time is enforced by init, file size and number of processes by the kernel.)

mod cgroup;
mod polled;

use std::io;
use std::time::Duration;

use nono_sandbox::{Blueprint, MemoryHold};
use nono_sys::launch::Launched;

use cgroup::Cgroup;
use polled::{POLL, Polled};

use crate::error::{RunError, supervising};
use crate::mediate::Mediating;

/// Limit that ended the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitHit {
    Time(Duration),
    Memory { limit: u64, seen: u64 },
    FileSize(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMethod {
    /// Enforced by the kernel, in a cgroup.
    Cgroup,
    /// Visible memory of all processes, added up this often; the kernel enforces a far higher limit per process.
    Polled(Duration),
}

impl MemoryMethod {
    /// Method for the memory limit of a blueprint, if it has one.
    pub fn of(blueprint: &Blueprint) -> Option<MemoryMethod> {
        blueprint.memory.as_ref().map(|hold| match hold {
            MemoryHold::Cgroup { .. } => MemoryMethod::Cgroup,
            MemoryHold::Polled => MemoryMethod::Polled(POLL),
        })
    }
}

/// Enforces the limit while the command runs.
#[derive(Debug)]
pub(crate) struct LimitWatch {
    limit: u64,
    how: LimitMethod,
}

#[derive(Debug)]
enum LimitMethod {
    Unlimited,
    Held(Cgroup),
    Polled(Polled),
}

impl LimitWatch {
    /// Sets the limit up for a command that was not started yet, so that everything it starts is included.
    pub(crate) fn new(blueprint: &Blueprint, launched: &Launched) -> Result<LimitWatch, RunError> {
        let (Some(limit), Some(hold)) = (blueprint.limits.memory, &blueprint.memory) else {
            return Ok(LimitWatch { limit: 0, how: LimitMethod::Unlimited });
        };
        let how = match hold {
            MemoryHold::Cgroup { parent } => {
                let made =
                    Cgroup::new(parent, limit).and_then(|cgroup| cgroup.add(launched.pid).map(|()| cgroup));
                LimitMethod::Held(made.map_err(supervising("make a cgroup for --max-memory"))?)
            }
            MemoryHold::Polled if !polled::can_measure(launched.pid) => return Err(RunError::CannotMeasure),
            MemoryHold::Polled => LimitMethod::Polled(Polled::new(launched.pid, blueprint.layers.net)),
        };
        Ok(LimitWatch { limit, how })
    }

    /// Longest time the loop may sleep.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        matches!(self.how, LimitMethod::Polled(_)).then_some(POLL)
    }

    /// Measures the memory, where the limit is enforced by polling.
    pub(crate) fn check(
        &mut self,
        launched: &Launched,
        mediator: Option<&Mediating>,
    ) -> io::Result<Option<LimitHit>> {
        let LimitMethod::Polled(polled) = &mut self.how else { return Ok(None) };
        let seen = polled.look(launched, mediator)?;
        Ok((seen > self.limit).then_some(LimitHit::Memory { limit: self.limit, seen }))
    }

    /// Takes over init's count of pages.
    pub(crate) fn counted(&mut self, pages: i32) {
        if let LimitMethod::Polled(polled) = &mut self.how {
            polled.counted(pages);
        }
    }

    /// Limit for which the kernel ended the command, if it did. Valid once everything is over.
    pub(crate) fn struck(&self) -> Option<LimitHit> {
        match &self.how {
            LimitMethod::Held(cgroup) => cgroup
                .struck()
                .then(|| LimitHit::Memory { limit: self.limit, seen: cgroup.peak().unwrap_or(self.limit) }),
            LimitMethod::Polled(_) | LimitMethod::Unlimited => None,
        }
    }
}
