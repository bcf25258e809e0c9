//! One supervised run from request to report.
//!
//! Request and host -> [`ResolvedRequest`] -> [`Session`] (compiled, nothing started) -> [`run`] or [`replace`] ->
//! [`SessionReport`]. Each stage consumes the one before and uses no value of an earlier stage.

mod agent_files;
mod asking;
mod audit_log;
mod browser;
mod capture_observer;
mod channels;
pub mod check;
mod checkpoint_quota;
mod checkpoint_request_error;
mod checkpoint_service;
mod checkpoints;
mod created_dirs;
mod egress;
mod error;
mod executable;
pub(crate) mod folder;
mod host;
mod host_streams;
mod learning;
mod notices;
mod observer;
mod parts;
mod plan;
mod report;
mod request;
mod resolve;
mod rollback_options;
mod running;
mod setup;
mod stand_ins;

use std::io;

use nono_policy::{MergedProfile, ResolvedPolicy};
use nono_sandbox::{ExecStrategy, Prepared, Support};
pub use nono_supervisor::RunError;
use nono_supervisor::{CommandSpec, MemoryMethod, Options};

pub use asking::Asking;
pub(crate) use asking::mediate;
pub use audit_log::{AuditReport, Auditing, LogError};
pub use browser::OPEN_URL;
pub use checkpoints::{Checkpointing, CheckpointsReport};
pub use created_dirs::agent_state;
pub use error::SessionError;
pub use folder::SessionFolder;
pub use host::{HostError, Surroundings};
pub use host_streams::{Captured, HostStreams};
pub use learning::{Learned, Learning};
pub use nono_agents::saved::SavedReport;
/// An I/O error in the C library's words, without the error number.
pub use nono_sys::errno::describe as io_words;
pub use nono_sys::process::{
    is_filtered as is_confined, kill_self as end_by, show_arguments, uid as user_id,
};
pub use notices::{ExecProblem, failed_exec, is_name, network_word};
pub use observer::RunObserver;
use parts::PlannedParts;
pub use plan::{ResolvedRequest, find_program, plan};
pub use report::SessionReport;
pub use request::{Host, SessionRequest};
pub use resolve::{profile, resolve};
pub use rollback_options::Rollback;
pub(crate) use rollback_options::resolved;
pub use running::{replace, run};
pub use stand_ins::{HoldError, on_record as stand_ins};

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
    parts: PlannedParts,
    guest: Option<HostStreams>,
}

impl Session {
    /// Reason why `nono ps` cannot list this session, if it cannot.
    pub fn unlisted(&self) -> Option<&io::Error> {
        self.parts.sockets.as_ref()?.unlisted.as_ref()
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
