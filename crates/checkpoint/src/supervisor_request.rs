//! Messages between a hook inside a sandbox and the supervisor outside. Everything from inside is untrusted: the
//! supervisor checks that the sandbox may write the folder, and asks the user before a restore.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::origin::Origin;
use nono_history::Conflicts;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum RemoteAction {
    /// Prompt of the user: a new turn begins.
    Prompt {
        origin: Origin,
        /// SHA-256 of the whole prompt, in hexadecimal digits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// A call without known risk begins; its changes are attributed to the agent.
    Begins {
        origin: Origin,
        /// Shell command, cut if it is long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        targets: Vec<Path>,
    },
    /// A tool is about to change these paths; a checkpoint is taken first.
    Before {
        origin: Origin,
        reason: String,
        /// Shell command, cut if it is long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        targets: Vec<Path>,
    },
    /// The call ended, successfully or not.
    After {
        origin: Origin,
        targets: Vec<Path>,
    },
    /// The agent stopped; calls without a reported end are over.
    Stopped {
        origin: Origin,
        targets: Vec<Path>,
    },
    List {
        dir: Path,
    },
    Diff {
        dir: Path,
        target: String,
        paths: Vec<Path>,
        /// Whether to return a short form for a model instead of a patch.
        #[serde(default)]
        brief: bool,
    },
    /// Restore; the user is asked first.
    Restore {
        dir: Path,
        target: String,
        paths: Vec<Path>,
        conflicts: Conflicts,
    },
    /// Fetches the notes about restores. Answered with a list of [`RestoreNote`](crate::manager::RestoreNote).
    Notes {
        origin: Origin,
    },
}

/// Path in a message, lossless.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Path(#[serde(with = "nono_sys::path_serde")] pub PathBuf);

impl RemoteAction {
    /// All texts in the message other than paths.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let (origin, words): (Option<&Origin>, [Option<&String>; 2]) = match self {
            RemoteAction::After { origin, .. }
            | RemoteAction::Stopped { origin, .. }
            | RemoteAction::Notes { origin } => (Some(origin), [None, None]),
            RemoteAction::Prompt { origin, digest } => (Some(origin), [digest.as_ref(), None]),
            RemoteAction::Begins { origin, command, .. } => (Some(origin), [command.as_ref(), None]),
            RemoteAction::Before { origin, reason, command, .. } => {
                (Some(origin), [Some(reason), command.as_ref()])
            }
            RemoteAction::List { .. } => (None, [None, None]),
            RemoteAction::Diff { target, .. } | RemoteAction::Restore { target, .. } => {
                (None, [Some(target), None])
            }
        };
        let more = words.into_iter().flatten();
        let words = origin.into_iter().flat_map(|origin| {
            let Origin { agent, session, turn, prompt, tool, call, run } = origin;
            [agent, session, turn, prompt, tool, call, run]
        });
        words.flatten().chain(more).map(String::as_str)
    }

    /// All paths in the message.
    pub fn paths(&self) -> impl Iterator<Item = &std::path::Path> {
        let (dir, paths): (Option<&Path>, &[Path]) = match self {
            RemoteAction::Prompt { .. } | RemoteAction::Notes { .. } => (None, &[]),
            RemoteAction::Begins { targets, .. }
            | RemoteAction::Before { targets, .. }
            | RemoteAction::After { targets, .. }
            | RemoteAction::Stopped { targets, .. } => (None, targets),
            RemoteAction::List { dir } => (Some(dir), &[]),
            RemoteAction::Diff { dir, paths, .. } | RemoteAction::Restore { dir, paths, .. } => {
                (Some(dir), paths)
            }
        };
        dir.into_iter().chain(paths).map(|Path(path)| path.as_path())
    }
}
