//! Terminal modes that change what it sends: mouse reports, focus reports, other encodings of keys.
//!
//! The command may set any of them. While a prompt waits they are all off, so that only typed keys arrive; afterwards
//! they are restored as the command had set them.

use std::io::Write;

use crate::escape_boundary::Sequence;

/// Private modes that are off unless a program turns them on: cursor keys, keypad, the kinds and encodings of mouse
/// reports, focus reports. Application cursor keys end in letters that no prompt knows.
const CURSOR_KEYS: u16 = 1;
const KEYPAD: u16 = 66;
const REPORTS: [u16; 11] = [9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, KEYPAD];
const PASTE: u16 = 2004;
/// Synchronised drawing, which would delay a prompt until its end. Programs do not leave this on, so it is not
/// restored.
const SYNCHRONISED: u16 = 2026;
const ALTERNATE: [u16; 3] = [47, 1047, 1049];

/// Numeric keypad, 7-bit replies, default keys with modifiers, and one more level of key reports, with none.
const ORDINARY_KEYS: &[u8] = b"\x1b>\x1b F\x1b[>4m\x1b[>0u";
/// Removes the level that [`ORDINARY_KEYS`] added. Each of the two screens has levels of its own.
const LEVEL_BACK: &[u8] = b"\x1b[<u";

/// Modes a program set, in that order: of those that exclude each other the last one holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    set: Vec<u16>,
    keypad: bool,
    eight_bits: bool,
    other_keys: u16,
    alternate: bool,
}

impl Modes {
    pub(crate) fn apply(&mut self, sequence: &Sequence<'_>) {
        match *sequence {
            Sequence::Escape { between: None, last: b'c' } => *self = Modes::default(),
            Sequence::Escape { between: None, last: last @ (b'=' | b'>') } => self.keypad = last == b'=',
            Sequence::Escape { between: Some(b' '), last: last @ (b'F' | b'G') } => {
                self.eight_bits = last == b'G';
            }
            Sequence::Control { parameters: [b'?', numbers @ ..], last: last @ (b'h' | b'l'), .. } => {
                for mode in numbers.split(|byte| *byte == b';').filter_map(number) {
                    self.switch(mode, last == b'h');
                }
            }
            Sequence::Control { parameters: [b'>', numbers @ ..], last: b'm' | b'n', .. } => {
                let mut numbers = numbers.split(|byte| *byte == b';').map(|part| number(part).unwrap_or(0));
                if numbers.next() == Some(4) {
                    self.other_keys = numbers.next().unwrap_or(0);
                }
            }
            // Soft reset.
            Sequence::Control { parameters: b"!", last: b'p', .. } => {
                self.switch(CURSOR_KEYS, false);
                self.switch(KEYPAD, false);
                self.keypad = false;
            }
            Sequence::Escape { .. } | Sequence::Control { .. } => {}
        }
    }

    fn switch(&mut self, mode: u16, on: bool) {
        if ALTERNATE.contains(&mode) {
            self.alternate = on;
        } else if REPORTS.contains(&mode) || mode == CURSOR_KEYS || mode == PASTE {
            self.set.retain(|set| *set != mode);
            if on {
                self.set.push(mode);
            }
        }
    }

    pub(crate) fn on_alternate_screen(&self) -> bool {
        self.alternate
    }

    /// Bytes to write after a prompt, before the screen that it was on goes away.
    pub(crate) fn level_back() -> &'static [u8] {
        LEVEL_BACK
    }

    /// Bytes to write after a prompt: they set again what was set.
    pub(crate) fn again(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if !self.set.contains(&PASTE) {
            private(&mut bytes, PASTE, 'l');
        }
        self.set.iter().for_each(|mode| private(&mut bytes, *mode, 'h'));
        if self.keypad {
            bytes.extend(b"\x1b=");
        }
        if self.eight_bits {
            bytes.extend(b"\x1b G");
        }
        if self.other_keys > 0 {
            bytes.extend(format!("\x1b[>4;{}m", self.other_keys).as_bytes());
        }
        bytes
    }
}

/// Bytes to write before a prompt: the terminal then sends only what is typed, and marks what is pasted. The modes are
/// reset one by one, because not every terminal takes a long list.
pub(crate) fn reset() -> Vec<u8> {
    let mut bytes = others_reset();
    private(&mut bytes, CURSOR_KEYS, 'l');
    private(&mut bytes, PASTE, 'h');
    bytes
}

/// Bytes for a terminal that another program draws on, where the modes to restore are unknown: they reset only what
/// could look like an answer.
pub(crate) fn others_reset() -> Vec<u8> {
    let mut bytes = Vec::new();
    REPORTS.iter().chain([&SYNCHRONISED]).for_each(|mode| private(&mut bytes, *mode, 'l'));
    bytes.extend(ORDINARY_KEYS);
    bytes
}

fn private(bytes: &mut Vec<u8>, mode: u16, switch: char) {
    // Writing to memory does not fail.
    let _ = write!(bytes, "\x1b[?{mode}{switch}");
}

/// Number as terminals read it; one that is too large means nothing.
fn number(digits: &[u8]) -> Option<u16> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
impl Modes {
    /// Modes set while a prompt waits.
    pub(crate) fn pasted() -> Modes {
        Modes { set: vec![PASTE], ..Modes::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape_boundary::EscapeBoundary;

    fn after(bytes: &[u8]) -> Modes {
        let (mut boundary, mut modes) = (EscapeBoundary::default(), Modes::default());
        boundary.follow(bytes, |sequence| modes.apply(sequence));
        modes
    }

    #[test]
    fn what_was_set_is_off_during_a_question_and_set_again_after_it() {
        for set in [
            &b"\x1b[?1003h\x1b[?1005h"[..],
            b"\x1b[?9;1000;1001;1002;1003;1004;1005;1006;1015;1016h",
            b"\x1b[?1h\x1b=\x1b[?2004h\x1b G",
            b"\x1b[?66h\x1b[>4;2m",
            b"\x1b[?0001003h",
        ] {
            let during = after(&[set, &reset()].concat());
            assert_eq!(during, after(b"\x1b[?2004h"), "{set:?}");
            let whole = [set, &reset(), Modes::level_back(), &after(set).again()].concat();
            assert_eq!(after(&whole), after(set), "{set:?}");
            assert_ne!(after(set), Modes::default(), "{set:?}");
        }
    }

    #[test]
    fn of_two_kinds_of_reports_the_last_one_holds() {
        assert_eq!(after(b"\x1b[?1003h\x1b[?1000h\x1b[?1003h").set, [1000, 1003]);
        assert_eq!(after(b"\x1b[?1003h\x1b[?1003l").set, [0u16; 0]);
    }

    #[test]
    fn resets_are_followed() {
        assert_eq!(after(b"\x1b[?1003;1049h\x1b=\x1b G\x1bc"), Modes::default());
        assert_eq!(after(b"\x1b[?1;1000h\x1b=\x1b[!p"), after(b"\x1b[?1000h"));
        assert_eq!(after(b"\x1b[>4;2m\x1b[>4m"), Modes::default());
    }
}
