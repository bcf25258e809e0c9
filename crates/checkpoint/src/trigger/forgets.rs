//! Commands of nono itself that remove history or protection.

use super::line::Word;
use super::line_effects::name;

/// Subcommands that remove history or protection, or agree in the user's place. A restore is none: it can be undone.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("checkpoints", &["clear", "clear-legacy", "forget", "prune"]),
    ("rollback", &["cleanup", "repair"]),
    ("audit", &["cleanup"]),
    ("hooks", &["remove"]),
    ("profile", &["trust"]),
];

/// Options with which a command changes nothing.
const SHOWN_ONLY: [&str; 4] = ["--dry-run", "--help", "-h", "--show"];

/// Whether the words of a command hold one of them. A word that is not known may be one.
pub(super) fn command(words: &[Word]) -> bool {
    let Some(at) = words.iter().position(|word| name(word) == "nono") else { return false };
    let args = &words[at + 1..];
    if args.iter().any(|arg| SHOWN_ONLY.contains(&arg.text.as_str())) {
        return false;
    }
    let mut operands = args.iter().filter(|arg| !arg.text.starts_with('-'));
    // More arguments come from standard input.
    let is_fed = words[..at].iter().any(|word| ["xargs", "parallel"].contains(&name(word)));
    let Some(first) = operands.next() else { return is_fed };
    if first.unknown {
        return true;
    }
    let Some((_, subcommands)) = COMMANDS.iter().find(|(command, _)| first.text == *command) else {
        return false;
    };
    operands.next().map_or(is_fed, |second| second.unknown || subcommands.contains(&second.text.as_str()))
}

/// The line without its quotes, which may be in the middle of a name.
pub(super) fn unquoted(line: &str) -> String {
    line.chars().filter(|c| !"'\"\\".contains(*c)).collect()
}

/// Whether a line that is not split may remove history, by its words, or by naming the state folder.
pub(super) fn crude(line: &str) -> bool {
    let plain = unquoted(line);
    if plain.contains("/.nono") {
        return true;
    }
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
