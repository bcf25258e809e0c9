//! `[checkpoints]` in `config.toml`.

use serde::{Deserialize, Serialize};

/// How checkpoints are taken and kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "four independent switches")]
pub struct Config {
    /// Whether checkpoints are taken at all. Off until somebody turns it on.
    pub enabled: bool,
    /// Before every tool call, whatever it does.
    pub always: bool,
    /// Checkpoints of a project that have no name and are not pinned.
    pub max_snapshots: u32,
    /// What only checkpoints reach in the store, of all projects.
    pub max_total_size_mb: u64,
    /// Larger files are taken only where the file system can share their data.
    pub max_file_size_mb: u64,
    /// What becomes of files that git ignores: nothing else keeps them.
    pub ignored: Ignored,
    /// A folder that git ignores is left out, by name, if it holds more than this.
    pub max_ignored_folder_mb: u64,
    /// Of a project; 0 is no limit.
    pub max_files: u64,
    pub auto_prune: bool,
    /// A project that was not touched for so long is stale.
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
