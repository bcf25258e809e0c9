//! One run, as data: the page that strings the stages together.
//!
//! request and host -> [`plan`] -> [`Session`] (resolved, compiled, nothing started) -> [`run`] or [`replace`] ->
//! [`SessionReport`]. Each stage consumes the one before; nobody reaches two stages back.

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

/// What the edge knows about the machine and hands in.
#[derive(Clone, Debug)]
pub struct Host {
    pub context: HostContext,
    /// The caller's environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where session folders are made.
    pub session_base: PathBuf,
    /// Where user profiles are.
    pub profile_dir: Option<PathBuf>,
    /// This process is itself inside a nono sandbox.
    pub nested: bool,
}

/// What to run and how.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    pub policy: RunRequest,
    pub command: Vec<OsString>,
    pub strategy: ExecStrategy,
    /// Listen to the command's errors for the diagnostic.
    pub diagnostics: bool,
    pub rollback: Rollback,
    pub asking: Asking,
    pub auditing: Auditing,
    pub network: Networking,
    pub checkpoints: Checkpointing,
    /// Watch what it does. Nobody is asked then.
    pub learning: Option<Learning>,
    /// The flags that a person typed, for hints of what to type instead.
    pub typed: Option<Vec<OsString>>,
    /// This process is somebody else's: its signals are left to it.
    pub guest: Option<Guest>,
}

