//! Model of the command's screen, so that a prompt can be drawn over it and removed again.
//!
//! The command is hostile: whatever state it left the terminal in, a prompt must be seen in full. So everything that
//! could hide or garble it (colours, character sets, the scrolling region, margins) is reset first and restored
//! afterwards. Neither a panic of the parser nor excessive work for few bytes may stop the run: then the screen is
//! unknown, a prompt begins on a line or a screen of its own, and the command is told to draw again.

use std::num::NonZeroU16;

use vt100::{Callbacks, Parser, Screen};

use crate::catch_panic::contained;
use crate::escape_boundary::{EscapeBoundary, Sequence};
use crate::modes::{self, Modes};

/// Resets: no colours, ASCII, replace mode, autowrap, cursor visible.
const PLAIN: &[u8] = b"\x1b[m\x0f\x1b(B\x1b[4l\x1b[?7h\x1b[?25h";
/// Resets the palette, the text colour and the background colour.
const COLOURS: &[u8] = b"\x1b]104\x07\x1b]110\x07\x1b]111\x07";
/// Switches to the alternate screen; the main screen comes back as it was, including what the command did not draw.
const ASIDE: &[u8] = b"\x1b[?1049h";
const BACK: &[u8] = b"\x1b[?1049l";
const CLEAR: &[u8] = b"\x1b[H\x1b[2J";
/// Resets margins, region and origin mode. Moves the cursor.
const WHOLE: &[u8] = b"\x1b[?69l\x1b[?6l\x1b[r";
/// Ends any unfinished sequence.
const END_SEQUENCE: &[u8] = b"\x18\x1b\\";

/// Largest number in a sequence.
const MOST: usize = 65535;
/// Maximum number of cells that the bytes of one read may have the parser touch, in cells and in screens.
const WORK: usize = 1 << 19;
const SCREENS: usize = 16;

pub(crate) struct ScreenModel {
    parser: Parser<ScreenExtras>,
    boundary: EscapeBoundary,
    modes: Modes,
    /// Whether the content is unknown, or was.
    lost: bool,
}

impl std::fmt::Debug for ScreenModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScreenModel").field("boundary", &self.boundary).finish_non_exhaustive()
    }
}

/// State that the parser does not keep.
#[derive(Debug, Default)]
struct ScreenExtras {
    /// Whether something was drawn that cannot be drawn again from what is known.
    inexact: bool,
    /// Whether the meaning of colours was changed.
    recoloured: bool,
}

impl Callbacks for ScreenExtras {
    fn unhandled_escape(&mut self, _: &mut Screen, first: Option<u8>, _: Option<u8>, byte: u8) {
        // Line drawing, and cursor movements that are not followed. `ESC ( B` is the default anyway.
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
            // Attributes that are not followed; tabs, and a saved cursor.
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

impl ScreenModel {
    pub(crate) fn new(rows: u16, columns: u16) -> ScreenModel {
        let parser = parser(size(rows, columns));
        ScreenModel { parser, boundary: EscapeBoundary::default(), modes: Modes::default(), lost: false }
    }

    pub(crate) fn follow(&mut self, bytes: &[u8]) {
        let seen = self.last_screen(bytes).unwrap_or(bytes);
        let size = self.parser.screen().size();
        let (rows, columns) = (usize::from(size.0.get()), usize::from(size.1.get()));
        let line_ends = seen.iter().filter(|byte| matches!(byte, 0x0a..=0x0c)).count();
        // A new line is cleared, which is less work than drawing it.
        let mut work = seen.len() + line_ends * columns / 8;
        self.boundary.follow(bytes, |sequence| {
            self.modes.apply(sequence);
            work = work.saturating_add(cost(sequence, rows, columns));
        });
        let parser = &mut self.parser;
        if work > WORK.max(SCREENS * rows * columns) || contained(|| parser.process(seen)).is_none() {
            self.lose(size);
        }
    }

    /// Starts again with an unknown screen.
    fn lose(&mut self, size: (NonZeroU16, NonZeroU16)) {
        self.parser = parser(size);
        *self.parser.callbacks_mut() = ScreenExtras { inexact: true, recoloured: true };
        self.lost = true;
    }

    /// Last lines of a flood of output, which are still on the screen after it; the others need no parsing.
    fn last_screen<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let screen = self.parser.screen();
        let plain = |byte: &u8| *byte >= 0x20 || matches!(byte, b'\n' | b'\r' | b'\t');
        let ordinary =
            self.boundary.open() == 0 && self.boundary.region().is_none() && !self.boundary.is_cut();
        if !ordinary || self.on_alternate_screen() || !bytes.iter().all(plain) {
            return None;
        }
        // This many line ends move everything before them off the screen, wherever the cursor was.
        let rows = usize::from(screen.size().0.get());
        let end = |at: &usize| bytes[*at] == b'\n' && *at > 0 && bytes[*at - 1] == b'\r';
        let first = (0..bytes.len()).rev().filter(end).nth(rows)?;
        // From the carriage return on, so that the column is right.
        Some(&bytes[first - 1..])
    }

    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        let size = size(rows, columns);
        let parser = &mut self.parser;
        if contained(|| parser.set_size(size.0, size.1)).is_none() {
            self.lose(size);
        }
    }

