//! Interruption of long work: signals that request an end, as a value that is polled between steps.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

pub use nono_sys::process::ignore_file_size_signal;
use nono_sys::process::{self, Signals};
use rustix::process::Signal;

/// Guard that blocks these signals in the current thread and the threads it starts, so that they do not end the
/// process. It has to be dropped by the thread that created it, which gets its signals back.
#[derive(Debug)]
pub struct Interrupts {
    signals: Arc<Signals>,
    /// Signals that were ignored when this process started, as by `nohup`: one bit each.
    ignored: u64,
    first: AtomicI32,
}

impl Interrupts {
    pub fn block() -> io::Result<Interrupts> {
        Ok(Interrupts::over(Arc::new(Signals::block()?)))
    }

    /// Use signals that are already blocked.
    pub(crate) fn over(signals: Arc<Signals>) -> Interrupts {
        // A blocked signal is delivered even if it was ignored, so this has to be checked.
        let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
        Interrupts { signals, ignored, first: AtomicI32::new(0) }
    }

    /// The first signal that requested an end, if any. Ctrl-Z stops the process in this call until it is continued.
    pub fn requested(&self) -> Option<i32> {
        while let Some(received) = self.signals.next() {
            if received.signal == Signal::TSTP.as_raw() {
                // The other processes of this job received the signal, too.
                process::stop(false);
            }
            if received.asks_for_an_end() && self.ignored & bit(received.signal) == 0 {
                // Only the first signal counts.
                let _ = self.first.compare_exchange(0, received.signal, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
        Some(self.first.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }
}

fn bit(signal: i32) -> u64 {
    u32::try_from(signal - 1).ok().and_then(|shift| 1u64.checked_shl(shift)).unwrap_or(0)
}

/// The ignored signals in `/proc/PID/status`; none if it cannot be parsed.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_status() {
        let status =
            "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000000\n";
        assert_eq!(ignored(status) & bit(Signal::HUP.as_raw()), 1);
        assert_eq!(ignored(status) & bit(Signal::INT.as_raw()), 0);
        assert_eq!(ignored(""), 0);
    }
}
