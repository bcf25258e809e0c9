//! What the sandbox costs, as ratios to a reference measured in the same run.
//!
//! Rounds are interleaved (reference, ours, reference, …) and medians compared, so that a noisy machine disturbs both
//! alike. Everything runs as an ordinary user. Nothing is asserted: the table is for people, with the goal beside each
//! ratio.

mod measure;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use measure::{Row, median_ms, open_loop};
use world::World;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let Some(first) = args.next() else {
        eprintln!("usage: nono-benches NONO [--quick]");
        return ExitCode::from(2);
    };
    if first == "open-loop" {
        // The child's half of the open benchmark: inside and outside the sandbox it is this same code.
        let dir = args.next().map(PathBuf::from).unwrap_or_default();
        println!("{}", open_loop(&dir));
        return ExitCode::SUCCESS;
    }
    let quick = args.any(|arg| arg == "--quick");
    let world = World::new(&PathBuf::from(first));
    let rows = [
        starts(&world, if quick { 40 } else { 400 }),
        opens(&world, if quick { 5 } else { 25 }),
        sizes(&world),
    ];
    println!("| what | reference | ours | ratio | goal |");
    println!("|---|---|---|---|---|");
    for row in rows.iter().flatten() {
        println!("{row}");
    }
    ExitCode::SUCCESS
}

/// Starting and ending a command that does nothing.
fn starts(world: &World, rounds: usize) -> Vec<Row> {
    if !world.has("bwrap") {
        eprintln!("skipped: starting a command, because bwrap is not installed");
        return Vec::new();
    }
    let bwrap = ["bwrap", "--dev-bind", "/", "/", "true"].map(str::to_owned);
    let ours = [["wrap"].as_slice(), &["run"], &["run", "--monitor"]];
    let commands: Vec<Vec<String>> =
        std::iter::once(bwrap.to_vec()).chain(ours.iter().map(|mode| world.nono(mode, &["true"]))).collect();
    let times = median_ms(world, &commands, rounds);
    let row = |index: usize, what: &str, goal| Row::time(what, times[0], times[index], goal);
    vec![
        row(1, "`nono wrap -- true`, to `bwrap --dev-bind / / true`", "1.0"),
        row(2, "`nono run -- true`, to the same", "2.0"),
        row(3, "`nono run --monitor -- true`, to the same", "2.0"),
    ]
}

/// Opening and closing a file in a granted tree.
fn opens(world: &World, rounds: usize) -> Vec<Row> {
    let dir = world.project().display().to_string();
    let helper = world.helper().display().to_string();
    let bare = vec![helper.clone(), "open-loop".to_owned(), dir.clone()];
    let grants = ["run", "--allow", &dir, "--read-file", &helper];
    let inside = world.nono(&grants, &[&helper, "open-loop", &dir]);
    let (mut outside_ns, mut inside_ns) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        outside_ns.push(world.number(&bare));
        inside_ns.push(world.number(&inside));
    }
    vec![Row::nanoseconds(
        "open and close in a granted tree, to the same outside",
        measure::median(outside_ns),
        measure::median(inside_ns),
        "1.6",
    )]
}

/// What stays in memory and on disk.
fn sizes(world: &World) -> Vec<Row> {
    let resident = world.resident_mib(&world.nono(&["run"], &["cat"]));
    let binary = std::fs::metadata(world.nono_binary()).map_or(0, |meta| meta.len());
    vec![
        Row::size("resident memory of the waiting parent", resident, "12 MB"),
        Row::size("the stripped binary", binary as f64 / 1e6, "8 MB"),
    ]
}
