//! Conversion of errors to a message, a hint and an exit code. The only place that does so.

use std::io;
use std::path::Path;
use std::process::ExitCode;

pub(crate) use nono::NOT_RUN;
use nono::audit::AuditError;
use nono::checkpoints::import::ImportError;
use nono::checkpoints::{CheckpointError, PathError, SettingsError};
use nono::control::ControlError;
use nono::diagnostic::{escape, shown};
use nono::hooks::install::InstallError;
use nono::network::CredentialError;
use nono::project_profile::ProjectProfileError;
use nono::request::RequestError;
use nono::rollback::RollbackError;
use nono::session::{HostError, LogError, SessionError};
use nono::state_dir::StateDirError;
use nono::undo::UndoError;
use nono::{PolicyError, ProfileError, StateError};

use crate::message;

pub(crate) const NOT_EXECUTABLE: u8 = 126;
pub(crate) const NOT_FOUND: u8 = 127;
pub(crate) const USAGE: u8 = 2;
/// Exit code when a change was not made, or only in part.
pub(crate) const NOT_DONE: u8 = 1;

const NO_ROOM: &str = "`nono rollback cleanup` frees room; max_storage_gb in [rollback] of config.toml is the limit; \
                       sessions of the last 5 minutes are not removed automatically";

/// Hint where a folder has no snapshots.
const TAKES_SNAPSHOTS: &str = "`nono run --rollback -- command` takes them";

/// Error message with a hint and an exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), hint: None, code: NOT_RUN }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { code: USAGE, ..Failure::new(message) }
    }

    /// Message alone, for callers that continue.
    pub(crate) fn sentence(&self) -> &str {
        &self.message
    }

    /// Message, and the hint if there is one.
    pub(crate) fn sentences(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\n{hint}", self.message),
            None => self.message.clone(),
        }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn hint_if(self, hint: Option<String>) -> Failure {
        Failure { hint, ..self }
    }

    pub(crate) fn code(self, code: u8) -> Failure {
        Failure { code, ..self }
    }

    /// Failure when nothing was done: not confirmed, or not possible now.
    pub(crate) fn refused(message: impl Into<String>) -> Failure {
        Failure::new(message).code(NOT_DONE)
    }

    /// Failure when a signal arrived before anything was changed.
    pub(crate) fn interrupted(signal: i32) -> Failure {
        Failure::new("interrupted; nothing was changed").code(by_signal(signal))
    }

    pub(crate) fn no_home() -> Failure {
        Failure::home(&HostError::NoHome)
    }

    /// Failure of a HOME that is missing or unusable.
    pub(crate) fn home(error: &HostError) -> Failure {
        Failure::new(error.to_string()).hint("set HOME to your home folder")
    }

    pub(crate) fn nowhere(error: &io::Error) -> Failure {
        Failure::new(format!("cannot find the current directory: {}", words(error)))
            .hint("cd to one that exists")
    }

    pub(crate) fn workdir(dir: &Path, error: &io::Error) -> Failure {
        Failure::new(format!("--workdir {}: {}", shown(dir), words(error)))
    }

    /// Failure to write to stdout.
    pub(crate) fn stdout(error: &io::Error) -> Failure {
        Failure::new(format!("cannot write to stdout: {}", words(error)))
    }

    /// Failure to `act` (read, create, write) on a file.
    pub(crate) fn cannot(act: &str, file: &Path, error: &io::Error) -> Failure {
        Failure::new(format!("cannot {act} {}: {}", shown(file), words(error)))
    }

    pub(crate) fn credential(error: &CredentialError) -> Failure {
        let code = if error.is_usage() { USAGE } else { NOT_RUN };
        Failure::new(error.to_string()).hint_if(error.hint()).code(code)
    }

    pub(crate) fn report(self) -> ExitCode {
        message::line(&format!("error: {}", self.message));
        if let Some(hint) = self.hint {
            message::line(&format!("hint: {hint}"));
        }
        ExitCode::from(self.code)
    }
}

/// Exit code for an end by a signal.
pub(crate) fn by_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Text of an I/O error without Rust's "(os error N)".
pub(crate) fn words(error: &io::Error) -> String {
    nono::session::io_words(error)
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::new(words(&error))
    }
}

/// Errors that have their own hint.
macro_rules! with_own_hint {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Failure::new(error.to_string()).hint_if(error.hint())
            }
        })*
    };
}

with_own_hint!(PolicyError, ProfileError, InstallError, StateError);

impl From<ProjectProfileError> for Failure {
    fn from(error: ProjectProfileError) -> Failure {
        Failure::new(error.to_string()).hint(error.hint())
    }
}

