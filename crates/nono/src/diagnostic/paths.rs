//! Finding paths in error messages of programs.

use std::path::PathBuf;

/// Kind of access that a line is about, as far as can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MentionedAttempt {
    Read,
    Write,
    /// Removal or renaming, which changes the containing folder.
    Unlink,
}

const UNLINKING: &[&str] =
    &["cannot remove", "cannot move", "cannot unlink", "unlink", "rename", "rmdir", "failed to remove"];
const WRITING: &[&str] = &[
    "cannot create",
    "can't create",
    "cannot touch",
    "cannot open for writing",
    "for writing",
    "cannot write",
    "mkdir",
    "chmod",
    "changing permissions",
    "setting times",
    "Read-only file system",
    "read-only file system",
    "EROFS",
    "could not create",
    "failed to create",
];
/// Error texts at the end of a line, where the part before names the object.
const ERRORS: &[&str] = &["ermission denied", "peration not permitted", "ead-only file system"];

pub(super) fn attempt(line: &str) -> MentionedAttempt {
    let says = |words: &[&str]| words.iter().any(|word| line.contains(word));
    if says(UNLINKING) {
        MentionedAttempt::Unlink
    } else if says(WRITING) {
        MentionedAttempt::Write
    } else {
        MentionedAttempt::Read
    }
}

/// A possible path in a line. `certain`: the line's form shows that it names an object, so it may be a path that does
/// not exist yet; otherwise it has to exist to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) certain: bool,
}

/// Candidates in quotes; without any, the part before the error and words with a slash.
pub(super) fn candidates(line: &str) -> Vec<Candidate> {
    let mut found: Vec<(&str, bool)> = quoted(line).into_iter().map(|text| (text, true)).collect();
    if found.is_empty() {
        found = unquoted(line);
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    for (text, certain) in found.into_iter().filter(|(text, _)| looks_like_path(text)) {
        let path = PathBuf::from(text);
        match candidates.iter_mut().find(|known| known.path == path) {
            Some(known) => known.certain |= certain,
            None => candidates.push(Candidate { path, certain }),
        }
    }
    candidates
}

fn unquoted(line: &str) -> Vec<(&str, bool)> {
    let mut found = Vec::new();
    let parts: Vec<&str> = line.split(": ").map(str::trim).collect();
    if let [_, middle @ .., last] = &parts[..] {
        let ends_with_error = ERRORS.iter().any(|error| last.contains(error));
        if let Some(named) = middle.last() {
            found.push((*named, ends_with_error && !named.contains(' ')));
            found.push((trim(last_word(named)), ends_with_error));
        }
    }
    found.extend(line.split_whitespace().filter(|word| word.contains('/')).map(|word| (trim(word), true)));
    found
}

const QUOTES: &[char] = &['\'', '"', '`', '‘', '’', '“', '”', '(', ')', ',', ';', ':', '[', ']'];

fn trim(word: &str) -> &str {
    word.trim_matches(QUOTES)
}

fn last_word(text: &str) -> &str {
    text.rsplit(' ').next().unwrap_or(text)
}

/// Whether a text can be a path: not empty, not too long, and not an error message.
fn looks_like_path(text: &str) -> bool {
    !text.is_empty()
        && text.len() < 4096
        && !text.contains('\0')
        && ERRORS.iter().all(|error| !text.contains(error))
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

    fn certain(line: &str) -> Vec<String> {
        let sure = candidates(line).into_iter().filter(|candidate| candidate.certain);
        sure.map(|candidate| candidate.path.display().to_string()).collect()
    }

    #[test]
    fn paths_are_found_in_the_words_of_common_programs() {
        for (line, path) in [
            ("cat: /etc/shadow: Permission denied", "/etc/shadow"),
            ("touch: cannot touch '/x/a b': Permission denied", "/x/a b"),
            ("touch: cannot touch 'here': Permission denied", "here"),
            ("sh: 1: cannot create /out.txt: Permission denied", "/out.txt"),
            ("sh: 1: cannot create here: Permission denied", "here"),
            ("bash: line 1: /root/x: Permission denied", "/root/x"),
            ("PermissionError: [Errno 13] Permission denied: '/home/a/b'", "/home/a/b"),
            ("OSError: [Errno 30] Read-only file system: 'x'", "x"),
            ("Error: EACCES: permission denied, open '/home/a/b'", "/home/a/b"),
            ("fatal: could not open '.git/config' for reading: Permission denied", ".git/config"),
            ("cat: secret: Permission denied", "secret"),
        ] {
            assert_eq!(certain(line), [path], "{line}");
        }
    }

    #[test]
    fn what_was_attempted_is_recognised() {
        assert_eq!(attempt("touch: cannot touch '/x': Permission denied"), MentionedAttempt::Write);
        assert_eq!(attempt("rm: cannot remove '/x': Permission denied"), MentionedAttempt::Unlink);
        assert_eq!(attempt("cat: /x: Permission denied"), MentionedAttempt::Read);
    }
}
