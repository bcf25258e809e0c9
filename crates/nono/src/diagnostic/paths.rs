//! Finding paths in what programs say when they are refused something.

use std::path::PathBuf;

use nono_policy::AccessMode;

/// Words that go with changing something.
const WRITING: &[&str] = &[
    "cannot create",
    "can't create",
    "cannot touch",
    "cannot remove",
    "cannot move",
    "cannot open for writing",
    "for writing",
    "cannot write",
    "mkdir",
    "rmdir",
    "unlink",
    "rename",
    "chmod",
    "changing permissions",
    "setting times",
    "Read-only file system",
    "read-only file system",
    "EROFS",
    "could not create",
    "failed to create",
];

/// Whether a line speaks of writing, as far as one can tell.
pub(super) fn likely_operation(line: &str) -> AccessMode {
    if WRITING.iter().any(|word| line.contains(word)) { AccessMode::Write } else { AccessMode::Read }
}

/// Everything in a line that could be a path: what stands in quotes, what stands between colons, and words with a
/// slash in them.
pub(super) fn candidates(line: &str) -> Vec<PathBuf> {
    let mut found: Vec<&str> = Vec::new();
    found.extend(quoted(line));
    // The first part is the program's name, the last what happened.
    let parts: Vec<&str> = line.split(": ").map(str::trim).collect();
    let middle = parts.get(1..parts.len().saturating_sub(1)).unwrap_or_default();
    found.extend(middle);
    found.extend(middle.iter().map(|part| last_word(part)));
    found.extend(line.split_whitespace().filter(|word| word.contains('/')).map(trim));
    let mut paths = Vec::new();
    for text in found.into_iter().filter(|text| looks_like_path(text)) {
        let path = PathBuf::from(text);
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

fn trim(word: &str) -> &str {
    word.trim_matches(|c: char| "'\"`‘’“”(),;:[]".contains(c))
}

fn last_word(text: &str) -> &str {
    text.rsplit(' ').next().unwrap_or(text)
}

/// An error text is not a path; a name with a slash, or one that could stand in the working directory, may be one.
fn looks_like_path(text: &str) -> bool {
    !text.is_empty()
        && text.len() < 4096
        && !text.contains('\0')
        && (text.starts_with('/') || text.contains('/') || !text.contains(' '))
        && !text.contains("denied")
        && !text.contains("permitted")
}

fn quoted(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (open, close) in [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('“', '”')] {
        let mut rest = line;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((inside, behind)) = after.split_once(close) else { break };
            found.push(inside);
            rest = behind;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(line: &str, path: &str) -> bool {
        candidates(line).contains(&PathBuf::from(path))
    }

    #[test]
    fn paths_are_found_in_the_words_of_common_programs() {
        assert!(has("cat: /etc/shadow: Permission denied", "/etc/shadow"));
        assert!(has("touch: cannot touch '/x/a b': Permission denied", "/x/a b"));
        assert!(has("sh: 1: cannot create /out.txt: Permission denied", "/out.txt"));
        assert!(has("bash: line 1: /root/x: Permission denied", "/root/x"));
        assert!(has("PermissionError: [Errno 13] Permission denied: '/home/a/b'", "/home/a/b"));
        assert!(has("Error: EACCES: permission denied, open '/home/a/b'", "/home/a/b"));
        assert!(has("fatal: could not open '.git/config' for reading: Permission denied", ".git/config"));
        assert!(has("cat: secret: Permission denied", "secret"));
    }

    #[test]
    fn writing_is_recognised() {
        assert_eq!(likely_operation("touch: cannot touch '/x': Permission denied"), AccessMode::Write);
        assert_eq!(likely_operation("cat: /x: Permission denied"), AccessMode::Read);
    }
}
