//! Rules in the language of macOS's sandbox: S-expressions, checked as text wherever they are given.
//!
//! The check looks at syntax only, with one exception: a rule that opens the whole file system for reading or writing
//! is refused, because it would make every other grant pointless. Comments and quotes are parsed, so that they cannot
//! hide such a rule.

use thiserror::Error;

/// Reason why a platform rule was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlatformRuleError {
    #[error("platform rule is not an expression in parentheses: {rule:?}")]
    NoExpression { rule: String },
    #[error("unbalanced parentheses in platform rule: {rule:?}")]
    Unbalanced { rule: String },
    #[error("unterminated string in platform rule: {rule:?}")]
    OpenString { rule: String },
    #[error("unterminated comment in platform rule: {rule:?}")]
    OpenComment { rule: String },
    #[error("platform rule opens the whole file system: {rule:?}")]
    OpensEverything { rule: String },
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Word(String),
}

pub(super) fn check(rule: &str) -> Result<(), PlatformRuleError> {
    let rule = rule.trim();
    let given = || rule.to_owned();
    if !rule.starts_with('(') {
        return Err(PlatformRuleError::NoExpression { rule: given() });
    }
    let tokens = tokens(rule)?;
    let mut depth = 0usize;
    for token in &tokens {
        depth = match token {
            Token::Open => depth + 1,
            Token::Close => {
                depth.checked_sub(1).ok_or_else(|| PlatformRuleError::Unbalanced { rule: given() })?
            }
            Token::Word(_) => depth,
        };
    }
    if depth != 0 {
        return Err(PlatformRuleError::Unbalanced { rule: given() });
    }
    let words: Vec<&str> = tokens
        .iter()
        .filter_map(|token| match token {
            Token::Word(word) => Some(word.as_str()),
            Token::Open | Token::Close => None,
        })
        .collect();
    let opens = |run: &[&str]| matches!(run, ["allow", "file-read*" | "file-write*", "subpath", "/"]);
    if words.windows(4).any(opens) {
        return Err(PlatformRuleError::OpensEverything { rule: given() });
    }
    Ok(())
}

fn tokens(rule: &str) -> Result<Vec<Token>, PlatformRuleError> {
    let mut tokens = Vec::new();
    let mut rest = rule;
    while let Some(first) = rest.chars().next() {
        rest = if let Some(comment) = rest.strip_prefix("#|") {
            let end = comment.find("|#");
            &comment[end.ok_or_else(|| PlatformRuleError::OpenComment { rule: rule.to_owned() })? + 2..]
        } else if first == ';' {
            rest.split_once('\n').map_or("", |(_, next)| next)
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let (text, next) =
                string(quoted).ok_or_else(|| PlatformRuleError::OpenString { rule: rule.to_owned() })?;
            tokens.push(Token::Word(text));
            next
        } else if first == '(' || first == ')' {
            tokens.push(if first == '(' { Token::Open } else { Token::Close });
            &rest[1..]
        } else if first.is_whitespace() {
            &rest[first.len_utf8()..]
        } else {
            let (word, next) = rest.split_at(word_end(rest));
            tokens.push(Token::Word(word.to_owned()));
            next
        };
    }
    Ok(tokens)
}

/// End of the word that `text` starts with; a word has at least one character.
fn word_end(text: &str) -> usize {
    let ends = |(at, c): (usize, char)| {
        c.is_whitespace() || matches!(c, '(' | ')' | '"' | ';') || text[at..].starts_with("#|")
    };
    text.char_indices().skip(1).find(|place| ends(*place)).map_or(text.len(), |(at, _)| at)
}

/// The text up to the closing quote, without its escapes, and what follows.
fn string(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text, &quoted[at + 1..])),
            '\\' => text.push(characters.next()?.1),
            other => text.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_rules_pass() {
        for rule in [
            "(allow process-exec (subpath \"/\"))",
            "(allow file-read* (literal \"/\"))",
            "  (allow file-read* (subpath \"/usr\"))\n",
            "(allow mach-lookup) (deny file-write*)",
            "(deny file-read* (subpath \"/\"))",
            "(allow file-read-metadata (subpath \"/\"))",
            "(allow file-read* (regex #\"^/x\"))",
            "(allow file-read* ; (subpath \"/\")\n (literal \"/a)\"))",
            "()",
        ] {
            assert_eq!(check(rule), Ok(()), "{rule}");
        }
    }

    #[test]
    fn the_whole_file_system_is_refused_however_it_is_written() {
        for rule in [
            "(allow file-read* (subpath \"/\"))",
            "(allow file-write* (subpath \"/\"))",
            "((allow)(file-read*)(subpath /))",
            "(allow #| nothing |# file-read* (subpath \"/\"))",
            "(allow file-read* ; a word\n (subpath \"/\"))",
            "(allow file-read*(subpath\"/\"))",
            "(allow file-read* (subpath \"\\/\"))",
            "(deny default) (allow file-write* (subpath \"/\"))",
        ] {
            assert!(matches!(check(rule), Err(PlatformRuleError::OpensEverything { .. })), "{rule}");
        }
    }

    #[test]
    fn broken_text_is_refused() {
        use PlatformRuleError::{NoExpression, OpenComment, OpenString, Unbalanced};
        for rule in ["", "  ", "allow", "; (x)", "\"(\""] {
            assert!(matches!(check(rule), Err(NoExpression { .. })), "{rule}");
        }
        for rule in ["(", "(a", "(a))", "(a)) (b", "(a ; )"] {
            assert!(matches!(check(rule), Err(Unbalanced { .. })), "{rule}");
        }
        for rule in ["(a \"b)", "(a \"b\\\")", "(a \"\\"] {
            assert!(matches!(check(rule), Err(OpenString { .. })), "{rule}");
        }
        assert!(matches!(check("(a #| b)"), Err(OpenComment { .. })));
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_the_check(rule in "[()\"; #|\\\\a/é\n]{0,40}") {
            let _ = check(&rule);
        }
    }
}
