//! Facts about the machine that the caller hands in.

use std::path::PathBuf;

/// Properties of the machine, from the caller.
#[derive(Clone, Debug)]
pub struct Host {
    /// nono's state folder.
    pub state_dir: PathBuf,
    pub home: PathBuf,
}
