//! Autorun: recognises files that run later without being started on purpose. The rules are in `autorun/table.json`.
//!
//! A mark is a hint where to look first, no proof: it marks too much rather than too little. Names are compared without
//! case, because some file systems ignore it and several tools accept any spelling.

mod git_config;
mod pattern;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use nono_policy::PolicyData;
use nono_policy::glob::Pattern;
use once_cell::race::OnceBox;
use serde::Deserialize;

pub use nono_history::Later;

/// Rules, in `table.json`. The first row that fits a file counts.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    rows: Vec<Row>,
    git: git_config::RunningKeys,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Globs in lower case over the last names of a path.
    paths: Vec<String>,
    #[serde(default)]
    only: If,
    what: String,
    why: String,
}

/// Further condition of a row.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum If {
    #[default]
    Always,
    Executable,
    /// The name does not match this glob: git does not run the samples that it ships.
    Not(String),
    /// The content has something that runs.
    Holds(Dangerous),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Dangerous {
    /// A git setting that runs a command.
    GitCommand,
    /// A git attribute that names a filter or driver.
    GitDriver,
}

/// Match the file at `path` (below a root) against the rules. `mode`: of the new version. `new_content` returns the new
/// content for rules that read it (git config keys that run commands); if it returns None, the file is marked.
pub fn executes_later(path: &Path, mode: u32, new_content: &dyn Fn() -> Option<Vec<u8>>) -> Option<Later> {
    let names = pattern::names(&own_project(path));
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let index = GlobIndex::get();
    let fits = |row: &Row| match &row.only {
        If::Always => true,
        If::Not(glob) => !pattern::ending(glob).is_some_and(|pattern| pattern.matches(&names)),
        If::Executable => mode & 0o111 != 0,
        If::Holds(dangerous) => new_content().is_none_or(|content| match dangerous {
            Dangerous::GitCommand => index.table.git.are_in(&content),
            Dangerous::GitDriver => git_config::names_a_driver(&content),
        }),
    };
    let (rows, table) = (index.rows(&names), &index.table.rows);
    // If the table has a row for the path, that row's condition alone decides.
    if rows.first().is_some_and(|first| *first == table.len()) {
        return Some(HELD_IN_HOME);
    }
    let row = rows.into_iter().filter_map(|row| table.get(row)).find(|row| fits(row))?;
    Some(Later { what: &row.what, why: &row.why })
}

/// Mark of files that the policy protects in the home folder, wherever a copy of them is.
const HELD_IN_HOME: Later =
    Later { what: "startup", why: "a program of the home folder runs or obeys it when it starts" };

/// Globs of those files. Programs are excluded: in a project their folders are ordinary ones, and a row of the table
/// covers executables.
fn held_globs() -> impl Iterator<Item = String> {
    let groups = PolicyData::embedded().groups.iter().filter(|group| group.name != "own_programs");
    let below_home = groups.flat_map(|group| &group.held).filter_map(|text| {
        let (start, rest) = text.split_once('/')?;
        let start = match start {
            "~" => "",
            "$XDG_CONFIG_HOME" => ".config/",
            "$XDG_DATA_HOME" => ".local/share/",
            _ => return None,
        };
        Some(format!("{start}{rest}").to_ascii_lowercase())
    });
    below_home.flat_map(|name| [format!("{name}/**"), name])
}

/// Globs of the table, indexed by a literal name that a matching path must contain: there are hundreds of globs, and
/// changes by the ten thousand.
struct GlobIndex {
    table: Table,
    by_name: HashMap<Vec<u8>, Vec<(usize, Pattern)>>,
    /// Globs without a literal name.
    others: Vec<(usize, Pattern)>,
}

impl GlobIndex {
    fn get() -> &'static GlobIndex {
        static INDEX: OnceBox<GlobIndex> = OnceBox::new();
        INDEX.get_or_init(|| Box::new(GlobIndex::new()))
    }

    fn new() -> GlobIndex {
        // A test reads the table.
        let table: Table = serde_json::from_str(include_str!("autorun/table.json")).unwrap_or_default();
        let mut index = GlobIndex { table: Table::default(), by_name: HashMap::new(), others: Vec::new() };
        for (at, row) in table.rows.iter().enumerate() {
            row.paths.iter().for_each(|glob| index.add(at, glob));
        }
        held_globs().for_each(|glob| index.add(table.rows.len(), &glob));
        GlobIndex { table, ..index }
    }

    fn add(&mut self, row: usize, glob: &str) {
        let Some(pattern) = pattern::ending(glob) else { return };
        match glob.rsplit('/').find(|name| !name.contains('*')) {
            Some(name) => self.by_name.entry(name.into()).or_default().push((row, pattern)),
            None => self.others.push((row, pattern)),
        }
    }

    /// Rows with a matching glob, in the order of the table; its length stands for the files held in the home.
    fn rows(&self, names: &[&[u8]]) -> Vec<usize> {
        let named = names.iter().filter_map(|name| self.by_name.get(*name)).flatten();
        let fitting = named.chain(&self.others).filter(|(_, pattern)| pattern.matches(names));
        let mut rows: Vec<usize> = fitting.map(|(row, _)| *row).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}

/// Agents keep whole worktrees below their own settings: a file in one of them is a project's file, not a setting.
fn own_project(path: &Path) -> PathBuf {
    let names: Vec<_> = path.components().collect();
    let worktree = names
        .windows(2)
        .rposition(|pair| pair[0].as_os_str() == ".claude" && pair[1].as_os_str() == "worktrees");
    match worktree {
        Some(at) if names.len() > at + 3 => names[at + 3..].iter().collect(),
        _ => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests;
