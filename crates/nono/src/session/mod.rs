//! One supervised run from request to report.
//!
//! Request and host -> [`plan`] -> [`Session`] (resolved, compiled, nothing started) -> [`run`] or [`replace`] ->
//! [`SessionReport`]. Each stage consumes the one before and uses no value of an earlier stage.

mod agent_files;
mod asking;
mod auditing;
mod browser;
mod capturing;
mod channels;
pub mod check;
mod checkpoints;
mod connection;
mod executable;
pub(crate) mod folder;
mod guest;
mod histories;
mod host;
mod learning;
mod made;
mod plan;
mod running;
mod stand_ins;
mod tracked;
mod words;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use nono_policy::{
    HostContext, HostFacts, MergedProfile, PolicyData, PolicyError, ProfileError, ProfileRef, ProfileStore,
    ResolvedPolicy, RunRequest,
};
use nono_sandbox::{ExecStrategy, Prepared, Refusal, Support};
pub use nono_supervisor::RunError;
use nono_supervisor::approval::ApprovalBackend;
use nono_supervisor::report::MediationReport;
use nono_supervisor::urls::UrlOpener;
use nono_supervisor::{CommandSpec, LimitHit, MemoryMethod, Options};
use nono_sys::errno;
use nono_sys::wait::Ended;
use thiserror::Error;

use crate::checkpoints::SettingsError;
use crate::diagnostic::Findings;
use crate::network::{NetworkError, NetworkReport, Networking};
use crate::program::ProgramError;
use crate::rollback::RollbackError;
use crate::rollback::tracking::{self, Baseline, RollbackReport};
pub use crate::saved::SavedReport;
use crate::state_dir::StateDirError;
use agent_files::AgentFiles;
pub use asking::Asking;
pub(crate) use asking::mediate;
use auditing::Book;
pub use auditing::{AuditReport, Auditing, LogError};
pub use browser::OPEN_URL;
use channels::Sockets;
use check::CheckError;
pub use checkpoints::{Checkpointing, CheckpointsReport};
use checkpoints::{Planned, Sweeper};
use connection::Connection;
pub use folder::SessionFolder;
pub use guest::{Captured, Guest};
pub use host::{HostError, Surroundings};
use learning::Watched;
pub use learning::{Learned, Learning};
pub use made::agent_state;
pub use plan::{find_program, plan};
pub use running::{replace, run};
pub use stand_ins::{HoldError, on_record as placeholders};
pub use tracked::Rollback;
pub(crate) use tracked::resolved;
pub use words::{
    ExecProblem, end_by, failed_exec, io_words, is_confined, is_name, network_word, show_arguments, user_id,
};

/// Facts about the machine, supplied by the caller: the library reads neither the environment nor the home folder.
#[derive(Clone, Debug)]
pub struct Host {
    pub context: HostContext,
    /// The caller's environment.
    pub env: Vec<(OsString, OsString)>,
    /// Folder in which session folders are made.
    pub session_base: PathBuf,
    /// Folder of the user's profiles.
    pub profile_dir: Option<PathBuf>,
    /// Whether this process is itself inside a nono sandbox.
    pub nested: bool,
}

/// A command and how to run it.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    pub policy: RunRequest,
    pub command: Vec<OsString>,
    pub strategy: ExecStrategy,
    /// Scan the command's stderr for the diagnostic.
    pub diagnostics: bool,
    pub rollback: Rollback,
    pub asking: Asking,
    pub auditing: Auditing,
    pub network: Networking,
    pub checkpoints: Checkpointing,
    /// Record what the command does, to propose a profile. No approval is asked for then.
    pub learning: Option<Learning>,
    /// Flags as the user typed them, for hints.
    pub typed: Option<Vec<OsString>>,
    /// Set when the process belongs to a host program: its signals are left alone.
    pub guest: Option<Guest>,
}

impl SessionRequest {
    /// A supervised run with every option at its default.
    pub fn new(policy: RunRequest, command: Vec<OsString>) -> SessionRequest {
        SessionRequest {
            policy,
            command,
            strategy: ExecStrategy::Supervised,
            diagnostics: false,
            rollback: Rollback::default(),
            asking: Asking::default(),
            auditing: Auditing::default(),
            network: Networking::default(),
            checkpoints: Checkpointing::default(),
            learning: None,
            typed: None,
            guest: None,
        }
    }
}

