//! `/rollback` as it is typed into an agent: which `nono checkpoints` command it means.
//!
//! The text comes over stdin or as one argument, never through a shell, so nothing in it can be more than text.

/// What can be typed.
pub const USAGE: &str = "/rollback lists; /rollback N restores; /rollback N FILE restores one file; /rollback diff N previews; \
/rollback undo takes the last restore back";

/// The arguments of `nono` for what was typed after `/rollback`, or why there are none.
pub fn arguments(typed: &str) -> Result<Vec<String>, String> {
    let unquoted: Option<String> = serde_json::from_str(typed.trim()).ok();
    let typed = unquoted.as_deref().unwrap_or(typed).trim();
    let (first, rest) = word(typed);
    let (verb, target, file): (&[&str], &str, &str) = match first {
        "" | "list" if rest.is_empty() => return Ok(words(&["checkpoints", "list"])),
        "undo" if rest.is_empty() => return Ok(words(&["checkpoints", "undo", "--yes"])),
        "list" | "undo" => return Err(format!("there is nothing to add to it. {USAGE}")),
        "diff" => {
            let (target, file) = word(rest);
            (&["checkpoints", "diff"], target, file)
        }
        // Whoever typed it has said yes.
        target => (&["checkpoints", "restore", "--yes"], target, rest),
    };
    if target.is_empty() || !target.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(format!("that is no checkpoint. {USAGE}"));
    }
    let mut arguments = words(verb);
    arguments.push(target.to_owned());
    if !file.is_empty() {
        arguments.extend(["--".to_owned(), bare(file).to_owned()]);
    }
    Ok(arguments)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The first word, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, rest.trim())
}

/// A file name without the quotes that somebody is used to put around it.
fn bare(file: &str) -> &str {
    let inside = |quote| file.strip_prefix(quote)?.strip_suffix(quote).filter(|inside| !inside.is_empty());
    inside('"').or_else(|| inside('\'')).unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::arguments;

    #[test]
    fn every_form() {
        for (typed, expected) in [
            ("", "checkpoints list"),
            (" \n", "checkpoints list"),
            ("list", "checkpoints list"),
            ("2", "checkpoints restore --yes 2"),
            ("a1b2c3", "checkpoints restore --yes a1b2c3"),
            ("2 src/main.rs", "checkpoints restore --yes 2 -- src/main.rs"),
            ("2  my file's name.txt ", "checkpoints restore --yes 2 -- my file's name.txt"),
            ("2 \"a b\"", "checkpoints restore --yes 2 -- a b"),
            ("2 --force", "checkpoints restore --yes 2 -- --force"),
            ("diff 1", "checkpoints diff 1"),
            ("diff 1 a", "checkpoints diff 1 -- a"),
            ("undo", "checkpoints undo --yes"),
            ("\"diff 1 a\"", "checkpoints diff 1 -- a"),
        ] {
            assert_eq!(arguments(typed).unwrap().join(" "), expected, "{typed:?}");
        }
    }

    #[test]
    fn what_is_no_checkpoint() {
        for typed in ["--all", "diff", "diff --help", "$(id)", "2;rm", "list x", "../x", "-1"] {
            assert!(arguments(typed).is_err(), "{typed:?}");
        }
    }
}
