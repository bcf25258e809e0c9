//! Aggregation of equal events into few records: the first is recorded when it happens, then one record each time the
//! number has grown tenfold, and the rest at the end. The log stays small however many events there are.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;

use crate::event::{AuditEvent, Decision, Denial, DenialKey, Network, Phase};
use crate::writer::GROWTH;

/// Maximum number of kinds counted separately; all others are counted together as one more kind.
pub(crate) const MAX_KINDS: usize = 1000;
/// Name of the kind for all others.
pub(crate) const MORE: &str = "more";
const MORE_REASON: &str = "other kinds";

/// Event that can be aggregated.
pub(crate) trait Sum: Clone {
    type Key: Eq + Hash + Clone;

    fn key(&self) -> Cow<'_, Self::Key>;
    fn count(&self) -> u64;
    fn absorb(&mut self, other: Self);
    /// The event as one of the kind for all others.
    fn without_kind(self) -> Self;
    /// Called after the sum so far was written to the log.
    fn recorded(&mut self);
    fn event(&self) -> AuditEvent;
}

#[derive(Debug)]
struct TallyKind<T> {
    sum: T,
    seen: u64,
    next: u64,
    pending: bool,
    measured: bool,
}

impl<T> TallyKind<T> {
    /// Adds to the number, and returns whether a record is due.
    fn is_due(&mut self, more: u64) -> bool {
        self.pending = true;
        self.seen = self.seen.saturating_add(more);
        let due = self.seen >= self.next;
        while self.seen >= self.next && self.next < u64::MAX {
            self.next = self.next.saturating_mul(10);
        }
        due
    }
}

#[derive(Debug)]
pub(crate) struct Tally<T: Sum> {
    places: HashMap<T::Key, usize>,
    kinds: Vec<TallyKind<T>>,
    /// Total size in bytes of one record of each kind.
    cost: u64,
    max_cost: u64,
}

/// Index of a kind in its tally.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TallySlot(usize);

impl<T: Sum> Tally<T> {
    /// New kinds are counted separately as long as one record of each takes less than `max_cost` bytes in total.
    pub(crate) fn new(max_cost: u64) -> Tally<T> {
        Tally { places: HashMap::new(), kinds: Vec::new(), cost: 0, max_cost }
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Counts one event. Returns its kind if a record is due.
    pub(crate) fn add(&mut self, item: T) -> Option<TallySlot> {
        if self.has_room() || self.places.contains_key(item.key().as_ref()) {
            self.enter(item)
        } else {
            self.enter(item.without_kind())
        }
    }

    fn enter(&mut self, item: T) -> Option<TallySlot> {
        let (seen, place) = (item.count(), self.places.get(item.key().as_ref()).copied());
        let place = if let Some(place) = place {
            self.kinds[place].sum.absorb(item);
            place
        } else {
            self.places.insert(item.key().into_owned(), self.kinds.len());
            self.kinds.push(TallyKind { sum: item, seen: 0, next: 1, pending: true, measured: false });
            self.kinds.len() - 1
        };
        self.kinds[place].is_due(seen).then_some(TallySlot(place))
    }

    /// Whether no record of this kind was tried yet, so that no space is reserved for it.
    pub(crate) fn is_new(&self, place: TallySlot) -> bool {
        !self.kinds[place.0].measured
    }

    /// Moves a new kind, for which there is no space, to the kind for all others.
    pub(crate) fn forget(&mut self, place: TallySlot) {
        let more = self.kinds[place.0].sum.clone().without_kind();
        let key = self.kinds[place.0].sum.key().into_owned();
        // The kind added last is at the end. (There is always space for the kind for all others.)
        if place.0 + 1 == self.kinds.len() && *more.key() != key {
            self.places.remove(&key);
            self.kinds.pop();
            // Whether that kind is due does not matter: there is no space now, and its sum is written at the end.
            let _ = self.enter(more);
        }
    }

    fn has_room(&self) -> bool {
        self.kinds.len() < MAX_KINDS && self.cost < self.max_cost
    }

    pub(crate) fn event(&self, place: TallySlot) -> AuditEvent {
        self.kinds[place.0].sum.event()
    }

    /// Sets the size of a record of this kind.
    pub(crate) fn measured(&mut self, place: TallySlot, length: u64) {
        let kind = &mut self.kinds[place.0];
        if !std::mem::replace(&mut kind.measured, true) {
            self.cost += length + GROWTH;
        }
    }

    /// Marks a kind as written.
    pub(crate) fn recorded(&mut self, place: TallySlot) {
        let kind = &mut self.kinds[place.0];
        kind.sum.recorded();
        kind.pending = false;
    }

    /// Kinds whose sum in the log is not complete.
    pub(crate) fn pending(&self) -> Vec<TallySlot> {
        (0..self.kinds.len()).filter(|place| self.kinds[*place].pending).map(TallySlot).collect()
    }
}

impl Sum for Denial {
    type Key = DenialKey;

    fn key(&self) -> Cow<'_, DenialKey> {
        Cow::Borrowed(&self.what)
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn absorb(&mut self, other: Denial) {
        self.count = self.count.saturating_add(other.count);
        (self.time_ms, self.pid) = (other.time_ms, other.pid);
    }

    fn without_kind(self) -> Denial {
        let what = DenialKey {
            kind: MORE.to_owned(),
            path: None,
            access: String::new(),
            reason: MORE_REASON.to_owned(),
            program: "".into(),
        };
        Denial { what, ..self }
    }

    /// The next record has the sum of all, this one included.
    fn recorded(&mut self) {}

    fn event(&self) -> AuditEvent {
        AuditEvent::Denial(self.clone())
    }
}

/// Kind of a network event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NetworkKey {
    mode: String,
    denied: bool,
    host: String,
    port: u16,
    method: Option<String>,
    category: Option<String>,
    credential: Option<String>,
    phase: Option<Phase>,
}

impl Sum for Network {
    type Key = NetworkKey;

    fn key(&self) -> Cow<'_, NetworkKey> {
        Cow::Owned(NetworkKey {
            mode: self.mode.clone(),
            denied: self.decision == Decision::Denied,
            host: self.host.clone(),
            port: self.port,
            method: self.method.clone(),
            category: self.category.clone(),
            credential: self.credential.clone(),
            phase: self.phase,
        })
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn absorb(&mut self, other: Network) {
        if self.count == 0 {
            *self = other;
            return;
        }
        self.time_ms = other.time_ms;
        self.count = self.count.saturating_add(other.count);
        self.bytes_sent = self.bytes_sent.saturating_add(other.bytes_sent);
        self.bytes_received = self.bytes_received.saturating_add(other.bytes_received);
        self.duration_ms = self.duration_ms.saturating_add(other.duration_ms);
        // Fields that differ between the events are dropped.
        self.path.take_if(|path| other.path.as_ref() != Some(path));
        self.status.take_if(|status| other.status != Some(*status));
        self.reason.take_if(|reason| other.reason.as_ref() != Some(reason));
        self.address.take_if(|address| other.address.as_ref() != Some(address));
    }

    fn without_kind(self) -> Network {
        Network {
            mode: MORE.to_owned(),
            host: String::new(),
            port: 0,
            method: None,
            path: None,
            status: None,
            reason: Some(MORE_REASON.to_owned()),
            category: None,
            address: None,
            credential: None,
            ..self
        }
    }

    /// The next record has only what came after this one.
    fn recorded(&mut self) {
        self.count = 0;
    }

    fn event(&self) -> AuditEvent {
        AuditEvent::Network(self.clone())
    }
}
