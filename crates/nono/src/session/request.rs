//! Input of a run: the machine as the caller knows it, and what to run.

use std::ffi::OsString;
use std::path::PathBuf;

use nono_policy::{HostContext, MergedProfile, RunRequest};
use nono_sandbox::ExecStrategy;

use super::asking::Asking;
use super::audit_log::Auditing;
use super::checkpoints::Checkpointing;
use super::host_streams::HostStreams;
use super::learning::Learning;
use super::rollback_options::Rollback;
use crate::network::Networking;

/// Facts about the machine, supplied by the caller: the library reads neither the environment nor the home folder.
#[derive(Clone, Debug)]
pub struct Host {
    pub context: HostContext,
    /// The caller's environment.
    pub env: Vec<(OsString, OsString)>,
    /// Folder in which session folders are made.
    pub session_base: PathBuf,
    /// Folder of the user's profiles.
    pub profile_dir: Option<PathBuf>,
    /// Whether this process is itself inside a nono sandbox.
    pub nested: bool,
}

/// A command and how to run it.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    pub policy: RunRequest,
    /// The profile that `policy` names, where the caller has loaded it ([`super::profile`]); else it is loaded.
    pub profile: Option<MergedProfile>,
    pub command: Vec<OsString>,
    pub strategy: ExecStrategy,
    /// Scan the command's stderr for the diagnostic.
    pub diagnostics: bool,
    pub rollback: Rollback,
    pub asking: Asking,
    pub auditing: Auditing,
    pub network: Networking,
    pub checkpoints: Checkpointing,
    /// Record what the command does, to propose a profile. No approval is asked for then.
    pub learning: Option<Learning>,
    /// Flags as the user typed them, for hints.
    pub typed: Option<Vec<OsString>>,
    /// Set when the process belongs to a host program: its signals are left alone.
    pub guest: Option<HostStreams>,
}

impl SessionRequest {
    /// A supervised run with every option at its default.
    pub fn new(policy: RunRequest, command: Vec<OsString>) -> SessionRequest {
        SessionRequest {
            policy,
            profile: None,
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
