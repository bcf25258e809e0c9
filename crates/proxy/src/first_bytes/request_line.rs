//! Classification of the first line in a tunnel, as lenient as the most lenient server.
//!
//! Servers differ in what they accept as a request: blank lines and spaces before it, tabs in it, spaces after the
//! version, any word for a method, no version at all. A line that one of them might accept has to be a strictly valid
//! request, or it is refused.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstLine {
    /// More bytes are needed.
    Partial,
    /// `… HTTP/1.1`: the strict parser has to accept it.
    Request,
    /// Some server could accept it as a request.
    Nearly,
    Other,
}

/// Classifies the first line. A message whose first byte cannot begin a word is not text, and is not waited for; all
/// other text is read to the end of its line.
pub(super) fn first_line(bytes: &[u8]) -> FirstLine {
    let blank = bytes.iter().take_while(|byte| is_blank(**byte)).count();
    let text = &bytes[blank..];
    let Some(first) = text.first() else { return FirstLine::Partial };
    if !is_text(*first) {
        // Blank lines can precede a header of the PROXY protocol, and then a request.
        return if bytes.starts_with(b"\r\n") { FirstLine::Nearly } else { FirstLine::Other };
    }
    // XML, JSON, lists: they may have no line end.
    if b"<{[(".contains(first) {
        return FirstLine::Other;
    }
    let word = text.iter().take_while(|byte| is_text(**byte)).count();
    if text.get(word).is_some_and(|byte| !is_blank(*byte)) {
        return FirstLine::Other;
    }
    let Some(end) = text.iter().position(|byte| *byte == b'\n') else { return FirstLine::Partial };
    let line = &text[..end];
    let exact = [b" HTTP/1.1\r".as_slice(), b" HTTP/1.0\r"].iter().any(|version| line.ends_with(version));
    match is_like_a_request(line) {
        false => FirstLine::Other,
        true if exact && blank == 0 => FirstLine::Request,
        true => FirstLine::Nearly,
    }
}

fn is_like_a_request(line: &[u8]) -> bool {
    if line.windows(5).any(|part| part.eq_ignore_ascii_case(b"HTTP/")) {
        return true;
    }
    let words: Vec<&[u8]> = line.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        // `PROXY` announces another client, and a request follows; `GET` alone is a request of HTTP/0.9.
        [b"PROXY", ..] | [b"GET", _, ..] => true,
        [_, target, ..] if target.starts_with(b"/") || target.windows(3).any(|part| part == b"://") => true,
        // `RTSP/1.0` and `ICE/1.0`, which some HTTP servers speak too.
        [_, _, .., last] => is_version(last),
        _ => false,
    }
}

/// `NAME/1…`.
fn is_version(word: &[u8]) -> bool {
    let name = word.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    name > 0 && word.get(name) == Some(&b'/') && word.get(name + 1).is_some_and(u8::is_ascii_digit)
}

/// Whether some server treats the byte as a space, those of Latin-1 included.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | 0x1c..=b' ' | 0x85 | 0xa0)
}

fn is_text(byte: u8) -> bool {
    byte.is_ascii_graphic()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines() {
        let requests: &[&[u8]] = &[
            b"GET / HTTP/1.1\r\n",
            b"GET\t/ HTTP/1.1\r\n",
            b"M-SEARCH * HTTP/1.0\r\nX",
            b"SSH-2.0-x / HTTP/1.1\r\n",
        ];
        let nearly: &[&[u8]] = &[
            b"\r\nGET / HTTP/1.1\r\n",
            b"\nGET / HTTP/1.1\r\n",
            b" GET / HTTP/1.1\r\n",
            b"\xa0GET / HTTP/1.1\r\n",
            b"\x1cGET\x1d/\x1eHTTP/1.1\n",
            b"GET\r/\rHTTP/1.1\n",
            b"GET / HTTP/1.1 \r\n",
            b"GET / HTTP/1.1\t\r\n",
            b"GET / HTTP/1.1\n",
            b"GET / HTTP/1.1 x\r\n",
            b"GET / http/1.1\r\n",
            b"GET / HTTP/01.1\r\n",
            b"PRI * HTTP/2.0\r\n",
            b"GET /\r\n",
            b"GET x\n",
            b"POST /x\r\n",
            b"HEAD http://b.test/\r\n",
            b"SOURCE / ICE/1.0\r\n",
            b"OPTIONS * RTSP/1.0\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\n",
            b"\r\n\r\n\0\r\nQUIT\n",
        ];
        let partial: &[&[u8]] =
            &[b"", b"\r\n", b" ", b"G", b"GET", b"GET ", b"A: b/c HT", b"M-SEARCH", b"\xa0G"];
        let other: &[&[u8]] = &[
            b"SSH-2.0-OpenSSH_9.6p1 Ubuntu-3ubuntu13\r\n",
            b"EHLO a.test\r\n",
            b"a1 ID (\"name\" \"x/1\")\r\n",
            b"*1\r\n$4\r\nPING\r\n",
            b"get key\r\n",
            b"CAP LS 302\r\n",
            b"AMQP\0",
            b"<?xml version='1.0'?>",
            b"{\"id\":",
            b"\0\0\0\x08",
            b"\n\0",
            b"\x10\x0c\0\x04MQTT",
            b"@RSYNCD: 31.0\n",
        ];
        for (lines, expected) in [
            (requests, FirstLine::Request),
            (nearly, FirstLine::Nearly),
            (partial, FirstLine::Partial),
            (other, FirstLine::Other),
        ] {
            for line in lines {
                assert_eq!(first_line(line), expected, "{:?}", line.escape_ascii().to_string());
            }
        }
    }
}
