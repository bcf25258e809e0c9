//! Output for people: `[nono]` lines on stderr, answers on stdout. The only place that prints.

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Prints a message, warning or error, each line with the prefix. A closed stderr is ignored.
pub(crate) fn line(text: &str) {
    let mut stderr = io::stderr().lock();
    for part in text.split('\n') {
        // File names and arguments may contain control sequences. A closed stderr is ignored: there is no other place to
        // report to.
        let _ = writeln!(stderr, "{}", format!("[nono] {}", nono::diagnostic::escape(part)).trim_end());
    }
}

/// Note on changes without a known author: the user may have worked at the same time as the command.
pub(crate) const MAY_BE_YOURS: &str =
    "these changed while the command ran; some of the changes may be your own";

/// Warning about a restore that is not in the audit log.
pub(crate) fn unrecorded(why: &str) -> String {
    format!("warning: this restore is not in the audit log: {}", nono::diagnostic::escape(why))
}

/// Prints text to stderr without the prefix (a JSON document).
pub(crate) fn raw_error(text: &str) {
    // A closed stderr is ignored, as above.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints the answer of a query to stdout; returns exit code 0.
pub(crate) fn answer(text: &str) -> Result<u8, Failure> {
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    match written {
        // `nono profile list | head -1` is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        result => result.map(|()| 0).map_err(|error| Failure::stdout(&error)),
    }
}

/// Prints a value as pretty JSON to stdout.
pub(crate) fn answer_json(value: &impl Serialize) -> Result<u8, Failure> {
    answer(&serde_json::to_string_pretty(value).map_err(|error| Failure::stdout(&error.into()))?)
}

/// Prints the answer of a query: as JSON, or as text.
pub(crate) fn answer_either<V: Serialize>(
    as_json: bool,
    value: impl FnOnce() -> V,
    text: impl FnOnce() -> String,
) -> Result<u8, Failure> {
    if as_json { answer_json(&value()) } else { answer(&text()) }
}

/// Prints problems, each on a line of its own. `severity`: "error" or "warning".
pub(crate) fn problems<P: Display>(severity: &str, problems: impl IntoIterator<Item = P>) {
    for problem in problems {
        line(&format!("{severity}: {}", nono::diagnostic::escape(&problem.to_string())));
    }
}

/// Whether the user can be asked: stdin and stderr are a terminal.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks yes or no on the terminal. Without a terminal, or for anything but a yes, the answer is no.
pub(crate) fn confirm(question: &str) -> bool {
    if !can_ask() {
        return false;
    }
    let mut stderr = io::stderr().lock();
    if write!(stderr, "[nono] {question} [y/N] ").and_then(|()| stderr.flush()).is_err() {
        return false;
    }
    let mut reply = String::new();
    io::stdin().lock().read_line(&mut reply).is_ok() && matches!(reply.trim(), "y" | "Y" | "yes")
}
