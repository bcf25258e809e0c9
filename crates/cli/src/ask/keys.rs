//! Keys out of what a raw terminal sends.
//!
//! A terminal also sends what nobody typed: answers to what the command asked it, mouse moves, pasted text. The command
//! can make it send almost anything that way, so whole sequences are taken as one and count for nothing, unless they are
//! how this terminal spells a key.

const ESCAPE: u8 = 0x1b;
/// What a mouse move of the oldest kind carries after its beginning.
const OLD_MOUSE: usize = 3;
/// How modifiers are spelled: none, and Ctrl.
const PLAIN: u32 = 1;
const CONTROL: u32 = 5;
/// Longer is no key.
const LONGEST: usize = 64;

/// One press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    /// Escape, Ctrl-C or Ctrl-D.
    Away,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// After `ESC O`: one more byte.
    Single,
    Control,
    /// So many bytes that mean a place.
    Skip(usize),
    /// A text, to its terminator.
    Text,
    TextEscape,
    /// Pasted text, to its end mark.
    Pasted,
}

/// Takes bytes, gives keys.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    state: State,
    sequence: Vec<u8>,
}

impl Keys {
    /// The one key these bytes are. Several at once were not typed by a person who reads a question: they count for
    /// nothing, unless one of them says no.
    pub(crate) fn press(&mut self, bytes: &[u8]) -> Option<Key> {
        let keys: Vec<Key> = bytes.iter().filter_map(|byte| self.next(*byte)).collect();
        match keys.as_slice() {
            [key] => Some(*key),
            keys if keys.contains(&Key::Away) => Some(Key::Away),
            _ => None,
        }
    }

    /// Something began that is not complete.
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Escape
    }

    /// Nothing followed: an escape was the key.
    pub(crate) fn rest(&mut self) -> Option<Key> {
        let was_escape = self.is_open();
        if was_escape {
            self.state = State::Ground;
        }
        was_escape.then_some(Key::Away)
    }

    fn next(&mut self, byte: u8) -> Option<Key> {
        let (state, key) = match (self.state, byte) {
            (State::Ground, ESCAPE) => (State::Escape, None),
            (State::Ground, byte) => (State::Ground, plain(u32::from(byte))),
            // Twice: the first was the key, or the beginning of one with Alt.
            (State::Escape, ESCAPE) => (State::Escape, Some(Key::Away)),
            (State::Escape, b'[') => {
                self.sequence.clear();
                (State::Control, None)
            }
            (State::Escape, b'O') => (State::Single, None),
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => (State::Text, None),
            (State::Control, _) => self.control(byte),
            (State::Skip(left), _) if left > 1 => (State::Skip(left - 1), None),
            (State::Text, ESCAPE) => (State::TextEscape, None),
            // A letter with Alt is no key of ours.
            (State::Text, 0x07)
            | (State::TextEscape, b'\\')
            | (State::Escape | State::Single | State::Skip(_), _) => (State::Ground, None),
            (State::Text | State::TextEscape, _) => (State::Text, None),
            (State::Pasted, _) => (self.pasted(byte), None),
        };
        self.state = state;
        key
    }

    fn control(&mut self, byte: u8) -> (State, Option<Key>) {
        match byte {
            ESCAPE => (State::Escape, None),
            b'M' if self.sequence.is_empty() => (State::Skip(OLD_MOUSE), None),
            0x40..=0x7e => {
                let sequence = std::mem::take(&mut self.sequence);
                if (sequence.as_slice(), byte) == (b"200", b'~') {
                    (State::Pasted, None)
                } else {
                    (State::Ground, spelled(&sequence, byte))
                }
            }
            _ => {
                if self.sequence.len() < LONGEST {
                    self.sequence.push(byte);
                }
                (State::Control, None)
            }
        }
    }

    fn pasted(&mut self, byte: u8) -> State {
        const END: &[u8] = b"\x1b[201~";
        self.sequence.push(byte);
        if self.sequence.ends_with(END) {
            self.sequence.clear();
            return State::Ground;
        }
        let surplus = self.sequence.len().saturating_sub(END.len());
        self.sequence.drain(..surplus);
        State::Pasted
    }
}

