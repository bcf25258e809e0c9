//! Parser of `/rollback` as typed into an agent: the `nono checkpoints` command that it means.
//!
//! The text comes over stdin or as one argument, never through a shell, so none of it is interpreted.

use thiserror::Error;

pub const USAGE: &str = "/rollback lists; /rollback N restores; /rollback N FILE restores one file; /rollback diff N previews; \
/rollback undo takes the last restore back; --force and --merge go with N";

/// Text below what was typed in the command's file: only read by a model if the hook did not answer.
pub(super) const UNANSWERED: &str = "nono answers /rollback itself, by its hook. If you read this, its hooks do not run here: \
tell the user that, and do nothing else.";

/// Arguments typed after `/rollback`, if the prompt is one: as typed, or as expanded by the command's file.
pub fn of_prompt(prompt: &str) -> Option<&str> {
    let prompt = prompt.trim();
    let prompt = match prompt.split_once("-->") {
        Some((comment, rest)) if comment.starts_with("<!-- nono:managed") => rest.trim(),
        _ => prompt,
    };
    let typed = prompt.strip_suffix(UNANSWERED).unwrap_or(prompt).trim();
    let rest = typed.strip_prefix("/rollback").or_else(|| typed.strip_prefix("$rollback"))?;
    let is_line = !rest.contains('\n') && (rest.is_empty() || rest.starts_with(char::is_whitespace));
    is_line.then(|| rest.trim())
}

/// Reason why `/rollback` was typed wrongly.
#[derive(Debug, Error)]
pub enum SlashCommandError {
    #[error("it takes no arguments. {USAGE}")]
    Arguments,
    #[error("that is not a checkpoint. {USAGE}")]
    NotCheckpoint,
}

/// Arguments of `nono` for what was typed after `/rollback`.
pub fn arguments(typed: &str) -> Result<Vec<String>, SlashCommandError> {
    let unquoted: Option<String> = serde_json::from_str(typed.trim()).ok();
    let typed = unquoted.as_deref().unwrap_or(typed).trim();
    let (first, rest) = word(typed);
    let (verb, target, file): (&[&str], &str, &str) = match first {
        "" | "list" if rest.is_empty() => return Ok(words(&["checkpoints", "list"])),
        "undo" if rest.is_empty() => return Ok(words(&["checkpoints", "undo", "--yes"])),
        "list" | "undo" => return Err(SlashCommandError::Arguments),
        "diff" => {
            let (target, file) = word(rest);
            (&["checkpoints", "diff", "--for-reading"], target, file)
        }
        // Typing the command is the confirmation.
        target => (&["checkpoints", "restore", "--yes"], target, rest),
    };
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if target.is_empty() || target.starts_with(['-', '.']) || !target.bytes().all(is_part) {
        return Err(SlashCommandError::NotCheckpoint);
    }
    let mut arguments = words(verb);
    let (flag, file) = if first == "diff" { (None, file) } else { flag(file) };
    arguments.extend(flag.map(str::to_owned));
    arguments.push(target.to_owned());
    if !file.is_empty() {
        arguments.extend(["--".to_owned(), bare(file).to_owned()]);
    }
    Ok(arguments)
}

/// Conflict flag before or after the file name. After `--` everything is a file.
fn flag(rest: &str) -> (Option<&str>, &str) {
    if let Some(file) = rest.strip_prefix("-- ") {
        return (None, file.trim());
    }
    let is_flag = |word: &str| matches!(word, "--force" | "--merge");
    let (first, behind) = word(rest);
    if is_flag(first) {
        return (Some(first), behind);
    }
    match rest.rsplit_once(char::is_whitespace) {
        Some((file, last)) if is_flag(last) => (Some(last), file.trim()),
        _ => (None, rest),
    }
}

/// Patch for display: line counts of each file first, then the lines, without what only programs need.
pub fn readable(patch: &str) -> String {
    let mut sections: Vec<(String, Vec<&str>)> = Vec::new();
    let mut in_binary = false;
    for line in patch.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let name = names.rsplit_once(" b/").map_or(names, |(_, name)| name);
            sections.push((name.to_owned(), Vec::new()));
            in_binary = false;
            continue;
        }
        let Some((_, lines)) = sections.last_mut() else { continue };
        if line == "GIT binary patch" {
            in_binary = true;
            lines.push("(not text)");
        }
        if !in_binary && !["index ", "--- ", "+++ "].iter().any(|mark| line.starts_with(mark)) {
            lines.push(line);
        }
    }
    let count = |lines: &[&str], mark: char| lines.iter().filter(|line| line.starts_with(mark)).count();
    let stat =
        sections.iter().map(|(name, lines)| format!("{name}  +{} -{}", count(lines, '+'), count(lines, '-')));
    let bodies = sections.iter().map(|(name, lines)| format!("\n{name}\n{}", lines.join("\n")));
    stat.chain(bodies).collect::<Vec<_>>().join("\n")
}

