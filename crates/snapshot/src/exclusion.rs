//! Which entries of a tree a snapshot takes.
//!
//! Four kinds of rules, in this order: what the caller forces, what the caller leaves out by pattern or glob, git's
//! ignore rules (exactly as git reads them, global excludes aside), and the table of artifacts. What git tracks is taken
//! even when an ignore rule or the table says otherwise, also inside directories that are left out. When something about
//! a repository is not understood, more is taken, never less, and [`Rules::notes`] says so.
//!
//! [`Rules`] belong to one scan: [`Rules::live`] read ignore files on the way and write down what they read;
//! [`Rules::freeze`] then gives [`FrozenRules`], and [`Rules::frozen`] the same verdicts ever after.

mod above;
mod artifacts;
mod ask;
mod dir_rules;
mod enter;
mod freeze;
mod frozen;
mod git_config;
mod git_dir;
mod glob;
mod index;
mod list;
mod paths;
mod repository;
mod shared;
#[cfg(test)]
mod tests;
mod wildmatch;
mod words;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use dir_rules::DirRules;
pub use frozen::FrozenRules;
use shared::{Live, Shared, Source};

use crate::node::Reason;

/// What the caller wants left out, and what not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExclusionConfig {
    /// Whether git's ignore files count.
    pub use_gitignore: bool,
    /// A component's name, or with `/` a part of the path below the root.
    pub exclude_patterns: Vec<String>,
    /// Globs on the names of files and directories.
    pub exclude_globs: Vec<String>,
    /// Like `exclude_patterns`, or a glob on names: taken whatever other rules say, also inside what they leave out.
    /// With any of these, all directories that are left out must be searched.
    pub force_include: Vec<String>,
    /// Whether to leave out what tools make and can make again.
    pub artifacts: bool,
    /// Leave out folders that git ignores and that hold more bytes than this, where git's ignore files do not count
    /// otherwise.
    pub max_ignored_folder: Option<u64>,
    /// Leave out a repository of git's that holds more bytes than this: it is taken as a whole or not at all.
    pub max_repository: Option<u64>,
    /// What to do with git packs that are costly to copy.
    pub large_git_packs: LargePacks,
}

/// What to do with large git packs on a filesystem that cannot share their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LargePacks {
    #[default]
    LeaveOut,
    Take,
}

impl Default for ExclusionConfig {
    fn default() -> ExclusionConfig {
        ExclusionConfig {
            use_gitignore: true,
            exclude_patterns: Vec::new(),
            exclude_globs: Vec::new(),
            force_include: Vec::new(),
            artifacts: false,
            max_ignored_folder: None,
            max_repository: None,
            large_git_packs: LargePacks::LeaveOut,
        }
    }
}

/// Why rules could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    #[error("invalid glob {glob:?}: {why}")]
    Glob { glob: String, why: &'static str },
    #[error("cannot find the folder {}: {source}", path.display())]
    Root { path: PathBuf, source: io::Error },
}

/// What is done with an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Take,
    /// Taken although a rule matches: git tracks it, or it is forced.
    TakeAnyway,
    Leave(Reason),
    /// A directory that is left out, but something inside may be forced or is tracked: enter it, searching.
    Search(Reason),
}

/// What stands around an entry that is judged.
pub trait Around {
    /// Whether a name beside the entry, or `name/marker` inside it, is there, and is no empty file.
    fn is_filled(&self, path: &[u8]) -> bool;

    /// Whether the directory of this name, beside which there is evidence, has nothing in it.
    fn is_empty(&self, _name: &[u8]) -> bool {
        false
    }

    /// Whether any name beside the entry ends with this.
    fn any_ends_with(&self, _end: &[u8]) -> bool {
        false
    }

    /// Whether the file at `path`, inside the entry, begins with these bytes.
    fn begins_with(&self, _path: &[u8], _bytes: &[u8]) -> bool {
        false
    }

    /// Whether all files in the directory of this name have more bytes than `limit`.
    fn is_larger(&self, _name: &[u8], _limit: u64) -> bool {
        false
    }
}

impl<F: Fn(&[u8]) -> bool> Around for F {
    fn is_filled(&self, path: &[u8]) -> bool {
        self(path)
    }
}

