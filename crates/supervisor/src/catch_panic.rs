//! Containment of panics in code that parses hostile bytes.
//!
//! A panic anywhere else is a bug in nono, and the supervisor must not continue with it. Inside [`contained`] it is a
//! bug in a parser: the parser's state is thrown away, and the run goes on. Needs a build that unwinds; with `panic =
//! "abort"` every panic ends the process.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread would be caught now: for a panic hook, which should then stay silent.
pub fn is_contained() -> bool {
    // A thread that is ending contains nothing any more.
    CONTAINED.try_with(Cell::get).unwrap_or(false)
}

/// Result of the work; `None` if it panicked. Everything it could change is in an unknown state then.
pub(crate) fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    let before = CONTAINED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(before);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_at_the_container_and_is_told_to_hooks_as_contained() {
        assert!(!is_contained());
        assert_eq!(contained(is_contained), Some(true));
        assert_eq!(contained(|| -> u8 { Vec::new()[7] }), None);
        assert_eq!(contained(|| (contained(|| ()), is_contained())), Some((Some(()), true)));
        assert!(!is_contained());
    }
}
