//! Queue of events from the proxy to the supervisor.
//!
//! Nothing is ever dropped, whatever the command does: the log exists to show what was let through. Refusals of one
//! kind are queued as two events, the first as it is and all others as a sum, so that a flood of them takes no memory;
//! and while there is too much else, the proxy starts no new request ([`Events::room`]).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use nono_proxy::{Category, EventCapacity, Events, Mode, Phase, ProxyEvent};
use tokio::sync::Notify;

use super::wire::{UnsentCounts, bounded};

/// Queue length at which the proxy pauses. Requests begun before add at most two events for each connection.
const ENOUGH: usize = 1024;
/// Maximum number of events taken at once.
const BATCH: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Backlog {
    state: Mutex<BacklogState>,
    /// Signalled when there is an event to take, or there will be none.
    filled: Condvar,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct BacklogState {
    queue: VecDeque<ProxyEvent>,
    /// Number of events that left the queue, which is the index of its first event.
    taken: u64,
    refusals: HashMap<RefusalKind, Last>,
    untold: UnsentCounts,
    closed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    number: u64,
    is_sum: bool,
}

/// Key by which refusals are summed up.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RefusalKind {
    mode: Mode,
    host: String,
    port: u16,
    method: Option<String>,
    status: Option<u16>,
    category: Option<Category>,
    reason: Option<String>,
    phase: Option<Phase>,
}

impl RefusalKind {
    /// Kind of a refusal; None for an allowed request.
    fn of(event: &ProxyEvent) -> Option<RefusalKind> {
        (!event.allowed).then(|| RefusalKind {
            mode: event.mode,
            host: event.host.clone(),
            port: event.port,
            method: event.method.clone(),
            status: event.status,
            category: event.category,
            reason: event.reason.clone(),
            phase: event.phase,
        })
    }
}

impl Backlog {
    pub(super) fn add(&self, event: ProxyEvent) {
        let event = bounded(event);
        let mut state = self.state();
        state.untold.add(&event);
        match RefusalKind::of(&event) {
            Some(kind) => state.add_refusal(kind, event),
            None => state.queue.push_back(event),
        }
        self.filled.notify_one();
    }

