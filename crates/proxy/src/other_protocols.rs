//! Scan of tunnels that begin with a protocol other than TLS and HTTP.
//!
//! A server may skip what it does not understand and then read a request, so every line is checked: a request that
//! names another host than the tunnel's ends the tunnel. Bytes are forwarded as they come, except for the end of a line
//! that names another host.

use crate::config::RequestTarget;
use crate::target::authority;

/// Number of bytes kept of the beginning of a line; a host and what precedes it fit.
const START: usize = 1024;
/// Number of bytes kept of the end of a line: blanks and a version fit.
const END: usize = 32;

/// Scanner of a client's lines.
#[derive(Debug)]
pub(crate) struct Opaque {
    target: RequestTarget,
    start: Vec<u8>,
    end: Vec<u8>,
    in_head: bool,
}

/// Error for a request that names a host the tunnel was not opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongHost;

impl Opaque {
    pub(crate) fn new(target: &RequestTarget) -> Opaque {
        Opaque { target: target.clone(), start: Vec::new(), end: Vec::new(), in_head: false }
    }

    /// Scans the next bytes of the client.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), WrongHost> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.keep(piece);
            if piece.ends_with(b"\n") {
                let judged = self.line();
                (self.start, self.end) = (Vec::new(), Vec::new());
                judged?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = START.saturating_sub(self.start.len()).min(piece.len());
        self.start.extend_from_slice(&piece[..room]);
        self.end.extend_from_slice(&piece[piece.len().saturating_sub(END)..]);
        self.end.drain(..self.end.len().saturating_sub(END));
    }

    fn line(&mut self) -> Result<(), WrongHost> {
        let line = self.start.trim_ascii();
        if is_version(last_word(&self.end)) {
            self.in_head = true;
            return self.request(line);
        }
        if !self.in_head {
            return Ok(());
        }
        self.in_head = !line.is_empty();
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return Ok(()) };
        let (name, value) = line.split_at(colon);
        if name.trim_ascii().eq_ignore_ascii_case(b"host") {
            return self.names(value[1..].trim_ascii());
        }
        Ok(())
    }

    /// Checks a line `METHOD TARGET VERSION`, whose target may name a host.
    fn request(&self, line: &[u8]) -> Result<(), WrongHost> {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if method.eq_ignore_ascii_case(b"connect") {
            return Err(WrongHost);
        }
        let Some(scheme) = target.windows(3).position(|part| part == b"://") else { return Ok(()) };
        // Behind a leading slash it is part of a path or query, not a host.
        if target.starts_with(b"/") {
            return Ok(());
        }
        let rest = &target[scheme + 3..];
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
        self.names(&rest[..end])
    }

    fn names(&self, host: &[u8]) -> Result<(), WrongHost> {
        let named = str::from_utf8(host).ok().and_then(|text| authority(text, Some(self.target.port)).ok());
        if named.as_ref() == Some(&self.target) { Ok(()) } else { Err(WrongHost) }
    }
}

fn last_word(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_end();
    let begin = line.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
    &line[begin..]
}

/// Whether a word is an HTTP version, as leniently as a server might read it.
fn is_version(word: &[u8]) -> bool {
    word.len() > 5 && word[..5].eq_ignore_ascii_case(b"HTTP/")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether these bytes are refused, in one piece and byte by byte.
    fn is_refused(bytes: &[u8]) -> bool {
        let target = RequestTarget { host: "a.test".parse().unwrap(), port: 8080 };
        let (mut whole, mut slow) = (Opaque::new(&target), Opaque::new(&target));
        let at_once = whole.push(bytes).is_err();
        assert_eq!(bytes.iter().any(|byte| slow.push(&[*byte]).is_err()), at_once);
        at_once
    }

    #[test]
    fn requests_after_something_else() {
        let long = [b"GET /".as_slice(), &[b'x'; 3 * START], b" HTTP/1.1\r\nHost: b.test\r\n"].concat();
        let refused: &[&[u8]] = &[
            b"HELO x\r\nGET / HTTP/1.1\r\nHost: b.test\r\n\r\n",
            b"HELO x\nGET / http/1.1\nhost:b.test\n",
            b"\0\0\0\x08\nGET / HTTP/1.1\r\nHost: b.test\r\n",
            b"HELO x\r\nGET / HTTP/1.1 \r\nX: y\r\nHost : b.test\r\n",
            b"HELO x\r\nGET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n",
            b"HELO x\r\nGET / HTTP/1.1\r\nHost:\r\n b.test\r\n",
            b"HELO x\r\nGET / HTTP/1.1\r\nHost: a.test:80\r\n",
            b"HELO x\r\nGET http://b.test/ HTTP/1.1\r\n",
            b"HELO x\r\nCONNECT b.test:80 HTTP/1.1\r\n",
            b"HELO x\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\nGET / HTTP/1.1\r\nHost: b.test\r\n",
            &long,
        ];
        let passed: &[&[u8]] = &[
            b"HELO x\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            b"HELO x\r\nGET / HTTP/1.1\r\nHost: A.test.:8080\r\n\r\n",
            b"HELO x\r\nHost: b.test\r\n",
            b"HELO x\r\nGET / HTTP/1.1\r\n\r\nHost: b.test\r\n",
            b"HELO x\r\nGET /?u=http://b.test/ HTTP/1.1\r\nHost: a.test\r\n",
            b"SSH-2.0-x\r\n\0\0\x01\x14",
            b"\n\n\n",
        ];
        for (lines, expected) in [(refused, true), (passed, false)] {
            for line in lines {
                assert_eq!(is_refused(line), expected, "{:?}", line.escape_ascii().to_string());
            }
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_whole() {
        let target = RequestTarget { host: "a.test".parse().unwrap(), port: 8080 };
        let mut opaque = Opaque::new(&target);
        for _ in 0..100 {
            opaque.push(&[b'x'; 4096]).unwrap();
        }
        assert!(opaque.start.len() <= START && opaque.end.len() <= END);
    }
}
