//! Entries of a directory in the last scan.

use crate::cache::CachedDir;
use crate::scan_record::{Entries, RecordedEntry};

/// Entries of a directory in the last scan, in the order of names.
pub(super) struct OldEntries<'a> {
    entries: Entries<'a>,
    next: Option<RecordedEntry<'a>>,
}

impl<'a> OldEntries<'a> {
    pub(super) fn new(old: Option<&CachedDir<'a>>) -> OldEntries<'a> {
        let mut entries = Entries::new(old.map_or(&[], |old| old.entries));
        // An unreadable record counts as missing.
        let next = entries.next().and_then(Result::ok);
        OldEntries { entries, next }
    }

    /// The entry `name`; `same` is cleared if entries before it are gone.
    pub(super) fn at(&mut self, name: &[u8], same: &mut bool) -> Option<RecordedEntry<'a>> {
        while let Some(next) = &self.next {
            if next.name > name {
                return None;
            }
            let found = next.name == name;
            let next = self.next.take();
            self.next = self.entries.next().and_then(Result::ok);
            if found {
                return next;
            }
            *same = false;
        }
        None
    }

    pub(super) fn finish(self, same: &mut bool) {
        *same &= self.next.is_none();
    }
}
