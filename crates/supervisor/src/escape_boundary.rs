//! Escape boundaries: positions in terminal output that are not inside a character or a control sequence.
//!
//! Only there may other output be inserted. Also remembers the scrolling region, which `vt100` does not report.

/// Longest sequence that is held back whole; a longer one is let through in parts.
const LONGEST: usize = 4096;
/// Number of parameter bytes kept of a control sequence: more than any meaningful list of modes.
const PARAMETERS: usize = 128;

/// Complete escape or control sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence<'a> {
    /// Sequence `ESC between last`.
    Escape { between: Option<u8>, last: u8 },
    /// Sequence `CSI parameters last`; `cut`: some parameters were not kept.
    Control { parameters: &'a [u8], cut: bool, last: u8 },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ParserState {
    #[default]
    Ground,
    /// Number of bytes still missing of a character.
    Character(u8),
    /// One byte is missing of a two-byte character that may be a C1 control.
    Latin,
    Escape,
    Control,
    /// Text for the terminal (OSC, DCS, …), up to its terminator.
    Text,
    TextEscape,
}

/// Parameters of a control sequence, as many as are kept.
#[derive(Debug, Default)]
struct Parameters {
    kept: Vec<u8>,
    /// Whether some were not kept.
    cut: bool,
}

impl Parameters {
    fn push(&mut self, byte: u8) {
        self.cut = self.kept.len() == PARAMETERS;
        if !self.cut {
            self.kept.push(byte);
        }
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.cut = false;
    }
}

/// Follows a stream byte by byte.
#[derive(Debug, Default)]
pub(crate) struct EscapeBoundary {
    state: ParserState,
    /// Number of bytes since the last escape boundary.
    open: usize,
    /// Whether the beginning of the open sequence was already let through.
    cut: bool,
    parameters: Parameters,
    between: Option<u8>,
    /// Whether C1 controls were seen: not every terminal takes them for what they are here, which is text.
    wide_controls: bool,
    region: Option<Vec<u8>>,
    framed: bool,
}

