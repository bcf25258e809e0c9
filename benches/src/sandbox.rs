//! Cost of the sandbox.

use crate::measure::{self, Row, Table, median_ms};
use crate::options::Options;
use crate::world::World;

pub(crate) fn rows(options: &Options, table: &mut Table) {
    let world = World::new(&options.nono);
    let parts: [&dyn Fn() -> Vec<Row>; 3] = [
        &|| starts(&world, if options.quick { 5 } else { 400 }),
        &|| opens(&world, if options.quick { 1 } else { 25 }),
        &|| sizes(&world, options.quick),
    ];
    for row in parts.iter().flat_map(|part| part()) {
        table.push(row);
    }
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
        row(1, "`nono wrap -- true`, to `bwrap --dev-bind / / true`", "1.5"),
        row(2, "`nono run -- true`, to the same", "2.5"),
        row(3, "`nono run --monitor -- true`, to the same", "2.5"),
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

/// Memory and disk usage.
fn sizes(world: &World, quick: bool) -> Vec<Row> {
    let resident = world.resident_mib(&world.nono(&["run"], &["cat"]));
    let binary = std::fs::metadata(world.nono_binary()).map_or(0, |meta| meta.len());
    let mut rows = vec![Row::size("resident memory of the waiting parent", resident, "12 MB")];
    // A quick binary is not the one that people get.
    if !quick {
        rows.push(Row::size("the stripped binary", binary as f64 / 1e6, "8 MB"));
    }
    rows
}
