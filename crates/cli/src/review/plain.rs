//! Review without a full screen: a few questions, one line each.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};

use nono::interrupt::Interrupts;
use nono::rollback::{ChangeSet, Done, RestoreChoice};

use super::marks::MarkedItems;
use super::source::ReviewSource;
use super::view::{View, ViewLine};
use super::{labels, report, screen, text};
use crate::failure::Failure;
use crate::message;
use crate::paint::{self, Span, Style};

/// Maximum number of autorun files in the first line.
const NAMED: usize = 3;
/// Maximum number of consecutive lines of a plan.
const LONG: usize = 40;

/// Asks what to do with the changes. Nothing is done without a yes; the end of the input is a no.
pub(super) fn ask(source: &mut dyn ReviewSource, set: &ChangeSet) -> Result<Option<Done>, Failure> {
    message::line(&first_line(set));
    screen::forget_typed()?;
    loop {
        let reply = question("Restore? [y/N/d/s]")?;
        match reply.as_deref().unwrap_or("") {
            "y" | "Y" | "yes" => return confirm(source, set, &all(set).choice(set)),
            "d" | "D" => show_diff(source, set)?,
            "s" | "S" => {
                let marks = choose(set)?;
                if !marks.is_empty() {
                    return confirm(source, set, &marks.choice(set));
                }
            }
            "" | "n" | "N" | "no" => {
                let id = source.id();
                message::line(&format!("everything kept; look again with: nono rollback review {id}"));
                return Ok(None);
            }
            "?" | "h" => {
                message::line("y: restore all; n: keep all; d: show a diff; s: choose what to restore");
            }
            _ => message::line("y, n, d or s"),
        }
    }
}

/// First line: `12 changes (+5 ~6 -1), 1 will execute later: .git/hooks/pre-commit`.
fn first_line(set: &ChangeSet) -> String {
    let later: Vec<_> = set.items.iter().filter(|item| item.executes_later.is_some()).collect();
    let line = labels::summary(set);
    if later.is_empty() {
        line
    } else {
        let names: Vec<_> = later.iter().take(NAMED).map(|item| text::name(&set.shown(&item.path))).collect();
        let more = if later.len() > NAMED { ", ..." } else { "" };
        format!("{line}: {}{more}", names.join(", "))
    }
}

fn all(set: &ChangeSet) -> MarkedItems {
    let mut marks = MarkedItems::default();
    marks.everything(set.items.len());
    marks
}

fn confirm(
    source: &mut dyn ReviewSource,
    set: &ChangeSet,
    choice: &RestoreChoice,
) -> Result<Option<Done>, Failure> {
    let plan = source.plan(choice)?;
    // The coverage is only additional information.
    let coverage = source.coverage(&choice.snapshot).ok();
    say_shortly(&labels::plan(set, &plan, choice, coverage.as_ref()));
    if !matches!(question("Do this? [y/N]")?.as_deref(), Some("y" | "Y" | "yes")) {
        message::line("nothing was restored");
        return Ok(None);
    }
    // Signals are delivered after the restore and its report.
    let _held = Interrupts::block()?;
    let done = source.restore(choice)?;
    report(set, &done);
    Ok(Some(done))
}

/// Prints a plan with long lists cut, but all warnings.
fn say_shortly(said: &[Span]) {
    for part in said.chunk_by(|a, b| a.style == b.style) {
        let shown = if part[0].style == Style::Plain { LONG.min(part.len()) } else { part.len() };
        part[..shown].iter().for_each(|said| message::line(&said.text));
        if shown < part.len() {
            message::line(&format!("... and {} more", part.len() - shown));
        }
    }
}

/// Asks a question; none at the end of the input.
fn question(words: &str) -> io::Result<Option<String>> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "[nono] {words} ")?;
    stderr.flush()?;
    let mut reply = Vec::new();
    if io::stdin().lock().read_until(b'\n', &mut reply)? == 0 {
        writeln!(stderr)?;
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&reply).trim().to_owned()))
}

fn list(set: &ChangeSet) {
    for (number, item) in set.items.iter().enumerate() {
        let later = if item.executes_later.is_some() { "!" } else { " " };
        let name = text::name(&set.shown(&item.path));
        message::line(&format!("{:>4} {}{later} {name}", number + 1, paint::mark(&item.kind)));
    }
}

fn show_diff(source: &dyn ReviewSource, set: &ChangeSet) -> Result<(), Failure> {
    list(set);
    let Some(reply) = question("Which diff? (a number)")? else { return Ok(()) };
    let Ok(items) = numbers(&reply, set.items.len()) else {
        message::line("that is not one of these numbers");
        return Ok(());
    };
    for item in items {
        let item = &set.items[item];
        for line in diff_lines(&View::new(set, item, source.diff(item))) {
            message::line(&line);
        }
    }
    Ok(())
}

fn diff_lines(view: &View) -> Vec<String> {
    let line = |place: &ViewLine| match *place {
        ViewLine::Note(note) => view.notes[note].clone(),
        ViewLine::Header(hunk) => view.headers[hunk].clone(),
        ViewLine::One(hunk, line) => {
            let line = &view.hunks[hunk][line];
            format!("{}{}", line.kind.sign(), line.shown)
        }
        ViewLine::Two(..) => String::new(),
    };
    view.places(false).iter().map(line).collect()
}

/// Asks which items to restore; may be none.
fn choose(set: &ChangeSet) -> Result<MarkedItems, Failure> {
    list(set);
    loop {
        let Some(reply) = question("Restore which? (2 5-7, or all; empty for none)")? else {
            return Ok(MarkedItems::default());
        };
        match numbers(&reply, set.items.len()) {
            Ok(items) if items.len() == set.items.len() => return Ok(all(set)),
            Ok(items) => {
                let mut marks = MarkedItems::default();
                marks.add(&items);
                return Ok(marks);
            }
            Err(word) => message::line(&format!("{word} is not in 1-{}", set.items.len())),
        }
    }
}

/// Parses `2 5-7`, `2,5-7` or `all` to positions from 0; the error is the wrong word.
fn numbers(reply: &str, count: usize) -> Result<BTreeSet<usize>, &str> {
    let mut chosen = BTreeSet::new();
    for word in reply.split([' ', ',']).filter(|word| !word.is_empty()) {
        if word == "all" {
            chosen.extend(0..count);
            continue;
        }
        let (from, to) = word.split_once('-').unwrap_or((word, word));
        match (from.parse::<usize>(), to.parse::<usize>()) {
            (Ok(from), Ok(to)) if 1 <= from && from <= to && to <= count => chosen.extend(from - 1..to),
            _ => return Err(word),
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges() {
        assert_eq!(numbers("2 5-7", 9), Ok([1, 4, 5, 6].into()));
        assert_eq!(numbers("1,3", 3), Ok([0, 2].into()));
        assert_eq!(numbers("all", 2), Ok([0, 1].into()));
        assert_eq!(numbers("", 2), Ok(BTreeSet::new()));
        for wrong in ["0", "4", "2-4", "3-2", "x", "-1", "1-", "99999999999999999999"] {
            assert_eq!(numbers(wrong, 3), Err(wrong));
        }
    }
}
