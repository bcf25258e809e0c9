//! The `nono` command line: arguments in, messages and exit codes out. All logic is in crate `nono`.

mod age;
mod args;
mod ask;
mod asking;
mod commands;
mod failure;
mod host;
mod message;
mod pager;
mod paint;
mod progress;
mod review;
mod syntax;
mod units;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Not part of the grammar: no help, no completion, nobody is meant to type it.
    if std::env::args_os().nth(1).is_some_and(|first| first == asking::HELPER) {
        return conclude(commands::webhook::serve());
    }
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return args::usage(&error),
    };
    conclude(commands::dispatch(cli.command))
}

fn conclude(result: Result<u8, failure::Failure>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}
