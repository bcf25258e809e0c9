//! Before something is changed or removed: whether to ask, and whether there is somebody to ask.

use crate::args::ConsentArgs;
use crate::failure::Failure;
use crate::message;

/// What would happen, in two forms: `done`, `does`; `removed`, `removes`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verb(pub(super) &'static str, pub(super) &'static str);

pub(super) const DO: Verb = Verb("done", "does");
pub(super) const REMOVE: Verb = Verb("removed", "removes");

/// Whether a question comes first. Without a terminal nothing that needs one is done.
pub(super) fn asks(consent: ConsentArgs, verb: Verb) -> Result<bool, Failure> {
    let asks = !consent.dry_run && !consent.yes;
    if asks && !message::can_ask() {
        let Verb(done, does) = verb;
        return Err(Failure::refused(format!("there is no terminal to ask on, so nothing was {done}"))
            .hint(format!("--dry-run shows what would be {done}, --yes {does} it without asking")));
    }
    Ok(asks)
}
