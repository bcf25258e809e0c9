//! The audit log of a session: its settings, its first and last entries, and the report about it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nono_audit::event::{
    AuditEvent, Decision, Network, Phase, ProjectProfile, Restore, SessionEnded, SessionStarted, Warning,
};
use nono_audit::log::{CreateError, Options};
use nono_audit::redact::Redactor;
use nono_audit::sign::KeyError;
use nono_audit::{AuditLog, Digest, SessionRecord, SigningKey};
use nono_catalogue::rollback::recorder::{self, Closed, Recorder};
use nono_policy::{ProjectOverlay, ResolvedPolicy, RunRequest};
use nono_snapshot::Manifest;
use nono_supervisor::{LimitHit, RunError, RunOutcome};
use nono_sys::errno;
use nono_sys::time::now_ms;
use nono_sys::wait::Ended;
use serde_json::Value;
use thiserror::Error;

use super::executable;
use super::notices::network_word;
use crate::audit;
use crate::network::NetworkObserver;

#[derive(Clone, Debug)]
pub struct Auditing {
    pub wanted: bool,
    /// Seal the log and enter it in the ledger. `None`: when snapshots are taken.
    pub integrity: Option<bool>,
    /// Sign the seal with the key in this file.
    pub sign_key: Option<PathBuf>,
}

impl Default for Auditing {
    fn default() -> Auditing {
        Auditing { wanted: true, integrity: None, sign_key: None }
    }
}

impl Auditing {
    /// The signing key's file, which is denied to the command and cannot be approved.
    pub fn file(&self) -> Option<PathBuf> {
        let real = |file: &PathBuf| file.canonicalize().unwrap_or_else(|_| file.clone());
        self.sign_key.as_ref().map(real)
    }

    /// Deny the signing key in the request. A file that does not exist fails later, when it is read.
    pub fn close(&self, request: &mut RunRequest) {
        request.deny.extend(self.file().filter(|file| file.exists()));
    }
}

/// Reasons why the audit log cannot be written. The command is not run then.
#[derive(Debug, Error)]
pub enum LogError {
    #[error(transparent)]
    Redaction(#[from] audit::AuditError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error("cannot read {}: {}", .path.display(), errno::describe(.source))]
    Executable { path: PathBuf, source: io::Error },
    #[error("cannot serialise the policy: {0}")]
    Policy(#[from] serde_json::Error),
}

/// Location and state of the audit log after a run.
#[derive(Clone, Debug)]
pub struct AuditReport {
    pub dir: PathBuf,
    /// Content of `session.json`; `None` if it could not be written.
    pub record: Option<SessionRecord>,
    /// Entries that could not be written, and other faults.
    pub problems: Vec<String>,
    /// Notices that do not make the log incomplete.
    pub notices: Vec<String>,
}

/// Everything needed to create the log.
#[derive(Debug)]
pub(super) struct AuditPlan {
    dir: PathBuf,
    pub(super) redactor: Arc<Redactor>,
    integrity: Option<bool>,
    key: Option<SigningKey>,
    /// Notice to report once, at the end.
    notice: Option<String>,
    projects: Vec<ProjectProfile>,
}

impl AuditPlan {
    /// Load the redaction rules and the key. Every error in them shows here, before anything is started.
    pub(super) fn open(
        wish: &Auditing,
        projects: &[ProjectOverlay],
        state_dir: &Path,
    ) -> Result<AuditPlan, LogError> {
        let (redactor, notice) = audit::redactor_and_notice(state_dir)?;
        let redactor = Arc::new(redactor);
        let key = wish.sign_key.as_deref().map(SigningKey::load).transpose()?;
        let (dir, integrity) = (audit::dir(state_dir), wish.integrity);
        let projects = projects.iter().map(on_record).collect();
        Ok(AuditPlan { dir, redactor, integrity, key, notice, projects })
    }
}

fn on_record(project: &ProjectOverlay) -> ProjectProfile {
    let ProjectOverlay { file, digest, agreed, .. } = project;
    ProjectProfile { file: file.clone(), sha256: digest.clone(), agreed: *agreed }
}

/// The command with secrets redacted, whether the run is audited or not.
pub(super) fn without_secrets(
    command: &[OsString],
    book: Option<&AuditPlan>,
    state_dir: &Path,
) -> Result<Vec<String>, LogError> {
    match book {
        Some(book) => Ok(book.redactor.argv(command)),
        None => Ok(audit::passing_redactor(state_dir)?.argv(command)),
    }
}

/// Data for the first entry of the log.
pub(super) struct LogStart<'a> {
    pub(super) id: &'a str,
    pub(super) name: Option<&'a str>,
    pub(super) command: &'a [String],
    pub(super) program: &'a Path,
    pub(super) policy: &'a ResolvedPolicy,
    pub(super) tracked: Option<&'a [PathBuf]>,
}

#[derive(Debug)]
pub(super) struct RunLog {
    pub(super) log: Arc<AuditLog>,
    pub(super) redactor: Arc<Redactor>,
    /// Number of prompts and calls reported by agents' hooks.
    told: AtomicU64,
    state: Mutex<AuditingState>,
}

#[derive(Debug, Default)]
struct AuditingState {
    ended: Option<SessionEnded>,
    closed: bool,
    record: Option<SessionRecord>,
    problems: Vec<String>,
    notices: Vec<String>,
}

impl RunLog {
    pub(super) fn begin(book: AuditPlan, start: &LogStart<'_>) -> Result<RunLog, LogError> {
        let AuditPlan { dir, redactor, integrity, key, notice, projects } = book;
        let path = start.program;
        let executable = executable::identify(path, &executable::memory(&dir))
            .map_err(|source| LogError::Executable { path: path.to_owned(), source })?;
        let started = SessionStarted {
            time_ms: now_ms(),
            session_id: start.id.to_owned(),
            name: start.name.map(str::to_owned),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            command: start.command.to_vec(),
            workdir: start.policy.workdir.clone(),
            executable: Some(executable),
            policy_digest: Digest::of_json(start.policy)?,
            tracked_paths: start.tracked.unwrap_or_default().to_vec(),
            network: network_word(&start.policy.network),
            project_profiles: projects,
            // Filled in by the log.
            ledger_head: None,
        };
        let options = Options { integrity: integrity.unwrap_or(start.tracked.is_some()), key };
        let log = Arc::new(AuditLog::create(&dir, started, options)?);
        let trail = RunLog { redactor, state: Mutex::default(), told: AtomicU64::new(0), log };
        for remark in trail.log.remarks().iter().cloned().chain(notice.clone()) {
            trail.warn(remark);
        }
        trail.state().notices.extend(notice);
        Ok(trail)
    }

