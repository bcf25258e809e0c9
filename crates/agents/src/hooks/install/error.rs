//! Errors of installing and removing hooks. When a plan returns one, nothing was written.

use std::io;
use std::path::{Path, PathBuf};

use nono_sys::errno;

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("{}:{line}:{column}: {what}; nothing was changed", path.display())]
    Malformed { path: PathBuf, line: usize, column: usize, what: String },
    #[error("{}:{line}: {what}; nothing was changed", path.display())]
    Yaml {
        path: PathBuf,
        line: usize,
        what: &'static str,
        /// Lines to add by hand.
        add: String,
    },
    #[error("{}:{line}: nono's section has no begin mark or no end mark; nothing was changed", path.display())]
    Section { path: PathBuf, line: usize },
    #[error("{} is not text in UTF-8; nothing was changed", path.display())]
    NotText { path: PathBuf },
    #[error("{} is a dangling symlink; nothing was changed", path.display())]
    Dangling { path: PathBuf },
    #[error("{} is a link to {}, outside the project; nothing was changed", path.display(), target.display())]
    LeadsOut { path: PathBuf, target: PathBuf },
    #[error("{} is not a regular file; nothing was changed", path.display())]
    NotAFile { path: PathBuf },
    #[error("{} is larger than {limit} bytes; nothing was changed", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("{} cannot be named in settings: it is not UTF-8", path.display())]
    Name { path: PathBuf },
    #[error("{agent} has no project hooks; use --scope user")]
    NoProject { agent: &'static str },
    #[error("{agent} has no user hooks, only project hooks")]
    OnlyProject { agent: &'static str },
    #[error("nono cannot edit the settings of {agent} by itself; nothing was changed")]
    ByHand { agent: &'static str, what: &'static str, documentation: &'static str },
    #[error("{} was changed by another process meanwhile; it was left alone", path.display())]
    Changed { path: PathBuf },
    #[error("{} belongs to another user, and writing would change its owner; it was left alone", path.display())]
    Foreign { path: PathBuf },
    #[error("another nono is changing hooks right now (lock {})", path.display())]
    Busy { path: PathBuf },
    #[error("{}: {}", path.display(), errno::describe(source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is damaged: {what}", path.display())]
    Record { path: PathBuf, what: String },
    #[error(transparent)]
    State(#[from] nono_policy::state_dir::StateDirError),
}

impl InstallError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> InstallError {
        move |source| InstallError::Io { path: path.to_owned(), source }
    }

    /// Whether nono simply has no place for hooks there: not an error in a list of all agents.
    pub fn is_no_place(&self) -> bool {
        matches!(
            self,
            InstallError::NoProject { .. } | InstallError::OnlyProject { .. } | InstallError::ByHand { .. }
        )
    }

    /// Next step for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            InstallError::Malformed { .. } => Some("correct the file, and try again".to_owned()),
            InstallError::LeadsOut { .. } => {
                Some("put a file in the link's place, or install the hooks with --scope user".to_owned())
            }
            InstallError::Yaml { add, .. } => Some(format!("add this by hand:\n{add}")),
            InstallError::Section { .. } => {
                Some("remove the remaining nono:begin or nono:end mark".to_owned())
            }
            InstallError::Record { path, .. } => Some(format!("remove {}", path.display())),
            InstallError::Changed { .. } | InstallError::Busy { .. } => Some("try again".to_owned()),
            InstallError::OnlyProject { .. } => Some("add --scope project".to_owned()),
            InstallError::ByHand { what, documentation, .. } => Some(format!("{what} ({documentation})")),
            InstallError::State(error) => error.hint(),
            _ => None,
        }
    }
}
