//! Text in the documents that comes from the code: the table of guarantees in SECURITY.md.

use std::fs;
use std::io;
use std::path::Path;

use nono::{Guarantee, Held, guarantees};

const FILE: &str = "SECURITY.md";
const BEGIN: &str = "<!-- begin generated: guarantees; written by `cargo xtask docs` -->";
const END: &str = "<!-- end generated: guarantees -->";

/// Bring the file up to date.
pub(crate) fn write(root: &Path) -> io::Result<Vec<String>> {
    let path = root.join(FILE);
    let text = fs::read_to_string(&path)?;
    match replaced(&text, &table()) {
        None => Ok(vec![no_markers()]),
        Some(new) if new == text => Ok(Vec::new()),
        Some(new) => fs::write(&path, new).map(|()| Vec::new()),
    }
}

/// Say what is out of date, and change nothing.
pub(crate) fn check(root: &Path) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(FILE))?;
    Ok(match replaced(&text, &table()) {
        None => vec![no_markers()],
        Some(new) if new == text => Vec::new(),
        Some(_) => vec![format!("{FILE} does not agree with the code: run `cargo xtask docs`")],
    })
}

fn no_markers() -> String {
    format!("{FILE} has no place for the table: it needs the lines {BEGIN} and {END}")
}

/// `text` with `table` between the markers.
fn replaced(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

const HEAD: &str =
    "| what a command cannot do | `run`, `shell` | `wrap` | `run` where user namespaces are forbidden |
|---|---|---|---|
";

fn table() -> String {
    let rows: Vec<String> = guarantees().iter().map(row).collect();
    format!("{HEAD}{}\n", rows.join("\n"))
}

fn row(guarantee: &Guarantee) -> String {
    let held = [guarantee.with_namespaces, guarantee.direct, guarantee.without_namespaces];
    let mut cells = held.map(cell);
    if let Some(without) = guarantee.unanswered {
        cells[2] = format!("{}; in `wrap` there: {}", cells[2], cell(without.bare));
    }
    format!("| {} | {} |", escaped(guarantee.what), cells.join(" | "))
}

fn cell(held: Held) -> String {
    match held {
        Held::By(how) => escaped(how),
        Held::Open(what) => format!("**open**: {}", escaped(what)),
        Held::Refused(what) => format!("**refused**: {}", escaped(what)),
    }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let text = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let new = replaced(&text, "new\n").unwrap();
        assert_eq!(new, format!("a\n{BEGIN}\n\nnew\n\n{END}\nb\n"));
        assert_eq!(replaced(&new, "new\n").unwrap(), new);
        assert!(replaced("no markers", "new").is_none());
    }

    #[test]
    fn every_guarantee_has_a_row() {
        assert_eq!(table().lines().count(), guarantees().len() + 2);
    }

    #[test]
    fn security_md_is_up_to_date() {
        assert_eq!(check(&crate::root()).unwrap(), Vec::<String>::new());
    }
}
