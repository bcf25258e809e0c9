//! Redaction word by word: flags and the words after them, `NAME=value`, `Name: value`.

use super::table::{is_program, password_flag, takes_user};
use super::{Redactor, names::normal, steps};

/// State from the words before that decides about the next one.
#[derive(Debug, Default)]
pub(super) struct Words {
    awaited: Option<Awaited>,
    /// Programs seen so far that have flags of their own.
    programs: Vec<String>,
    /// After `config set`: the name of a secret is followed by the secret.
    sets: bool,
    /// Whether the next word is a shell command.
    script: bool,
}

impl Words {
    /// Starts a new command: flags of the programs before no longer apply.
    pub(super) fn next_command(&mut self) {
        self.programs.clear();
        self.sets = false;
    }
}

/// Kind of the word after a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Secret,
    User,
    Header,
}

impl Redactor {
    /// Redacts one word of a command, from which known shapes were removed already.
    pub(super) fn word(&self, words: &mut Words, word: &str, depth: usize) -> String {
        steps::count(word.len());
        let script = std::mem::replace(&mut words.script, is_script_flag(word));
        if script && words.awaited.is_none() {
            return self.line(word, depth);
        }
        if let Some(told) = self.told(words, word, depth) {
            return told;
        }
        if word.contains(is_apart) {
            return self.line(word, depth);
        }
        self.plain(word, depth)
    }

    /// Redacts a word by a name in it or by a word before it; `None` if neither decides.
    pub(super) fn told(&self, words: &mut Words, word: &str, depth: usize) -> Option<String> {
        steps::count(word.len());
        if depth == 0 {
            return Some(self.mark(word));
        }
        let program = word.rsplit('/').next().unwrap_or_default();
        if is_program(program) && !words.programs.iter().any(|seen| seen == program) {
            words.programs.push(program.to_owned());
        }
        match words.awaited.take() {
            // `--token -- value` is no program's syntax, and the value is redacted all the same.
            Some(awaited) if word == "--" => {
                words.awaited = Some(awaited);
                return Some(word.to_owned());
            }
            Some(awaited) if self.awaits(word).is_none() => return Some(self.given(awaited, word, depth)),
            _ => {}
        }
        if let Some((flag, joined)) = password_flag(&words.programs, word) {
            words.awaited = joined.is_empty().then_some(Awaited::Secret);
            return Some(format!("{flag}{}", self.mark(joined)));
        }
        if word.len() > 1 && word.starts_with('-') {
            return self.flag(words, word, depth);
        }
        if matches!(word, "&&" | "||" | "&") {
            words.next_command();
        }
        if std::mem::replace(&mut words.sets, matches!(word, "set" | "config")) && self.is_setting(word) {
            words.awaited = Some(Awaited::Secret);
            return Some(word.to_owned());
        }
        self.assigned(word, depth).or_else(|| self.headed(word))
    }

    /// Whether a word is a secret setting, such as `aws_secret_access_key` or `//registry.example.org/:_authToken`.
    fn is_setting(&self, word: &str) -> bool {
        let name = word.rsplit(['/', ':', '.']).next().unwrap_or_default();
        is_name(name) && self.table.flags.has(&normal(name))
    }

    fn flag(&self, words: &mut Words, word: &str, depth: usize) -> Option<String> {
        if word == "-u" && !takes_user(&words.programs) {
            return None;
        }
        if let Some(awaited) = self.awaits(word) {
            words.awaited = Some(awaited);
            return Some(word.to_owned());
        }
        if let Some(told) = self.joined(word, depth) {
            return Some(told);
        }
        let (flag, value) = word.split_once('=')?;
        let value = match self.awaits(flag) {
            Some(awaited) => self.given(awaited, value, depth),
            None => self.word(&mut Words::default(), value, depth - 1),
        };
        Some(format!("{flag}={value}"))
    }

    /// Kind of the word after this flag.
    fn awaits(&self, word: &str) -> Option<Awaited> {
        let dashes = word.len() - word.trim_start_matches('-').len();
        let name = normal(word);
        if !matches!(dashes, 1 | 2) || !is_name(&name) {
            None
        } else if self.table.header_flags.has(&name) {
            Some(Awaited::Header)
        } else if self.table.users.has(&name) {
            Some(Awaited::User)
        } else {
            self.table.flags.has(&name).then_some(Awaited::Secret)
        }
    }

    fn given(&self, awaited: Awaited, word: &str, depth: usize) -> String {
        match awaited {
            Awaited::Secret => self.mark(word),
            Awaited::User => self.user(word, depth),
            Awaited::Header => {
                self.headed(word).unwrap_or_else(|| self.word(&mut Words::default(), word, depth - 1))
            }
        }
    }

    /// Redacts `-HName: value` and `-uname:password`.
    fn joined(&self, word: &str, depth: usize) -> Option<String> {
        let value = word.strip_prefix("-H").and_then(|header| self.headed(header));
        if let Some(value) = value {
            return Some(format!("-H{value}"));
        }
        let user = word.strip_prefix("-u").filter(|user| user.contains(':') && !user.contains("://"))?;
        Some(format!("-u{}", self.user(user, depth)))
    }

    /// Redacts `user:password`. A name alone is not a secret; a name with an empty password is, since it is then a
    /// token.
    fn user(&self, word: &str, depth: usize) -> String {
        match word.split_once(':').filter(|(_, rest)| !rest.starts_with("//")) {
            None => self.plain(word, depth),
            Some((user, "")) => format!("{}:", self.mark(user)),
            Some((user, group)) if is_id(user) && is_id(group) => word.to_owned(),
            Some((user, password)) => format!("{user}:{}", self.mark(password)),
        }
    }

    /// Redacts `NAME=value`.
    fn assigned(&self, word: &str, depth: usize) -> Option<String> {
        let (name, value) = word.split_once('=').filter(|(name, _)| is_name(name))?;
        // The working directory of a shell, not a password.
        let is_folder = matches!(name, "PWD" | "OLDPWD") && value.starts_with('/');
        if self.is_secret_name(name) && !is_folder {
            return Some(format!("{name}={}", self.mark(value)));
        }
        // The word is a form, whose pairs are handled together.
        let form = value.contains('&');
        (!form).then(|| format!("{name}={}", self.word(&mut Words::default(), value, depth - 1)))
    }

    /// Redacts `Name: value` to the end of the line; `None` if the word is something else.
    fn headed(&self, word: &str) -> Option<String> {
        let (name, value) = word.split_once(':').filter(|(name, _)| is_name(name.trim()))?;
        if !self.is_secret_name(name) {
            return None;
        }
        let blanks = &value[..value.len() - value.trim_start().len()];
        Some(format!("{name}:{blanks}{}", self.header_value(value)))
    }
}

/// Whether a character separates words.
fn is_apart(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`')
}

/// Whether a text is the number of a user or a group.
fn is_id(text: &str) -> bool {
    (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word is the flag of `sh -c` or `bash -lc`.
fn is_script_flag(word: &str) -> bool {
    let letters = word.strip_prefix('-').and_then(|word| word.strip_suffix('c'));
    letters.is_some_and(|letters| letters.bytes().all(|byte| byte.is_ascii_lowercase()) && letters.len() < 4)
}

pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_name_part)
}

pub(super) fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '[' | ']' | '+')
}
