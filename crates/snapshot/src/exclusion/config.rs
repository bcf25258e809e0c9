//! Rules that the caller gives, and why they may be refused.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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
    /// Exclude folders that git ignores and that hold more bytes, when git's ignore files are not used otherwise.
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
