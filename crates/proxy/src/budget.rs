//! Memory budget for the heads of all messages. The peer chooses how large a head is and how long it takes to send, and
//! there are many connections: without a common bound, memory would be unbounded.
//!
//! The largest head is reserved before a head is read, so that no connection waits for more in the middle of one; the
//! unused part is released once the head is complete. Requests and responses have separate budgets: a response never
//! waits for memory that only another request can release.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::config::Limits;
use crate::head::{Fields, RequestHead, TargetForm};

/// Size of the budget in bytes, for requests and again for responses.
const BUDGET: usize = 8 << 20;
/// Memory of a field beside its text.
const FIELD: usize = 100;
/// Size of the first piece of a message, which is read before its head has a reservation.
pub(crate) const FIRST: usize = 4 << 10;

#[derive(Debug)]
pub(crate) struct Heads {
    pub(crate) requests: Budget,
    pub(crate) answers: Budget,
}

#[derive(Debug)]
pub(crate) struct Budget {
    left: Semaphore,
    largest: u32,
}

/// Reservation for a head, released when dropped.
#[derive(Debug)]
pub(crate) struct Held<'a>(SemaphorePermit<'a>);

impl Heads {
    pub(crate) fn new(limits: &Limits) -> Heads {
        let largest = limits.head_bytes.saturating_add(limits.headers.saturating_mul(FIELD));
        let largest = u32::try_from(largest).unwrap_or(u32::MAX);
        Heads { requests: Budget::new(largest), answers: Budget::new(largest) }
    }
}

impl Budget {
    fn new(largest: u32) -> Budget {
        let bytes = BUDGET.max(usize::try_from(largest).unwrap_or(usize::MAX)).min(Semaphore::MAX_PERMITS);
        Budget { left: Semaphore::new(bytes), largest }
    }

    /// Waits for a reservation for the largest head. `None` after shutdown.
    pub(crate) async fn place(&self) -> Option<Held<'_>> {
        self.left.acquire_many(self.largest).await.ok().map(Held)
    }

    /// Reserves without waiting. `None` if the budget is exhausted.
    pub(crate) fn place_now(&self) -> Option<Held<'_>> {
        self.left.try_acquire_many(self.largest).ok().map(Held)
    }
}

impl Held<'_> {
    /// Releases all but `bytes`.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        drop(self.0.split(self.0.num_permits().saturating_sub(bytes)));
    }
}

/// Memory of a request's head while it is served.
pub(crate) fn of_request(request: &RequestHead) -> usize {
    let path = match &request.form {
        TargetForm::Absolute { path, .. } | TargetForm::Origin { path } => path.len(),
        TargetForm::Tunnel(_) | TargetForm::Asterisk => 0,
    };
    path + of_fields(&request.fields)
}

pub(crate) fn of_fields(fields: &Fields) -> usize {
    fields.iter().map(|field| field.name.len() + field.value.len() + FIELD).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_heads_take_turns_and_small_ones_fit() {
        let heads = Heads::new(&Limits::default());
        let large: Vec<_> = std::iter::from_fn(|| heads.requests.place_now()).collect();
        assert!((100..256).contains(&large.len()), "{}", large.len());
        assert!(heads.answers.place_now().is_some(), "answers do not wait for requests");
        drop(large);
        let mut small = Vec::new();
        for _ in 0..2 * Limits::default().connections {
            let mut held = heads.requests.place_now().expect("a place");
            held.shrink(2000);
            small.push(held);
        }
        drop(small);
        assert_eq!(heads.requests.left.available_permits(), BUDGET);
    }

    #[test]
    fn one_head_always_fits() {
        let heads = Heads::new(&Limits { head_bytes: 2 * BUDGET, ..Limits::default() });
        assert!(heads.requests.place_now().is_some());
    }
}
