//! Exclusion rules: which entries of a tree a snapshot captures.
//!
//! Four kinds of rules, in this order: the caller's forced paths, the caller's excluded patterns and globs, git's
//! ignore rules (exactly as git reads them, without global excludes), and the table of build artifacts. Files that git
//! tracks are captured even when an ignore rule or the table matches, also inside excluded directories. When a
//! repository cannot be understood, more is captured, never less, and [`Rules::notes`] says so.
//!
//! [`Rules`] belong to one scan: [`Rules::live`] reads ignore files during the scan and records them; [`Rules::freeze`]
//! then makes [`FrozenRules`], from which [`Rules::frozen`] gives the same verdicts later.

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

/// Exclusions that the caller asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExclusionConfig {
    /// Whether git's ignore files are used.
    pub use_gitignore: bool,
    /// Names of path components, or with a `/`, parts of the path below the root.
    pub exclude_patterns: Vec<String>,
    /// Globs on the names of files and directories.
    pub exclude_globs: Vec<String>,
    /// Patterns as in `exclude_patterns`, or globs on names: always captured, also inside excluded directories. With
    /// any of these, all excluded directories must be searched.
    pub force_include: Vec<String>,
    /// Whether to exclude build artifacts, which tools can make again.
    pub artifacts: bool,
    /// Exclude folders that git ignores and that hold more bytes than this, when git's ignore files are not used
    /// otherwise.
    pub max_ignored_folder: Option<u64>,
    /// Exclude a git repository that holds more bytes than this: it is captured as a whole or not at all.
    pub max_repository: Option<u64>,
    /// Handling of git packs that are costly to copy.
    pub large_git_packs: LargePacks,
}

/// Handling of large git packs on a filesystem that cannot share their data.
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

/// Error in making rules.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    #[error("invalid glob {glob:?}: {why}")]
    Glob { glob: String, why: &'static str },
    #[error("cannot find the folder {}: {source}", path.display())]
    Root { path: PathBuf, source: io::Error },
}

/// Decision about an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Take,
    /// Captured although a rule matches: git tracks it, or it is forced.
    TakeAnyway,
    Leave(Reason),
    /// An excluded directory that may hold forced or tracked entries: enter it and search for them.
    Search(Reason),
}

/// Surroundings of an entry: the evidence for build artifacts.
pub trait Around {
    /// Whether a sibling of this name, or `name/marker` inside the entry, exists and is not an empty file.
    fn is_filled(&self, path: &[u8]) -> bool;

    /// Whether the directory of this name, beside which there is evidence, is empty.
    fn is_empty(&self, _name: &[u8]) -> bool {
        false
    }

    /// Whether the name of any sibling ends with these bytes.
    fn any_ends_with(&self, _end: &[u8]) -> bool {
        false
    }

    /// Whether the file at `path`, inside the entry, begins with these bytes.
    fn begins_with(&self, _path: &[u8], _bytes: &[u8]) -> bool {
        false
    }

    /// Whether the files in the directory of this name hold more bytes than `limit`.
    fn is_larger(&self, _name: &[u8], _limit: u64) -> bool {
        false
    }
}

impl<F: Fn(&[u8]) -> bool> Around for F {
    fn is_filled(&self, path: &[u8]) -> bool {
        self(path)
    }
}

/// Names in a directory's listing that matter for rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Has {
    pub gitignore: bool,
    pub git: bool,
}

impl Has {
    /// Record one more name of the listing.
    pub fn note(&mut self, name: &[u8]) {
        self.gitignore |= name == b".gitignore";
        self.git |= name == b".git";
    }
}

/// Note about the rules for the user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// The tracked paths are unknown, so the ignore rules exclude nothing there.
    IndexNotUnderstood { repository: String, why: String },
    /// The file's rules are not in force.
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

/// Exclusion rules of one scan.
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

    /// The same rules for a new scan, without ignore files; the caller's own rules stay.
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

    /// Notes about these rules so far.
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

/// Whether a path is inside a `.git` folder.
pub fn is_in_git(path: &[u8]) -> bool {
    let mut above = path.split(|byte| *byte == b'/');
    above.next_back();
    above.any(|part| part == b".git")
}

/// Whether a path is that of a pack inside a `.git` folder, including submodules.
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