    /// Mark the end of the events.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.filled.notify_one();
    }

    /// Wait for events; None once it is closed and empty. Each comes with the counts of those still queued behind it.
    pub(super) fn take(&self) -> Option<Vec<(ProxyEvent, UnsentCounts)>> {
        let idle = |state: &mut BacklogState| state.queue.is_empty() && !state.closed;
        let mut state = self.filled.wait_while(self.state(), idle).unwrap_or_else(PoisonError::into_inner);
        let batch: Vec<_> = std::iter::from_fn(|| state.pop()).take(BATCH).collect();
        drop(state);
        self.emptied.notify_waiters();
        (!batch.is_empty()).then_some(batch)
    }

    async fn has_room(&self) {
        loop {
            // Registered before the check, so that no notification is missed.
            let emptied = self.emptied.notified();
            if self.state().queue.len() < ENOUGH {
                return;
            }
            emptied.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, BacklogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BacklogState {
    fn add_refusal(&mut self, kind: RefusalKind, event: ProxyEvent) {
        let last = self.refusals.get(&kind).copied();
        if let Some(sum) = last.filter(|last| last.is_sum).and_then(|last| self.waiting(last.number)) {
            absorb(sum, &event);
            return;
        }
        let number = self.taken + self.queue.len() as u64;
        self.refusals.insert(kind, Last { number, is_sum: last.is_some() });
        self.queue.push_back(event);
    }

    fn waiting(&mut self, number: u64) -> Option<&mut ProxyEvent> {
        self.queue.get_mut(usize::try_from(number.checked_sub(self.taken)?).ok()?)
    }

    fn pop(&mut self) -> Option<(ProxyEvent, UnsentCounts)> {
        let event = self.queue.pop_front()?;
        if let Some(kind) = RefusalKind::of(&event)
            && self.refusals.get(&kind).is_some_and(|last| last.number == self.taken)
        {
            self.refusals.remove(&kind);
        }
        self.taken += 1;
        self.untold.remove(&event);
        Some((event, self.untold))
    }
}

fn absorb(sum: &mut ProxyEvent, other: &ProxyEvent) {
    sum.count = sum.count.saturating_add(other.count);
    sum.bytes_sent = sum.bytes_sent.saturating_add(other.bytes_sent);
    sum.bytes_received = sum.bytes_received.saturating_add(other.bytes_received);
    sum.duration_ms = sum.duration_ms.saturating_add(other.duration_ms);
    // Details that differ among the events are dropped.
    sum.path.take_if(|path| other.path.as_ref() != Some(path));
    sum.address.take_if(|address| other.address.as_ref() != Some(address));
    sum.credential.take_if(|credential| other.credential.as_ref() != Some(credential));
}

/// The proxy's end of the queue.
#[derive(Debug)]
pub(super) struct BacklogSink(pub(super) Arc<Backlog>);

impl Events for BacklogSink {
    fn event(&self, event: ProxyEvent) {
        self.0.add(event);
    }

    fn room(&self) -> EventCapacity<'_> {
        Box::pin(self.0.has_room())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::super::wire::tests::event;
    use super::*;

    fn has_room(backlog: &Backlog) -> bool {
        pin!(backlog.has_room()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn all(backlog: &Backlog) -> Vec<(ProxyEvent, UnsentCounts)> {
        backlog.close();
        std::iter::from_fn(|| backlog.take()).flatten().collect()
    }

    #[test]
    fn a_flood_of_refusals_takes_no_room_and_hides_nothing() {
        let backlog = Backlog::default();
        let refused = |path: &str| ProxyEvent { path: Some(path.to_owned()), ..event("closed", false) };
        backlog.add(refused("/first"));
        for number in 0..6000 {
            backlog.add(refused(&format!("/{number}")));
        }
        backlog.add(event("open", true));
        backlog.add(event("other", false));
        backlog.add(refused("/last"));
        assert!(has_room(&backlog));
        let told: Vec<_> = all(&backlog)
            .into_iter()
            .map(|(event, untold)| (event.host, event.path, event.count, untold.allowed, untold.refused))
            .collect();
        let host = |name: &str| name.to_owned();
        assert_eq!(
            told,
            [
                (host("closed"), Some("/first".to_owned()), 1, 1, 6002),
                (host("closed"), None, 6001, 1, 1),
                (host("open"), None, 1, 0, 1),
                (host("other"), None, 1, 0, 0),
            ]
        );
    }

    #[test]
    fn a_kind_that_was_told_begins_anew() {
        let backlog = Backlog::default();
        for _ in 0..3 {
            for _ in 0..3 {
                backlog.add(event("closed", false));
            }
            let counts: Vec<_> = backlog.take().into_iter().flatten().map(|(event, _)| event.count).collect();
            assert_eq!(counts, [1, 2]);
        }
        assert!(backlog.state().refusals.is_empty());
    }

    #[test]
    fn nothing_is_dropped_when_it_is_full() {
        let backlog = Backlog::default();
        for number in 0..ENOUGH / 2 {
            backlog.add(event("open", true));
            backlog.add(event(&format!("closed{number}"), false));
            assert_eq!(has_room(&backlog), number + 1 < ENOUGH / 2);
        }
        // Requests begun before are still reported.
        backlog.add(event("open", true));
        let mut waiting = pin!(backlog.has_room());
        let context = &mut Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(context).is_pending());
        let taken = backlog.take().map_or(0, |batch| batch.len());
        assert_eq!(waiting.as_mut().poll(context), Poll::Ready(()));
        assert_eq!((taken, taken + all(&backlog).len()), (BATCH, ENOUGH + 1));
    }
}
