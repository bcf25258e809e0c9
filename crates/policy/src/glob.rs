//! Globs as in a shell: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, `**` for any number of directories, `\` as escape. Names
//! that begin with a dot match like others: patterns select changed files, hidden or not.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Maximum number of alternatives from braces.
const MOST: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// One character.
    One,
    Any,
    Class {
        not: bool,
        /// Ranges of characters, as [`character`] numbers them.
        ranges: Vec<(u32, u32)>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum GlobPart {
    /// `**`
    Deep,
    Name(Vec<Token>),
}

/// A pattern without braces, by components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<GlobPart>);

/// Whether the text contains a special character.
pub fn is_special(text: &[u8]) -> bool {
    text.iter().any(|byte| b"*?[{\\".contains(byte))
}

/// A pattern that matches this name only.
pub fn literal(name: &[u8]) -> Vec<u8> {
    name.iter().flat_map(|byte| [b'\\', *byte]).collect()
}

/// Components of a path, as patterns are compared with them.
pub fn names(path: &Path) -> Vec<&[u8]> {
    path.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect()
}

/// Expand the braces. The error says what is wrong.
pub fn expand(pattern: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_vec()];
    while let Some(text) = open.pop() {
        if open.len() + done.len() > MOST {
            return Err("it has too many alternatives");
        }
        match first_braces(&text)? {
            None => done.push(text),
            Some(bounds) => {
                let (first, last) = (bounds[0], bounds[bounds.len() - 1]);
                for pair in bounds.windows(2) {
                    open.push([&text[..first], &text[pair[0] + 1..pair[1]], &text[last + 1..]].concat());
                }
            }
        }
    }
    done.reverse();
    Ok(done)
}

/// Positions of the first opening brace, its commas, and its closing brace.
fn first_braces(text: &[u8]) -> Result<Option<Vec<usize>>, &'static str> {
    let (mut depth, mut bounds) = (0usize, Vec::new());
    let mut bytes = text.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b'{' => {
                depth += 1;
                if depth == 1 {
                    bounds.push(at);
                }
            }
            b',' if depth == 1 => bounds.push(at),
            b'}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    bounds.push(at);
                    return Ok(Some(bounds));
                }
            }
            _ => {}
        }
    }
    if depth > 0 { Err("a { is not closed") } else { Ok(None) }
}

impl Pattern {
    pub fn parse<'a>(components: impl Iterator<Item = &'a [u8]>) -> Result<Pattern, &'static str> {
        let part =
            |text: &[u8]| if text == b"**" { Ok(GlobPart::Deep) } else { tokens(text).map(GlobPart::Name) };
        components.map(part).collect::<Result<_, _>>().map(Pattern)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn matches(&self, path: &[&[u8]]) -> bool {
        // Most patterns fail at the last name.
        let last = (self.0.last(), path.last());
        if matches!(last, (Some(GlobPart::Name(tokens)), Some(name)) if !name_matches(tokens, name)) {
            return false;
        }
        self.after(path)[self.0.len()]
    }

    /// Whether the pattern matches the path, or could match a path below it.
    pub fn reaches(&self, path: &[&[u8]]) -> bool {
        self.after(path).contains(&true)
    }

    /// For each part, whether it may come next after the components of a path.
    fn after(&self, path: &[&[u8]]) -> Vec<bool> {
        let mut next = vec![false; self.0.len() + 1];
        next[0] = true;
        self.skip_deep(&mut next);
        for name in path {
            let mut after = vec![false; next.len()];
            for (at, part) in self.0.iter().enumerate().filter(|(at, _)| next[*at]) {
                match part {
                    GlobPart::Deep => after[at] = true,
                    GlobPart::Name(tokens) if name_matches(tokens, name) => after[at + 1] = true,
                    GlobPart::Name(_) => {}
                }
            }
            self.skip_deep(&mut after);
            next = after;
        }
        next
    }

    /// `**` also matches zero directories.
    fn skip_deep(&self, next: &mut [bool]) {
        for (at, part) in self.0.iter().enumerate() {
            if next[at] && *part == GlobPart::Deep {
                next[at + 1] = true;
            }
        }
    }
}

fn tokens(mut text: &[u8]) -> Result<Vec<Token>, &'static str> {
    let mut tokens = Vec::new();
    while let Some((first, rest)) = text.split_first() {
        text = rest;
        tokens.push(match first {
            b'*' => Token::Any,
            b'?' => Token::One,
            b'[' => {
                let (class, rest) = class(text)?;
                text = rest;
                class
            }
            b'\\' => {
                let (byte, rest) = text.split_first().ok_or("it ends with a \\")?;
                text = rest;
                Token::Byte(*byte)
            }
            byte => Token::Byte(*byte),
        });
    }
    Ok(tokens)
}

