//! Rust source with comments and literals blanked, so that a word in them is not mistaken for code.
//!
//! Not a parser: it knows comments, strings, characters and braces, which is enough to look for words. Line breaks
//! stay, so that line numbers are those of the file.

/// The source without comments, strings and character literals.
pub(super) fn code(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < bytes.len() {
        let skipped = literal(&bytes[at..], at.checked_sub(1).map(|before| bytes[before]));
        if skipped == 0 {
            // Characters other than ASCII do not matter in code.
            out.push(if bytes[at].is_ascii() { char::from(bytes[at]) } else { ' ' });
            at += 1;
        } else {
            let blank = |byte: &u8| if *byte == b'\n' { '\n' } else { ' ' };
            out.extend(bytes[at..at + skipped].iter().map(blank));
            at += skipped;
        }
    }
    out
}

/// Length of the comment or literal at the start of `rest`; 0 if there is code.
fn literal(rest: &[u8], before: Option<u8>) -> usize {
    let in_word = before.is_some_and(is_word);
    match rest {
        [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => quoted(rest),
        [b'r', b'"' | b'#', ..] if !in_word => raw_string(rest),
        [b'\'', b'\\', ..] => {
            2 + rest.iter().skip(3).position(|byte| *byte == b'\'').map_or(0, |end| end + 2)
        }
        [b'\'', first, ..] => {
            // A lifetime has no closing quote after one character.
            let width = match first {
                0..0x80 => 1,
                0..0xe0 => 2,
                0..0xf0 => 3,
                _ => 4,
            };
            if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
        }
        _ => 0,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let mut end = vec![b'"'];
    end.resize(1 + hashes, b'#');
    let body = 2 + hashes;
    rest[body..]
        .windows(end.len())
        .position(|window| window == end)
        .map_or(rest.len(), |at| body + at + end.len())
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

const TEST_ONLY: &str = "#[cfg(test)]";

/// [`code`] with the items blanked that exist in tests only.
pub(super) fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(TEST_ONLY) {
        out.push_str(&rest[..start]);
        let end = start + item_end(&rest[start..]);
        out.extend(rest[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// End of the item at the start of `code`: its semicolon, or its closing brace.
fn item_end(code: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b';' if depth == 0 => return at + 1,
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth <= 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// Test-only modules of a file that are in separate files.
pub(super) fn test_modules(code: &str) -> Vec<&str> {
    let after = code.split(TEST_ONLY).skip(1);
    after
        .filter_map(|rest| {
            let item = rest.trim_start();
            let item = item
                .strip_prefix("pub(")
                .and_then(|item| item.split_once(") "))
                .map_or(item, |(_, item)| item);
            item.strip_prefix("mod ")?.split_once(';').map(|(name, _)| name.trim())
        })
        .filter(|name| name.bytes().all(is_word))
        .collect()
}

/// Lines on which `word` occurs as a whole word. It may end in punctuation, such as `println!`.
pub(super) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let stands_alone = |line: &str, at: usize| {
        let before = line[..at].bytes().next_back();
        let after = line[at + word.len()..].bytes().next();
        let open_ended = word.bytes().next_back().is_some_and(|byte| !is_word(byte));
        !before.is_some_and(is_word) && (open_ended || !after.is_some_and(is_word))
    };
    let has = |line: &str| line.match_indices(word).any(|(at, _)| stands_alone(line, at));
    code.lines().enumerate().filter(|(_, line)| has(line)).map(|(index, _)| index + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        let source = "let a = \"unsafe \\\" {\"; // unsafe\n/* unsafe /* x */ unsafe */ let b = r#\"unsafe \"x\" \"#;\nlet c = '\"'; let d: &'a str = '\\''; unsafe {}\n";
        assert_eq!(lines_with(&code(source), "unsafe"), [3]);
        assert_eq!(code(source).lines().count(), source.lines().count());
    }

    #[test]
    fn words_stand_alone() {
        assert_eq!(lines_with("unsafe_code\nan_unsafe\nunsafe fn\neprintln!()\nprintln!()", "unsafe"), [3]);
        assert_eq!(lines_with("eprintln!()\nprintln!()", "println!"), [2]);
    }

    #[test]
    fn test_items_are_blanked_and_named() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { println!() }\n}\n#[cfg(test)]\nmod other;\nfn c() { x }\n#[cfg(test)]\npub(in crate::a) mod kit;\n";
        let left = without_tests(source);
        assert!(lines_with(&left, "println!").is_empty());
        assert_eq!(lines_with(&left, "x"), [8]);
        assert_eq!(test_modules(source), ["other", "kit"]);
    }
}
