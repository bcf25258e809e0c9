//! Confinement of the calling process itself, without namespaces and irreversibly.

use std::io;
use std::time::{Duration, Instant};

use nono_policy::resolved::ResolvedPolicy;
use nono_sys::{errno, launch, process, seccomp};

use super::blueprint::{SessionPaths, compile};
use super::support::support_in_place;
use super::{filter, plan};
use crate::refusal::Refusal;
use crate::strategy::ExecStrategy;

/// First ABI in which Landlock can confine all threads of a process at once.
const THREAD_SYNC_ABI: u32 = 8;
/// Time that a joined thread may take to leave.
const LEAVING: Duration = Duration::from_millis(100);

/// Counts the threads. One that was joined may need a moment to leave: an interpreter reports the end before it is
/// gone.
fn settled_threads() -> io::Result<usize> {
    let until = Instant::now() + LEAVING;
    loop {
        match process::thread_count()? {
            more @ 2.. if Instant::now() >= until => return Ok(more),
            2.. => std::thread::sleep(Duration::from_millis(1)),
            alone => return Ok(alone),
        }
    }
}

/// Enforces `policy` on this process. Irreversible; may be called again to restrict further.
pub fn apply(policy: &ResolvedPolicy) -> Result<(), Refusal> {
    let support = support_in_place();
    let abi = support.landlock.clone().map_err(|reason| Refusal::NoLandlock { reason })?;
    let failed = |step| move |e: std::io::Error| Refusal::Kernel { step, error: errno::describe(&e) };
    let threads = settled_threads().map_err(failed("count the threads"))?;
    let all_threads = threads > 1;
    if all_threads && abi < THREAD_SYNC_ABI {
        return Err(Refusal::Threads { threads });
    }
    let blueprint = compile(policy, &support, ExecStrategy::Direct, &SessionPaths::default())?;
    let ruleset = plan::fill(&blueprint)?;
    launch::drop_capabilities().map_err(failed("drop all capabilities"))?;
    process::no_new_privs().map_err(failed("give up new privileges"))?;
    ruleset.restrict_self(all_threads).map_err(failed("enforce the Landlock rules"))?;
    seccomp::install(&filter::compile(blueprint.filter), all_threads)
        .map_err(failed("install the system call filter"))
}
