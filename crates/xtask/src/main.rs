//! Development tasks: `cargo xtask arch` checks the architecture of the workspace, `cargo xtask docs` keeps generated
//! text up to date and checks the links of the documents. Nothing here is part of the product.

mod arch;
mod commands;
mod dependencies;
mod docs;
mod pages;
mod test_queue;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str =
    "usage: cargo xtask arch            check layers, lints, source rules, type names and module circles
       cargo xtask measure         print lines by crate, repeated type names and module circles
       cargo xtask dependencies    check licenses, sources and versions of all dependencies
       cargo xtask docs            write the generated parts of the documents
       cargo xtask docs --check    check them, and every link, page and path in the documents
       cargo xtask test ARGS       run all tests, several programs at once; ARGS are those of cargo test";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let problems = match args[..] {
        ["arch"] => arch::check(&root()),
        ["measure"] => arch::measure(&root()).map(|page| {
            print(&page);
            Vec::new()
        }),
        ["dependencies"] => dependencies::check(&root()),
        ["docs"] => write_documents(&root()),
        ["docs", "--check"] => check_documents(&root()),
        ["test", ref cargo_args @ ..] => test_queue::run(&root(), cargo_args),
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

fn write_documents(root: &Path) -> io::Result<Vec<String>> {
    let mut problems = docs::write(root)?;
    problems.extend(commands::write(root)?);
    Ok(problems)
}

fn check_documents(root: &Path) -> io::Result<Vec<String>> {
    let mut problems = docs::check(root)?;
    problems.extend(pages::check(root)?);
    problems.extend(commands::check(root)?);
    Ok(problems)
}

#[allow(clippy::print_stderr, reason = "this is a command line program")]
fn say(text: &str) {
    eprintln!("{text}");
}

#[allow(clippy::print_stdout, reason = "this is a command line program")]
fn print(text: &str) {
    print!("{text}");
}

/// The cargo that runs this, or the one in the PATH.
fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The workspace's root folder.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}
