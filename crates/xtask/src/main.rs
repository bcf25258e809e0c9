//! Development tasks: `cargo xtask arch` checks the architecture of the workspace, `cargo xtask docs` keeps generated
//! text up to date. Nothing here is part of the product.

mod arch;
mod docs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str =
    "usage: cargo xtask arch            check layers, lints, source rules, type names and module circles
       cargo xtask measure         print lines by crate, repeated type names and module circles
       cargo xtask docs [--check]  write (or only check) the generated parts of the documents";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let problems = match args[..] {
        ["arch"] => arch::check(&root()),
        ["measure"] => arch::measure(&root()).map(|page| {
            print(&page);
            Vec::new()
        }),
        ["docs"] => docs::write(&root()),
        ["docs", "--check"] => docs::check(&root()),
        _ => {
            say(USAGE);
            return ExitCode::from(2);
        }
    };
    match problems {
        Err(error) => say(&format!("xtask: {error}")),
        Ok(problems) if problems.is_empty() => return ExitCode::SUCCESS,
        Ok(problems) => problems.iter().for_each(|problem| say(problem)),
    }
    ExitCode::FAILURE
}

#[allow(clippy::print_stderr, reason = "this is a command line program")]
fn say(text: &str) {
    eprintln!("{text}");
}

#[allow(clippy::print_stdout, reason = "this is a command line program")]
fn print(text: &str) {
    print!("{text}");
}

/// The workspace's root folder.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}
