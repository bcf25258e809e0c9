//! The three ways to execute.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who stands outside the sandbox while the command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecStrategy {
    /// Nobody: this process confines itself and becomes the command.
    Direct,
    /// A parent that is confined like the command and only waits.
    Monitor,
    /// A hardened parent outside the sandbox.
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
