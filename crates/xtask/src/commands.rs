//! The reference page of all commands and flags, made from what `nono help` prints.
//!
//! The program itself is asked, so the page cannot say anything else than `--help` and the manual pages do.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE: &str = "docs/reference/commands.md";
const HEAD: &str = "# Commands and flags

<!-- Written by `cargo xtask docs` from the program's own help. Do not edit. -->

What `nono help COMMAND` prints, for every command. `nono COMMAND -h` is shorter, `nono man COMMAND` is the same as a manual page, and
`nono completion SHELL` prints a script that completes all of it.
";

/// Bring the page up to date.
pub(crate) fn write(root: &Path) -> io::Result<Vec<String>> {
    fs::write(root.join(FILE), page(&built(root)?)?)?;
    Ok(Vec::new())
}

/// Report a page that is out of date, and change nothing.
pub(crate) fn check(root: &Path) -> io::Result<Vec<String>> {
    let (found, expected) = (fs::read_to_string(root.join(FILE))?, page(&built(root)?)?);
    let stale = found != expected;
    Ok(stale
        .then(|| format!("{FILE} does not agree with `nono help`: run `cargo xtask docs`"))
        .into_iter()
        .collect())
}

/// Build the program, and return its path: it lies beside this one.
fn built(root: &Path) -> io::Result<PathBuf> {
    // A build with other features would replace the one that the tests use.
    if let Some(nono) = std::env::var_os("NONO_BIN") {
        return Ok(nono.into());
    }
    let status = Command::new(crate::cargo())
        .args(["build", "--quiet", "--locked", "--bin", "nono"])
        .current_dir(root)
        .status()?;
    if !status.success() {
        return Err(io::Error::other("nono cannot be built"));
    }
    Ok(std::env::current_exe()?.with_file_name("nono"))
}

fn page(nono: &Path) -> io::Result<String> {
    let mut page = HEAD.to_owned();
    describe(&[], &mut |words| help(nono, words), &mut page)?;
    Ok(page)
}

/// Add a section for a command, and then for each of its own commands.
fn describe(
    words: &[&str],
    help: &mut impl FnMut(&[&str]) -> io::Result<String>,
    page: &mut String,
) -> io::Result<()> {
    let text = help(words)?;
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    let level = if words.len() < 2 { "##" } else { "###" };
    let name = std::iter::once("nono").chain(words.iter().copied()).collect::<Vec<_>>().join(" ");
    let section = format!("\n{level} {name}\n\n```text\n{}\n```\n", lines.join("\n"));
    page.push_str(&section);
    for command in commands(&lines) {
        describe(&[words, &[command]].concat(), help, page)?;
    }
    Ok(())
}

/// Names in the list of commands of a help text.
fn commands<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let list =
        lines.iter().skip_while(|line| **line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

/// Help of a command. Without variables, because help shows the values of some.
fn help(nono: &Path, words: &[&str]) -> io::Result<String> {
    let output = Command::new(nono).arg("help").args(words).env_clear().output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("`nono help {}` failed", words.join(" "))));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: &str = "A tool\n\nCommands:\n  run   Run it,\n        in a box\n  list  List it\n  help  Print help\n\nOptions:\n  -h\n";

    #[test]
    fn commands_are_read_from_help() {
        let lines: Vec<&str> = TOP.lines().collect();
        assert_eq!(commands(&lines), ["run", "list"]);
        assert!(commands(&["Usage: nono run", "", "Options:"]).is_empty());
    }

    #[test]
    fn every_command_gets_a_section() {
        let mut page = String::new();
        let mut help = |words: &[&str]| {
            Ok(match words {
                [] => TOP.to_owned(),
                ["list"] => "Lists\n\nCommands:\n  all  All  \n".to_owned(),
                _ => format!("about {}\n", words.join(" ")),
            })
        };
        describe(&[], &mut help, &mut page).unwrap();
        let headings: Vec<&str> = page.lines().filter(|line| line.starts_with('#')).collect();
        assert_eq!(headings, ["## nono", "## nono run", "## nono list", "### nono list all"]);
        assert!(page.ends_with("### nono list all\n\n```text\nabout list all\n```\n"), "{page}");
    }
}