impl From<StateDirError> for Failure {
    fn from(error: StateDirError) -> Failure {
        SessionError::from(error).into()
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Failure {
        let text = error.to_string();
        let failed = |hint: &str| Failure::new(&*text).hint(hint);
        let usage = |hint: &str| Failure::usage(&*text).hint(hint);
        match error {
            SessionError::Profile(error) => error.into(),
            SessionError::Policy(error) => error.into(),
            SessionError::Program(error) => {
                let code = if error.is_found() { NOT_EXECUTABLE } else { NOT_FOUND };
                Failure::new(text).code(code)
            }
            SessionError::Refused(refusal) => Failure::new(text).hint_if(refusal.hint()),
            SessionError::State(error) => Failure::new(text).hint_if(error.hint()),
            SessionError::Run(error) => launch(&error, text),
            SessionError::Check(nono::session::check::CheckError::Folder { .. }) => {
                Failure::new(text).hint("make room there, or set TMPDIR to a folder you can write")
            }
            SessionError::Check(_) => {
                failed("nothing was run; `nono setup --check-only` shows what this kernel can do")
            }
            SessionError::Folder { .. } => failed("set TMPDIR to a folder you can write"),
            SessionError::Rollback(RollbackError::NoRoom { .. }) => {
                Failure::new(format!("not started: {text}"))
                    .hint(format!("{NO_ROOM}; --rollback=best-effort accepts gaps and names them"))
            }
            SessionError::Rollback(_) => failed("--no-rollback runs it without snapshots"),
            SessionError::NeedsSupervisor { .. } => usage("use `nono run`, or add --no-rollback"),
            SessionError::AskNeedsSupervisor { .. } | SessionError::CheckpointsNeedSupervisor { .. } => {
                usage("use `nono run`")
            }
            SessionError::AskNeedsTerminal => {
                usage("leave --ask out, or take `interactive` out of the profile")
            }
            SessionError::Log(LogError::Key(_)) => failed("`nono audit keygen -o FILE` makes a key"),
            SessionError::Log(_) => failed(
                "make room, or set NONO_HOME to a folder you can write; --no-audit runs it without a log",
            ),
            SessionError::Network(error) => Failure::new(text).hint_if(error.hint()),
            SessionError::FilterNeedsSupervisor { .. } => usage("use `nono run`, or add --block-net"),
            SessionError::NotTracked { .. } => usage("add --rollback"),
            SessionError::DestWritable { .. } => usage("choose a folder outside the write grants"),
            SessionError::DestTaken { .. } => usage("choose a folder of its own for the sessions"),
            SessionError::Checkpoints(_) => failed("--no-checkpoints runs it without them"),
            SessionError::Hold(_) => {
                Failure::new(text).hint("create it yourself, or grant less than the folder it is in")
            }
            SessionError::Saved(_) => failed("set TMPDIR to a folder that you can write"),
            SessionError::Cancelled => Failure::new(text),
            SessionError::Interrupted { signal } => Failure::new(text).code(by_signal(signal)),
        }
    }
}

impl From<RollbackError> for Failure {
    fn from(error: RollbackError) -> Failure {
        // A name with a line break in it must not look like a line of ours; only a parser's words have lines.
        let text = match &error {
            RollbackError::Settings { .. } | RollbackError::Format { .. } => error.to_string(),
            _ => escape(&error.to_string()),
        };
        let failed = |hint: &str| Failure::new(&*text).hint(hint);
        let refused = |hint: &str| Failure::refused(&*text).hint(hint);
        match error {
            RollbackError::NotFound { .. } | RollbackError::Ambiguous { .. } => {
                failed("`nono rollback list` lists the sessions")
            }
            RollbackError::NoSessions => failed("`nono run --rollback -- command` makes one"),
            RollbackError::NoSessionHere { last: None, .. } => failed(TAKES_SNAPSHOTS),
            RollbackError::Restoring { .. } => refused("wait until it ends"),
            RollbackError::Live { id, .. } => {
                Failure::refused(text).hint(format!("wait until it ends, or run `nono stop {id}`"))
            }
            RollbackError::NoneHere { last: Some(last), .. } => Failure::refused(text).hint(format!(
                "the last session, {}, has snapshots of {}; `nono rollback list` shows all",
                last.id,
                shown(&last.project)
            )),
            RollbackError::NoSessionHere { last: Some(last), .. } => Failure::new(text).hint(format!(
                "the last session, {id}, has snapshots of {}: nono rollback show {id}",
                shown(&last.project),
                id = last.id
            )),
            RollbackError::AllUndone { .. } => {
                refused("`nono redo` takes the last undo back, `nono rollback list` shows all")
            }
            RollbackError::NoneHere { last: None, .. } => refused(TAKES_SNAPSHOTS),
            RollbackError::NoRestoresHere { .. } => refused("`nono status` shows what can be undone here"),
            RollbackError::NoRestores => refused("`nono rollback list` lists the sessions"),
            RollbackError::NothingToUndo { .. } | RollbackError::UndoneAlready { .. } => {
                Failure::refused(text)
            }
            RollbackError::PartOfRepository { git, .. } => {
                let hint = format!("restore all of it: {}", shown(&git));
                Failure::refused(text).hint(hint)
            }
            RollbackError::Pattern { .. } => Failure::usage(text),
            RollbackError::NoSuchPath { session: Some(id), .. } => {
                let id = escape(&id);
                Failure::new(text).hint(format!("`nono rollback show {id}` lists what the session changed"))
            }
            RollbackError::NoSnapshot { id, .. } => {
                Failure::new(text).hint(format!("`nono rollback show {id} --snapshots` lists them"))
            }
            RollbackError::Damaged { .. } => {
                failed("`nono rollback verify` names everything that is missing or altered")
            }
            RollbackError::NoRoom { .. } => Failure::new(text).hint(NO_ROOM),
            _ => Failure::new(text),
        }
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Failure {
        // A name with a line break in it must not look like a line of ours.
        let text = escape(&error.to_string());
        let failed = |hint: &str| Failure::new(&*text).hint(hint);
        match error {
            CheckpointError::NoProject { .. } => failed("`nono checkpoints create` takes the first one"),
            CheckpointError::TooBroad { .. } => failed("cd to a project, or name a path in one"),
            CheckpointError::NotFound { .. } | CheckpointError::Ambiguous { .. } => {
                failed("`nono checkpoints list` lists them")
            }
            CheckpointError::NoTurn { .. } => failed("`nono turns` lists them"),
            CheckpointError::TurnGone { checkpoint, .. } => Failure::refused(text).hint(format!(
                "go back to before it, and everything after it: nono undo --to {}",
                checkpoint.short()
            )),
            CheckpointError::OtherProject { other, .. } => {
                Failure::refused(text).hint(format!("cd to {}, or use --path", shown(&other)))
            }
            CheckpointError::Damaged { .. } => {
                failed("`nono checkpoints verify` names everything that is missing or altered")
            }
            CheckpointError::PartOfRepository { git, .. } => {
                let hint = format!("restore all of it: {} --with-git", shown(&git));
                Failure::refused(text).hint(hint)
            }
            CheckpointError::BadName { .. } => Failure::usage(text),
            CheckpointError::NothingToUndo { .. } | CheckpointError::Restores(_) => Failure::refused(text),
            _ => Failure::new(text),
        }
    }
}

impl From<UndoError> for Failure {
    fn from(error: UndoError) -> Failure {
        match error {
            UndoError::Rollback(error) => error.into(),
            UndoError::Checkpoint(error) => error.into(),
        }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Failure {
        Failure::new(escape(&error.to_string()))
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Failure {
        let text = escape(&error.to_string());
        let failed = |hint: &str| Failure::new(&*text).hint(hint);
        match error {
            PathError::Pattern { .. } => Failure::usage(text),
            PathError::NoSuchPath { .. } => failed("`nono checkpoints diff N` shows what changed"),
            PathError::Checkpoint(error) => error.into(),
            PathError::Other(error) => error.into(),
        }
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Failure {
        // A parser's words have lines.
        Failure::new(error.to_string())
    }
}

impl From<AuditError> for Failure {
    fn from(error: AuditError) -> Failure {
        // A name with a line break in it must not look like a line of ours; only a parser's words have lines.
        let text = match &error {
            AuditError::Settings { .. } => error.to_string(),
            _ => escape(&error.to_string()),
        };
        let failed = |hint: &str| Failure::new(&*text).hint(hint);
        match error {
            AuditError::Gone { .. } => Failure::refused(text),
            AuditError::NotFound { .. } | AuditError::Ambiguous { .. } => {
                failed("`nono audit list` lists the sessions")
            }
            AuditError::NoSessions => failed("`nono run -- command` makes one"),
            AuditError::Read(_) => {
                Failure::refused(text).hint("`nono audit verify` says what can still be trusted")
            }
            AuditError::StateDir(error) => error.into(),
            _ => Failure::new(text),
        }
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Failure {
        let text = escape(&error.to_string());
        let failed = |hint: &str| Failure::new(&*text).hint(hint);
        match error {
            ControlError::NotFound { .. } | ControlError::Ambiguous { .. } => {
                failed("`nono ps` lists the running sessions")
            }
            ControlError::NoAnswer { .. } => {
                failed("it may be taking a snapshot before or after its command; try again")
            }
            _ => Failure::new(text),
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Failure {
        Failure::new(escape(&error.to_string()))
    }
}

/// Failure of a launch. A failed exec has the exit codes of a shell; every other step is nono's own failure.
fn launch(error: &nono::session::RunError, text: String) -> Failure {
    match nono::session::failed_exec(error) {
        Some((program, nono::session::ExecProblem::Missing)) => {
            Failure::new(format!("{}: {text}", program.display()))
                .hint("its interpreter (the first line of a script) does not exist, or is not granted")
                .code(NOT_FOUND)
        }
        Some((program, nono::session::ExecProblem::Refused)) => Failure::new(format!("{}: {text}", program.display()))
            .hint("the program, or the interpreter it names, must be readable inside the sandbox: add --read FOLDER")
            .code(NOT_EXECUTABLE),
        None => Failure::new(text),
    }
}
