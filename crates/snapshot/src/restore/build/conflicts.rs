//! Entries that must stay: those changed by others, and repositories that would become a mix of two states.

use super::super::conflict_unit::{self, Base};
use super::super::presence::is_torn;
use super::{BuildFrame, Builder};
use crate::diff::{Aspects, EntryRef};
use crate::node::{Entry, Name, Node, Reason};
use crate::state::Result;

impl Builder<'_> {
    /// Whether the current entry was changed by others: it is in none of the given states.
    pub(super) fn is_conflict(&self, name: &Name, new: Option<&EntryRef>, old: Option<&EntryRef>) -> bool {
        let Some(BuildFrame { bases, resumed, .. }) = self.frames.last() else { return false };
        if self.resuming && is_torn(new, old) {
            return false;
        }
        let name = name.as_bytes();
        let before = resumed.as_ref().and_then(|node| node.entry(name));
        !bases.is_empty() && bases.iter().all(|base| self.is_other(base.as_deref(), name, before, new, old))
    }

    /// Whether the current entry differs from a state. `before`: the entry when the interrupted restore began.
    pub(super) fn is_other(
        &self,
        base: Option<&Node>,
        name: &[u8],
        before: Option<&Entry>,
        new: Option<&EntryRef>,
        old: Option<&EntryRef>,
    ) -> bool {
        match base.and_then(|node| node.omitted(name)).map(|omitted| &omitted.reason) {
            // It existed, and its content then is unknown.
            Some(Reason::TooLarge { .. } | Reason::Unreadable(_)) => return false,
            Some(_) => return true,
            None => {}
        }
        let both_dirs = new.is_some_and(|new| new.is_dir()) && old.is_some_and(|old| old.is_dir());
        match (old, base.and_then(|node| node.entry(name))) {
            (None, None) => false,
            // Its content decides, not the directory itself.
            _ if both_dirs => false,
            // The interrupted restore may have been about to put another entry there.
            (None, Some(_)) => !(self.resuming && before.is_some()),
            (Some(_), None) => true,
            (Some(old), Some(base)) if old.is_dir() && base.is_dir() => false,
            (Some(old), Some(base)) => {
                let aspects = Aspects::to_reach(old, base);
                let half_done = before.is_some_and(|before| !Aspects::to_reach(old, before).content);
                aspects.content || (aspects.permissions() && !half_done)
            }
        }
    }

    pub(super) fn is_dir_conflict(&self, old: &EntryRef) -> bool {
        let Some(BuildFrame { bases, .. }) = self.frames.last() else { return false };
        let differs = |base: &Base| {
            let base = base.as_ref().and_then(|node| node.entry(old.name.as_bytes()));
            base.is_some_and(|base| Aspects::to_reach(old, base).permissions())
        };
        !self.resuming && !bases.is_empty() && bases.iter().all(differs)
    }

    /// Whether others changed anything in a `.git`; for a restore being completed, before it began.
    pub(super) fn is_changed_unit(&self, name: &Name, old: Option<&EntryRef>) -> Result<bool> {
        let Some(BuildFrame { bases, resumed, .. }) = self.frames.last() else { return Ok(false) };
        if name.as_bytes() != b".git" || bases.is_empty() {
            return Ok(false);
        }
        let now = if self.resuming {
            resumed.as_ref().and_then(|before| before.entry(name.as_bytes()))
        } else {
            old.map(|old| &**old)
        };
        match now.filter(|now| now.is_dir()) {
            Some(now) => conflict_unit::is_changed(now, bases, self.objects),
            None => Ok(false),
        }
    }

    /// Reason why an existing `.git` must stay: the target does not hold all of it, and the result would be a mix.
    pub(super) fn is_incomplete_unit(
        &self,
        name: &Name,
        new: Option<&EntryRef>,
        old: Option<&EntryRef>,
    ) -> Result<Option<Reason>> {
        let (Some(new), Some(_)) = (new, old.filter(|old| old.is_dir())) else { return Ok(None) };
        if name.as_bytes() != b".git" {
            return Ok(None);
        }
        conflict_unit::missing(new, self.objects)
    }
}
