//! Groups of files that mean something only together: an SQLite database with its log or journal, and a git repository.

use std::path::{Component, Path, PathBuf};

use crate::node::Reason;

/// First bytes of an SQLite database.
pub(crate) const SQLITE: &[u8; 16] = b"SQLite format 3\0";

/// Name suffixes of a database's other files: its log, its journal, and the log's index, which SQLite rebuilds.
pub(crate) const LOG: &[u8] = b"-wal";
pub(crate) const JOURNAL: &[u8] = b"-journal";
pub(crate) const LOG_INDEX: &[u8] = b"-shm";
pub(crate) const SUFFIXES: [&[u8]; 3] = [LOG, JOURNAL, LOG_INDEX];

/// Name of the database that a file belongs to by its name.
pub(crate) fn database_of(name: &[u8]) -> Option<&[u8]> {
    let base = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(*suffix))?;
    (!base.is_empty()).then_some(base)
}

/// Names of all files of a database.
pub(crate) fn names_of(database: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let others = SUFFIXES.iter().map(move |suffix| [database, suffix].concat());
    std::iter::once(database.to_vec()).chain(others)
}

/// Reason why the files of a database are excluded.
pub(crate) fn database_reason(database: &[u8], why: &Reason) -> Reason {
    let name = String::from_utf8_lossy(database);
    Reason::Unit(format!("a file of the database {name}, which is taken as a whole or not at all: {why}"))
}

/// Files in a `.git` folder that mean something by themselves: nothing in its history refers to them.
const BESIDE_HISTORY: [&str; 5] = ["hooks", "config", "config.worktree", "info", "description"];

/// The `.git` that a path is a part of, if it means nothing without the rest: an object, a ref, the index.
pub fn repository_of(path: &Path) -> Option<PathBuf> {
    let mut git = PathBuf::new();
    let mut components = path.components();
    loop {
        let component = components.next()?;
        git.push(component);
        if component == Component::Normal(".git".as_ref()) {
            break;
        }
    }
    let first = components.next()?;
    let beside = BESIDE_HISTORY.iter().any(|name| first == Component::Normal(name.as_ref()));
    // A list of the refs for fetching over plain HTTP, which `git gc` rewrites.
    let list = components.as_path() == Path::new("refs") && first == Component::Normal("info".as_ref());
    (!beside || list).then_some(git)
}

/// Reason why a git repository is excluded.
pub(crate) fn repository_reason() -> Reason {
    Reason::Unit(
        "a git repository, taken as a whole or not at all: it changed each time it was read".to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_paths_are_parts_of_a_repository() {
        let of = |path: &str| repository_of(Path::new(path));
        for part in ["objects/ab/cd", "refs/heads/main", "index", "HEAD", "modules/x/config", "info/refs"] {
            assert_eq!(of(&format!("/p/.git/{part}")), Some("/p/.git".into()), "{part}");
        }
        for whole in ["/p/.git", "/p", "/p/.git/hooks/pre-commit", "/p/.git/config", "/p/.gitignore"] {
            assert_eq!(of(whole), None, "{whole}");
        }
    }
}
