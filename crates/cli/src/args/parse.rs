//! Parsing of the command line.
//!
//! The whole grammar has some thirty commands, and building it takes longer than starting a process. A command that starts
//! another one is therefore first read by its own flags alone. What those do not understand, help included, is read by the
//! whole grammar, so there is one place for every message.

use std::ffi::OsString;

use clap::{Args, Parser};

use super::{Cli, Command};

/// Reads a command line, the program's own name first.
pub(crate) fn parse(words: &[OsString]) -> Result<Command, clap::Error> {
    match alone(words) {
        Some(command) => Ok(command),
        None => Cli::try_parse_from(words).map(|cli| cli.command),
    }
}

/// Reads `run`, `wrap` and `shell` by their own flags.
fn alone(words: &[OsString]) -> Option<Command> {
    let words = words.get(1..)?;
    match words.first()?.to_str()? {
        "run" => by_flags(words).map(Command::Run),
        "wrap" => by_flags(words).map(Command::Wrap),
        "shell" => by_flags(words).map(Command::Shell),
        _ => None,
    }
}

fn by_flags<A: Args>(words: &[OsString]) -> Option<Box<A>> {
    let grammar = A::augment_args(clap::Command::new("nono"));
    let matches = grammar.try_get_matches_from(words).ok()?;
    A::from_arg_matches(&matches).ok().map(Box::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn flags_alone_and_the_whole_grammar_read_the_same() {
        for line in [
            "nono run -- true",
            "nono run true -x --allow y",
            "nono run --allow . --read /data,/more --deny secret --max-time 10m --rollback -- make -j 2",
            "nono run -p rust-dev --allow-domain example.org --ask --verbose -- cargo build",
            "nono run --monitor --no-diagnostics -- sh -c --",
            "nono wrap --read /data -- wc -l /data/log.txt",
            "nono wrap -s -- true",
            "nono shell --allow . --name x",
        ] {
            let words = words(line);
            let whole = Cli::try_parse_from(&words).map(|cli| cli.command);
            let (alone, whole) = (format!("{:?}", alone(&words)), format!("{:?}", whole.ok()));
            assert!(whole.starts_with("Some("), "{line}: the line is wrong");
            assert_eq!(alone, whole, "{line}");
        }
    }

    #[test]
    fn what_flags_alone_do_not_understand_is_said_by_the_whole_grammar() {
        for line in [
            "nono run",
            "nono run --help",
            "nono run -h",
            "nono run --alow . -- true",
            "nono run --allow",
            "nono wrap --rollback=yes -- true",
            "nono shell --allow . extra",
            "nono rum -- true",
        ] {
            let words = words(line);
            let whole = Cli::try_parse_from(&words).map(|cli| cli.command).unwrap_err();
            assert_eq!(parse(&words).unwrap_err().to_string(), whole.to_string(), "{line}");
        }
    }
}
