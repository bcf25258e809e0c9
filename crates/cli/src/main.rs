//! The `nono` command line: arguments in, messages and exit codes out. All logic is in crate `nono`.

mod age;
mod approver;
mod args;
mod commands;
mod failure;
mod host;
mod message;
mod pager;
mod paint;
mod panics;
mod progress;
mod prompt;
mod review;
mod syntax;
mod units;

use std::process::ExitCode;

// A panic in the parser of the command's output must not end the run.
const _: () = assert!(cfg!(panic = "unwind"), "nono has to be built with panic = \"unwind\"");

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| panics::panicked(panic.location())));
    // A limit on the size of files must not kill a restore halfway: it becomes an error of one file.
    nono::interrupt::ignore_file_size_signal();
    // Not part of the grammar: called by agents and by nono itself, without help or completion.
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if commands::hook::is_hook(&args) {
        commands::hook::hook(&args[1..]);
        return ExitCode::SUCCESS;
    }
    match args.first() {
        Some(first) if first == approver::HELPER => return conclude(commands::webhook::serve()),
        Some(first) if first == commands::upkeep::UPKEEP => {
            return conclude(commands::upkeep::upkeep(&args[1..]));
        }
        Some(first) if first == commands::proxy::HELPER => return conclude(commands::proxy::serve()),
        _ => {}
    }
    if std::env::args_os().nth(1).is_some_and(|first| first == nono::session::OPEN_URL) {
        return conclude(commands::open_url::shim(std::env::args_os().skip(2)));
    }
    let words: Vec<_> = std::env::args_os().collect();
    match args::parse(&words) {
        Ok(command) => conclude(commands::dispatch(command)),
        Err(error) => args::usage(&error),
    }
}

fn conclude(result: Result<u8, failure::Failure>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}
