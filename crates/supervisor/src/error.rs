//! Errors of a supervised run.

use std::io;
use std::path::PathBuf;

use nono_sandbox::PlanError;
use nono_sys::errno;
use nono_sys::launch::LaunchError;
use thiserror::Error;

/// Failure of a part that is handed to the supervisor, such as the proxy or the opener of addresses: only its text is used.
pub type ServiceError = Box<dyn std::error::Error + Send + Sync>;

/// Failure to run or to supervise the command.
#[derive(Debug, Error)]
pub enum RunError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("{error}")]
    Launch { error: LaunchError, program: PathBuf },
    #[error("cannot enforce --max-memory: the command's processes are not visible in /proc")]
    CannotMeasure,
    #[error("cannot start the filtering proxy: {source}")]
    Proxy { source: ServiceError },
    #[error("could not {what}: {}", errno::describe(.source))]
    Supervise { what: &'static str, source: io::Error },
}

pub(crate) fn supervising(what: &'static str) -> impl FnOnce(io::Error) -> RunError {
    move |source| RunError::Supervise { what, source }
}
