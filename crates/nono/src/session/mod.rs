//! One supervised run from request to report.
//!
//! Request and host -> [`plan`] -> [`Session`] (resolved, compiled, nothing started) -> [`run`] or [`replace`] ->
//! [`SessionReport`]. Each stage consumes the one before and uses no value of an earlier stage.

mod agent_files;
mod asking;
mod audit_log;
mod browser;
mod capture_observer;
mod channels;
pub mod check;
mod checkpoint_quota;
mod checkpoint_service;
mod checkpoints;
mod created_dirs;
mod egress;
mod error;
mod executable;
mod exit_code;
pub(crate) mod folder;
mod host;
mod host_streams;
mod learning;
mod notices;
mod observer;
mod placeholders;
mod plan;
mod report;
mod request;
mod resolve;
mod rollback_options;
mod running;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use nono_policy::{MergedProfile, ResolvedPolicy};
use nono_sandbox::{ExecStrategy, Prepared, Support};
pub use nono_supervisor::RunError;
use nono_supervisor::approval::ApprovalBackend;
use nono_supervisor::urls::UrlOpener;
use nono_supervisor::{CommandSpec, MemoryMethod, Options};

use crate::rollback::tracking;
use agent_files::AgentFiles;
pub use asking::Asking;
pub(crate) use asking::mediate;
use audit_log::AuditPlan;
pub use audit_log::{AuditReport, Auditing, LogError};
pub use browser::OPEN_URL;
use channels::Sockets;
pub use checkpoints::{Checkpointing, CheckpointsReport};
use checkpoints::{Planned, Sweeper};
pub use created_dirs::agent_state;
use egress::Connection;
pub use error::SessionError;
pub use folder::SessionFolder;
pub use host::{HostError, Surroundings};
pub use host_streams::{Captured, HostStreams};
use learning::Watched;
pub use learning::{Learned, Learning};
pub use nono_agents::saved::SavedReport;
pub use notices::{
    ExecProblem, end_by, failed_exec, io_words, is_confined, is_name, network_word, show_arguments, user_id,
};
pub use observer::RunObserver;
pub use placeholders::{HoldError, on_record as placeholders};
pub use plan::{find_program, plan};
pub use report::SessionReport;
pub use request::{Host, SessionRequest};
pub use resolve::{profile, resolve};
pub use rollback_options::Rollback;
pub(crate) use rollback_options::resolved;
pub use running::{replace, run};

/// A planned run: everything resolved and compiled, nothing started.
#[derive(Debug)]
pub struct Session {
    pub policy: ResolvedPolicy,
    pub profile: MergedProfile,
    pub support: Support,
    pub strategy: ExecStrategy,
    /// Snapshots are wanted, but no granted path is writable.
    pub nothing_to_track: bool,
    command: CommandSpec,
    options: Options,
    folder: SessionFolder,
    prepared: Prepared,
    name: Option<String>,
    /// The command with secrets redacted.
    shown: Vec<String>,
    tracking: Option<tracking::TrackingPlan>,
    backend: Option<Arc<dyn ApprovalBackend>>,
    /// Opener of web addresses, and the approver for them.
    urls: Option<(Arc<dyn UrlOpener>, Arc<dyn ApprovalBackend>)>,
    /// Set when the run is audited.
    book: Option<AuditPlan>,
    /// Set when the network is filtered by host.
    connection: Option<Connection>,
    /// nono's own folders and secret files; never granted.
    own: Vec<PathBuf>,
    /// Set when the run is supervised.
    sockets: Option<Sockets>,
    /// Set when the run is recorded for `nono learn`.
    watched: Option<Watched>,
    /// Set when checkpoints are taken.
    checkpoints: Option<Planned>,
    sweeper: Option<Sweeper>,
    /// Approver of restores requested from inside the sandbox.
    approver: Arc<dyn ApprovalBackend>,
    /// Placeholders and copies of agents' files.
    agent_files: AgentFiles,
    guest: Option<HostStreams>,
}

impl Session {
    /// Reason why `nono ps` cannot list this session, if it cannot.
    pub fn unlisted(&self) -> Option<&io::Error> {
        self.sockets.as_ref()?.unlisted.as_ref()
    }

    /// Method that enforces the memory limit, if there is one.
    pub fn memory_method(&self) -> Option<MemoryMethod> {
        MemoryMethod::of(self.prepared.blueprint())
    }

    /// Whether the command has its own network namespace, without the host's interfaces.
    pub fn has_own_network(&self) -> bool {
        self.prepared.blueprint().layers.net
    }
}
