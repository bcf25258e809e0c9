//! What stands on the command's screen, so that a question can be put over it and taken away again.
//!
//! The command is hostile: whatever state it left the terminal in, a question must be seen in full. So what could hide
//! or garble it (colours, character sets, the scrolling region, margins) is set back first, and as it was afterwards.

use std::num::NonZeroU16;

use vt100::{Callbacks, Parser, Screen};

use crate::edge::Edge;

/// No colours, ASCII, replace, wrap, a cursor; pasted text is marked as such.
const PLAIN: &[u8] = b"\x1b[m\x0f\x1b(B\x1b[4l\x1b[?7h\x1b[?25h\x1b[?2004h";
/// The palette, the text's colour, the background's.
const COLOURS: &[u8] = b"\x1b]104\x07\x1b]110\x07\x1b]111\x07";
/// A screen beside the ordinary one, which comes back as it was; not all that stands there is the command's.
const ASIDE: &[u8] = b"\x1b[?1049h";
const BACK: &[u8] = b"\x1b[?1049l";
const CLEAR: &[u8] = b"\x1b[H\x1b[2J";
/// No margins, no region, and no place counted from its beginning. Moves the cursor.
const WHOLE: &[u8] = b"\x1b[?69l\x1b[?6l\x1b[r";
/// Ends whatever sequence was left open.
const END_SEQUENCE: &[u8] = b"\x18\x1b\\";

/// A screen, followed.
pub(crate) struct Mirror {
    parser: Parser<Marks>,
    edge: Edge,
}

impl std::fmt::Debug for Mirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mirror").field("edge", &self.edge).finish_non_exhaustive()
    }
}

/// What the parser does not keep.
#[derive(Debug, Default)]
struct Marks {
    /// Something was drawn that cannot be drawn again from what is known.
    inexact: bool,
    /// The meaning of colours was changed.
    recoloured: bool,
}

impl Callbacks for Marks {
    fn unhandled_escape(&mut self, _: &mut Screen, first: Option<u8>, _: Option<u8>, byte: u8) {
        // Line drawing, and the ways to move that are not followed. `ESC ( B` is how things are anyway.
        self.inexact |= match first {
            Some(b'(' | b')') => byte != b'B',
            Some(_) => true,
            None => matches!(byte, b'D' | b'E' | b'H' | b'N' | b'O'),
        };
    }

    fn unhandled_csi(
        &mut self,
        _: &mut Screen,
        first: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        c: char,
    ) {
        self.inexact |= match (first, c) {
            (None, 'h') => params.iter().any(|param| **param == [4]),
            // Looks that are not followed; tabs, and a saved cursor.
            (None, 'm' | 'I' | 'Z' | 's' | 'u') => true,
            (Some(b'?'), 'h' | 'l') => params.iter().any(|param| matches!(**param, [7 | 69 | 1047])),
            _ => false,
        };
    }

    fn unhandled_osc(&mut self, _: &mut Screen, params: &[&[u8]]) {
        match params.first() {
            Some(&(b"4" | b"5" | b"10" | b"11")) => self.recoloured = true,
            Some(&b"8") => self.inexact = true,
            _ => {}
        }
    }
}

impl Mirror {
    pub(crate) fn new(rows: u16, columns: u16) -> Mirror {
        let (rows, columns) = size(rows, columns);
        let parser = Parser::new_with_callbacks(rows, columns, 0, Marks::default());
        Mirror { parser, edge: Edge::default() }
    }

    pub(crate) fn follow(&mut self, bytes: &[u8]) {
        let seen = self.last_screen(bytes).unwrap_or(bytes);
        self.edge.follow(bytes);
        self.parser.process(seen);
    }

