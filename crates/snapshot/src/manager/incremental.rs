//! Snapshots after the first, and thinning them out.

use super::{Captured, Manifest, Result, SnapshotError, SnapshotManager};
use crate::capture::{CaptureError, RulesFrom};
use crate::coverage::Protection;
use crate::diff::{Change, diff, is_same_but_left_out};
use crate::file::Sync;
use crate::hash::ContentHash;
use crate::manifest::{ManifestBody, SnapshotId};
use crate::objects::StoreObjects;
use crate::session::{Session, SessionError, SessionHold, SnapshotList};
use crate::state::SnapshotState;
use crate::store::Store;

/// Options for the next snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// Make entries closed to their own owner readable while they are captured: when no process works in the tree.
    pub open_closed: bool,
    /// Take no snapshot if nothing changed since the last one.
    pub if_changed: bool,
    /// Use the rules of the first snapshot, so that the command cannot hide files by writing an ignore file.
    pub first_rules: bool,
}

/// Captured current state that is not published yet. The session stays locked as long as this exists.
#[must_use = "the session is held"]
pub struct Now {
    pub(super) held: SessionHold,
    pub(super) record: SnapshotList,
    last: u32,
    /// The last numbered snapshot, unless it was dropped.
    before: Option<ManifestBody>,
    pub(super) captured: Captured,
    unchanged: bool,
}

impl std::fmt::Debug for Now {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Now").field("state", &self.captured.state).finish_non_exhaustive()
    }
}

impl Now {
    pub(super) fn new(
        held: SessionHold,
        record: SnapshotList,
        captured: Captured,
        (last, before): (u32, Option<ManifestBody>),
        store: &Store,
    ) -> Now {
        let unchanged = match &before {
            Some(before) if before.state == captured.state => true,
            Some(before) => {
                is_same_but_left_out(&before.state, &captured.state, &StoreObjects::new(store))
                    // A snapshot that cannot be read counts as different.
                    .unwrap_or(false)
            }
            None => false,
        };
        Now { held, record, last, before, captured, unchanged }
    }

    /// Whether all that a restore would put back, and what is excluded, equals the last numbered snapshot.
    pub fn is_unchanged(&self) -> bool {
        self.unchanged
    }

    /// Number of the last snapshot.
    pub fn last(&self) -> u32 {
        self.last
    }

    pub fn state(&self) -> &SnapshotState {
        &self.captured.state
    }
}

impl SnapshotManager {
    /// Take the next snapshot; also returns the changes since the last one.
    pub fn create_incremental(&mut self) -> Result<(Manifest, Vec<Change>)> {
        let now = self.look_now(Next::default())?;
        self.publish_now(now)
    }

    /// Take the next snapshot with options. `None`: nothing changed, so none was taken.
    pub fn create_next(&mut self, how: Next) -> Result<Option<Manifest>> {
        let now = self.look_now(how)?;
        if how.if_changed && now.is_unchanged() {
            return Ok(None);
        }
        self.number_now(now).map(Some)
    }

    /// Capture the current state without publishing it.
    pub fn look_now(&mut self, how: Next) -> Result<Now> {
        let held = self.enter()?;
        let record = self.recorded()?;
        let (last, before) = last_of(&record, &self.session)?;
        let captured = if how.first_rules {
            let first = self.whole(&record, &SnapshotId::Number(0))?;
            let frozen = self.frozen_rules(&first)?;
            let rules = RulesFrom::Frozen(&frozen);
            let previous = before.as_ref().map(|before| &before.state);
            self.capture(&first.state.paths(), rules, previous, self.limits, how.open_closed)?
        } else {
            let rules = before.iter().flat_map(|before| &before.rules);
            let known: Vec<ContentHash> = rules.flatten().copied().collect();
            self.capture_live(before.as_ref(), &known, how.open_closed)?
        };
        match &before {
            Some(before) => self.ensure_not_hidden(before, &captured)?,
            None => self.ensure_something(&captured)?,
        }
        Ok(Now::new(held, record, captured, (last, before), &self.store))
    }

    /// Publish it as the next snapshot; also returns the changes since the last one.
    pub fn publish_now(&mut self, now: Now) -> Result<(Manifest, Vec<Change>)> {
        let before = now.before.as_ref().map(|before| before.state.clone()).unwrap_or_default();
        let changes = diff(&before, now.state(), &StoreObjects::new(&self.store))?;
        Ok((self.number_now(now)?, changes))
    }

    /// The same without computing the changes, so the last snapshot need not be readable.
    pub fn number_now(&mut self, now: Now) -> Result<Manifest> {
        let Now { held, record, last, captured, .. } = now;
        let id = SnapshotId::Number(last + 1);
        let manifest = self.publish(&held, record, captured, id, Some(last))?;
        self.settle_in_background();
        Ok(manifest)
    }

    /// Refuse a snapshot that is empty because rules now exclude what it held; a tree really emptied is fine.
    fn ensure_not_hidden(&self, before: &ManifestBody, captured: &Captured) -> Result<()> {
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

    /// Drop the contents of these snapshots: their numbers and digests stay, their content is removed by the next
    /// garbage collection. The first and the last snapshot are needed (see [`super::ManagerOptions::give_up_any`]), and
    /// the first ones of roots added later.
    pub fn thin(&mut self, numbers: &[u32]) -> Result<()> {
        let held = self.enter()?;
        let mut record = self.recorded()?;
        let last = record.last_number();
        for number in numbers {
            let needed = |why| SnapshotError::Needed { number: *number, why };
            if *number == 0 && !self.options.give_up_any {
                return Err(needed("the first"));
            }
            if last == Some(*number) && !self.options.give_up_any {
                return Err(needed("the last"));
            }
            if record.late.iter().any(|late| late.first == *number) {
                return Err(needed("the first of a root added later"));
            }
            let id = SnapshotId::Number(*number);
            let recorded = record.snapshots.iter_mut().find(|recorded| recorded.snapshot() == id);
            let dir = self.session.dir();
            let recorded = recorded.ok_or_else(|| SessionError::NoSnapshot { id, dir: dir.to_owned() })?;
            recorded.thinned = true;
        }
        // Durable before the manifests are removed: a record that names a missing manifest would be damage.
        self.session.save_record(&record, Sync::Yes)?;
        Ok(self.session.tidy(&held)?)
    }
}

/// Number of the last snapshot, and the snapshot itself unless it was dropped or its manifest is damaged.
pub(super) fn last_of(record: &SnapshotList, session: &Session) -> Result<(u32, Option<ManifestBody>)> {
    let none = || SnapshotError::NoBaseline { dir: session.dir().to_owned() };
    let last = record.last_number().ok_or_else(none)?;
    Ok((last, session.sheet_if_readable(record, &SnapshotId::Number(last))?))
}
