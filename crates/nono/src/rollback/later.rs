//! Files that run something later without anybody starting them on purpose: a `table`, and how it is read.
//!
//! A mark is a hint where to look first, no proof: it rather marks too much than too little. Names are compared without
//! case, because some file systems have none and several tools take any spelling.

mod git_config;
mod pattern;
mod table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use table::{If, TABLE};

pub use nono_history::Later;

/// Whether the file at `path` (below one of `roots`) runs later. `mode`: of the new version. `new_content` gives the bytes
/// of the new version where the rule has to look inside (git config keys that run commands); what it cannot give is marked.
pub fn executes_later(path: &Path, mode: u32, new_content: &dyn Fn() -> Option<Vec<u8>>) -> Option<Later> {
    let names = pattern::names(&own_project(path));
    let fits = |row: &table::Row| match row.only {
        If::Always => true,
        If::Not(glob) => !pattern::matches(glob, &names),
        If::Executable => mode & 0o111 != 0,
        If::Holds(dangerous) => new_content().is_none_or(|content| dangerous(&content)),
    };
    let row = INDEX.rows(&names).into_iter().filter_map(|row| TABLE.get(row)).find(|row| fits(row))?;
    Some(Later { what: row.what, why: row.why })
}

/// The globs of the table by a name that a path must have to fit them: there are hundreds of them, and changes by the ten
/// thousand.
struct Index {
    by_name: HashMap<&'static [u8], Vec<(usize, &'static str)>>,
    /// Those without such a name.
    others: Vec<(usize, &'static str)>,
}

static INDEX: LazyLock<Index> = LazyLock::new(Index::new);

impl Index {
    fn new() -> Index {
        let mut index = Index { by_name: HashMap::new(), others: Vec::new() };
        for (at, row) in TABLE.iter().enumerate() {
            for glob in row.paths.split_ascii_whitespace() {
                let plain = glob.rsplit('/').find(|name| !name.contains('*'));
                match plain {
                    Some(name) => index.by_name.entry(name.as_bytes()).or_default().push((at, glob)),
                    None => index.others.push((at, glob)),
                }
            }
        }
        index
    }

    /// The rows with a glob that fits, in the order of the table.
    fn rows(&self, names: &[Vec<u8>]) -> Vec<usize> {
        let named = names.iter().filter_map(|name| self.by_name.get(name.as_slice())).flatten();
        let fitting = named.chain(&self.others).filter(|(_, glob)| pattern::matches(glob, names));
        let mut rows: Vec<usize> = fitting.map(|(row, _)| *row).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}

/// An agent keeps whole worktrees below its own settings: what is in one of them is a project's file, not a setting.
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
