//! The part of a session that has to do with asking for more while the command runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nono_policy::{MergedProfile, ResolvedPolicy};
use nono_sandbox::Prepared;
use nono_supervisor::RunError;
use nono_supervisor::approval::{ApprovalBackend, DenyAll};
use nono_supervisor::mediate::{Mediate, Restored, Snapshots};
use nono_supervisor::stage::Stage;
use nono_supervisor::urls::UrlOpener;

use crate::rollback::recorded::sentence;
use crate::rollback::running::Live;

/// Whether somebody is asked, and who.
#[derive(Clone, Debug)]
pub struct Asking {
    /// `None`: as the profile says.
    pub wanted: Option<bool>,
    pub backend: Arc<dyn ApprovalBackend>,
    /// Go on where calls cannot be mediated, with what that leaves open.
    pub accept_weaker: bool,
    /// Files that decide, or that are secret: no answer opens them.
    pub own: Vec<PathBuf>,
    /// Whoever answers needs no terminal, and none is kept from the command.
    pub off_terminal: bool,
    /// Who opens web addresses outside, where the command may have any opened.
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

/// Where questions are put to the person, if there may be any.
pub(super) fn stage(wanted: bool) -> Result<Option<Stage>, RunError> {
    let failed = |source| RunError::Supervise { what: "prepare for questions", source };
    wanted.then(Stage::new).transpose().map_err(failed)
}

/// What the supervisor needs for its mediation.
pub(crate) fn mediate(
    policy: Arc<ResolvedPolicy>,
    prepared: &Prepared,
    own: Vec<PathBuf>,
    backend: Option<Arc<dyn ApprovalBackend>>,
    live: Option<Live>,
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

/// The snapshots of the session, for whoever mediates.
struct Running(Live);

impl Snapshots for Running {
    fn before_write(&self, path: &Path) -> Result<(), String> {
        self.0.add_root(path).map_err(|error| format!("it could not be stored first: {error}"))
    }

    fn checkpoint(&self, reason: &str) -> Result<u64, String> {
        self.0.checkpoint(reason).map_err(|error| error.to_string())
    }

    fn restore(&self, snapshot: u64, paths: &[PathBuf]) -> Result<Restored, String> {
        let done = self.0.restore(snapshot, paths).map_err(|error| error.to_string())?;
        Ok(Restored {
            session: self.0.id(),
            changed: done.changes.len() as u64,
            kept: done.kept.len() as u64,
            failed: done.failed.len() as u64,
            outcome: sentence(&done),
        })
    }
}
