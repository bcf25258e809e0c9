//! Sessions to look at and to undo, made by real runs, and transcripts without what differs from run to run.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use snapbox::IntoData;

use super::world::{World, golden};
use nono_testkit::process::Outcome;

/// A world with sessions. In transcripts the first is `[1]`, the second `[2]`.
pub(crate) struct Sessions {
    pub(crate) world: World,
    ids: RefCell<Vec<String>>,
}

impl Sessions {
    pub(crate) fn new() -> Sessions {
        Sessions { world: World::new(), ids: RefCell::default() }
    }

    /// Where sessions are kept.
    pub(crate) fn dir(&self) -> PathBuf {
        self.world.path("state/rollbacks")
    }

    /// A tracked run of a line of shell in the working directory; its id.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> String {
        self.run_with("--allow .", line)
    }

    /// The same, with flags. What is in single quotes must not have such quotes itself.
    #[track_caller]
    pub(crate) fn run_with(&self, flags: &str, line: &str) -> String {
        let outcome = self.world.sh(&format!("nono run -s --rollback {flags} -- sh -c '{line}'"));
        outcome.quiet(0);
        self.newest()
    }

    /// The session that came since the last look.
    #[track_caller]
    pub(crate) fn newest(&self) -> String {
        let mut ids = self.ids.borrow_mut();
        let names = fs::read_dir(self.dir()).unwrap().map(|entry| entry.unwrap().file_name());
        let is_id = |name: &String| name.split('-').filter(|part| part.parse::<u64>().is_ok()).count() == 3;
        let names = names.filter_map(|name| name.into_string().ok()).filter(is_id);
        let new: Vec<String> = names.filter(|name| !ids.contains(name)).collect();
        let [new] = &new[..] else { panic!("one new session expected: {new:?}, known: {ids:?}") };
        ids.push(new.clone());
        new.clone()
    }

    pub(crate) fn id(&self, number: usize) -> String {
        self.ids.borrow()[number - 1].clone()
    }

    /// A session's folder.
    pub(crate) fn folder(&self, number: usize) -> PathBuf {
        self.dir().join(self.id(number))
    }

    /// A line of shell, where `[1]` is the first session's id.
    pub(crate) fn sh(&self, line: &str) -> Outcome {
        let ids = self.ids.borrow().clone();
        let name = |(at, id): (usize, String)| (format!("[{}]", at + 1), id);
        let names = ids.into_iter().enumerate().map(name);
        self.world.sh(&names.fold(line.to_owned(), |line, (name, id)| line.replace(&name, &id)))
    }

    /// Each line as a person would type it, with what came of it, and no word that differs from run to run.
    pub(crate) fn transcript(&self, lines: &[&str]) -> String {
        let show = |line: &&str| format!("$ {line}\n{}", self.world.show(&self.sh(line)));
        self.mask(&lines.iter().map(show).collect::<String>())
    }

    #[track_caller]
    pub(crate) fn golden(&self, lines: &[&str], expected: impl IntoData) {
        golden(self.transcript(lines), expected);
        self.world.left_nothing();
    }

    /// The same while something runs, or after it was killed: its own folder is still there.
    #[track_caller]
    pub(crate) fn golden_while_running(&self, lines: &[&str], expected: impl IntoData) {
        golden(self.transcript(lines), expected);
    }

    pub(crate) fn mask(&self, text: &str) -> String {
        let ids = self.ids.borrow();
        let text = ids
            .iter()
            .enumerate()
            .fold(text.to_owned(), |text, (at, id)| text.replace(id, &format!("[{}]", at + 1)));
        text.lines().map(|line| mask_line(line) + "\n").collect()
    }

    /// A JSON answer.
    #[track_caller]
    pub(crate) fn json(&self, line: &str, code: i32) -> serde_json::Value {
        let outcome = self.sh(line);
        assert_eq!(outcome.code(), Some(code), "{line}: {outcome:?}");
        serde_json::from_str(&outcome.out()).unwrap_or_else(|error| panic!("{line}: {error}: {outcome:?}"))
    }
}

/// Ages, sizes and numbers of objects; columns that follow them.
pub(crate) fn mask_line(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut masked: Vec<String> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map(|next| next.trim_end_matches([',', ')']));
        let is_number = !word.is_empty()
            && word.trim_start_matches('(').chars().all(|c| c.is_ascii_digit() || ",.".contains(c));
        let is_measured = matches!(next, Some("bytes" | "kB" | "MB" | "GB" | "objects"));
        masked.push(if is_number && is_measured { "[N]".to_owned() } else { (*word).to_owned() });
    }
    let text = masked.join(" ");
    let text = ["kB", "MB", "GB", "bytes"]
        .iter()
        .fold(text, |text, unit| text.replace(&format!("[N] {unit}"), "[SIZE]"));
    // A slow machine may take a few minutes.
    let ages = (1..10).map(|minutes| format!("{minutes}m ago")).chain(["just now".to_owned()]);
    let text = ages.fold(text, |text, age| text.replace(&age, "[AGE]"));
    let indent = text.len() - text.trim_start().len();
    let mut words = text[indent..].split("  ").map(str::trim).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_owned();
    let rest = words.fold(first, |line, word| line + "  " + word);
    format!("{}{rest}", &text[..indent])
}