/// Output with `nono checkpoints` commands replaced by `/rollback`, and without lines meant for programs.
pub fn in_its_words(said: &str) -> String {
    let is_for_programs = |line: &&str| {
        line.starts_with('{') && serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(line).is_ok()
    };
    let said = said.lines().filter(|line| !is_for_programs(line)).collect::<Vec<_>>().join("\n");
    let said = said.replace("nono checkpoints restore ", "/rollback ");
    said.replace("nono checkpoints diff ", "/rollback diff ")
        .replace("nono checkpoints undo", "/rollback undo")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// First word, and the rest.
fn word(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, rest.trim())
}

/// File name without surrounding quotes.
fn bare(file: &str) -> &str {
    let inside = |quote| file.strip_prefix(quote)?.strip_suffix(quote).filter(|inside| !inside.is_empty());
    inside('"').or_else(|| inside('\'')).unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::{UNANSWERED, arguments, in_its_words, of_prompt, readable};

    #[test]
    fn a_patch_for_a_person() {
        let patch = "diff --git a/a b b/a b\nindex 1234..5678 100644\n--- a/a b\n+++ b/a b\n@@ -1 +1,2 @@\n-hello\n+bye\n+now\n\
diff --git a/x.bin b/x.bin\nnew file mode 100644\nindex 0..1\nGIT binary patch\nliteral 3\nKcmZ\n\nliteral 0\nHcmV\n";
        assert_eq!(
            readable(patch),
            "a b  +2 -1\nx.bin  +0 -0\n\na b\n@@ -1 +1,2 @@\n-hello\n+bye\n+now\n\nx.bin\nnew file mode 100644\n(not text)"
        );
        assert_eq!(in_its_words("{\"checkpoint\":\"a\"}\nrestored\n{no json"), "restored\n{no json");
    }

    #[test]
    fn what_is_typed_as_a_prompt() {
        assert_eq!(of_prompt(" /rollback \n"), Some(""));
        assert_eq!(of_prompt("/rollback diff 2"), Some("diff 2"));
        assert_eq!(of_prompt("$rollback 2"), Some("2"));
        let file = format!("<!-- nono:managed x: y -->\n/rollback 2 a\n\n{UNANSWERED}\n");
        assert_eq!(of_prompt(&file), Some("2 a"));
        assert_eq!(of_prompt(&format!("/rollback \n\n{UNANSWERED}")), Some(""));
        for other in
            ["/rollback 2\nand then", "/rollbacks", "please /rollback", "rollback", "/rollback: x", ""]
        {
            assert_eq!(of_prompt(other), None, "{other}");
        }
        assert_eq!(
            in_its_words("nono checkpoints restore N, nono checkpoints diff N"),
            "/rollback N, /rollback diff N"
        );
    }

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
            ("2 --force", "checkpoints restore --yes --force 2"),
            ("2 --merge src/a b", "checkpoints restore --yes --merge 2 -- src/a b"),
            ("2 a b --force", "checkpoints restore --yes --force 2 -- a b"),
            ("2 -- --force", "checkpoints restore --yes 2 -- --force"),
            ("before-the-move", "checkpoints restore --yes before-the-move"),
            ("diff v1.0_x", "checkpoints diff --for-reading v1.0_x"),
            ("diff 1", "checkpoints diff --for-reading 1"),
            ("diff 1 a", "checkpoints diff --for-reading 1 -- a"),
            ("undo", "checkpoints undo --yes"),
            ("\"diff 1 a\"", "checkpoints diff --for-reading 1 -- a"),
        ] {
            assert_eq!(arguments(typed).unwrap().join(" "), expected, "{typed:?}");
        }
    }

    #[test]
    fn what_is_no_checkpoint() {
        for typed in
            ["--all", "diff", "diff --help", "$(id)", "2;rm", "list x", "../x", "-1", ".hidden", "2/../x"]
        {
            assert!(arguments(typed).is_err(), "{typed:?}");
        }
    }
}
