//! Panics of nono itself.

use std::panic::Location;

use crate::message;

/// Aborts the process, since a supervisor cannot trust its state after a panic; the command ends with it. Panics that
/// are caught are left alone. The panic's message is not printed: it may contain text of the command's.
pub(crate) fn panicked(location: Option<&Location<'_>>) {
    if nono::is_contained() {
        return;
    }
    let place = location.map(|at| format!(" ({}:{})", at.file(), at.line())).unwrap_or_default();
    message::line(&format!("error: internal error in nono{place}; please report it"));
    std::process::abort();
}
