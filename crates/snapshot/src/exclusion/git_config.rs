//! Parser for git's configuration syntax, as far as needed to find a few settings of one repository.
//!
//! Included files are not followed. A file with errors is read as far as it parses.

/// Call `each` with the section and key (both in lower case) and value of every setting outside subsections, in order.
pub(super) fn settings(text: &[u8], mut each: impl FnMut(&[u8], &[u8], Option<&[u8]>)) {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    // Subsections are not needed.
    let mut section: Option<Vec<u8>> = None;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'[' => {
                let (name, end) = header(text, at + 1);
                section = name;
                at = end;
            }
            b'#' | b';' => at = line_end(text, at),
            byte if byte.is_ascii_whitespace() => at += 1,
            _ => {
                let (key, value, end) = setting(text, at);
                if let Some(section) = &section {
                    each(section, &key, value.as_deref());
                }
                at = end;
            }
        }
    }
}

/// Parse a boolean: a setting without a value is true, and so are numbers other than zero.
pub(super) fn is_true(value: Option<&[u8]>) -> bool {
    let Some(value) = value else { return true };
    let word = value.to_ascii_lowercase();
    match word.as_slice() {
        b"true" | b"yes" | b"on" => true,
        digits => {
            digits.iter().any(|byte| (b'1'..=b'9').contains(byte)) && digits.iter().all(u8::is_ascii_digit)
        }
    }
}

fn line_end(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |len| at + len)
}

/// Name in a section's header, unless it has a subsection, and the offset after it.
fn header(text: &[u8], at: usize) -> (Option<Vec<u8>>, usize) {
    let name: Vec<u8> = text[at..].iter().copied().take_while(u8::is_ascii_alphanumeric).collect();
    let end = at + name.len();
    if text.get(end) == Some(&b']') {
        return (Some(name.to_ascii_lowercase()), end + 1);
    }
    // A quoted subsection may contain any byte but a line end, including a bracket.
    let mut quoted = false;
    let mut at = end;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\n' => break,
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b']' if !quoted => return (None, at + 1),
            _ => {}
        }
        at += 1;
    }
    (None, at)
}

/// Key and value of a setting, and the offset after it.
fn setting(text: &[u8], at: usize) -> (Vec<u8>, Option<Vec<u8>>, usize) {
    let is_key = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let key: Vec<u8> = text[at..].iter().copied().take_while(is_key).collect();
    let mut next = at + key.len();
    let key = key.to_ascii_lowercase();
    while matches!(text.get(next), Some(b' ' | b'\t')) {
        next += 1;
    }
    if text.get(next) != Some(&b'=') {
        return (key, None, line_end(text, next));
    }
    let (value, end) = value(text, next + 1);
    (key, Some(value), end)
}

fn value(text: &[u8], mut at: usize) -> (Vec<u8>, usize) {
    let mut value = Vec::new();
    let mut quoted = false;
    // Length of the value without trailing blanks.
    let mut kept = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\n' => break,
            b'#' | b';' if !quoted => {
                at = line_end(text, at);
                break;
            }
            b'"' => quoted = !quoted,
            b'\\' => {
                at += 1;
                // At the end of a line it joins the next line; before a carriage return too.
                let skip = usize::from(text[at.min(text.len())..].starts_with(b"\r\n"));
                at += skip;
                if let Some(&escaped) = text.get(at).filter(|escaped| **escaped != b'\n') {
                    value.push(escaped);
                    kept = value.len();
                }
            }
            _ => {
                if quoted || !byte.is_ascii_whitespace() {
                    value.push(byte);
                    kept = value.len();
                } else if !value.is_empty() {
                    value.push(byte);
                }
            }
        }
        at += 1;
    }
    value.truncate(kept);
    (value, at.min(text.len()))
}
