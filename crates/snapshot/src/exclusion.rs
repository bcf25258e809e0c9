//! Exclusion rules: which entries of a tree a snapshot captures.
//!
//! Four kinds of rules, in this order: the caller's forced paths, the caller's excluded patterns and globs, git's
//! ignore rules (exactly as git reads them, without global excludes), and the table of build artifacts. Files that git
//! tracks are captured even when an ignore rule or the table matches, also inside excluded directories. When a
//! repository cannot be understood, more is captured, never less, and [`Rules::notes`] says so.
//!
//! [`Rules`] belong to one scan: [`Rules::live`] reads ignore files during the scan and records them; [`Rules::freeze`]
//! then makes [`FrozenRules`], from which [`Rules::frozen`] gives the same verdicts later.

mod artifacts;
mod caller_rules;
mod config;
mod dir_rules;
mod evidence;
mod freeze;
mod frozen;
mod git_config;
mod git_dir;
mod glob;
mod ignore_file;
mod index;
mod parent_repository;
mod paths;
mod queries;
mod repository;
mod shared;
mod subdirectory_rules;
#[cfg(test)]
mod tests;
mod wildmatch;

use std::path::Path;
use std::sync::Arc;

pub use config::{ExclusionConfig, LargePacks, RulesError};
pub use dir_rules::DirRules;
pub use evidence::{Evidence, RuleFiles};
pub use frozen::FrozenRules;
use shared::{RootRules, RuleSource, SharedRules};

use crate::node::Reason;

/// Decision about an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExclusionVerdict {
    Take,
    /// Captured although a rule matches: git tracks it, or it is forced.
    TakeAnyway,
    Leave(Reason),
    /// An excluded directory that may hold forced or tracked entries: enter it and search for them.
    Search(Reason),
}

impl<F: Fn(&[u8]) -> bool> Evidence for F {
    fn is_filled(&self, path: &[u8]) -> bool {
        self(path)
    }
}

impl RuleFiles {
    /// Record one more name of the listing.
    pub fn note(&mut self, name: &[u8]) {
        self.gitignore |= name == b".gitignore";
        self.git |= name == b".git";
    }
}

/// Note about the rules for the user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ExclusionNote {
    /// The tracked paths are unknown, so the ignore rules exclude nothing there.
    #[error("git's index in {repository} is not understood ({why}): its ignore rules are set aside")]
    IndexNotUnderstood { repository: String, why: String },
    /// The file's rules are not in force.
    #[error("cannot read {file}: {why}")]
    IgnoreFileNotRead { file: String, why: String },
    #[error("the folder itself is ignored (rule {rule:?} in {file}): ignore files above it are set aside")]
    RootIgnored { rule: String, file: String },
}

/// Exclusion rules of one scan.
#[derive(Clone, Debug)]
pub struct Rules {
    shared: Arc<SharedRules>,
}

impl Rules {
    /// Rules that read ignore files from disk while the tree at `root` is scanned.
    pub fn live(config: &ExclusionConfig, root: &Path) -> Result<Rules, RulesError> {
        let error = |source| RulesError::Root { path: root.to_owned(), source };
        let root = std::fs::canonicalize(root).map_err(error)?;
        Rules::new(config, false, RuleSource::Live(Box::new(RootRules::new(root))))
    }

    /// The rules as they were when they were frozen, whatever is on disk now.
    pub fn frozen(frozen: &FrozenRules) -> Result<Rules, RulesError> {
        Rules::new(&frozen.config, frozen.set_aside, RuleSource::Frozen(Box::new(frozen.clone())))
    }

    fn new(config: &ExclusionConfig, set_aside: bool, source: RuleSource) -> Result<Rules, RulesError> {
        let shared = Arc::new(SharedRules::new(config, set_aside, source)?);
        Ok(Rules { shared })
    }

    /// The same rules for a new scan, without ignore files; the caller's own rules stay.
    #[must_use]
    pub fn set_aside(&self) -> Rules {
        let source = match &self.shared.source {
            RuleSource::Live(live) => RuleSource::Live(Box::new(RootRules::new(live.root.clone()))),
            RuleSource::Frozen(frozen) => RuleSource::Frozen(Box::new(frozen.without_ignore_files())),
        };
        Rules { shared: Arc::new(self.shared.with_source(true, source)) }
    }

    pub fn config(&self) -> &ExclusionConfig {
        &self.shared.config
    }

    /// Notes about these rules so far.
    pub fn notes(&self) -> Vec<ExclusionNote> {
        let RuleSource::Live(live) = &self.shared.source else { return Vec::new() };
        let record = live.record();
        let mut notes = record.notes.clone();
        let above = record.above.iter().map(|above| ("the repository above".to_owned(), &above.repository));
        let below = record.repositories.iter().map(|(top, found)| {
            let place = if top.is_empty() { "the root".into() } else { String::from_utf8_lossy(top) };
            (place.into_owned(), found)
        });
        for (repository, found) in above.chain(below) {
            if let Some(why) = found.repository.failure() {
                notes.push(ExclusionNote::IndexNotUnderstood { repository, why: why.to_owned() });
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
