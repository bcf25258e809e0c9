//! Where in a stream of terminal output something else may be put: not inside a character or a control sequence.
//!
//! Also remembers what `vt100` does not tell: the scrolling region.

/// A sequence longer than this is let through in parts.
const LONGEST: usize = 4096;
/// Room for the numbers of `CSI top ; bottom r`.
const PARAMETERS: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// So many bytes of a character are missing.
    Character(u8),
    Escape,
    Control,
    /// A command or a text for the terminal, up to its terminator.
    Text,
    TextEscape,
}

/// Follows a stream byte by byte.
#[derive(Debug, Default)]
pub(crate) struct Edge {
    state: State,
    /// Bytes since the last place where something else could be put.
    open: usize,
    /// The beginning of an open sequence was let through already.
    cut: bool,
    parameters: Vec<u8>,
    region: Option<Vec<u8>>,
    framed: bool,
}

impl Edge {
    pub(crate) fn follow(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.state == State::Ground && byte != 0x1b && byte < 0x80 {
                continue;
            }
            self.state = self.next(byte);
            self.open = match self.state {
                State::Ground => 0,
                // One that begins anew leaves nothing of the one before.
                State::Escape if byte == 0x1b => 1,
                _ => self.open + 1,
            };
            self.cut &= self.open > 0;
            if self.open > LONGEST {
                (self.open, self.cut) = (0, true);
            }
        }
    }

    fn next(&mut self, byte: u8) -> State {
        match (self.state, byte) {
            (State::Text, 0x07) | (State::TextEscape, b'\\') | (_, 0x18 | 0x1a) => State::Ground,
            (State::Text, 0x1b) => State::TextEscape,
            (State::Text, _) => State::Text,
            (_, 0x1b) => State::Escape,
            (State::Escape | State::TextEscape, byte) => self.after_escape(byte),
            (State::Control, byte) => self.in_control(byte),
            (State::Character(missing), 0x80..=0xbf) if missing > 1 => State::Character(missing - 1),
            (State::Character(_), 0x80..=0xbf) => State::Ground,
            (State::Ground | State::Character(_), byte) => character(byte),
        }
    }

    fn after_escape(&mut self, byte: u8) -> State {
        match byte {
            b'[' => {
                self.parameters.clear();
                State::Control
            }
            b']' | b'P' | b'X' | b'^' | b'_' => State::Text,
            b'c' => {
                (self.region, self.framed) = (None, false);
                State::Ground
            }
            // Intermediates, and controls that are carried out on the way.
            0x00..=0x2f => State::Escape,
            _ => State::Ground,
        }
    }

    fn in_control(&mut self, byte: u8) -> State {
        match byte {
            0x20..=0x3f => {
                if self.parameters.len() < PARAMETERS {
                    self.parameters.push(byte);
                }
                State::Control
            }
            0x40..=0x7e => {
                if byte == b'r' && self.parameters.iter().all(|byte| byte.is_ascii_digit() || *byte == b';') {
                    self.region = Some(self.parameters.clone()).filter(|parameters| !parameters.is_empty());
                }
                if byte == b'h' && self.parameters.starts_with(b"?") {
                    let mut modes = self.parameters[1..].split(|byte| *byte == b';');
                    self.framed |= modes.any(|mode| matches!(mode, b"6" | b"69"));
                }
                State::Ground
            }
            _ => State::Control,
        }
    }

    /// How many of the last bytes have to wait for what follows them.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// The terminal has seen the beginning of a sequence whose end is not there yet.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// There were margins, or places counted from the region's beginning.
    pub(crate) fn is_framed(&self) -> bool {
        self.framed
    }

    /// The numbers of the scrolling region, where there is one.
    pub(crate) fn region(&self) -> Option<&[u8]> {
        self.region.as_deref()
    }
}

fn character(byte: u8) -> State {
    match byte {
        0xc2..=0xdf => State::Character(1),
        0xe0..=0xef => State::Character(2),
        0xf0..=0xf4 => State::Character(3),
        _ => State::Ground,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(bytes: &[u8]) -> Edge {
        let mut edge = Edge::default();
        edge.follow(bytes);
        edge
    }

    #[test]
    fn what_is_complete_is_let_through() {
        for bytes in [
            &b"plain\r\n"[..],
            "na\u{ef}ve \u{65e5} \u{1f980}".as_bytes(),
            b"\x1b[1;31mred\x1b[m",
            b"\x1b]0;title\x07",
            b"\x1b]0;title\x1b\\",
            b"\x1b(B\x1b7\x1b8\x1b=",
            b"\x1bP+q\x1b\\x",
            b"\x1b[3\x18",
            b"\xff\xfe\x80",
        ] {
            assert_eq!(after(bytes).open(), 0, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_not_waits() {
        for (bytes, open) in [
            (&b"ab\x1b"[..], 1),
            (b"ab\x1b[38;5", 6),
            (b"ab\xe6\x97", 2),
            (b"ab\x1b]0;ti", 6),
            (b"ab\x1b]0;ti\x1b", 7),
            (b"\x1b[3\x1b[", 2),
            (b"\x1b(", 2),
        ] {
            assert_eq!(after(bytes).open(), open, "{bytes:?}");
        }
    }

    #[test]
    fn an_endless_sequence_does_not_wait_for_ever() {
        let mut bytes = b"\x1b]52;".to_vec();
        bytes.resize(LONGEST + 100, b'A');
        let mut edge = after(&bytes);
        assert!(edge.open() < LONGEST && edge.is_cut());
        edge.follow(b"\x07");
        assert!(!edge.is_cut());
    }

    #[test]
    fn the_scrolling_region_is_remembered() {
        assert_eq!(after(b"\x1b[2;10r").region(), Some(&b"2;10"[..]));
        assert_eq!(after(b"\x1b[2;10r\x1b[r").region(), None);
        assert_eq!(after(b"\x1b[?2r").region(), None);
        assert_eq!(after(b"\x1b[2;10r\x1bc").region(), None);
    }
}
