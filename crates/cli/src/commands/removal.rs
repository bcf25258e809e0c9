//! Removals of sessions, checkpoints and logs: show what would be removed, ask, remove, report.

use serde_json::Value;

use super::confirm;
use crate::args::ConsentArgs;
use crate::failure::{Failure, NOT_DONE};
use crate::message;
use crate::units::bytes;

/// Result or preview of a removal.
pub(super) trait Removal {
    /// Severity of the problems in messages.
    const PROBLEM: &'static str;

    /// Whether nothing is removed.
    fn is_empty(&self) -> bool;
    /// Lines about what is removed; of a preview if `before` is set.
    fn lines(&self, before: bool) -> Vec<String>;
    fn json(&self, dry_run: bool) -> Result<Value, Failure>;
    /// Problems that prevented removals.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Shows the plan, asks, and removes. `remove`: preview if its argument is set.
pub(super) fn perform<R: Removal>(
    consent: ConsentArgs,
    remove: impl Fn(bool) -> Result<R, Failure>,
) -> Result<u8, Failure> {
    let asks = confirm::asks(consent, confirm::REMOVE)?;
    if consent.dry_run || asks {
        let plan = remove(true)?;
        if consent.dry_run {
            return answer(&plan, true, consent.json);
        }
        // What can be removed only since then was not shown, and is not asked about.
        if plan.is_empty() {
            return answer(&plan, false, consent.json);
        }
        message::line(&text(&plan, true));
        if !message::confirm("Remove them?") {
            message::line("nothing was removed");
            return Ok(NOT_DONE);
        }
    }
    // Not interruptible: killed at any moment, it leaves entries that are whole or gone.
    answer(&remove(false)?, false, consent.json)
}

fn answer<R: Removal>(removal: &R, dry_run: bool, as_json: bool) -> Result<u8, Failure> {
    if as_json {
        message::answer_json(&removal.json(dry_run)?)?;
    } else if dry_run {
        message::answer(&text(removal, true))?;
    } else {
        message::line(&text(removal, false));
    }
    let problems = removal.problems();
    message::problems(R::PROBLEM, &problems);
    Ok(if problems.is_empty() { 0 } else { NOT_DONE })
}

fn text<R: Removal>(removal: &R, before: bool) -> String {
    let nothing = removal.is_empty().then(|| "nothing to remove".to_owned());
    nothing.into_iter().chain(removal.lines(before)).collect::<Vec<_>>().join("\n")
}

/// Line about what is removed and freed: `2 sessions would be removed, about 3 MB freed, about 1 MB still used`.
pub(super) fn freed(what: &str, bytes_before: u64, bytes_after: u64, before: bool) -> String {
    let (would, about) = if before { ("would be removed", "about ") } else { ("removed", "") };
    let freed = bytes(bytes_before.saturating_sub(bytes_after));
    format!("{what} {would}, {about}{freed} freed, {about}{} still used", bytes(bytes_after))
}
