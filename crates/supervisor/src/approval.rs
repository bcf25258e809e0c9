//! Approval of what a command wants beyond its grants: requests, decisions and the backends that make them.
//!
//! The supervisor turns a trapped call, or a request on the request socket, into a [`Question`] about one resolved
//! object and passes it to an [`ApprovalBackend`]: a prompt on the terminal, a file of rules, a service, or
//! [`DenyAll`]. A backend only answers. It never sees what no answer can open, what was answered before, or what
//! exceeds the rate limit.

use std::fmt;
use std::path::PathBuf;

use nono_policy::{AccessMode, path_serde};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::terminal_lease::Lease;

/// One approval request, in terms that can be shown. The object is pinned while the request waits: an answer opens
/// exactly what is shown here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Number of the request, counted up within one run.
    pub id: u64,
    pub subject: Subject,
    pub asker: Asker,
    /// Reason given by the command, if it asked on the request socket. Untrusted.
    pub reason: Option<String>,
}

/// Subject of a question. Serialised it is what a service is asked, which does not get to see skipped fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Subject {
    Access {
        /// Path without symbolic links, as the command sees the file system.
        #[serde(with = "path_serde")]
        path: PathBuf,
        /// Path as the command wrote it, made absolute, where that differs.
        #[serde(skip)]
        written: Option<PathBuf>,
        access: AccessMode,
        object: Object,
        /// Directory that an answer with [`Scope::Directory`] would open; `None` where that would be too wide.
        #[serde(with = "path_serde::optional")]
        folder: Option<PathBuf>,
    },
    /// Restore of this session's files to a snapshot; empty `paths` means all.
    Restore {
        snapshot: u64,
        #[serde(with = "path_serde::list")]
        paths: Vec<PathBuf>,
    },
    /// Restore of a project to one of its checkpoints; empty `paths` means all of it.
    RestoreCheckpoint {
        #[serde(with = "path_serde")]
        project: PathBuf,
        /// Id of the checkpoint, and its recorded reason, which may be the command's own text.
        checkpoint: String,
        #[serde(skip)]
        reason: String,
        #[serde(with = "path_serde::list")]
        paths: Vec<PathBuf>,
        /// Number of paths that would change, and of paths that would be kept because another process changed them.
        changes: u64,
        kept: u64,
    },
    /// Web address to open in the user's browser, outside the sandbox.
    OpenUrl { url: String },
}

/// Kind of object at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Object {
    File,
    Directory,
    /// Object that does not exist yet: the call would create it.
    New,
}

/// Process that asks. `program` is the program's file name and comes from the command's side: escape it before showing
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    pub program: PathBuf,
    pub pid: u32,
}

/// Duration of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This one call (and others that waited for the same answer).
    Once,
    /// This object, until the session ends.
    Session,
    /// The directory that contains it (or that it is), and everything below it, until the session ends.
    Directory,
    /// As `Session`, and the user wants it saved in a profile.
    Saved,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow(Scope),
    /// Denies this access to this object; the same request is not asked again in this session.
    Deny,
    /// Denies every access to this object and what is below it for the rest of the session.
    Never,
}

/// Verdict, and the person or rule that gave it: for the report and the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalAnswer {
    pub verdict: Verdict,
    pub by: String,
}

impl ApprovalAnswer {
    pub fn new(verdict: Verdict, by: impl Into<String>) -> ApprovalAnswer {
        ApprovalAnswer { verdict, by: by.into() }
    }
}

/// Failure to get an answer. It counts as a denial and is reported as a failure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ApprovalError {
    /// The process that asked has ended.
    #[error("the program that asked has ended")]
    Withdrawn,
    #[error("there is no terminal to ask on")]
    NoTerminal,
    #[error("{backend} did not answer: {why}")]
    Failed { backend: String, why: String },
}

/// Context of a request, as a backend may use it.
pub trait Waiting {
    /// Whether the program that asked still waits. A backend that takes long checks again now and then.
    fn still_wanted(&self) -> bool;

    /// Lease of the user's terminal for this request: the command's output and input pause until it is dropped. `None`
    /// if there is no terminal.
    fn terminal(&self) -> Option<Lease>;
}

/// Approver. It gets one request at a time and may take as long as it needs.
pub trait ApprovalBackend: Send + Sync {
    /// Name as in `--approve`, for reports.
    fn name(&self) -> String;

    /// Receives the session's id once, before the first request.
    fn begin(&self, _session: &str) {}

    /// Answer that needs no person, such as one from a rule. It does not count as a question and is computed anew each
    /// time, so nothing needs to be remembered.
    fn at_once(&self, _question: &Question) -> Option<ApprovalAnswer> {
        None
    }

    fn decide(&self, question: &Question, waiting: &dyn Waiting) -> Result<ApprovalAnswer, ApprovalError>;
}

impl fmt::Debug for dyn ApprovalBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApprovalBackend({})", self.name())
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl ApprovalBackend for DenyAll {
    fn name(&self) -> String {
        "deny".to_owned()
    }

    fn at_once(&self, _question: &Question) -> Option<ApprovalAnswer> {
        Some(ApprovalAnswer::new(Verdict::Deny, "deny"))
    }

    fn decide(&self, _question: &Question, _waiting: &dyn Waiting) -> Result<ApprovalAnswer, ApprovalError> {
        Ok(ApprovalAnswer::new(Verdict::Deny, "deny"))
    }
}