impl SessionRequest {
    /// A supervised run without anything special about it.
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

/// Why a command was not run.
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
    #[error("the session folder cannot be made in {base}: {}", errno::describe(.source), base = .base.display())]
    Folder { base: PathBuf, source: io::Error },
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("checkpoints cannot be set up: {0}")]
    Checkpoints(#[from] SettingsError),
    #[error("checkpoints need a supervisor outside the sandbox, and {strategy} has none")]
    CheckpointsNeedSupervisor { strategy: ExecStrategy },
    #[error("no snapshot could be taken, so nothing was run: {0}")]
    Rollback(#[from] RollbackError),
    #[error("the profile wants snapshots (rollback.enabled), and {strategy} has nobody to take them")]
    NeedsSupervisor { strategy: ExecStrategy },
    #[error(
        "the profile wants to ask at run time (security.capability_elevation), and {strategy} has nobody to ask"
    )]
    AskNeedsSupervisor { strategy: ExecStrategy },
    #[error(
        "asking at run time needs a terminal that is not the command's, and the profile gives it yours (interactive)"
    )]
    AskNeedsTerminal,
    #[error("what happens cannot be written down, so nothing was run: {0}")]
    Log(#[from] LogError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(
        "only some hosts are open (network.allow_domain), and {strategy} has nobody to filter the network"
    )]
    FilterNeedsSupervisor { strategy: ExecStrategy },
    #[error("{flag} says how snapshots are taken, but nothing asks for any")]
    NotTracked { flag: &'static str },
    #[error("{dest} is writable inside the sandbox: the command could change its own snapshots", dest = .dest.display())]
    DestWritable { dest: PathBuf },
    #[error("{dest} cannot hold sessions: {owner} is nono's own or another session's", dest = .dest.display(), owner = .owner.display())]
    DestTaken { dest: PathBuf, owner: PathBuf },
    #[error(transparent)]
    Hold(#[from] HoldError),
    #[error("the settings of an agent cannot be copied for the command: {}", errno::describe(.0))]
    Saved(io::Error),
    #[error("interrupted by {} before the command started; nothing was left behind", nono_sys::wait::signal_name(*.signal))]
    Interrupted { signal: i32 },
    #[error("cancelled before the command started; nothing was left behind")]
    Cancelled,
}

/// Everything resolved and compiled; nothing started.
#[derive(Debug)]
pub struct Session {
    pub policy: ResolvedPolicy,
    pub profile: MergedProfile,
    pub support: Support,
    pub strategy: ExecStrategy,
    /// Snapshots are wanted, but nothing can be written.
    pub nothing_to_track: bool,
    command: CommandSpec,
    options: Options,
    folder: SessionFolder,
    prepared: Prepared,
    name: Option<String>,
    /// The command, without what may be secret in it.
    shown: Vec<String>,
    tracking: Option<tracking::Plan>,
    backend: Option<Arc<dyn ApprovalBackend>>,
    /// Who opens web addresses, and who is asked about them.
    urls: Option<(Arc<dyn UrlOpener>, Arc<dyn ApprovalBackend>)>,
    /// What happens is written down there.
    book: Option<Book>,
    /// Where only some hosts are open.
    connection: Option<Connection>,
    /// nono's own folders, never granted.
    own: Vec<PathBuf>,
    /// Where there is a supervisor to serve them.
    sockets: Option<Sockets>,
    /// Where what it does is recorded.
    watched: Option<Watched>,
    /// Where checkpoints are taken.
    checkpoints: Option<Planned>,
    sweeper: Option<Sweeper>,
    /// Who is asked before one is restored.
    approver: Arc<dyn ApprovalBackend>,
    /// What stands where an agent's files are absent.
    agent_files: AgentFiles,
    guest: Option<Guest>,
}

impl Session {
    /// Why `nono ps` will not show it, if it will not.
    pub fn unlisted(&self) -> Option<&io::Error> {
        self.sockets.as_ref()?.unlisted.as_ref()
    }

    /// How its limit on memory will be held, if it has one.
    pub fn memory_method(&self) -> Option<MemoryMethod> {
        MemoryMethod::of(self.prepared.blueprint())
    }

    /// Whether the command has a network of its own, with nothing of the host's in it.
    pub fn has_own_network(&self) -> bool {
        self.prepared.blueprint().layers.net
    }
}

/// Who is told what happens around the command.
pub trait RunObserver: Send + Sync {
    /// A capture goes on: so many files.
    fn capturing(&self, files: u64);
    /// The baseline is taken, and the command is about to start.
    fn baseline(&self, baseline: &Baseline<'_>);
    /// Whether the report lists what changed; else it is only counted.
    fn wants_list(&self) -> bool {
        true
    }
    /// Whether an end is wanted: of the first capture, and of the command of a [`Guest`]. Asked a few times a second.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Nobody is told.
impl RunObserver for () {
    fn capturing(&self, _files: u64) {}

    fn baseline(&self, _baseline: &Baseline<'_>) {}
}

/// What happened.
#[derive(Debug)]
pub struct SessionReport {
    pub session_id: String,
    pub policy: ResolvedPolicy,
    pub ended: Ended,
    pub limit: Option<LimitHit>,
    pub memory_method: Option<MemoryMethod>,
    /// Somebody outside ended it (`nono stop`).
    pub stopped: bool,
    /// It was ended because its observer wanted that.
    pub cancelled: bool,
    /// What it said, where that was to be kept.
    pub captured: Option<Captured>,
    pub findings: Findings,
    /// What it was refused and granted while it ran.
    pub mediation: MediationReport,
    /// Where the run was tracked.
    pub rollback: Option<RollbackReport>,
    /// Where what it did was recorded.
    pub learned: Option<Learned>,
    /// Where it was written down.
    pub audit: Option<AuditReport>,
    /// What went through the filter, where there was one.
    pub network: Option<NetworkReport>,
    /// Where checkpoints were taken.
    pub checkpoints: Option<CheckpointsReport>,
    /// What agents saved in their settings.
    pub saved: Vec<SavedReport>,
}

impl SessionReport {
    /// As a shell would have it: the command's own; 124 when its time was over, 137 when it used too much memory, 128+n when
    /// signal n ended it.
    pub fn exit_code(&self) -> i32 {
        match self.limit {
            Some(LimitHit::Time(_)) => 124,
            Some(LimitHit::Memory { .. }) => 137,
            Some(LimitHit::FileSize(_)) | None => running::exit_code(self.ended),
        }
    }
}

/// Resolve only: what `--dry-run` and `why` show. Touches nothing.
pub fn resolve(request: &RunRequest, host: &Host) -> Result<(ResolvedPolicy, MergedProfile), SessionError> {
    let profile = profile(request, host)?;
    Ok((resolve_with(&profile, request, host)?, profile))
}

/// The same with the request's profile, where that is known already.
fn resolve_with(
    profile: &MergedProfile,
    request: &RunRequest,
    host: &Host,
) -> Result<ResolvedPolicy, PolicyError> {
    nono_policy::resolve(request, &host.context, profile, PolicyData::embedded(), &HostFacts)
}

/// The profile of a request, and everything it extends.
pub fn profile(request: &RunRequest, host: &Host) -> Result<MergedProfile, ProfileError> {
    let store = ProfileStore::new(host.profile_dir.clone());
    let wanted = request.profile.clone().unwrap_or_else(|| ProfileRef::Name("default".to_owned()));
    let mut profile = store.resolve(&wanted, &request.extends)?;
    for project in &request.projects {
        profile.lay_over(&project.profile);
    }
    Ok(profile)
}
