//! Ages of owners and their entries, computed so that a clock that is ahead makes nothing old.

use std::path::Path;

use nono_snapshot::file;
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

    /// Age in seconds, by both clocks. A time in the future, or one that cannot be read, counts as now.
    pub fn age(&self, since: Option<u64>) -> u64 {
        let (Some(since), Some(last)) = (since, self.last_sweep) else { return 0 };
        self.now.min(last).saturating_sub(since)
    }
}

/// Time of the last sweep. A marker that cannot be read, or is in the future, counts as none.
pub fn last_sweep(marker: &Path, now: u64) -> Option<u64> {
    let text = file::read(marker).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.and_then(|text| time::seconds(text.trim())).filter(|last| *last <= now)
}
