//! Confining the calling process.

use nono_policy::{AccessMode, CapabilitySet, HostFacts, PolicyError, QueryResult, query_path_on};
use thiserror::Error;

use crate::{Refusal, Support};

#[derive(Clone, Copy, Debug)]
pub struct Sandbox;

/// Reasons why a process could not be confined. Nothing was applied, unless the kernel failed half-way, which the
/// message says.
#[derive(Debug, Error)]
pub enum ApplyError {
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Sandbox {
    /// Confine this process to `caps`, irreversibly. Refused when it has other threads, unless the kernel can confine
    /// all of them at once. A second call restricts further.
    pub fn apply(caps: &CapabilitySet) -> Result<(), ApplyError> {
        let policy = caps.to_policy()?;
        crate::apply(&policy)?;
        Ok(())
    }

    /// Whether this kernel can enforce anything. Cheap: runs no test.
    pub fn is_supported() -> bool {
        crate::is_supported()
    }

    /// Details of what this kernel can enforce.
    pub fn support() -> Support {
        crate::support()
    }

    /// Explain what a sandbox with `caps` allows for a path: by which grant, or why not and which flag would open it.
    pub fn explain(
        caps: &CapabilitySet,
        cwd: &std::path::Path,
        path: &std::path::Path,
        access: AccessMode,
    ) -> Result<QueryResult, PolicyError> {
        Ok(query_path_on(&caps.to_policy()?, &HostFacts, cwd, path, access))
    }
}