/// Reasons why a command was not run.
#[derive(Debug, Error)]
pub enum SessionError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    State(#[from] StateDirError),
    #[error("cannot create the session folder in {base}: {}", errno::describe(.source), base = .base.display())]
    Folder { base: PathBuf, source: io::Error },
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("cannot set up checkpoints: {0}")]
    Checkpoints(#[from] SettingsError),
    #[error("checkpoints need a supervisor outside the sandbox, and {strategy} has none")]
    CheckpointsNeedSupervisor { strategy: ExecStrategy },
    #[error("cannot take the baseline snapshot, so nothing was run: {0}")]
    Rollback(#[from] RollbackError),
    #[error("snapshots (rollback.enabled in the profile) need a supervisor, and {strategy} has none")]
    NeedsSupervisor { strategy: ExecStrategy },
    #[error(
        "asking at run time (security.capability_elevation in the profile) needs a supervisor, and {strategy} has none"
    )]
    AskNeedsSupervisor { strategy: ExecStrategy },
    #[error("asking at run time needs the terminal, and the profile gives it to the command (interactive)")]
    AskNeedsTerminal,
    #[error("cannot write the audit log, so nothing was run: {0}")]
    Log(#[from] LogError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(
        "filtering the network by host (network.allow_domain) needs a supervisor, and {strategy} has none"
    )]
    FilterNeedsSupervisor { strategy: ExecStrategy },
    #[error("{flag} needs snapshots, and none are taken in this run")]
    NotTracked { flag: &'static str },
    #[error("{dest} is writable inside the sandbox: the command could change its own snapshots", dest = .dest.display())]
    DestWritable { dest: PathBuf },
    #[error("{dest} cannot hold sessions: {owner} belongs to nono or to another session", dest = .dest.display(), owner = .owner.display())]
    DestTaken { dest: PathBuf, owner: PathBuf },
    #[error(transparent)]
    Hold(#[from] HoldError),
    #[error("cannot copy an agent's settings for the command: {}", errno::describe(.0))]
    Saved(io::Error),
    #[error("interrupted by {} before the command started; nothing was left behind", nono_sys::wait::signal_name(*.signal))]
    Interrupted { signal: i32 },
    #[error("cancelled before the command started; nothing was left behind")]
    Cancelled,
}

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
    tracking: Option<tracking::Plan>,
    backend: Option<Arc<dyn ApprovalBackend>>,
    /// Opener of web addresses, and the approver for them.
    urls: Option<(Arc<dyn UrlOpener>, Arc<dyn ApprovalBackend>)>,
    /// Set when the run is audited.
    book: Option<Book>,
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
    guest: Option<Guest>,
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

/// Receiver of progress and events around the command.
pub trait RunObserver: Send + Sync {
    /// Progress of a capture: number of files so far.
    fn capturing(&self, files: u64);
    /// The baseline was taken; the command is about to start.
    fn baseline(&self, baseline: &Baseline<'_>);
    /// Whether the report lists each change or only counts them.
    fn wants_list(&self) -> bool {
        true
    }
    /// Whether to cancel the first capture, or the command of a [`Guest`]. Polled a few times a second.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Observer that ignores everything.
impl RunObserver for () {
    fn capturing(&self, _files: u64) {}

    fn baseline(&self, _baseline: &Baseline<'_>) {}
}

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
            Some(LimitHit::FileSize(_)) | None => running::exit_code(self.ended),
        }
    }
}

/// Resolve the policy without running anything, as `--dry-run` and `why` show it. Changes nothing on disk.
pub fn resolve(request: &RunRequest, host: &Host) -> Result<(ResolvedPolicy, MergedProfile), SessionError> {
    let profile = profile(request, host)?;
    Ok((resolve_with(&profile, request, host)?, profile))
}

/// Resolve with a profile that is already loaded.
fn resolve_with(
    profile: &MergedProfile,
    request: &RunRequest,
    host: &Host,
) -> Result<ResolvedPolicy, PolicyError> {
    nono_policy::resolve(request, &host.context, profile, PolicyData::embedded(), &HostFacts)
}

/// The request's profile, merged with everything it extends.
pub fn profile(request: &RunRequest, host: &Host) -> Result<MergedProfile, ProfileError> {
    let store = ProfileStore::new(host.profile_dir.clone());
    let wanted = request.profile.clone().unwrap_or_else(|| ProfileRef::Name("default".to_owned()));
    let mut profile = store.resolve(&wanted, &request.extends)?;
    for project in &request.projects {
        profile.lay_over(&project.profile);
    }
    Ok(profile)
}