    /// The lines of a flood that are still on the screen after it: nobody has to look at the others.
    fn last_screen<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let screen = self.parser.screen();
        let plain = |byte: &u8| *byte >= 0x20 || matches!(byte, b'\n' | b'\r' | b'\t');
        let ordinary = self.edge.open() == 0 && self.edge.region().is_none() && !self.edge.is_cut();
        if !ordinary || screen.alternate_screen() || !bytes.iter().all(plain) {
            return None;
        }
        // So many line ends move everything before them off the screen, wherever the cursor was.
        let rows = usize::from(screen.size().0.get());
        let end = |at: &usize| bytes[*at] == b'\n' && *at > 0 && bytes[*at - 1] == b'\r';
        let first = (0..bytes.len()).rev().filter(end).nth(rows)?;
        // From the carriage return on, so that the column is right.
        Some(&bytes[first - 1..])
    }

    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        let (rows, columns) = size(rows, columns);
        self.parser.set_size(rows, columns);
    }

    /// How many of the last bytes have to wait for what follows them.
    pub(crate) fn open(&self) -> usize {
        self.edge.open()
    }

    pub(crate) fn on_alternate_screen(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// What is drawn by [`Mirror::closing`] may differ from what was there.
    pub(crate) fn is_inexact(&self) -> bool {
        self.parser.callbacks().inexact
    }

    /// To be written before a question.
    pub(crate) fn opening(&self, full_screen: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.edge.is_cut() {
            bytes.extend(END_SEQUENCE);
        }
        if full_screen && !self.on_alternate_screen() {
            bytes.extend(ASIDE);
        }
        bytes.extend(PLAIN);
        if self.parser.callbacks().recoloured {
            bytes.extend(COLOURS);
        }
        let confined = self.edge.region().is_some() || self.edge.is_framed();
        if confined {
            bytes.extend(WHOLE);
        }
        if full_screen {
            bytes.extend(CLEAR);
        } else if confined {
            // The cursor went to the top; the last line is the only place that is known to be below everything.
            bytes.extend(b"\x1b[999;1H\r\n");
        } else if self.parser.screen().cursor_position().1 > 0 {
            bytes.extend(b"\r\n");
        }
        bytes
    }

    /// To be written after a question: everything as it was, or the line that the command is in the middle of.
    pub(crate) fn closing(&self, full_screen: bool) -> Vec<u8> {
        let screen = self.parser.screen();
        let mut bytes = Vec::new();
        let region = self.edge.region().map(|region| [b"\x1b[", region, b"r"].concat()).unwrap_or_default();
        if full_screen && self.on_alternate_screen() {
            bytes.extend(CLEAR);
            bytes.extend(screen.state_formatted().as_bytes());
            if !region.is_empty() {
                // Which moves the cursor.
                bytes.extend(region);
                bytes.extend(screen.cursor_state_formatted().as_bytes());
            }
        } else if full_screen {
            bytes.extend(region);
            bytes.extend(BACK);
        } else {
            bytes.extend(self.line());
        }
        bytes.extend(screen.attributes_formatted().as_bytes());
        bytes.extend(screen.input_mode_formatted().as_bytes());
        if screen.hide_cursor() {
            bytes.extend(b"\x1b[?25l");
        }
        bytes
    }

    /// The line the cursor is in, again, with the cursor where it was.
    fn line(&self) -> Vec<u8> {
        let screen = self.parser.screen();
        let (row, column) = screen.cursor_position();
        let (_, columns) = screen.size();
        let first = (0..row).rev().find(|above| !screen.row_wrapped(*above)).map_or(0, |above| above + 1);
        let mut bytes = b"\x1b[m".to_vec();
        let rows = screen.rows_formatted(0, columns.get());
        for (at, text) in rows.enumerate().skip(first.into()).take(usize::from(row - first) + 1) {
            if at > usize::from(first) {
                bytes.extend(b"\x1b[m\r\n");
            }
            bytes.extend(text.as_bytes());
        }
        bytes.push(b'\r');
        if column > 0 {
            bytes.extend(format!("\x1b[{column}C").as_bytes());
        }
        bytes
    }
}

/// A terminal without a size has a usual one.
fn size(rows: u16, columns: u16) -> (NonZeroU16, NonZeroU16) {
    (
        NonZeroU16::new(rows).unwrap_or(Parser::DEFAULT_ROWS),
        NonZeroU16::new(columns).unwrap_or(Parser::DEFAULT_COLS),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_leaves_the_screen_that_it_would_leave() {
        let lines = (0..500).fold(String::new(), |all, n| format!("{all}line {n}\tx \u{65e5}\u{672c}\r\n"));
        for before in ["", "\x1b[5;7Hhere", "\x1b[31mred", "a\r\nb"] {
            for flood in [lines.as_str(), &lines[..lines.len() - 9], "short\r\n"] {
                let (mut mirror, mut whole) = (Mirror::new(24, 80), Mirror::new(24, 80));
                mirror.follow(before.as_bytes());
                mirror.follow(flood.as_bytes());
                whole.parser.process(before.as_bytes());
                whole.parser.process(flood.as_bytes());
                let drawn = |mirror: &Mirror| mirror.parser.screen().state_formatted();
                assert_eq!(drawn(&mirror), drawn(&whole), "{before:?}");
            }
        }
    }

    #[test]
    fn a_screen_can_be_drawn_again() {
        let mut mirror = Mirror::new(24, 80);
        mirror.follow(b"\x1b[?1049h\x1b[2;10r\x1b[3;4Hhello \x1b[1;35mthere\x1b[?25l\x1b[?2004h");
        assert!(mirror.on_alternate_screen() && !mirror.is_inexact());
        let mut terminal = Mirror::new(24, 80);
        terminal.follow(b"\x1b[?1049h");
        terminal.follow(&mirror.opening(true));
        terminal.follow(b"a question\r\n");
        terminal.follow(&mirror.closing(true));
        assert_eq!(terminal.parser.screen().state_formatted(), mirror.parser.screen().state_formatted());
        assert_eq!(terminal.edge.region(), Some(&b"2;10"[..]));
    }

    #[test]
    fn what_cannot_be_drawn_again_is_noticed() {
        for bytes in [&b"\x1b(0lqk"[..], b"\x1b[9mstruck", b"\x1b]8;;http://x\x07link", b"\x1b[4h"] {
            let mut mirror = Mirror::new(24, 80);
            mirror.follow(bytes);
            assert!(mirror.is_inexact(), "{bytes:?}");
        }
    }
}
