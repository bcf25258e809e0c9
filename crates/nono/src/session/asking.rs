//! Approval settings of a session: whether requests at run time are put to an approver, and what the mediator needs for
//! it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nono_policy::{MergedProfile, ResolvedPolicy};
use nono_sandbox::Prepared;
use nono_supervisor::RunError;
use nono_supervisor::approval::{ApprovalBackend, DenyAll};
use nono_supervisor::mediate::{Mediate, Restored, Snapshots};
use nono_supervisor::terminal_lease::TerminalLeases;
use nono_supervisor::urls::UrlOpener;

use crate::audit::RestoreOwner;
use crate::rollback::running::TrackedSession;

/// Settings for approvals at run time.
#[derive(Clone, Debug)]
pub struct Asking {
    /// `None`: the profile decides.
    pub wanted: Option<bool>,
    pub backend: Arc<dyn ApprovalBackend>,
    /// Run with weaker protection where system calls cannot be mediated.
    pub accept_weaker: bool,
    /// Files that hold rules or secrets; no approval opens them.
    pub own: Vec<PathBuf>,
    /// The approver needs no terminal, so the command may keep it.
    pub off_terminal: bool,
    /// Opener of web addresses outside the sandbox, where the command may request that.
    pub urls: Option<Arc<dyn UrlOpener>>,
}

impl Default for Asking {
    fn default() -> Asking {
        Asking {
            wanted: None,
            backend: Arc::new(DenyAll),
            accept_weaker: false,
            own: Vec::new(),
            off_terminal: false,
            urls: None,
        }
    }
}

impl Asking {
    pub(super) fn is_wanted(&self, profile: &MergedProfile) -> bool {
        self.wanted.or(profile.security.capability_elevation).unwrap_or(false)
    }
}

/// The terminal for prompts, if any prompt is possible.
pub(super) fn prompts(wanted: bool) -> Result<Option<TerminalLeases>, RunError> {
    let failed = |source| RunError::Supervise { what: "prepare the terminal for prompts", source };
    wanted.then(TerminalLeases::new).transpose().map_err(failed)
}

/// The supervisor's mediation settings for this run.
pub(crate) fn mediate(
    policy: Arc<ResolvedPolicy>,
    prepared: &Prepared,
    own: Vec<PathBuf>,
    backend: Option<Arc<dyn ApprovalBackend>>,
    live: Option<TrackedSession>,
) -> Mediate {
    let late = prepared.blueprint().late_rules.iter().map(|rule| rule.path.clone());
    Mediate {
        policy,
        private: late.filter(|path| !path.starts_with("/proc")).collect(),
        own,
        own_network: prepared.blueprint().layers.net,
        judges_metadata: !prepared.blueprint().layers.mount,
        backend,
        snapshots: live.map(|live| Arc::new(Running(live)) as Arc<dyn Snapshots>),
        record: false,
        log: None,
        redact: None,
        urls: None,
        history: None,
        proxy: None,
    }
}

/// The session's snapshots, as the mediator uses them.
struct Running(TrackedSession);

impl Snapshots for Running {
    fn before_write(&self, path: &Path) -> Result<(), String> {
        self.0.add_root(path).map_err(|error| format!("cannot store it before the write: {error}"))
    }

    fn checkpoint(&self, reason: &str) -> Result<u64, String> {
        self.0.checkpoint(reason).map_err(|error| error.to_string())
    }

    fn restore(&self, snapshot: u64, paths: &[PathBuf]) -> Result<Restored, String> {
        let done = self.0.restore(snapshot, paths).map_err(|error| error.to_string())?;
        let session = self.0.id();
        Ok(Restored {
            changed: done.changes.len() as u64,
            kept: done.kept.len() as u64,
            failed: done.failed.len() as u64,
            outcome: RestoreOwner::Session(session.clone()).sentence(&done),
            session,
        })
    }
}
