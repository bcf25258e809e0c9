//! What a supervised run was refused and granted while it ran, as values.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use nono_checkpoint::remote::Action;
use nono_policy::{AccessMode, DeniedReason};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{Asker, Scope};

/// What a program tried to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Attempt {
    /// Open a file or a folder, or ask for one in words.
    Open {
        #[serde(with = "nono_policy::path_serde")]
        path: PathBuf,
        access: AccessMode,
    },
    /// Change owner, mode, times or attributes.
    Metadata {
        #[serde(with = "nono_policy::path_serde")]
        path: PathBuf,
        call: String,
    },
    /// Connect to a unix socket.
    Socket {
        #[serde(with = "nono_policy::path_serde")]
        path: PathBuf,
    },
    /// Connect to an address, or listen.
    Network {
        what: String,
        /// What would be enough to open it; none: only the whole network is.
        #[serde(default)]
        port: Option<Port>,
    },
    /// Something nono keeps for itself.
    Other { what: String },
}

/// What a refused connection or listener was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Port {
    /// A TCP port of this machine's loopback.
    Connect(u16),
    Listen(u16),
    /// Somewhere outside, without the proxy that leads there where the network is filtered.
    Direct(SocketAddr),
}

/// Why it was refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Because {
    /// The policy, before anybody was asked.
    Policy { reason: DeniedReason },
    /// Somebody said no; `by` says who.
    Answered { by: String },
    /// Nobody could be asked, or no answer came.
    NoAnswer { why: String },
    /// More questions than a person should be asked.
    TooMany,
    /// The object changed, or could not be opened as it was asked for.
    Failed { why: String },
}

impl Because {
    /// In words, for records.
    pub fn words(&self) -> String {
        match self {
            Because::Policy { reason } => reason.words(),
            Because::Answered { by } => format!("denied by {by}"),
            Because::NoAnswer { why } => format!("no answer: {why}"),
            Because::TooMany => "more questions than a person should be asked".to_owned(),
            Because::Failed { why } => why.clone(),
        }
    }
}

/// One kind of refusal, counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub attempt: Attempt,
    pub because: Because,
    /// The first program that was refused it.
    pub program: PathBuf,
    pub pid: u32,
    pub count: u64,
}

/// A grant made while the command ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expansion {
    #[serde(with = "nono_policy::path_serde")]
    pub path: PathBuf,
    pub access: AccessMode,
    pub is_dir: bool,
    pub scope: Scope,
    pub by: String,
}

/// Everything that was mediated in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediationReport {
    pub refused: Vec<Refused>,
    /// Kinds of refusals beyond those that are listed.
    pub refused_unlisted: u64,
    pub expansions: Vec<Expansion>,
    /// Questions that were put to somebody.
    pub asked: u64,
}

/// What a request in words came to.
#[derive(Debug)]
pub enum Reply {
    /// Opened as asked for.
    Granted {
        fd: std::os::fd::OwnedFd,
        by: String,
    },
    /// Allowed from the start: the program can open it itself.
    AlreadyOpen,
    Denied {
        because: Because,
    },
}

/// Whether whoever asked still waits for the answer: a program that gave up need not be asked about any more.
pub type StillWanted<'a> = dyn Fn() -> bool + Sync + 'a;

/// What the channels need of the supervisor. Every call may take as long as a person needs for an answer.
pub trait Office: Send + Sync {
    /// Open `path` for `access`, as if the program had tried. `path` is absolute.
    fn capability(
        &self,
        asker: &Asker,
        path: PathBuf,
        access: AccessMode,
        reason: Option<String>,
        wanted: &StillWanted<'_>,
    ) -> Reply;

    /// Take a snapshot now; its number, or why there is none.
    fn checkpoint(&self, asker: &Asker, reason: &str) -> Result<u64, String>;

    /// Put `paths` (all, if empty) back to a snapshot, once the person agreed; a sentence about the outcome.
    fn restore(
        &self,
        asker: &Asker,
        snapshot: u64,
        paths: Vec<PathBuf>,
        wanted: &StillWanted<'_>,
    ) -> Result<String, String>;

    /// Do something about the checkpoints of a project; a restore only once the person agreed.
    fn history(&self, asker: &Asker, action: Action, wanted: &StillWanted<'_>) -> Result<Value, String>;

    /// Have an address opened in the person's browser, once they agreed; who agreed, or why not.
    fn open_url(&self, asker: &Asker, url: &str, wanted: &StillWanted<'_>) -> Result<String, String>;

    /// Who said no to this in the session, if somebody did. Nobody is asked.
    fn refusal(&self, _path: &Path, _access: AccessMode) -> Option<String> {
        None
    }

    /// So far.
    fn report(&self) -> MediationReport;

    /// Questions that wait for an answer now.
    fn waiting(&self) -> u64;
}
