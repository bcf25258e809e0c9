//! Ages of owners and their entries, computed so that a clock that is ahead makes nothing old.

use std::io;
use std::path::Path;

use nono_snapshot::file::{self, Sync};
use nono_sys::time;

/// Clock for ages.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Seconds since 1970.
    pub now: u64,
    /// Time of the last sweep, for automatic ones: a clock that jumped ahead since then makes nothing old.
    pub last_sweep: Option<u64>,
    /// Age from which an owner whose folder is gone is removed.
    pub orphans_since: u64,
}

impl Clock {
    /// Clock for a sweep that the user asked for.
    pub fn asked() -> Clock {
        let now = time::now_ms() / 1000;
        Clock { now, last_sweep: Some(now), orphans_since: 0 }
    }

    /// Clock for an automatic sweep, by the marker of the last one; None if that was less than `interval` seconds ago.
    /// Since sweeps are apart, a clock that jumped ahead has to stay there for the interval before anything is old by it.
    pub fn automatic(marker: &Path, interval: u64, orphans_since: u64) -> Option<Clock> {
        let now = time::now_ms() / 1000;
        let last_sweep = last_sweep(marker, now);
        let is_due = last_sweep.is_none_or(|last| now - last >= interval);
        is_due.then_some(Clock { now, last_sweep, orphans_since })
    }

    /// Age in seconds, by both clocks. A time in the future, or one that cannot be read, counts as now.
    pub fn age(&self, since: Option<u64>) -> u64 {
        let (Some(since), Some(last)) = (since, self.last_sweep) else { return 0 };
        self.now.min(last).saturating_sub(since)
    }
}

/// Time of the last sweep. A marker that cannot be read, or is in the future, counts as none.
fn last_sweep(marker: &Path, now: u64) -> Option<u64> {
    let text = file::read(marker).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.and_then(|text| time::seconds(text.trim())).filter(|last| *last <= now)
}

/// Note in the marker that a sweep was made now.
pub fn mark_sweep(marker: &Path) -> io::Result<()> {
    file::replace(marker, format!("{}\n", time::now_iso()).as_bytes(), Sync::No)
}
