//! Generated text in the documents: in SECURITY.md the table of guarantees, from the code, and the table of attacks,
//! from the verdicts of the escape suite.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use nono::{Guarantee, GuaranteeState, guarantees};

const FILE: &str = "SECURITY.md";
const SUITE: &str = "tests/escape";

/// Updates the file.
pub(crate) fn write(root: &Path) -> io::Result<Vec<String>> {
    let path = root.join(FILE);
    let text = fs::read_to_string(&path)?;
    match current(root, &text)? {
        Err(missing) => Ok(vec![missing]),
        Ok(new) if new == text => Ok(Vec::new()),
        Ok(new) => fs::write(&path, new).map(|()| Vec::new()),
    }
}

/// Reports what is out of date, without changing it.
pub(crate) fn check(root: &Path) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(FILE))?;
    Ok(match current(root, &text)? {
        Err(missing) => vec![missing],
        Ok(new) if new == text => Vec::new(),
        Ok(_) => vec![format!("{FILE} is out of date: run `cargo xtask docs`")],
    })
}

/// The file as it should be; `Err` names a marker that it lacks.
fn current(root: &Path, text: &str) -> io::Result<Result<String, String>> {
    let parts = [("guarantees", guarantees_table()), ("attacks", attacks_table(root)?)];
    let put = |text: String, (name, table): (&str, String)| {
        replaced(&text, name, &table).ok_or_else(|| no_marker(name))
    };
    Ok(parts.into_iter().try_fold(text.to_owned(), put))
}

fn begin(name: &str) -> String {
    format!("<!-- begin generated: {name}; written by `cargo xtask docs` -->")
}

fn end(name: &str) -> String {
    format!("<!-- end generated: {name} -->")
}

fn no_marker(name: &str) -> String {
    format!("{FILE} has no place for a table: it needs the lines {} and {}", begin(name), end(name))
}

/// `text` with `table` between the markers of this name.
fn replaced(text: &str, name: &str, table: &str) -> Option<String> {
    let (begin, end) = (begin(name), end(name));
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n\n{table}\n{end}{after}"))
}

const HEAD: &str =
    "| what a command cannot do | `run`, `shell` | `wrap` | `run` where user namespaces are forbidden |
|---|---|---|---|
";

fn guarantees_table() -> String {
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

fn cell(held: GuaranteeState) -> String {
    match held {
        GuaranteeState::By(how) => escaped(how),
        GuaranteeState::Open(what) => format!("**open**: {}", escaped(what)),
        GuaranteeState::Refused(what) => format!("**refused**: {}", escaped(what)),
    }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

const ATTACKS_HEAD: &str =
    "| theme | attacks | `run` | `wrap` | `run --monitor` | `run --ask` | `run` without user namespaces |
|---|---|---|---|---|---|---|
";

/// Modes of the suite, in the order of the columns of its verdicts.
const MODES: usize = 5;

/// Verdicts of one theme: in each mode, how often each word stands there.
#[derive(Debug, Default, PartialEq, Eq)]
struct Theme {
    attacks: usize,
    words: [BTreeMap<String, usize>; MODES],
}

fn attacks_table(root: &Path) -> io::Result<String> {
    let themes = themes(&fs::read_to_string(root.join(SUITE).join("verdicts.txt"))?);
    let rows = themes.iter().map(|(name, theme)| {
        let cells: Vec<String> = theme.words.iter().map(counted).collect();
        format!("| {name} | {} | {} |", theme.attacks, cells.join(" | "))
    });
    Ok(format!("{ATTACKS_HEAD}{}\n", rows.collect::<Vec<_>>().join("\n")))
}

fn themes(text: &str) -> BTreeMap<String, Theme> {
    let mut themes: BTreeMap<String, Theme> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().take(MODES + 1).collect();
        let Some(name) = words.get(MODES).and_then(|name| name.strip_suffix(':')) else { continue };
        let theme = themes.entry(name.to_owned()).or_default();
        theme.attacks += 1;
        for (counts, word) in theme.words.iter_mut().zip(&words) {
            *counts.entry((*word).to_owned()).or_default() += 1;
        }
    }
    themes
}

/// `12 held, 3 open`; what was not tried is left out.
fn counted(words: &BTreeMap<String, usize>) -> String {
    let order = ["held", "refused", "either", "open"];
    let shown = order.iter().filter_map(|word| words.get(*word).map(|count| format!("{count} {word}")));
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "–".to_owned() } else { shown.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let text = format!("a\n{}\nold\n{}\nb\n", begin("x"), end("x"));
        let new = replaced(&text, "x", "new\n").unwrap();
        assert_eq!(new, format!("a\n{}\n\nnew\n\n{}\nb\n", begin("x"), end("x")));
        assert_eq!(replaced(&new, "x", "new\n").unwrap(), new);
        assert!(replaced("no markers", "x", "new").is_none());
    }

    #[test]
    fn every_guarantee_has_a_row() {
        assert_eq!(guarantees_table().lines().count(), guarantees().len() + 2);
    }

    #[test]
    fn verdicts_are_counted_by_theme() {
        let text =
            "# a comment\nheld open held held -  files: read x\nheld held held held held  files: write y\n";
        let themes = themes(text);
        let theme = &themes["files"];
        assert_eq!((themes.len(), theme.attacks), (1, 2));
        let cells: Vec<String> = theme.words.iter().map(counted).collect();
        assert_eq!(cells, ["2 held", "1 held, 1 open", "2 held", "2 held", "1 held"]);
    }

    #[test]
    fn security_md_is_up_to_date() {
        assert_eq!(check(&crate::root()).unwrap(), Vec::<String>::new());
    }
}
