//! Confirmation before something is changed or removed.

use crate::args::ConsentArgs;
use crate::failure::Failure;
use crate::message;

/// Verb for messages, in two forms: `done`, `does`; `removed`, `removes`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verb(pub(super) &'static str, pub(super) &'static str);

pub(super) const DO: Verb = Verb("done", "does");
pub(super) const REMOVE: Verb = Verb("removed", "removes");

/// Whether to ask first. An error if there is no terminal to ask on.
pub(super) fn asks(consent: ConsentArgs, verb: Verb) -> Result<bool, Failure> {
    let asks = !consent.dry_run && !consent.yes;
    if asks && !message::can_ask() {
        let Verb(done, does) = verb;
        return Err(Failure::refused(format!("nothing was {done}: there is no terminal to ask on"))
            .hint(format!("--dry-run shows what would be {done}, --yes {does} it without asking")));
    }
    Ok(asks)
}