    /// Number of the last bytes that must wait for the bytes after them.
    pub(crate) fn open(&self) -> usize {
        self.boundary.open()
    }

    pub(crate) fn on_alternate_screen(&self) -> bool {
        self.modes.on_alternate_screen()
    }

    /// Whether [`ScreenModel::closing`] may draw something different from what was there.
    pub(crate) fn is_inexact(&self) -> bool {
        self.lost || self.parser.callbacks().inexact
    }

    /// Bytes to write before a prompt.
    pub(crate) fn opening(&self, full_screen: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.boundary.may_be_cut() {
            bytes.extend(END_SEQUENCE);
        }
        if full_screen && !self.on_alternate_screen() {
            bytes.extend(ASIDE);
        }
        bytes.extend(modes::reset());
        bytes.extend(PLAIN);
        if self.parser.callbacks().recoloured {
            bytes.extend(COLOURS);
        }
        let confined = self.boundary.region().is_some() || self.boundary.is_framed();
        if confined {
            bytes.extend(WHOLE);
        }
        if full_screen {
            bytes.extend(CLEAR);
        } else if confined {
            // The cursor went to the top; only the last line is known to be below everything.
            bytes.extend(b"\x1b[999;1H\r\n");
        } else if self.lost || self.parser.screen().cursor_position().1 > 0 {
            bytes.extend(b"\r\n");
        }
        bytes
    }

    /// Bytes to write after a prompt: they restore the screen, or the line that the command is in the middle of. What
    /// cannot be drawn is left to the command.
    pub(crate) fn closing(&mut self, full_screen: bool) -> Vec<u8> {
        let mut bytes = Modes::level_back().to_vec();
        if let Some(drawn) = contained(|| self.drawn_again(full_screen)) {
            bytes.extend(drawn);
        } else {
            self.lose(self.parser.screen().size());
            bytes.extend(contained(|| self.drawn_again(full_screen)).unwrap_or_default());
        }
        bytes.extend(self.modes.again());
        bytes
    }

    /// Bytes to write instead when the command has ended meanwhile: its screen is not restored.
    pub(crate) fn ending(&self, full_screen: bool) -> Vec<u8> {
        let mut bytes = Modes::level_back().to_vec();
        if full_screen {
            bytes.extend(if self.on_alternate_screen() { CLEAR } else { BACK });
        }
        bytes.extend(Modes::default().again());
        bytes
    }

