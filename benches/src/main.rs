//! Cost of the sandbox and the snapshots, as ratios to a reference measured in the same run.
//!
//! Rounds are interleaved (reference, ours, reference, …) and medians compared, so that a noisy machine disturbs both
//! alike. Everything runs as an ordinary user. Nothing is asserted about speed: the table is for people, with the goal
//! beside each ratio.

mod asking;
mod checkpoints;
mod measure;
mod network;
mod options;
mod rollback;
mod sandbox;
mod snapshot;
mod world;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use measure::Table;
use options::{Options, Part};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if helper(&args) {
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(&args) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    let mut table = Table::begin();
    if options.wants(Part::Sandbox) {
        sandbox::rows(&options, &mut table);
    }
    if options.wants(Part::Asking) {
        asking::rows(&options, &mut table);
    }
    if options.wants(Part::Network) {
        network::rows(&options, &mut table);
    }
    if options.wants(Part::Snapshot) {
        snapshot::rows(&options, &mut table);
    }
    if options.wants(Part::Rollback) {
        rollback::rows(&options, &mut table);
    }
    if options.wants(Part::Checkpoints) {
        checkpoints::rows(&options, &mut table);
    }
    ExitCode::SUCCESS
}

/// Child processes of the benchmarks, inside and outside the sandbox, which are this program too.
fn helper(args: &[OsString]) -> bool {
    let Some((first, rest)) = args.split_first() else { return false };
    let paths: Vec<PathBuf> = rest.iter().map(PathBuf::from).collect();
    match first.to_str() {
        Some("open-loop") => println!("{}", measure::open_loop(&paths[0])),
        Some("build") => rollback::build(&paths[0], paths[1].to_string_lossy().parse().expect("a number")),
        Some("call-at") => asking::call_at(&paths[0], &paths[1]),
        Some("spew") => asking::spew(paths[0].to_string_lossy().parse().expect("a number")),
        Some("fetch") => network::client(&paths),
        Some("compile") => rollback::compile(&paths[0]),
        Some("snapshot") => snapshot::child(&paths),
        Some("compress") => snapshot::compress(&paths[0], &paths[1]),
        Some("decompress") => snapshot::decompress(&paths[0]),
        _ => return false,
    }
    true
}