/// Which of the names that matter for rules a directory's listing contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Has {
    pub gitignore: bool,
    pub git: bool,
}

impl Has {
    /// One more name of the listing.
    pub fn note(&mut self, name: &[u8]) {
        self.gitignore |= name == b".gitignore";
        self.git |= name == b".git";
    }
}

/// Something about the rules that people should know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// Nothing is known of what git tracks there, so its ignore rules leave nothing out.
    IndexNotUnderstood { repository: String, why: String },
    /// Its rules are not in force.
    IgnoreFileNotRead { file: String, why: String },
    /// The root itself is ignored; the ignore files above it are not in force.
    RootIgnored { rule: String, file: String },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::IndexNotUnderstood { repository, why } => {
                write!(
                    f,
                    "git's index in {repository} is not understood ({why}): its ignore rules are set aside"
                )
            }
            Note::IgnoreFileNotRead { file, why } => write!(f, "cannot read {file}: {why}"),
            Note::RootIgnored { rule, file } => {
                write!(
                    f,
                    "the folder itself is ignored (rule {rule:?} in {file}): ignore files above it are set aside"
                )
            }
        }
    }
}

/// The rules of one scan.
#[derive(Clone, Debug)]
pub struct Rules {
    shared: Arc<Shared>,
}

impl Rules {
    /// Rules that read ignore files from disk while the tree at `root` is scanned.
    pub fn live(config: &ExclusionConfig, root: &Path) -> Result<Rules, RulesError> {
        let error = |source| RulesError::Root { path: root.to_owned(), source };
        let root = std::fs::canonicalize(root).map_err(error)?;
        Rules::new(config, false, Source::Live(Box::new(Live::new(root))))
    }

    /// The rules as they were when they were frozen, whatever is on disk now.
    pub fn frozen(frozen: &FrozenRules) -> Result<Rules, RulesError> {
        Rules::new(&frozen.config, frozen.set_aside, Source::Frozen(Box::new(frozen.clone())))
    }

    fn new(config: &ExclusionConfig, set_aside: bool, source: Source) -> Result<Rules, RulesError> {
        let shared = Arc::new(Shared::new(config, set_aside, source)?);
        Ok(Rules { shared })
    }

    /// The same rules for a new scan, with all ignore files disregarded; the caller's own rules stay.
    #[must_use]
    pub fn set_aside(&self) -> Rules {
        let source = match &self.shared.source {
            Source::Live(live) => Source::Live(Box::new(Live::new(live.root.clone()))),
            Source::Frozen(frozen) => Source::Frozen(Box::new(frozen.without_ignore_files())),
        };
        Rules { shared: Arc::new(self.shared.with_source(true, source)) }
    }

    pub fn config(&self) -> &ExclusionConfig {
        &self.shared.config
    }

    /// What people should know about these rules, so far.
    pub fn notes(&self) -> Vec<Note> {
        let Source::Live(live) = &self.shared.source else { return Vec::new() };
        let record = live.record();
        let mut notes = record.notes.clone();
        let above = record.above.iter().map(|above| ("the repository above".to_owned(), &above.repository));
        let below = record.repositories.iter().map(|(top, found)| {
            let place = if top.is_empty() { "the root".into() } else { String::from_utf8_lossy(top) };
            (place.into_owned(), found)
        });
        for (repository, found) in above.chain(below) {
            if let Some(why) = found.repository.failure() {
                notes.push(Note::IndexNotUnderstood { repository, why: why.to_owned() });
            }
        }
        notes.sort();
        notes.dedup();
        notes
    }
}

/// Whether a path is inside a repository's folder.
pub fn is_in_git(path: &[u8]) -> bool {
    let mut above = path.split(|byte| *byte == b'/');
    above.next_back();
    above.any(|part| part == b".git")
}

/// Whether a path is that of a pack in a repository's folder, a submodule's too.
pub fn is_git_pack(path: &[u8]) -> bool {
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let Some(git) = parts.iter().position(|part| *part == b".git") else { return false };
    match parts[git + 1..] {
        [b"objects", b"pack", name] | [b"modules", _, .., b"objects", b"pack", name] => {
            name.ends_with(b".pack")
        }
        _ => false,
    }
}
