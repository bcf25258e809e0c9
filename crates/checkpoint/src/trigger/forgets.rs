//! Commands of nono's own that remove what everything else could be brought back from, or what protects it.

use super::args::Args;
use super::words::{Arg, Known};

/// Subcommands that remove history or protection, or agree in a person's place. What only goes back to a checkpoint can
/// be undone and is not among them.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("checkpoints", &["clear", "clear-legacy", "forget", "prune"]),
    ("rollback", &["cleanup", "repair"]),
    ("audit", &["cleanup"]),
    ("hooks", &["remove"]),
    ("profile", &["trust"]),
];

/// Options with which nothing is done.
const SHOWN_ONLY: [&str; 4] = ["--dry-run", "--help", "-h", "--show"];

/// Whether this command does. What is not known of it may be one of the words.
pub(super) fn command(name: &str, args: &[Arg]) -> bool {
    if name != "nono" || args.iter().any(|arg| SHOWN_ONLY.iter().any(|option| arg.is(option))) {
        return false;
    }
    let told = Args::new(args, &[]);
    let mut operands = told.operands.iter();
    let Some(first) = operands.next() else { return false };
    if first.known != Known::Whole {
        return true;
    }
    let Some((_, words)) = COMMANDS.iter().find(|(command, _)| first.is(command)) else { return false };
    operands
        .next()
        .is_some_and(|second| second.known != Known::Whole || words.iter().any(|word| second.is(word)))
}

/// Whether the program's name stands in a line, however it is quoted.
pub(super) fn names_it(line: &str) -> bool {
    unquoted(line).contains("nono")
}

fn unquoted(line: &str) -> String {
    line.chars().filter(|c| !"'\"\\".contains(*c)).collect()
}

/// Whether a line that cannot be read does, by the words that stand in it.
pub(super) fn crude(line: &str) -> bool {
    let plain = unquoted(line);
    let words = plain.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    let (mut nono, mut section) = (false, None);
    for word in words {
        nono |= word == "nono";
        let found = COMMANDS.iter().find(|(command, _)| *command == word);
        section = found.map(|(_, words)| *words).or(section);
        if nono && section.is_some_and(|words| words.contains(&word)) {
            return true;
        }
    }
    false
}
