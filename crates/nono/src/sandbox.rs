//! Confining the calling process.

use nono_policy::{AccessMode, HostFacts, query_path_on};
use nono_policy::{CapabilitySet, PolicyError, QueryResult};
use nono_sandbox::{Refusal, Support};
use thiserror::Error;

/// The sandbox of this process.
#[derive(Clone, Copy, Debug)]
pub struct Sandbox;

/// Why a process could not be confined. Nothing was applied, unless the kernel itself failed half-way, which its
/// message says.
#[derive(Debug, Error)]
pub enum ApplyError {
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Sandbox {
    /// Confine this process to `caps`, for ever. Refused when it has other threads, unless the kernel can confine all
    /// of them at once. Calling it again restricts further.
    pub fn apply(caps: &CapabilitySet) -> Result<(), ApplyError> {
        let policy = caps.to_policy()?;
        nono_sandbox::apply(&policy)?;
        Ok(())
    }

    /// Whether this kernel can enforce anything. Cheap: nothing is tried.
    pub fn is_supported() -> bool {
        nono_sandbox::is_supported()
    }

    /// What this kernel can enforce.
    pub fn support() -> Support {
        nono_sandbox::support()
    }

    /// What a sandbox with `caps` would answer for a path: allowed by which grant, or why not and what would open it.
    pub fn explain(
        caps: &CapabilitySet,
        cwd: &std::path::Path,
        path: &std::path::Path,
        access: AccessMode,
    ) -> Result<QueryResult, PolicyError> {
        Ok(query_path_on(&caps.to_policy()?, &HostFacts, cwd, path, access))
    }
}
