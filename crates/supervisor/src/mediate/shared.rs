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
use super::answer_cache::Answers;
use super::call_recorder::CallRecorder;
use super::created_files::CreatedFiles;
use super::decision_log::Journal;
use super::delayed_answers::Penalty;
use super::emulate::{BoundedThreads, CallContext};
use super::question_queue::Questions;
use super::refusals::{self, Refusals};
use super::{CheckpointAccess, InitHandover, Mediate, Snapshots};
use crate::approval::ApprovalBackend;
use crate::report::{DeniedAttempt, MediationReport, RefusalReason};
use crate::terminal_lease::TerminalLeases;
use crate::urls::Urls;

pub(super) struct MediatorShared {
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
    pub(super) leases: Option<TerminalLeases>,
    pub(super) questions: Questions,
    pub(super) penalty: Arc<Penalty>,
    pub(super) verified: VerifiedPaths,
    pub(super) asked: AtomicU64,
    pub(super) journal: Journal,
    pub(super) urls: Option<Urls>,
    pub(super) history: Option<CheckpointAccess>,
    /// Set where the command is only recorded.
    pub(super) recorder: Option<CallRecorder>,
    /// Context for calls that open nothing.
    pub(super) scene: Arc<CallContext>,
    pub(super) crew: BoundedThreads,
    pub(super) pairs: Mutex<Pairs>,
    answers: Mutex<Answers>,
    refusals: Mutex<Refusals>,
    tracked: Mutex<HashSet<PathBuf>>,
    created_files: Mutex<CreatedFiles>,
    /// Whether changes of modes are mediated, because nothing else enforces them.
    pub(super) judges_metadata: bool,
}

impl MediatorShared {
    pub(super) fn new(
        mediate: Mediate,
        handed: InitHandover,
        leases: Option<TerminalLeases>,
    ) -> io::Result<MediatorShared> {
        let listener = Listener::new(handed.listener);
        listener.abilities();
        let root = handed.root.try_clone()?;
        let policy = mediate.policy.clone();
        let scene = CallContext::new(policy, handed.init, mediate.own_network, root, handed.socket_list)?;
        // Objects are known by their paths without links; a path that does not exist yet is kept as it is.
        let own: Vec<_> = mediate.own.into_iter().map(|path| path.canonicalize().unwrap_or(path)).collect();
        Ok(MediatorShared {
            scene: Arc::new(scene),
            crew: BoundedThreads::default(),
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
            leases,
            questions: Questions::new(),
            penalty: Arc::new(Penalty::new()),
            verified: VerifiedPaths::new(),
            asked: AtomicU64::new(0),
            journal: Journal::new(mediate.log, mediate.redact),
            urls: mediate.urls,
            history: mediate.history,
            recorder: mediate.record.then(CallRecorder::default),
            answers: Mutex::default(),
            refusals: Mutex::default(),
            tracked: Mutex::default(),
            created_files: Mutex::default(),
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
        attempt: DeniedAttempt,
        because: &RefusalReason,
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

    pub(super) fn created_files(&self) -> MutexGuard<'_, CreatedFiles> {
        self.created_files.lock().unwrap_or_else(PoisonError::into_inner)
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
pub(super) struct VerifiedPaths {
    slots: Box<[AtomicU64]>,
}

const VERIFIED: usize = 1 << 13;

impl VerifiedPaths {
    fn new() -> VerifiedPaths {
        VerifiedPaths { slots: (0..VERIFIED).map(|_| AtomicU64::new(0)).collect() }
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