fn class(text: &[u8]) -> Result<(Token, &[u8]), &'static str> {
    let open = "a [ is not closed";
    let (not, text) = match text.split_first() {
        Some((b'!' | b'^', rest)) => (true, rest),
        _ => (false, text),
    };
    // A ] in the first position stands for itself.
    let end = text.iter().skip(1).position(|byte| *byte == b']').ok_or(open)? + 1;
    let (mut inner, rest) = (&text[..end], &text[end + 1..]);
    let mut ranges = Vec::new();
    while let Some((from, len)) = character(inner) {
        inner = &inner[len..];
        let mut to = from;
        if let Some((last, len)) = inner.strip_prefix(b"-").and_then(character) {
            (to, inner) = (last, &inner[1 + len..]);
        }
        if to < from {
            return Err("a range in [ ] goes backwards");
        }
        ranges.push((from, to));
    }
    Ok((Token::Class { not, ranges }, rest))
}

/// First character of a text as a number, and its length. A byte that is not UTF-8 is one of its own, beyond the others.
fn character(text: &[u8]) -> Option<(u32, usize)> {
    let first = *text.first()?;
    let len = match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0.. => 4,
        _ => 1,
    };
    let decoded = text.get(..len).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let decoded = decoded.and_then(|text| text.chars().next());
    Some(decoded.map_or((0x11_0000 + u32::from(first), 1), |decoded| (decoded.into(), len)))
}

/// Number of bytes of a name that a token takes; `None` if it does not match.
fn takes(token: &Token, name: &[u8]) -> Option<usize> {
    let first = *name.first()?;
    match token {
        Token::Byte(byte) => (*byte == first).then_some(1),
        Token::Class { not, ranges } => {
            let (first, len) = character(name)?;
            let within = ranges.iter().any(|(from, to)| (*from..=*to).contains(&first));
            (within != *not).then_some(len)
        }
        Token::One => Some(1 + name[1..].iter().take_while(|byte| (0x80..0xc0).contains(*byte)).count()),
        Token::Any => None,
    }
}

fn name_matches(tokens: &[Token], name: &[u8]) -> bool {
    let (mut token, mut at) = (0, 0);
    // Position of the last `*`, and where the name continues if it takes one more byte.
    let mut star: Option<(usize, usize)> = None;
    loop {
        match tokens.get(token) {
            Some(Token::Any) => {
                star = Some((token, at + 1));
                token += 1;
                continue;
            }
            None if at == name.len() => return true,
            Some(one) => {
                if let Some(taken) = takes(one, &name[at..]) {
                    token += 1;
                    at += taken;
                    continue;
                }
            }
            None => {}
        }
        match star {
            Some((back, from)) if from <= name.len() => {
                star = Some((back, from + 1));
                token = back + 1;
                at = from;
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        let path: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b'/').collect();
        expand(pattern.as_bytes())
            .unwrap()
            .iter()
            .any(|pattern| Pattern::parse(pattern.split(|byte| *byte == b'/')).unwrap().matches(&path))
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, path) in [
            ("*.rs", "a.rs"),
            ("*.rs", ".rs"),
            ("a*b*c", "aXbXbc"),
            ("?.txt", "é.txt"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("[à-é]x", "èx"),
            ("[!a]x", "éx"),
            ("[]]", "]"),
            ("**/x", "x"),
            ("**/x", "a/b/x"),
            ("a/**", "a/b/c"),
            ("a/**/c", "a/c"),
            ("{a,b/c}.rs", "b/c.rs"),
            ("{a,{b,c}d}", "cd"),
            ("\\*", "*"),
            ("a\\{b", "a{b"),
            ("**", "a/b"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.rs", "a/b.rs"),
            ("*.rs", "a.rsx"),
            ("?", ""),
            ("?", "ab"),
            ("[a-c]x", "dx"),
            ("[!a-c]x", "bx"),
            ("[à-é]x", "ex"),
            ("a/*", "a/b/c"),
            ("a/**/c", "a/b"),
            ("\\*", "a"),
            ("{a,b}", "c"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn what_could_match_below_is_told() {
        let reaches = |pattern: &str, path: &str| {
            let path: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b'/').collect();
            Pattern::parse(pattern.as_bytes().split(|byte| *byte == b'/')).unwrap().reaches(&path)
        };
        assert!(
            reaches("a/b/c", "a/b") && reaches("a/b", "a/b") && reaches("**/x", "a") && reaches("a/*", "a")
        );
        assert!(!reaches("a/b", "a/c") && !reaches("a/b", "a/b/c") && !reaches("x/**", "a"));
    }

    #[test]
    fn a_literal_matches_itself_alone() {
        let literal = |name: &str| String::from_utf8(literal(name.as_bytes())).unwrap();
        assert!(matches(&literal("a[b]{c,d}*"), "a[b]{c,d}*"));
        assert!(!matches(&literal("*"), "x"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(expand(b"{a,b").is_err());
        assert!(expand("{a,b}".repeat(12).as_bytes()).is_err());
        for wrong in ["[a", "a\\", "[]", "[z-a]"] {
            assert!(Pattern::parse([wrong.as_bytes()].into_iter()).is_err(), "{wrong}");
        }
    }
}
