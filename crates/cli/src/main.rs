//! The `nono` command line: arguments in, messages and exit codes out. All logic is in crate `nono`.

mod age;
mod args;
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
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return args::usage(&error),
    };
    match commands::dispatch(cli.command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}
