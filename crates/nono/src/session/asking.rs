//! Approval settings of a session: whether requests at run time are put to an approver, and what the mediator needs for
//! it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nono_catalogue::rollback::running::TrackedSession;
use nono_policy::{MergedProfile, ResolvedPolicy};
use nono_sandbox::{ExecStrategy, Prepared};
use nono_supervisor::approval::{ApprovalBackend, DenyAll};
use nono_supervisor::mediate::{Mediate, Restored, Snapshots};
use nono_supervisor::terminal_lease::TerminalLeases;
use nono_supervisor::urls::UrlOpener;
use nono_supervisor::{RunError, ServiceError};
use thiserror::Error;

use super::error::SessionError;
use crate::audit::RestoreOwner;
use crate::rollback::RollbackError;

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

/// Subjects that the user may be asked about while the command runs.
pub(super) struct AskableSubjects {
    /// Access beyond the grants.
    pub(super) opens: bool,
    /// Web addresses to open in the browser.
    pub(super) urls: bool,
}

impl AskableSubjects {
    pub(super) fn new(
        asking: &Asking,
        profile: &MergedProfile,
        strategy: ExecStrategy,
        interactive: bool,
        learning: bool,
    ) -> Result<AskableSubjects, SessionError> {
        let asks = AskableSubjects {
            opens: !learning && asking.is_wanted(profile),
            urls: !learning && asking.urls.is_some(),
        };
        if (asks.opens || asks.urls) && strategy != ExecStrategy::Supervised {
            return Err(SessionError::AskNeedsSupervisor { strategy });
        }
        if (asks.opens || asks.urls) && interactive && !asking.off_terminal {
            return Err(SessionError::AskNeedsTerminal);
        }
        Ok(asks)
    }

    /// The terminal for prompts, if there may be any. A restore requested from inside (`back`) needs one, too.
    pub(super) fn prompts(&self, asking: &Asking, back: bool) -> Result<Option<TerminalLeases>, RunError> {
        let wanted = !asking.off_terminal && (self.opens || self.urls || back);
        let failed = |source| RunError::Supervise { what: "prepare the terminal for prompts", source };
        wanted.then(TerminalLeases::new).transpose().map_err(failed)
    }
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
#[derive(Debug)]
struct Running(TrackedSession);

/// Failure to store a file that is about to be written to.
#[derive(Debug, Error)]
#[error("cannot store it before the write: {0}")]
struct NotStored(#[source] RollbackError);

impl Snapshots for Running {
    fn before_write(&self, path: &Path) -> Result<(), ServiceError> {
        Ok(self.0.add_root(path).map_err(NotStored)?)
    }

    fn checkpoint(&self, reason: &str) -> Result<u64, ServiceError> {
        Ok(self.0.checkpoint(reason)?)
    }

    fn restore(&self, snapshot: u64, paths: &[PathBuf]) -> Result<Restored, ServiceError> {
        let done = self.0.restore(snapshot, paths)?;
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
