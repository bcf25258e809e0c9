//! Faults of this program itself.

use std::panic::Location;

use crate::message;

/// Ends the process at once, as a supervisor must that cannot trust its own state; what it started ends with it. A panic
/// that is caught is the catcher's to deal with. The panic's own words may be the command's, and help nobody.
pub(crate) fn panicked(location: Option<&Location<'_>>) {
    if nono::is_contained() {
        return;
    }
    let place = location.map(|at| format!(" ({}:{})", at.file(), at.line())).unwrap_or_default();
    message::line(&format!("error: a fault in nono itself{place}; please report it"));
    std::process::abort();
}
