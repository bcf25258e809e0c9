//! `[checkpoints]` in `config.toml`.

use serde::{Deserialize, Serialize};

/// Settings for taking and keeping checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "four independent switches")]
pub struct Config {
    /// Whether checkpoints are taken at all. Off by default.
    pub enabled: bool,
    /// Whether to take one before every tool call, whatever it does.
    pub always: bool,
    /// Maximum number of checkpoints of a project that have no name and are not pinned.
    pub max_snapshots: u32,
    /// Quota for what only checkpoints reference in the store, of all projects.
    pub max_total_size_mb: u64,
    /// Maximum file size; larger files are captured only where the file system can share their data.
    pub max_file_size_mb: u64,
    /// Whether to capture files that git ignores, which nothing else keeps.
    pub ignored: Ignored,
    /// Size from which a folder that git ignores is excluded.
    pub max_ignored_folder_mb: u64,
    /// Maximum number of files of a project; 0 is no limit.
    pub max_files: u64,
    pub auto_prune: bool,
    /// Number of days without work after which a project is stale.
    pub retention_days: u32,
    pub delete_orphans: bool,
    pub min_interval_hours: u32,
}

/// Whether files that git ignores are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ignored {
    #[default]
    Capture,
    LeaveOut,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            enabled: false,
            always: false,
            max_snapshots: 20,
            max_total_size_mb: 500,
            max_file_size_mb: 10,
            ignored: Ignored::Capture,
            max_ignored_folder_mb: 100,
            max_files: 0,
            auto_prune: true,
            retention_days: 7,
            delete_orphans: true,
            min_interval_hours: 24,
        }
    }
}
