//! Fuzzing of the parsers of hostile bytes: terminal output and requests.
//!
//! A few rounds each time; `NONO_FUZZ_SECONDS=3600` goes on for that long, and `NONO_FUZZ_SEED` repeats the round that
//! failed.

use std::panic;
use std::sync::Once;
use std::time::{Duration, Instant};

use crate::catch_panic::is_contained;
use crate::escape_boundary::EscapeBoundary;
use crate::screen::ScreenModel;

const ROUNDS: u64 = 300;

/// Pseudo-random numbers from a seed (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    pub(crate) fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }

    pub(crate) fn bytes(&mut self, longest: usize) -> Vec<u8> {
        (0..self.below(longest + 1)).map(|_| self.byte()).collect()
    }
}

/// Rounds of a test, each with its own seed.
pub(crate) fn rounds(mut round: impl FnMut(&mut Random)) {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !is_contained() {
                before(panic);
            }
        }));
    });
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("NONO_FUZZ_SEED") {
        return round(&mut Random(seed));
    }
    let end = number("NONO_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let first = end.map_or(0, |_| u64::from(std::process::id()) << 32);
    for seed in first.. {
        if end.map_or(seed >= ROUNDS, |end| Instant::now() > end) {
            println!("{} rounds", seed - first);
            return;
        }
        let done = panic::catch_unwind(panic::AssertUnwindSafe(|| round(&mut Random(seed))));
        assert!(done.is_ok(), "NONO_FUZZ_SEED={seed} repeats it");
    }
}

const TEXTS: &[&str] = &[
    "x",
    " ",
    "abc def",
    "8",
    "#",
    "\u{fe0f}",
    "\u{fe0e}",
    "\u{200d}",
    "\u{301}",
    "\u{65e5}",
    "\u{672c}\u{8a9e}",
    "\u{1f468}\u{200d}\u{1f469}",
    "\u{1f1e9}\u{1f1ea}",
    "\u{1f980}",
    "\u{ad}",
    "\u{300}\u{301}\u{302}\u{303}\u{304}",
    "\u{9b}",
    "\u{9d}",
    "\u{85}",
    "\u{fffd}",
    "\u{e0041}",
    "\u{1100}\u{1161}",
];
const CONTROLS: &[&[u8]] = &[
    b"\n", b"\r", b"\r\n", b"\t", b"\x08", b"\x0b", b"\x0c", b"\x0e", b"\x0f", b"\x07", b"\x00", b"\x7f",
    b"\x18",
];
const NUMBERS: &[&str] = &[
    "",
    "0",
    "1",
    "2",
    "3",
    "5",
    "23",
    "24",
    "25",
    "79",
    "80",
    "81",
    "255",
    "9999",
    "65535",
    "65536",
    "99999999999",
    "00000000000000000000000000000065535",
    "38;5;7",
    "48;2;1;2;3",
    "4:3",
    "1049",
    "47",
    "1047",
    "6",
    "7",
    "69",
    "1003",
    "1005",
    "1006",
    "2004",
    "2026",
    "1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25;26;27;28;29;30;31;32;33",
];

/// Appends something that a program may write.
fn piece(random: &mut Random, bytes: &mut Vec<u8>) {
    match random.below(20) {
        0..=5 => bytes.extend(random.one(TEXTS).as_bytes()),
        6..=7 => bytes.extend(random.one(CONTROLS)),
        8..=15 => {
            bytes.extend(b"\x1b[");
            bytes.extend(random.one::<[u8]>(&[b"", b"", b"", b"", b"?", b"?", b">", b"<", b"="]));
            for at in 0..random.below(4) {
                if at > 0 {
                    bytes.push(b';');
                }
                bytes.extend(random.one(NUMBERS).as_bytes());
            }
            bytes.extend(random.one::<[u8]>(&[b"", b"", b"", b"", b" ", b"!", b"$"]));
            let usual = random.one(&b"@ABCDEFGHJKLMPSTXZ`bdfhlmnpqrstu".each_ref());
            bytes.push(if random.below(8) == 0 { 0x40 + random.byte() % 63 } else { *usual });
        }
        16 => {
            bytes.push(0x1b);
            bytes.push(*random.one(&b"78=>McDEHNOZ()#% \\".each_ref()));
            if random.below(2) == 0 {
                bytes.push(random.byte());
            }
        }
        17 => {
            bytes.extend(random.one::<[u8]>(&[
                b"\x1b]0;",
                b"\x1b]4;",
                b"\x1b]52;c;",
                b"\x1bP",
                b"\x1b_",
                b"\x1bX",
            ]));
            bytes.extend(random.bytes(40));
            bytes.extend(random.one::<[u8]>(&[b"\x07", b"\x1b\\", b"\x9c", b""]));
        }
        18 => bytes.extend(random.bytes(6)),
        _ => {
            let (from, again) = (random.below(bytes.len() + 1), 1 + random.below(3));
            let part = bytes[from..].iter().take(60).copied().collect::<Vec<_>>();
            (0..again).for_each(|_| bytes.extend(&part));
        }
    }
}

fn side(random: &mut Random) -> u16 {
    u16::try_from([1, 2, 3, 5, 24, 80, 200][random.below(7)]).unwrap()
}

/// Checks that a prompt at the end of some output leaves the terminal as it was: reporting the same events that the
/// command had set.
fn put_a_question(model: &mut ScreenModel, written: &[u8], (rows, columns): (u16, u16), full_screen: bool) {
    let (opening, closing) = (model.opening(full_screen), model.closing(full_screen));
    assert!(opening.len() < 1000);
    let mut terminal = ScreenModel::new(rows, columns);
    terminal.follow(written);
    terminal.follow(&opening);
    assert!(!terminal.sends_reports(), "a question is put while the terminal reports");
    terminal.follow(b"[nono] Allow? \r\n");
    terminal.follow(&closing);
    assert!(terminal.sends_as(model), "not what the command had set");
}

#[test]
fn no_output_ends_the_mirror_of_a_screen() {
    rounds(|random| {
        let size = (side(random), side(random));
        let mut model = ScreenModel::new(size.0, size.1);
        let (mut written, mut resized) = (Vec::new(), false);
        for _ in 0..random.below(30) {
            let mut bytes = Vec::new();
            (0..random.below(60)).for_each(|_| piece(random, &mut bytes));
            let half = random.below(bytes.len() + 1);
            model.follow(&bytes[..half]);
            model.follow(&bytes[half..]);
            written.extend(bytes);
            if random.below(8) == 0 {
                model.resize(side(random), side(random));
                resized = true;
            }
            let full_screen = random.below(2) == 0;
            if model.open() == 0 && !resized && !model.may_be_cut() {
                put_a_question(&mut model, &written, size, full_screen);
            } else {
                let _ = (model.opening(full_screen), model.closing(full_screen), model.ending(full_screen));
            }
        }
    });
}

#[test]
fn no_output_waits_for_ever_at_an_edge() {
    rounds(|random| {
        let mut boundary = EscapeBoundary::default();
        for _ in 0..random.below(200) {
            let mut bytes = Vec::new();
            piece(random, &mut bytes);
            let (mut told, before) = (0, boundary.open());
            boundary.follow(&bytes, |_| told += 1);
            assert!(
                boundary.open() <= before + bytes.len() && boundary.open() <= 4096 && told <= bytes.len()
            );
        }
        // Ends any unfinished sequence.
        boundary.follow(b"\x18\x1b\\", |_| ());
        assert_eq!(boundary.open(), 0);
    });
}
