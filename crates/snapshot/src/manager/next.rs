//! The snapshots after the first, and which of them are given up.

use super::{Captured, Manifest, SnapshotError, SnapshotManager};
use crate::capture::{CaptureError, RulesFrom};
use crate::coverage::Protection;
use crate::diff::{Change, diff};
use crate::file::Sync;
use crate::hash::ContentHash;
use crate::manifest::{Sheet, SnapshotId};
use crate::objects::StoreObjects;
use crate::session::{Held, Record, SessionError};

/// How the next snapshot is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// Open up what is closed to its own owner while it is read: for the last snapshot of a session, when nobody works
    /// in the tree any more.
    pub open_closed: bool,
    /// Take none if everything is as in the last one.
    pub if_changed: bool,
    /// Leave out what the rules of the first snapshot leave out, whatever ignore files say now: whoever works in the tree
    /// must not be able to hide from it by writing one.
    pub first_rules: bool,
}

/// What was captured and is not published yet.
struct Pending {
    held: Held,
    record: Record,
    last: u32,
    before: Sheet,
    captured: Captured,
}

impl Pending {
    /// Everything that a restore would put back is the same, and what is left out.
    fn is_unchanged(&self) -> bool {
        self.before.state == self.captured.state
    }
}

impl SnapshotManager {
    /// The next snapshot, and what changed since the last one.
    pub fn create_incremental(&mut self) -> Result<(Manifest, Vec<Change>), SnapshotError> {
        let pending = self.capture_next(Next::default())?;
        self.publish_next(pending)
    }

    /// The same in another way. Nothing: none was taken, because nothing changed.
    pub fn create_next(&mut self, how: Next) -> Result<Option<(Manifest, Vec<Change>)>, SnapshotError> {
        let pending = self.capture_next(how)?;
        if how.if_changed && pending.is_unchanged() {
            return Ok(None);
        }
        self.publish_next(pending).map(Some)
    }

    fn capture_next(&mut self, how: Next) -> Result<Pending, SnapshotError> {
        let held = self.enter()?;
        let record = self.recorded()?;
        let last = record.last_number().ok_or_else(|| self.no_baseline())?;
        let before = self.session.sheet(&record, &SnapshotId::Number(last))?;
        let captured = if how.first_rules {
            let first = self.whole(&record, &SnapshotId::Number(0))?;
            let frozen = self.frozen_rules(&first)?;
            let rules = RulesFrom::Frozen(&frozen);
            self.capture(&first.state.paths(), rules, Some(&before.state), self.limits, how.open_closed)?
        } else {
            let known: Vec<ContentHash> = before.rules.iter().flatten().copied().collect();
            self.capture_live(Some(&before), &known, how.open_closed)?
        };
        self.ensure_not_hidden(&before, &captured)?;
        Ok(Pending { held, record, last, before, captured })
    }

    fn publish_next(&mut self, pending: Pending) -> Result<(Manifest, Vec<Change>), SnapshotError> {
        let Pending { held, record, last, before, captured } = pending;
        let changes = diff(&before.state, &captured.state, &StoreObjects::new(&self.store))?;
        let id = SnapshotId::Number(last + 1);
        let manifest = self.publish(&held, record, captured, id, Some(last))?;
        self.settle_in_background();
        Ok((manifest, changes))
    }

    /// A tree may be emptied; but a snapshot that is empty because rules now leave out what it held before is none.
    fn ensure_not_hidden(&self, before: &Sheet, captured: &Captured) -> Result<(), SnapshotError> {
        if captured.coverage.files + captured.coverage.others > 0 {
            return Ok(());
        }
        let objects = StoreObjects::new(&self.store);
        let mut reasons = Vec::new();
        for (path, reason) in crate::files::left_out(&captured.state, &objects)? {
            if crate::files::protection(&before.state, &objects, &path)? == Protection::Captured {
                reasons.push(format!("{}: {reason}", path.display()));
            }
        }
        if reasons.is_empty() {
            return Ok(());
        }
        reasons.truncate(5);
        Err(CaptureError::Nothing { reasons }.into())
    }

    /// Give up these snapshots: their numbers and digests stay, their content goes with the next collection of garbage.
    /// The first and the last one are needed, and the first ones of roots that came later.
    pub fn thin(&mut self, numbers: &[u32]) -> Result<(), SnapshotError> {
        let held = self.enter()?;
        let mut record = self.recorded()?;
        let last = record.last_number();
        for number in numbers {
            let needed = |why| SnapshotError::Needed { number: *number, why };
            if *number == 0 {
                return Err(needed("the first"));
            }
            if last == Some(*number) {
                return Err(needed("the last"));
            }
            if record.late.iter().any(|late| late.first == *number) {
                return Err(needed("the first of a path that joined later"));
            }
            let id = SnapshotId::Number(*number);
            let recorded = record.snapshots.iter_mut().find(|recorded| recorded.snapshot() == id);
            let dir = self.session.dir();
            let recorded = recorded.ok_or_else(|| SessionError::NoSnapshot { id, dir: dir.to_owned() })?;
            recorded.thinned = true;
        }
        // Durable before the manifests go: a record that names what is gone would be damage.
        self.session.save_record(&record, Sync::Yes)?;
        Ok(self.session.tidy(&held)?)
    }
}
