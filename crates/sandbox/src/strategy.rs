//! Three ways to execute a command.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Parent of the command while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecStrategy {
    /// No parent: this process confines itself and becomes the command.
    Direct,
    /// Parent that is confined like the command and only waits.
    Monitor,
    /// Hardened parent outside the sandbox.
    Supervised,
}

impl fmt::Display for ExecStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExecStrategy::Direct => "direct",
            ExecStrategy::Monitor => "monitor",
            ExecStrategy::Supervised => "supervised",
        })
    }
}