impl EscapeBoundary {
    /// Follows `bytes`; `tell` is called for every complete sequence.
    pub(crate) fn follow(&mut self, bytes: &[u8], mut tell: impl FnMut(&Sequence<'_>)) {
        for &byte in bytes {
            if self.state == ParserState::Ground && byte != 0x1b && byte < 0x80 {
                continue;
            }
            let before = self.state;
            self.state = self.next(byte);
            match before {
                ParserState::Control if self.state == ParserState::Ground && byte >= 0x40 => {
                    let Parameters { kept, cut } = &self.parameters;
                    tell(&Sequence::Control { parameters: kept, cut: *cut, last: byte });
                }
                ParserState::Escape | ParserState::TextEscape
                    if self.state == ParserState::Ground && byte >= 0x30 =>
                {
                    tell(&Sequence::Escape { between: self.between, last: byte });
                }
                ParserState::Ground | ParserState::Latin => {
                    self.wide_controls |= (0x80..=0x9f).contains(&byte);
                }
                _ => {}
            }
            self.open = match self.state {
                ParserState::Ground => 0,
                // A new sequence discards the unfinished one before it.
                ParserState::Escape if byte == 0x1b => 1,
                _ => self.open + 1,
            };
            self.cut &= self.open > 0;
            if self.open > LONGEST {
                (self.open, self.cut) = (0, true);
            }
        }
    }

    fn next(&mut self, byte: u8) -> ParserState {
        if byte == 0x1b {
            self.between = None;
        }
        match (self.state, byte) {
            (ParserState::Text, 0x07) | (ParserState::TextEscape, b'\\') | (_, 0x18 | 0x1a) => {
                ParserState::Ground
            }
            (ParserState::Text, 0x1b) => ParserState::TextEscape,
            (ParserState::Text, _) => ParserState::Text,
            (_, 0x1b) => ParserState::Escape,
            (ParserState::Escape | ParserState::TextEscape, byte) => self.after_escape(byte),
            (ParserState::Control, byte) => self.in_control(byte),
            (ParserState::Character(missing), 0x80..=0xbf) if missing > 1 => {
                ParserState::Character(missing - 1)
            }
            (ParserState::Character(_) | ParserState::Latin, 0x80..=0xbf) => ParserState::Ground,
            (ParserState::Ground | ParserState::Character(_) | ParserState::Latin, byte) => character(byte),
        }
    }

    fn after_escape(&mut self, byte: u8) -> ParserState {
        match byte {
            b'[' => {
                self.parameters.clear();
                ParserState::Control
            }
            b']' | b'P' | b'X' | b'^' | b'_' => ParserState::Text,
            b'c' => {
                (self.region, self.framed) = (None, false);
                ParserState::Ground
            }
            0x20..=0x2f => {
                self.between = self.between.or(Some(byte));
                ParserState::Escape
            }
            // Control characters are executed inside the sequence.
            0x00..=0x1f => ParserState::Escape,
            _ => ParserState::Ground,
        }
    }

    fn in_control(&mut self, byte: u8) -> ParserState {
        match byte {
            0x20..=0x3f => {
                self.parameters.push(byte);
                ParserState::Control
            }
            0x40..=0x7e => {
                let Parameters { kept, cut } = &self.parameters;
                if byte == b'r' && kept.iter().all(|byte| byte.is_ascii_digit() || *byte == b';') {
                    self.region = Some(kept.clone()).filter(|parameters| !parameters.is_empty());
                    self.framed |= cut;
                }
                if byte == b'h' && kept.starts_with(b"?") {
                    let mut modes = kept[1..].split(|byte| *byte == b';');
                    self.framed |= *cut || modes.any(|mode| matches!(mode, b"6" | b"69"));
                }
                ParserState::Ground
            }
            _ => ParserState::Control,
        }
    }

    /// Number of the last bytes that must wait for the bytes after them.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// Whether the terminal has received the beginning of a sequence whose end is not there yet.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether the terminal may be inside a sequence that is not followed here.
    pub(crate) fn may_be_cut(&self) -> bool {
        self.cut || self.wide_controls
    }

    /// Whether margins were set, or positions counted from the region's beginning (origin mode).
    pub(crate) fn is_framed(&self) -> bool {
        self.framed
    }

    /// Parameters of the scrolling region, if one is set.
    pub(crate) fn region(&self) -> Option<&[u8]> {
        self.region.as_deref()
    }
}

fn character(byte: u8) -> ParserState {
    match byte {
        0xc2 => ParserState::Latin,
        0xc3..=0xdf => ParserState::Character(1),
        0xe0..=0xef => ParserState::Character(2),
        0xf0..=0xf4 => ParserState::Character(3),
        _ => ParserState::Ground,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(bytes: &[u8]) -> EscapeBoundary {
        let mut boundary = EscapeBoundary::default();
        boundary.follow(bytes, |_| ());
        boundary
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
        let mut boundary = after(&bytes);
        assert!(boundary.open() < LONGEST && boundary.is_cut());
        boundary.follow(b"\x07", |_| ());
        assert!(!boundary.is_cut());
    }

    #[test]
    fn sequences_are_told_once_they_are_complete() {
        let mut told = Vec::new();
        let bytes = b"x\x1b[?1;2\nh\x1b F\x1b=\x1b[3\x18m\x1b[3\x1b[4m\x1b]0;[5m\x1b[6m\x1b(\x18B";
        EscapeBoundary::default().follow(bytes, |sequence| told.push(format!("{sequence:?}")));
        let control =
            |parameters: &[u8], last| format!("{:?}", Sequence::Control { parameters, cut: false, last });
        let escape = |between, last| format!("{:?}", Sequence::Escape { between, last });
        assert_eq!(
            told,
            [
                control(b"?1;2", b'h'),
                escape(Some(b' '), b'F'),
                escape(None, b'='),
                control(b"4", b'm'),
                control(b"6", b'm'),
            ]
        );
    }

    #[test]
    fn what_is_not_kept_of_a_sequence_is_known_to_be_missing() {
        let long = [b"\x1b[", "0".repeat(PARAMETERS + 1).as_bytes(), b"65535b"].concat();
        let mut cuts = 0;
        EscapeBoundary::default().follow(&long, |sequence| {
            cuts += u32::from(matches!(sequence, Sequence::Control { cut: true, last: b'b', .. }));
        });
        assert_eq!(cuts, 1);
    }

    #[test]
    fn controls_of_one_byte_may_leave_a_terminal_in_a_sequence() {
        assert!(after("\u{9d}0;x".as_bytes()).may_be_cut() && after(b"\x9d0;x").may_be_cut());
        assert!(!after("na\u{ef}ve \u{65e5} \u{1f980}".as_bytes()).may_be_cut());
    }

    #[test]
    fn the_scrolling_region_is_remembered() {
        assert_eq!(after(b"\x1b[2;10r").region(), Some(&b"2;10"[..]));
        assert_eq!(after(b"\x1b[2;10r\x1b[r").region(), None);
        assert_eq!(after(b"\x1b[?2r").region(), None);
        assert_eq!(after(b"\x1b[2;10r\x1bc").region(), None);
    }
}
