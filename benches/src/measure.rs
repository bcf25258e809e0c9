//! Medians and rows.

use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use crate::world::World;

/// One line of the table.
pub(crate) struct Row {
    what: String,
    reference: String,
    ours: String,
    ratio: String,
    goal: &'static str,
}

impl Row {
    pub(crate) fn time(what: &str, reference: f64, ours: f64, goal: &'static str) -> Row {
        Row::new(what, format!("{reference:.2} ms"), format!("{ours:.2} ms"), ours / reference, goal)
    }

    pub(crate) fn nanoseconds(what: &str, reference: f64, ours: f64, goal: &'static str) -> Row {
        Row::new(what, format!("{reference:.0} ns"), format!("{ours:.0} ns"), ours / reference, goal)
    }

    pub(crate) fn size(what: &str, megabytes: f64, goal: &'static str) -> Row {
        let (what, ours) = (what.to_owned(), format!("{megabytes:.1} MB"));
        Row { what, reference: "-".to_owned(), ours, ratio: "-".to_owned(), goal }
    }

    /// Two times, each in the unit that suits it.
    pub(crate) fn times(what: &str, reference: f64, ours: f64, goal: &'static str) -> Row {
        Row::new(what, time(reference), time(ours), ours / reference, goal)
    }

    pub(crate) fn bytes(what: &str, reference: f64, ours: f64, goal: &'static str) -> Row {
        Row::new(what, bytes(reference), bytes(ours), ours / reference, goal)
    }

    /// Something without a reference.
    pub(crate) fn fact(what: &str, ours: String, goal: &'static str) -> Row {
        Row { what: what.to_owned(), reference: "-".to_owned(), ours, ratio: "-".to_owned(), goal }
    }

    pub(crate) fn new(what: &str, reference: String, ours: String, ratio: f64, goal: &'static str) -> Row {
        Row { what: what.to_owned(), reference, ours, ratio: digits(ratio), goal }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| {} | {} | {} | {} | {} |", self.what, self.reference, self.ours, self.ratio, self.goal)
    }
}

/// Rows are printed as they come: a run takes long.
pub(crate) struct Table(());

impl Table {
    pub(crate) fn begin() -> Table {
        println!("| what | reference | ours | ratio | goal |");
        println!("|---|---|---|---|---|");
        Table(())
    }

    #[allow(clippy::needless_pass_by_value, reason = "once it is printed it is done")]
    #[allow(clippy::unused_self, reason = "no rows without a head")]
    pub(crate) fn push(&mut self, row: Row) {
        println!("{row}");
    }
}

/// Small ratios need more digits.
fn digits(ratio: f64) -> String {
    if ratio < 0.1 { format!("{ratio:.4}") } else { format!("{ratio:.2}") }
}

/// Milliseconds, for people.
pub(crate) fn time(ms: f64) -> String {
    match ms {
        1000.0.. => format!("{:.2} s", ms / 1e3),
        10.0.. => format!("{ms:.1} ms"),
        _ => format!("{ms:.2} ms"),
    }
}

pub(crate) fn bytes(bytes: f64) -> String {
    if bytes.abs() >= 1e6 { format!("{:.1} MB", bytes / 1e6) } else { format!("{:.1} kB", bytes / 1e3) }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median wall time of each command, measured in turn.
pub(crate) fn median_ms(world: &World, commands: &[Vec<String>], rounds: usize) -> Vec<f64> {
    let mut times = vec![Vec::with_capacity(rounds); commands.len()];
    for round in 0..rounds + 5 {
        for (command, times) in commands.iter().zip(&mut times) {
            let begin = Instant::now();
            world.run(command);
            // The first rounds fill caches.
            if round >= 5 {
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    times.into_iter().map(median).collect()
}

/// Nanoseconds for one open and close of a file in `dir`, best of several stretches.
pub(crate) fn open_loop(dir: &Path) -> f64 {
    const STRETCH: u32 = 5_000;
    let file = dir.join("file");
    let stretch = || {
        let begin = Instant::now();
        for _ in 0..STRETCH {
            black_box(File::open(black_box(&file)).expect("the file is granted"));
        }
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(STRETCH)
    };
    (0..10).map(|_| stretch()).fold(f64::INFINITY, f64::min)
}
