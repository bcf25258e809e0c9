//! Ages, told so that a clock that is ahead makes nothing old.

use std::path::Path;

use nono_snapshot::file;
use nono_sys::time;

/// By what age is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) now: u64,
    /// For a sweep that nobody asked for: when the last one was. A clock that is ahead only now makes nothing old.
    pub(crate) last_sweep: Option<u64>,
    /// Orphans go from this age on.
    pub(crate) orphans_since: u64,
}

impl Clock {
    /// For one who asks for a sweep.
    pub(crate) fn asked() -> Clock {
        let now = time::now_ms() / 1000;
        Clock { now, last_sweep: Some(now), orphans_since: 0 }
    }

    /// Seconds since then, as both clocks say. A time in the future, or one that cannot be read, is now.
    pub(crate) fn age(&self, since: Option<u64>) -> u64 {
        let (Some(since), Some(last)) = (since, self.last_sweep) else { return 0 };
        self.now.min(last).saturating_sub(since)
    }
}

/// When everything was swept. A marker that cannot be read, or is of the future, is none.
pub(crate) fn last_sweep(marker: &Path, now: u64) -> Option<u64> {
    let text = file::read(marker).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.and_then(|text| time::seconds(text.trim())).filter(|last| *last <= now)
}
