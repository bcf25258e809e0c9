//! Expected verdict of every attack in every mode, kept in `verdicts.txt`. `NONO_ESCAPE=record` writes the file from
//! the observed verdicts; review each `open` before committing it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::attack::Mode;

/// Verdict of an attack in a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cell {
    /// Not tried in this mode: the attack is about another one.
    Absent,
    /// Blocked; nothing came out, and nothing outside changed.
    Held,
    /// nono did not start the command.
    Refused,
    /// A race that is lost or won.
    Either,
    /// It succeeds.
    Open,
}

impl Cell {
    const WORDS: [(&'static str, Cell); 5] = [
        ("-", Cell::Absent),
        ("held", Cell::Held),
        ("refused", Cell::Refused),
        ("either", Cell::Either),
        ("open", Cell::Open),
    ];

    fn word(self) -> &'static str {
        Cell::WORDS.iter().find(|(_, cell)| *cell == self).map_or("-", |(word, _)| word)
    }

    fn read(word: &str) -> Cell {
        let found = Cell::WORDS.iter().find(|(other, _)| *other == word);
        found.map_or_else(|| panic!("verdicts.txt: `{word}` is no verdict"), |(_, cell)| *cell)
    }

    /// Whether the observed verdict agrees with the recorded one.
    pub(crate) fn admits(self, seen: Cell) -> bool {
        self == seen || self == Cell::Either && matches!(seen, Cell::Held | Cell::Open)
    }
}

/// One line: the verdicts in the order of [`Mode::EVERY`].
pub(crate) type Row = [Cell; Mode::EVERY.len()];
/// Rows by theme and steps.
type Rows = BTreeMap<(String, String), Row>;

const HEAD: &str = "\
# What becomes of every attack of this suite in every mode; compared at each run, written by NONO_ESCAPE=record.
# held: blocked. refused: nono does not start the command. open: it succeeds. either: a race. -: not tried.
# ask answers every question with no; bare is run on a machine that gives no user namespaces.
#
# run     wrap     monitor  ask      bare     theme: steps and flags
";

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("verdicts.txt")
}

fn read(text: &str) -> Rows {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let mut rest = line;
            let row = [(); Mode::EVERY.len()].map(|()| {
                let (word, after) = rest.trim_start().split_once(' ').expect("verdicts and a theme");
                rest = after;
                Cell::read(word)
            });
            let (theme, steps) = rest.trim_start().split_once(": ").expect("theme: steps");
            ((theme.to_owned(), steps.to_owned()), row)
        })
        .collect()
}

static KNOWN: LazyLock<Mutex<Rows>> =
    LazyLock::new(|| Mutex::new(read(&fs::read_to_string(path()).unwrap_or_default())));

pub(crate) fn recording() -> bool {
    std::env::var("NONO_ESCAPE").is_ok_and(|mode| mode == "record")
}

/// Recorded verdicts of these steps.
pub(crate) fn expected(theme: &str, steps: &str) -> Option<Row> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.get(&(theme.to_owned(), steps.to_owned())).copied()
}

/// Records the observed verdicts. A race stays one.
pub(crate) fn record(theme: &str, steps: &str, seen: Row) {
    static SEEN: LazyLock<Mutex<Rows>> = LazyLock::new(Mutex::default);
    let key = (theme.to_owned(), steps.to_owned());
    let before = SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), seen);
    assert!(before.is_none_or(|before| before == seen), "two attacks are called `{steps}`: label them");
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let row = known.entry(key).or_insert(seen);
    for (cell, seen) in row.iter_mut().zip(seen) {
        *cell = if cell.admits(seen) { *cell } else { seen };
    }
    let mut text = HEAD.to_owned();
    for ((theme, steps), row) in known.iter() {
        for cell in row {
            write!(text, "{:<9}", cell.word()).expect("text");
        }
        writeln!(text, "{theme}: {steps}").expect("text");
    }
    fs::write(path(), text).expect("verdicts.txt");
}
