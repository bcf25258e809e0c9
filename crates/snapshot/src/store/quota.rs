//! Limits on the size of a store.

use serde::{Deserialize, Serialize};

/// Owner of what is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    #[default]
    Session,
    Checkpoint,
    /// Settling and collecting, which replace packs by smaller ones.
    Maintenance,
}

/// Limits on the bytes that a store and the folders beside it take on disk; 0 is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    pub owner: Owner,
    /// Limit on everything; 0 is the one that the last writer with a limit had.
    pub total: u64,
    /// Limit on what checkpoints alone need; for [`Owner::Checkpoint`].
    pub checkpoints: u64,
    /// Names of folders in the store's parent folder that count, too.
    pub beside: Vec<String>,
}
