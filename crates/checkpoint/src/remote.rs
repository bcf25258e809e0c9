//! What a hook inside a sandbox asks of the supervisor outside, and what it hears. The inside may lie about everything
//! here: whoever carries it out checks that the folder is one the sandbox may write, and asks a person before a restore.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::origin::Origin;
use nono_history::Conflicts;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// A person spoke: a new turn.
    Prompt {
        origin: Origin,
        /// SHA-256 of all that they said, in hexadecimal digits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// A call begins that puts nothing at risk as far as anybody can tell: what it changes is the agent's doing.
    Begins {
        origin: Origin,
        /// What a shell is to run, cut where it is long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        targets: Vec<Path>,
    },
    /// A tool is about to do something to these paths: a checkpoint first.
    Before {
        origin: Origin,
        reason: String,
        /// As above.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        targets: Vec<Path>,
    },
    /// It did, or did not: it ended.
    After {
        origin: Origin,
        targets: Vec<Path>,
    },
    /// The agent is done for now: calls whose end it did not tell are over.
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
        /// Within the bounds of what a model reads, and not as a patch.
        #[serde(default)]
        brief: bool,
    },
    /// Asks the person first.
    Restore {
        dir: Path,
        target: String,
        paths: Vec<Path>,
        conflicts: Conflicts,
    },
    /// What was undone and the agent does not know. Answered with a list of [`Note`](crate::manager::Note).
    Notes {
        origin: Origin,
    },
}

/// A path in a message, lossless.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Path(#[serde(with = "nono_sys::path_serde")] pub PathBuf);

impl Action {
    /// Every text in it that is no path.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let (origin, words): (Option<&Origin>, [Option<&String>; 2]) = match self {
            Action::After { origin, .. } | Action::Stopped { origin, .. } | Action::Notes { origin } => {
                (Some(origin), [None, None])
            }
            Action::Prompt { origin, digest } => (Some(origin), [digest.as_ref(), None]),
            Action::Begins { origin, command, .. } => (Some(origin), [command.as_ref(), None]),
            Action::Before { origin, reason, command, .. } => {
                (Some(origin), [Some(reason), command.as_ref()])
            }
            Action::List { .. } => (None, [None, None]),
            Action::Diff { target, .. } | Action::Restore { target, .. } => (None, [Some(target), None]),
        };
        let more = words.into_iter().flatten();
        let words = origin.into_iter().flat_map(|origin| {
            let Origin { agent, session, turn, prompt, tool, call, run } = origin;
            [agent, session, turn, prompt, tool, call, run]
        });
        words.flatten().chain(more).map(String::as_str)
    }

    /// Every path in it.
    pub fn paths(&self) -> impl Iterator<Item = &std::path::Path> {
        let (dir, paths): (Option<&Path>, &[Path]) = match self {
            Action::Prompt { .. } | Action::Notes { .. } => (None, &[]),
            Action::Begins { targets, .. }
            | Action::Before { targets, .. }
            | Action::After { targets, .. }
            | Action::Stopped { targets, .. } => (None, targets),
            Action::List { dir } => (Some(dir), &[]),
            Action::Diff { dir, paths, .. } | Action::Restore { dir, paths, .. } => (Some(dir), paths),
        };
        dir.into_iter().chain(paths).map(|Path(path)| path.as_path())
    }
}
