//! Key presses out of what a raw terminal sends.
//!
//! A terminal also sends bytes that were not typed: replies to the command's queries, mouse moves, pasted text. The
//! command chooses the encoding of many of them, so no parser can be trusted to know where one ends. A key is one plain
//! byte that arrives alone: in a read of its own, with nothing right after it, and not shortly after other input.

use std::time::{Duration, Instant};

/// Silence required after a key. Reports of a terminal come in one piece, or in pieces close together.
const ALONE: Duration = Duration::from_millis(50);
/// Time after other input in which nothing counts as a key: the pieces of a report may be far apart on a slow line.
const TALKING: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyPress {
    Char(char),
    Enter,
    /// Escape, Ctrl-C or Ctrl-D.
    Away,
}

/// Recognises key presses from reads and their times.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// A key that may still turn out to be the beginning of a report.
    pressed: Option<(KeyPress, Instant)>,
    /// Time of the last input that was no key.
    talked: Option<Instant>,
}

impl Keys {
    /// Takes the bytes of one read.
    pub(crate) fn heard(&mut self, bytes: &[u8], now: Instant) {
        let talking = self.talked.is_some_and(|then| now.saturating_duration_since(then) < TALKING);
        let key = single(bytes).filter(|_| !talking && self.pressed.is_none());
        self.pressed = key.map(|key| (key, now));
        if key.is_none() {
            self.talked = Some(now);
        }
    }

    /// Returns the pressed key once nothing followed it for long enough. Called when nothing is left to read.
    pub(crate) fn silence(&mut self, now: Instant) -> Option<KeyPress> {
        let (key, _) = self.pressed.take_if(|(_, then)| now.saturating_duration_since(*then) >= ALONE)?;
        Some(key)
    }

    /// Time to wait for input before calling `silence` again, if a key is pending.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.pressed.map(|_| ALONE)
    }
}

/// Key that a read of one byte stands for.
fn single(bytes: &[u8]) -> Option<KeyPress> {
    match *bytes {
        [0x03 | 0x04 | 0x1b] => Some(KeyPress::Away),
        [0x0a | 0x0d] => Some(KeyPress::Enter),
        [byte @ 0x20..=0x7e] => Some(KeyPress::Char(byte.into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys recognised from reads, each given with the milliseconds since the one before; silence follows the last.
    fn pressed(reads: &[(u64, &[u8])]) -> Vec<KeyPress> {
        let (mut keys, mut now, mut found) = (Keys::default(), Instant::now(), Vec::new());
        for (after, bytes) in reads {
            now += Duration::from_millis(*after);
            found.extend(keys.silence(now));
            keys.heard(bytes, now);
        }
        found.extend(keys.silence(now + ALONE));
        found
    }

    #[test]
    fn single_keys_are_keys() {
        assert_eq!(pressed(&[(0, b"y")]), [KeyPress::Char('y')]);
        assert_eq!(pressed(&[(0, b"?")]), [KeyPress::Char('?')]);
        assert_eq!(pressed(&[(0, b"\r")]), [KeyPress::Enter]);
        for away in [b"\x03", b"\x04", b"\x1b"] {
            assert_eq!(pressed(&[(0, away)]), [KeyPress::Away]);
        }
        assert_eq!(pressed(&[(0, b"x"), (100, b"y")]), [KeyPress::Char('x'), KeyPress::Char('y')]);
    }

    #[test]
    fn a_key_waits_until_nothing_can_follow_it() {
        let (mut keys, now) = (Keys::default(), Instant::now());
        keys.heard(b"y", now);
        assert_eq!(keys.silence(now + ALONE / 2), None);
        assert_eq!(keys.patience(), Some(ALONE));
        assert_eq!(keys.silence(now + ALONE), Some(KeyPress::Char('y')));
        assert_eq!((keys.silence(now + ALONE), keys.patience()), (None, None));
    }

    /// Reports of terminals, and pasted text.
    const REPORTS: &[&[u8]] = &[
        b"\x1b[24;80R",
        b"\x1b[?121u",
        b"\x1b[121u",
        b"\x1b]ly\x1b\\",
        b"\x1bP1$ry\x1b\\",
        b"\x1b[Myyy",
        // A pointer beyond column 95, in UTF-8: row 57 is a Y.
        b"\x1b[MC\xc2\x84Y",
        b"\x1b[<35;100;57M",
        b"\x1b[32;100;57M",
        b"\x1b[t\x21\x79",
        b"\x1b[I",
        b"\x1b[A",
        b"\x1bOy",
        b"\x8fy",
        b"\x9bMC!y",
        b"\x1by",
        b"\x1b[200~y\x1b[201~",
        b"yes",
        b"y\r",
        b"yy",
        b"\xc3\xa9",
    ];

    #[test]
    fn what_the_terminal_says_by_itself_is_no_key() {
        for report in REPORTS {
            assert_eq!(pressed(&[(0, report)]), [], "{report:?}");
            // Nor in two pieces, wherever it is cut; and an escape that is late denies at most.
            for at in 1..report.len() {
                let (first, second) = report.split_at(at);
                for gap in [0, 20, 200] {
                    let found = pressed(&[(0, first), (gap, second)]);
                    let late = first.len() == 1 && gap >= 50;
                    let first = if late { single(first) } else { None };
                    assert!(found.is_empty() || found.first() == first.as_ref(), "{report:?} {at} {gap}");
                    assert!(first.is_some() || found.is_empty(), "{report:?} {at} {gap}: {found:?}");
                }
            }
            // Nor byte by byte.
            let bytes: Vec<_> = report.iter().map(|byte| (10, std::slice::from_ref(byte))).collect();
            assert_eq!(pressed(&bytes), [], "{report:?}");
        }
    }

    proptest::proptest! {
        /// Recognises no more keys than there are reads of one plain byte with silence after them.
        #[test]
        fn only_a_byte_that_stood_alone_is_a_key(
            reads in proptest::collection::vec((0u64..400, proptest::collection::vec(proptest::num::u8::ANY, 0..4)), 0..40)
        ) {
            let reads: Vec<(u64, &[u8])> = reads.iter().map(|(after, bytes)| (*after, bytes.as_slice())).collect();
            let alone = |at: usize| {
                let quiet = reads.get(at + 1).is_none_or(|(after, _)| Duration::from_millis(*after) >= ALONE);
                single(reads[at].1).filter(|_| quiet)
            };
            let found = pressed(&reads);
            let mut candidates = (0..reads.len()).filter_map(alone);
            proptest::prop_assert!(found.iter().all(|key| candidates.any(|other| other == *key)), "{found:?}");
        }
    }

    #[test]
    fn keys_after_a_terminal_report_are_read() {
        assert_eq!(pressed(&[(0, b"\x1b[I"), (100, b"y")]), []);
        assert_eq!(pressed(&[(0, b"\x1b[I"), (300, b"y")]), [KeyPress::Char('y')]);
    }
}
