//! The one place that writes for people: `[nono]` lines on stderr, answers on stdout.

use std::io::{self, BufRead, IsTerminal, Write};

use serde::Serialize;

/// One line around a run, a warning or an error. A closed stderr is nobody to complain to.
pub(crate) fn line(text: &str) {
    let mut stderr = io::stderr().lock();
    for part in text.split('\n') {
        // Whatever came from a file name or an argument must not reach the terminal as a command to it.
        let _ = writeln!(stderr, "{}", format!("[nono] {}", nono::diagnostic::escape(part)).trim_end());
    }
}

/// Said of changes where no hook told who wrote them: a person may have worked beside the command.
pub(crate) const MAY_BE_YOURS: &str =
    "these changed while the command ran; some may be yours: nothing tells who wrote them";

/// What is said of a restore that is not on record.
pub(crate) fn unrecorded(why: &str) -> String {
    format!("warning: this restore is not in the audit log: {}", nono::diagnostic::escape(why))
}

/// Text on stderr as it is (a JSON document).
pub(crate) fn raw_error(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// What a query command was asked for.
pub(crate) fn answer(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    match written {
        // `nono profile list | head -1` is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// A value as pretty JSON on stdout.
pub(crate) fn answer_json(value: &impl Serialize) -> io::Result<()> {
    answer(&serde_json::to_string_pretty(value)?)
}

/// Whether there is somebody to ask.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Ask yes or no on the terminal. No terminal, or anything but a yes: no.
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