/// A key by its number.
fn plain(number: u32) -> Option<Key> {
    match number {
        0x03 | 0x04 | 0x1b => Some(Key::Away),
        0x0a | 0x0d => Some(Key::Enter),
        0x20..=0x7e => char::from_u32(number).map(Key::Char),
        _ => None,
    }
}

/// `CSI number ; modifiers u` and `CSI 27 ; modifiers ; number ~`: how terminals spell keys for programs that want to
/// know them all. What begins with a `?` or another sign is an answer, not a key.
fn spelled(sequence: &[u8], end: u8) -> Option<Key> {
    let text = std::str::from_utf8(sequence).ok()?;
    let numbers: Vec<u32> = text.split(';').map(str::parse).collect::<Result<_, _>>().ok()?;
    let (number, modifiers) = match (end, numbers.as_slice()) {
        (b'u', [number]) => (*number, 1),
        (b'u', [number, modifiers]) | (b'~', [27, modifiers, number]) => (*number, *modifiers),
        _ => return None,
    };
    match (modifiers, number) {
        (PLAIN, number) => plain(number),
        (CONTROL, 0x63 | 0x64) => Some(Key::Away),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(bytes: &[u8]) -> Option<Key> {
        Keys::default().press(bytes)
    }

    #[test]
    fn single_keys_are_keys() {
        assert_eq!(pressed(b"y"), Some(Key::Char('y')));
        assert_eq!(pressed(b"?"), Some(Key::Char('?')));
        assert_eq!(pressed(b"\r"), Some(Key::Enter));
        assert_eq!(pressed(b"\x03"), Some(Key::Away));
        assert_eq!(pressed(b"\x04"), Some(Key::Away));
        assert_eq!(pressed("\u{e9}".as_bytes()), None);
    }

    #[test]
    fn an_escape_is_one_when_nothing_follows() {
        let mut keys = Keys::default();
        assert_eq!(keys.press(b"\x1b"), None);
        assert!(keys.is_open());
        assert_eq!(keys.rest(), Some(Key::Away));
        assert_eq!(keys.rest(), None);
        assert_eq!(keys.press(b"y"), Some(Key::Char('y')));
    }

    #[test]
    fn keys_that_are_spelled_out_are_understood() {
        assert_eq!(pressed(b"\x1b[121u"), Some(Key::Char('y')));
        assert_eq!(pressed(b"\x1b[27u"), Some(Key::Away));
        assert_eq!(pressed(b"\x1b[99;5u"), Some(Key::Away));
        assert_eq!(pressed(b"\x1b[27;5;99~"), Some(Key::Away));
        assert_eq!(pressed(b"\x1b[121;5u"), None);
    }

    #[test]
    fn what_the_terminal_says_by_itself_is_no_key() {
        for report in [
            &b"\x1b[24;80R"[..],
            b"\x1b[?121u",
            b"\x1b]ly\x1b\\",
            b"\x1b]lyyy\x07",
            b"\x1bP1$ry\x1b\\",
            b"\x1b[Myyy",
            b"\x1b[<0;10;10M",
            b"\x1b[I",
            b"\x1b[A",
            b"\x1bOA",
            b"\x1by",
            b"\x1b[200~y\x1b[201~",
            b"\x1b[200~\x1b[200~y\ny",
        ] {
            assert_eq!(pressed(report), None, "{report:?}");
        }
        let mut keys = Keys::default();
        assert_eq!(keys.press(b"\x1b[200~ab\x1b[2"), None);
        assert_eq!(keys.press(b"01~"), None);
        assert_eq!(keys.press(b"n"), Some(Key::Char('n')));
    }

    #[test]
    fn what_comes_in_parts_is_put_together() {
        let mut keys = Keys::default();
        for part in [&b"\x1b"[..], b"[1", b"2", b"1"] {
            assert_eq!(keys.press(part), None);
        }
        assert_eq!(keys.press(b"u"), Some(Key::Char('y')));
    }

    #[test]
    fn several_at_once_are_no_answer() {
        assert_eq!(pressed(b"yes"), None);
        assert_eq!(pressed(b"y\r"), None);
        assert_eq!(pressed(b"y\x03"), Some(Key::Away));
    }
}
