//! Snapshots: `SnapshotManager` and its values, over the snapshot engine.

pub(crate) mod coverage;
mod engine_turns;
mod error;
pub(crate) mod exclusion;
pub(crate) mod manager;
pub(crate) mod manifest;
pub(crate) mod metadata;
pub(crate) mod names;
mod network;
pub(crate) mod restored;
pub(crate) mod values;
