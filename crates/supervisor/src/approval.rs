//! Who answers when a command wants more than it was granted.
//!
//! The supervisor turns a trapped call, or a request in words, into a [`Question`] about one resolved object, and hands
//! it to an [`ApprovalBackend`]: a person at a terminal, a file of rules, a service, or nobody. A backend only answers.
//! What is closed whatever anybody says, what was answered before and what comes too fast never reaches it.

use std::fmt;
use std::path::PathBuf;

use nono_policy::AccessMode;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::stage::Lease;

/// What is wanted, in terms that can be shown. The object is pinned while the question waits: what is shown here is
/// what an answer opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Counts up within one run.
    pub id: u64,
    pub subject: Subject,
    pub asker: Asker,
    /// In the command's own words, where it asked by a request. Not to be believed.
    pub reason: Option<String>,
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Access {
        /// Without links, as the command sees the file system.
        path: PathBuf,
        /// As the command wrote it, made absolute, where that differs.
        written: Option<PathBuf>,
        access: AccessMode,
        object: Object,
        /// What an answer for the whole folder would open; `None` where that would be too much.
        folder: Option<PathBuf>,
    },
    /// Put this session's files back to a snapshot; empty `paths` means all.
    Restore { snapshot: u64, paths: Vec<PathBuf> },
    /// Put a project back to one of its checkpoints; empty `paths` means all of it.
    RestoreCheckpoint {
        project: PathBuf,
        /// Its id, and what it was taken for: the command's own words, perhaps.
        checkpoint: String,
        reason: String,
        paths: Vec<PathBuf>,
        /// Paths that would change, and that would be kept as somebody else left them.
        changes: u64,
        kept: u64,
    },
    /// Open this web address in the person's browser, outside the sandbox.
    OpenUrl { url: String },
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    File,
    Directory,
    /// Nothing yet: it would be made.
    New,
}

/// Who wants it. The name is the program's file name, and comes from the command's side: escape it before showing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    pub program: PathBuf,
    pub pid: u32,
}

/// For how long an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This one call (and others that waited for the same answer).
    Once,
    /// This object, until the session ends.
    Session,
    /// The folder it stands in (or is), and everything below it, until the session ends.
    Directory,
    /// As `Session`, and the person wants it in a profile.
    Saved,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow(Scope),
    /// Not this access to this object; the same question is not asked again in this session.
    Deny,
    /// Nothing of this object and what is below it, whatever the access, in this session.
    Never,
}

/// A verdict, and who or which rule gave it: for the report and the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub verdict: Verdict,
    pub by: String,
}

impl Answer {
    pub fn new(verdict: Verdict, by: impl Into<String>) -> Answer {
        Answer { verdict, by: by.into() }
    }
}

/// No answer could be had. That is a denial, and it is reported as what it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ApprovalError {
    /// Whoever asked is gone.
    #[error("the program that asked has ended")]
    Withdrawn,
    #[error("there is no terminal to ask on")]
    NoTerminal,
    #[error("{backend} did not answer: {why}")]
    Failed { backend: String, why: String },
}

/// The question's surroundings, as a backend may use them.
pub trait Waiting {
    /// Whether the program that asked still waits. A backend that waits long looks again now and then.
    fn still_wanted(&self) -> bool;

    /// The person's terminal, for this question: the command's own output and input stand still until the lease is
    /// dropped. `None`: there is none.
    fn terminal(&self) -> Option<Lease>;
}

/// Somebody who answers. One question at a time is put to it; it may take as long as it likes.
pub trait ApprovalBackend: Send + Sync {
    /// As in `--approve`, for reports.
    fn name(&self) -> String;

    /// Told once, before the first question: the session's id.
    fn begin(&self, _session: &str) {}

    /// An answer that costs nobody's time, from a rule for one. It is not counted as a question, and is asked for each
    /// time anew: nothing needs to be remembered.
    fn at_once(&self, _question: &Question) -> Option<Answer> {
        None
    }

    fn decide(&self, question: &Question, waiting: &dyn Waiting) -> Result<Answer, ApprovalError>;
}

impl fmt::Debug for dyn ApprovalBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApprovalBackend({})", self.name())
    }
}

/// Nobody: every question is answered with no.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl ApprovalBackend for DenyAll {
    fn name(&self) -> String {
        "deny".to_owned()
    }

    fn at_once(&self, _question: &Question) -> Option<Answer> {
        Some(Answer::new(Verdict::Deny, "deny"))
    }

    fn decide(&self, _question: &Question, _waiting: &dyn Waiting) -> Result<Answer, ApprovalError> {
        Ok(Answer::new(Verdict::Deny, "deny"))
    }
}
