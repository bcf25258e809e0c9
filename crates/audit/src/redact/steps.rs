//! Work done on a text, counted in bytes looked at, so that a test can tell a cost that grows with the length of a text from
//! one that grows with its square. Outside of tests nothing is counted.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts bytes that a function looks at.
#[cfg(test)]
pub(super) fn count(bytes: usize) {
    STEPS.set(STEPS.get() + bytes);
}

#[cfg(not(test))]
pub(super) fn count(_: usize) {}

/// Steps that `work` takes on this thread.
#[cfg(test)]
pub(super) fn of(work: impl FnOnce()) -> usize {
    let before = STEPS.get();
    work();
    STEPS.get() - before
}