    pub(super) fn warn(&self, message: String) {
        self.note(&AuditEvent::Warning(Warning { time_ms: now_ms(), message }));
    }

    /// Record an event. A failed write is kept by the log and shows in the report.
    pub(super) fn note(&self, event: &AuditEvent) {
        let _ = self.log.note(event);
    }

    /// Record an event of an agent's hooks. Above [`MOST_TOLD`] events are only counted.
    pub(super) fn told(&self, event: &AuditEvent) {
        if self.told.fetch_add(1, Ordering::Relaxed) < MOST_TOLD {
            self.note(event);
        }
    }

    /// Record the end of the command, or that it could not be run.
    pub(super) fn ended(&self, outcome: &Result<RunOutcome, RunError>) {
        let beyond = self.told.load(Ordering::Relaxed).saturating_sub(MOST_TOLD);
        if beyond > 0 {
            self.warn(format!("{beyond} more prompts and calls of agents are not in this log"));
        }
        let ended = match outcome {
            Ok(outcome) => SessionEnded {
                time_ms: now_ms(),
                exit_code: outcome.ended.exit_code(),
                signal: match outcome.ended {
                    Ended::Code(_) => None,
                    Ended::Signal(signal) => Some(signal),
                },
                limit: outcome.limit.map(limit_word),
                stopped: outcome.stopped,
                interrupted: false,
            },
            Err(error) => {
                self.warn(format!("the command was not run: {error}"));
                SessionEnded::not_run(now_ms())
            }
        };
        self.state().ended = Some(ended);
    }

    /// Close the log, if it is still open, and report on it.
    pub(super) fn report(&self) -> AuditReport {
        if !self.state().closed {
            self.close(None);
        }
        let mut state = self.state();
        let mut problems = std::mem::take(&mut state.problems);
        problems.extend(self.log.trouble());
        let notices = std::mem::take(&mut state.notices);
        AuditReport { dir: self.log.dir().to_owned(), record: state.record.take(), problems, notices }
    }

    fn state(&self) -> MutexGuard<'_, AuditingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn limit_word(limit: LimitHit) -> String {
    match limit {
        LimitHit::Time(_) => "time",
        LimitHit::Memory { .. } => "memory",
        LimitHit::FileSize(_) => "file size",
    }
    .to_owned()
}

/// Maximum number of agents' prompts and calls that are recorded one by one: the command can send any number.
const MOST_TOLD: u64 = 10_000;

impl Recorder for RunLog {
    fn taken(&self, manifest: &Manifest) {
        self.note(&recorder::snapshot(manifest));
    }

    fn restored(&self, restore: Restore) {
        self.note(&AuditEvent::Restore(restore));
    }

    fn close(&self, last: Option<&Manifest>) -> Closed {
        let ended = {
            let mut state = self.state();
            state.closed = true;
            state.ended.take().unwrap_or_else(|| SessionEnded::not_run(now_ms()))
        };
        let ended = SessionEnded { time_ms: now_ms(), ..ended };
        match self.log.finish(ended, last.map(recorder::tree)) {
            Ok(finished) => {
                let closed = recorder::closed(&finished.record);
                let mut state = self.state();
                state.problems.extend(finished.ledger.map(|error| error.to_string()));
                state.record = Some(finished.record);
                closed
            }
            Err(error) => {
                self.state().problems.push(error.to_string());
                Closed::default()
            }
        }
    }
}

impl NetworkObserver for RunLog {
    fn event(&self, event: &nono_proxy::ProxyEvent) {
        let recorded = Network {
            time_ms: event.time_ms,
            mode: word(&event.mode),
            decision: if event.allowed { Decision::Allowed } else { Decision::Denied },
            host: event.host.clone(),
            port: event.port,
            method: event.method.clone(),
            path: event.path.as_deref().map(|path| self.redactor.url(path)),
            status: event.status,
            reason: event.reason.as_deref().map(|reason| self.redactor.text(reason)),
            category: event.category.as_ref().map(word),
            address: event.address.clone(),
            credential: event.credential.clone(),
            bytes_sent: event.bytes_sent,
            bytes_received: event.bytes_received,
            duration_ms: event.duration_ms,
            phase: event.phase.map(|phase| match phase {
                nono_proxy::Phase::Opened => Phase::Opened,
                nono_proxy::Phase::Ended => Phase::Ended,
            }),
            count: event.count,
        };
        // As in `note`.
        let _ = self.log.network(recorded);
    }

    fn lost(&self, why: &str) {
        self.warn(format!("the network filter ended: {why}"));
    }
}

/// The name of an enum value in JSON.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        // Only unit variants are passed here.
        _ => String::new(),
    }
}