    fn drawn_again(&self, full_screen: bool) -> Vec<u8> {
        let screen = self.parser.screen();
        let mut bytes = Vec::new();
        let region =
            self.boundary.region().map(|region| [b"\x1b[", region, b"r"].concat()).unwrap_or_default();
        if full_screen && self.on_alternate_screen() {
            bytes.extend(CLEAR);
            bytes.extend(screen.contents_formatted().as_bytes());
            if !region.is_empty() {
                // Moves the cursor.
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
        if screen.hide_cursor() {
            bytes.extend(b"\x1b[?25l");
        }
        bytes
    }

    /// Redraws the line the cursor is in, with the cursor where it was.
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

fn parser((rows, columns): (NonZeroU16, NonZeroU16)) -> Parser<ScreenExtras> {
    Parser::new_with_callbacks(rows, columns, 0, ScreenExtras::default())
}

/// Number of cells a sequence has the parser touch: a few bytes can mean much work.
fn cost(sequence: &Sequence<'_>, rows: usize, columns: usize) -> usize {
    let screen = rows * columns;
    match *sequence {
        Sequence::Escape { between: None, last: b'c' } => 2 * screen,
        Sequence::Escape { between: None, last: b'D' | b'E' | b'M' } => columns,
        Sequence::Escape { .. } => 1,
        Sequence::Control { parameters, cut, last } => {
            let count = if cut { MOST } else { count(parameters) };
            match last {
                b'b' => count,
                b'J' => screen,
                b'L' | b'M' | b'S' | b'T' => count.min(rows) * columns,
                b'@' | b'K' | b'P' | b'X' => columns,
                // Each of them may switch screens.
                b'h' | b'l' if parameters.first() == Some(&b'?') => {
                    let switch = parameters.windows(2).filter(|pair| matches!(*pair, b"47" | b"49")).count();
                    1 + (switch + usize::from(cut)) * screen
                }
                _ => 1 + parameters.len(),
            }
        }
    }
}

/// First number of some parameters, as a parser reads it: none means one, and it is capped.
fn count(parameters: &[u8]) -> usize {
    let digits =
        parameters.iter().skip_while(|byte| !byte.is_ascii_digit()).take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| MOST.min(number * 10 + usize::from(digit - b'0'))).max(1)
}

/// Size of the screen; a terminal without one gets the default.
fn size(rows: u16, columns: u16) -> (NonZeroU16, NonZeroU16) {
    (
        NonZeroU16::new(rows).unwrap_or(Parser::DEFAULT_ROWS),
        NonZeroU16::new(columns).unwrap_or(Parser::DEFAULT_COLS),
    )
}

#[cfg(test)]
impl ScreenModel {
    /// Whether the terminal may send reports, or keys in another encoding.
    pub(crate) fn sends_reports(&self) -> bool {
        self.modes.again() != Modes::pasted().again()
    }

    pub(crate) fn sends_as(&self, other: &ScreenModel) -> bool {
        self.modes == other.modes
    }

    pub(crate) fn may_be_cut(&self) -> bool {
        self.boundary.may_be_cut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_leaves_the_screen_that_it_would_leave() {
        let lines = (0..500).fold(String::new(), |all, n| format!("{all}line {n}\tx \u{65e5}\u{672c}\r\n"));
        for before in ["", "\x1b[5;7Hhere", "\x1b[31mred", "a\r\nb"] {
            for flood in [lines.as_str(), &lines[..lines.len() - 9], "short\r\n"] {
                let (mut model, mut whole) = (ScreenModel::new(24, 80), ScreenModel::new(24, 80));
                model.follow(before.as_bytes());
                model.follow(flood.as_bytes());
                whole.parser.process(before.as_bytes());
                whole.parser.process(flood.as_bytes());
                let drawn = |model: &ScreenModel| model.parser.screen().state_formatted();
                assert_eq!(drawn(&model), drawn(&whole), "{before:?}");
            }
        }
    }

    #[test]
    fn a_screen_can_be_drawn_again() {
        let mut model = ScreenModel::new(24, 80);
        model.follow(b"\x1b[?1049h\x1b[2;10r\x1b[3;4Hhello \x1b[1;35mthere\x1b[?25l\x1b[?2004h");
        assert!(model.on_alternate_screen() && !model.is_inexact());
        let mut terminal = ScreenModel::new(24, 80);
        terminal.follow(b"\x1b[?1049h");
        terminal.follow(&model.opening(true));
        terminal.follow(b"a question\r\n");
        terminal.follow(&model.closing(true));
        assert_eq!(terminal.parser.screen().state_formatted(), model.parser.screen().state_formatted());
        assert_eq!(terminal.boundary.region(), Some(&b"2;10"[..]));
        assert_eq!(terminal.modes, model.modes);
    }

    /// Sequence that makes the parser panic, on a screen of 24 by 80.
    const FATAL: &[u8] = "\x1b[24;80H8\u{fe0f}\x1b[23;80Hx".as_bytes();

    #[test]
    fn a_fault_of_the_parser_leaves_a_screen_that_is_not_known() {
        assert!(contained(|| parser(size(24, 80)).process(FATAL)).is_none(), "proves nothing");
        let mut model = ScreenModel::new(24, 80);
        model.follow(b"\x1b[?1049h\x1b[?1003h");
        model.follow(FATAL);
        assert!(model.is_inexact() && model.on_alternate_screen());
        model.follow(b"\x1b[2J\x1b[Hdrawn since");
        assert!(String::from_utf8(model.closing(true)).unwrap().contains("drawn since"));
        assert!(model.closing(true).ends_with(b"\x1b[?1003h"));
        // The cursor's position is unknown, so a prompt begins on a line of its own.
        assert!(model.opening(false).ends_with(b"\r\n"));
    }

    #[test]
    fn work_is_bounded_by_the_number_of_bytes() {
        for little in [
            &b"\x1b[65535b"[..],
            b"\x1b[0000000000000000065535b",
            b"\x1b[2J",
            b"\x1bc",
            b"\x1b[65535L",
            b"\x1b[65535S",
            b"\x1b[?1049h\x1b[?1049l",
        ] {
            let mut model = ScreenModel::new(60, 200);
            model.follow(b"x");
            model.follow(little);
            assert!(!model.lost, "{little:?} is little work");
            model.follow(&little.repeat(16 * 1024 / little.len()));
            assert!(model.lost, "{little:?} is too much");
        }
        let long = [b"x\x1b[", "0".repeat(500).as_bytes(), b"65535b"].concat();
        let mut model = ScreenModel::new(60, 200);
        model.follow(&long.repeat(20));
        assert!(model.lost);
    }

    #[test]
    fn ordinary_output_is_not_too_much() {
        let line = "\x1b[1;34mname\x1b[m  \x1b[32mother\x1b[m\x1b[K\r\n".repeat(600);
        let frame = "\x1b[?25l\x1b[H\x1b[2J\x1b[5;5Htext\x1b[?25h".repeat(4);
        for text in [&line[..16 * 1024], &frame, &"y\r\n".repeat(5000)] {
            let mut model = ScreenModel::new(60, 200);
            model.follow(b"\x1b[?1049h");
            model.follow(text.as_bytes());
            assert!(!model.lost, "{:?}", &text[..40]);
        }
    }

    #[test]
    fn what_cannot_be_drawn_again_is_noticed() {
        for bytes in [&b"\x1b(0lqk"[..], b"\x1b[9mstruck", b"\x1b]8;;http://x\x07link", b"\x1b[4h"] {
            let mut model = ScreenModel::new(24, 80);
            model.follow(bytes);
            assert!(model.is_inexact(), "{bytes:?}");
        }
    }
}
