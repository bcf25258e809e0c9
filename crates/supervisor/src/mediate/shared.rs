//! State shared by the mediator's threads.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nono_policy::ResolvedPolicy;
use nono_sys::launch::Pairs;
use nono_sys::notify::Listener;

use super::aliases::Aliases;
use super::answers::Answers;
use super::behalf::{Crew, Scene};
use super::drafts::Drafts;
use super::journal::Journal;
use super::penalty::Penalty;
use super::questions::Questions;
use super::record::Recorder;
use super::refusals::{self, Refusals};
use super::{Handed, History, Mediate, Snapshots};
use crate::approval::ApprovalBackend;
use crate::report::{Attempt, Because, MediationReport};
use crate::stage::Stage;
use crate::urls::Urls;

pub(super) struct Shared {
    pub(super) listener: Listener,
    pub(super) root: OwnedFd,
    pub(super) policy: Arc<ResolvedPolicy>,
    /// File systems private to the command, which no policy covers.
    pub(super) private: Vec<PathBuf>,
    /// Directories of nono's own, beside those the policy closes.
    pub(super) own: Vec<PathBuf>,
    pub(super) aliases: Aliases,
    pub(super) backend: Option<Arc<dyn ApprovalBackend>>,
    pub(super) snapshots: Option<Arc<dyn Snapshots>>,
    /// Held while the approver is asked: one request at a time.
    pub(super) turn: Mutex<()>,
    pub(super) stage: Option<Stage>,
    pub(super) questions: Questions,
    pub(super) penalty: Arc<Penalty>,
    pub(super) verified: Verified,
    pub(super) asked: AtomicU64,
    pub(super) journal: Journal,
    pub(super) urls: Option<Urls>,
    pub(super) history: Option<History>,
    /// Set where the command is only recorded.
    pub(super) recorder: Option<Recorder>,
    /// Context for calls that open nothing.
    pub(super) scene: Arc<Scene>,
    pub(super) crew: Crew,
    pub(super) pairs: Mutex<Pairs>,
    answers: Mutex<Answers>,
    refusals: Mutex<Refusals>,
    tracked: Mutex<HashSet<PathBuf>>,
    drafts: Mutex<Drafts>,
    /// Whether changes of modes are mediated, because nothing else enforces them.
    pub(super) judges_metadata: bool,
}

impl Shared {
    pub(super) fn new(mediate: Mediate, handed: Handed, stage: Option<Stage>) -> io::Result<Shared> {
        let listener = Listener::new(handed.listener);
        listener.abilities();
        let root = handed.root.try_clone()?;
        let policy = mediate.policy.clone();
        let scene = Scene::new(policy, handed.init, mediate.own_network, root, handed.socket_list)?;
        // Objects are known by their paths without links; a path that does not exist yet is kept as it is.
        let own: Vec<_> = mediate.own.into_iter().map(|path| path.canonicalize().unwrap_or(path)).collect();
        Ok(Shared {
            scene: Arc::new(scene),
            crew: Crew::default(),
            pairs: Mutex::new(handed.pairs),
            listener,
            root: handed.root,
            aliases: Aliases::new(&mediate.policy, &own),
            policy: mediate.policy,
            private: mediate.private,
            own,
            backend: mediate.backend,
            snapshots: mediate.snapshots,
            turn: Mutex::default(),
            stage,
            questions: Questions::new(),
            penalty: Arc::new(Penalty::new()),
            verified: Verified::new(),
            asked: AtomicU64::new(0),
            journal: Journal::new(mediate.log, mediate.redact),
            urls: mediate.urls,
            history: mediate.history,
            recorder: mediate.record.then(Recorder::default),
            answers: Mutex::default(),
            refusals: Mutex::default(),
            tracked: Mutex::default(),
            drafts: Mutex::default(),
            judges_metadata: mediate.judges_metadata,
        })
    }

    pub(super) fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a denial for the report and the audit log.
    pub(super) fn note_refusal(
        &self,
        attempt: Attempt,
        because: &Because,
        program: &Path,
        pid: impl FnOnce() -> u32,
    ) {
        let attempt = refusals::folded(attempt, because);
        let first = self.refusals().count(attempt.clone(), because.clone(), program.to_owned(), pid);
        self.journal.refused(&attempt, because, program, first.unwrap_or(0));
    }

    pub(super) fn tracked(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.tracked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn drafts(&self) -> MutexGuard<'_, Drafts> {
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn report(&self) -> MediationReport {
        let (refused, refused_unlisted) = self.refusals().list();
        MediationReport {
            refused,
            refused_unlisted,
            expansions: self.answers().expansions(),
            asked: self.asked.load(Ordering::Relaxed),
        }
    }
}

/// Paths found to lead where the rules allow, by the hash of path and access.
///
/// Only for directories the command cannot change. The user can, and may make an entry wrong; then the kernel refuses
/// what could have been asked about, and nothing is opened.
pub(super) struct Verified {
    slots: Box<[AtomicU64]>,
}

const VERIFIED: usize = 1 << 13;

impl Verified {
    fn new() -> Verified {
        Verified { slots: (0..VERIFIED).map(|_| AtomicU64::new(0)).collect() }
    }

    #[allow(clippy::cast_possible_truncation, reason = "only the low bits choose a slot")]
    fn slot(&self, key: u64) -> &AtomicU64 {
        &self.slots[(key ^ (key >> 31)) as usize % VERIFIED]
    }

    pub(super) fn keep(&self, key: u64) {
        self.slot(key).store(key, Ordering::Relaxed);
    }

    pub(super) fn has(&self, key: u64) -> bool {
        self.slot(key).load(Ordering::Relaxed) == key
    }
}
