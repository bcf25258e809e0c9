//! Result of a run, and its exit code.

use nono_policy::ResolvedPolicy;
use nono_supervisor::report::MediationReport;
use nono_supervisor::{LimitHit, MemoryMethod};
use nono_sys::wait::Ended;

use super::audit_log::AuditReport;
use super::checkpoints::CheckpointsReport;
use super::host_streams::Captured;
use super::learning::Learned;
use crate::diagnostic::Findings;
use crate::network::NetworkReport;
use crate::rollback::tracking::RollbackReport;
use nono_agents::saved::SavedReport;

/// Result of a supervised run.
#[derive(Debug)]
pub struct SessionReport {
    pub session_id: String,
    pub policy: ResolvedPolicy,
    pub ended: Ended,
    pub limit: Option<LimitHit>,
    pub memory_method: Option<MemoryMethod>,
    /// Ended from outside (`nono stop`).
    pub stopped: bool,
    /// Ended because the observer cancelled it.
    pub cancelled: bool,
    /// The command's output, if it was captured.
    pub captured: Option<Captured>,
    pub findings: Findings,
    /// Requests that were granted and denied while the command ran.
    pub mediation: MediationReport,
    /// Present when the run was tracked.
    pub rollback: Option<RollbackReport>,
    /// Present when the run was recorded for `nono learn`.
    pub learned: Option<Learned>,
    /// Present when the run was audited.
    pub audit: Option<AuditReport>,
    /// Traffic through the filtering proxy, if there was one.
    pub network: Option<NetworkReport>,
    /// Present when checkpoints were taken.
    pub checkpoints: Option<CheckpointsReport>,
    /// Changes that agents saved in their settings.
    pub saved: Vec<SavedReport>,
}

impl SessionReport {
    /// Exit code as a shell reports it: the command's own; 124 after the time limit, 137 after the memory limit, 128+n
    /// after signal n.
    pub fn exit_code(&self) -> i32 {
        match self.limit {
            Some(LimitHit::Time(_)) => 124,
            Some(LimitHit::Memory { .. }) => 137,
            Some(LimitHit::FileSize(_)) | None => self.ended.exit_code(),
        }
    }
}
