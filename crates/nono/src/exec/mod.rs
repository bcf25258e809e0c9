//! One command under a set of grants, with its output captured: a confined `subprocess.run`.
//!
//! [`run`] checks the request, compiles the sandbox and passes it to the supervisor, with pipes as streams. It may be
//! called from any number of threads of a host program: signals, limits and standard streams of the process stay as
//! they are, everything is compiled before the fork, and no process, thread or folder is left when it returns. No
//! approval is asked for.

mod capture;
mod checks;
mod prepare;

use std::ffi::OsString;
use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nono_policy::{CapabilitySet, PolicyError};
use nono_supervisor::report::MediationReport;
use nono_supervisor::{LimitHit, Options, RunError, RunOutcome};
use nono_sys::errno;
use nono_sys::launch::Step;
use nono_sys::process::Signals;
use nono_sys::wait::Ended;
use thiserror::Error;

use crate::streams::{CancelPipe, RunEndSignal};
use capture::{Capture, Captured};
pub use checks::seconds;
pub use nono_supervisor::command_env::EnvError;
use prepare::PreparedCommand;

/// Exit code of a command that ran into its timeout.
pub const TIMED_OUT: i32 = 124;
/// Exit code of a command that was not run because its sandbox or working directory could not be set up.
pub const NOT_CONFINED: i32 = 126;
/// Exit code of a command that could not be executed, for example because it is not granted.
pub const NOT_EXECUTED: i32 = 127;

/// Time in milliseconds that processes left by the command have to end by themselves.
const GRACE_MS: u32 = 1000;

#[derive(Clone, Copy, Debug, Default)]
pub enum Input<'a> {
    /// This process's stdin.
    #[default]
    Inherited,
    /// These bytes, then end of file.
    Given(&'a [u8]),
}

/// A command and how to run it.
#[derive(Clone, Debug, Default)]
pub struct ExecRequest<'a> {
    /// The program and its arguments. A name with a slash is relative to the command's directory; any other is found on
    /// [`ExecHost::path`].
    pub command: Vec<OsString>,
    /// Working directory; `None`: that of this process.
    pub cwd: Option<PathBuf>,
    /// The complete environment. The last of several values for one name counts.
    pub env: Vec<(OsString, OsString)>,
    pub input: Input<'a>,
    /// Time after which the command and all its processes are ended.
    pub timeout: Option<Duration>,
    /// Maximum number of bytes kept of each stream. The rest is read and dropped, so that the command goes on, and the
    /// outcome is marked as truncated.
    pub max_output: Option<u64>,
    /// The only way to the network, whatever the set allows. A set whose network is
    /// [filtered](nono_policy::NetworkPolicy::Filtered) needs one.
    pub proxy: Option<Arc<dyn Proxy>>,
}

/// A filtering proxy that runs in this process.
pub trait Proxy: std::fmt::Debug + Send + Sync {
    /// Port on this machine's loopback address, and the only address the command can reach.
    fn port(&self) -> u16;

    /// Serve a socket of the command's network, too, until the returned guard is dropped.
    fn serve_also(&self, listener: std::os::fd::OwnedFd) -> io::Result<Box<dyn Send>>;
}

/// Facts about the machine, supplied by the caller.
#[derive(Clone, Debug)]
pub struct ExecHost {
    /// Working directory of this process.
    pub cwd: PathBuf,
    /// `PATH` on which programs are found.
    pub path: Option<OsString>,
    /// Folder in which session folders are made.
    pub session_base: PathBuf,
    /// nono's own state, never granted.
    pub state_dir: Option<PathBuf>,
    /// Whether this process is itself inside a nono sandbox, which holds regardless.
    pub nested: bool,
}

impl ExecHost {
    fn own(&self) -> Vec<PathBuf> {
        self.state_dir.iter().chain([&self.session_base]).cloned().collect()
    }
}

#[derive(Clone, Debug, Default)]
pub struct ExecOutcome {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// The command's own code; `-n` if signal n ended it; otherwise one of the constants above.
    pub exit_code: i32,
    /// Whether the command was run; if not, `stderr` says why.
    pub was_run: bool,
    pub timed_out: bool,
    /// Whether output was dropped.
    pub truncated: bool,
    pub limit: Option<LimitHit>,
    /// Requests that were denied.
    pub mediation: MediationReport,
}

/// Reasons why there is no outcome. The command was not run, or was ended.
#[derive(Debug, Error)]
pub enum ExecError {
    #[error("command must not be empty")]
    Empty,
    #[error("timeout_secs must be non-negative, and it is {0}")]
    Timeout(f64),
    #[error("Program not found in PATH: {}", .0.display())]
    NotOnPath(PathBuf),
    #[error("Program not found: {}", .0.display())]
    NotFound(PathBuf),
    #[error("an argument contains a NUL byte")]
    Nul,
    #[error(transparent)]
    Env(#[from] EnvError),
    #[error("cannot enter the working directory {}: {}", .path.display(), errno::describe(.source))]
    Cwd { path: PathBuf, source: io::Error },
    #[error("cannot create the session folder in {base}: {}", errno::describe(.source), base = .base.display())]
    Folder { base: PathBuf, source: io::Error },
    #[error("cannot enforce this set: {0}")]
    Policy(#[from] PolicyError),
    #[error("the network is filtered by host, which needs a proxy, and none was given")]
    NoProxy,
    #[error("could not {what}: {}", errno::describe(.source))]
    System { what: &'static str, source: io::Error },
    #[error("{0}")]
    Supervise(RunError),
    #[error("cancelled")]
    Cancelled,
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> ExecError {
    move |source| ExecError::System { what, source }
}

/// Run the command to its end. `cancelled` is polled a few times a second; once true, the command is ended.
pub fn run(
    caps: &CapabilitySet,
    request: &ExecRequest<'_>,
    host: &ExecHost,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<ExecOutcome, ExecError> {
    let checked = checks::check(request, host)?;
    if request.timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Ok(ExecOutcome { exit_code: TIMED_OUT, timed_out: true, ..ExecOutcome::default() });
    }
    let ground = match PreparedCommand::new(caps, request, host, checked.workdir) {
        Ok(ground) => ground,
        Err(prepare::GroundFailure::Error(error)) => return Err(error),
        Err(refused) => return Ok(not_run(NOT_CONFINED, &refused.to_string())),
    };
    let (capture, streams) = Capture::new(request, cancelled).map_err(system("make a pipe"))?;
    let options = |cancel| Options {
        interactive: false,
        asking: None,
        listen: false,
        output_aside: false,
        streams: Some(streams),
        cancel: Some(cancel),
        grace_ms: GRACE_MS,
    };
    let (captured, outcome) =
        beside(capture, |cancel, signals| ground.run(&checked.command, &options(cancel), signals))?;
    conclude(captured, outcome)
}

/// Run in two threads with signals blocked: one forks the command and waits for it, as only that thread can; the other
/// copies its streams.
fn beside<'a>(
    capture: Capture<'a>,
    run: impl FnOnce(Arc<std::os::fd::OwnedFd>, &Signals) -> Result<RunOutcome, RunError> + Send + 'a,
) -> Result<(Captured, Result<RunOutcome, RunError>), ExecError> {
    let (over, end) = RunEndSignal::new().map_err(system("make a pipe"))?;
    let (cancel, bell) = CancelPipe::new().map_err(system("make a pipe"))?;
    let command = move || {
        // Signals the end of the run when dropped.
        let _end = end;
        let signals =
            Signals::aside().map_err(|source| RunError::Supervise { what: "block signals", source })?;
        run(cancel, &signals)
    };
    let bytes = move || -> io::Result<Captured> {
        // A command that does not read its input must not end this process: a pending SIGPIPE goes with this thread.
        std::mem::forget(Signals::aside()?);
        capture.until(&over, bell)
    };
    thread::scope(|scope| {
        let bytes = thread::Builder::new().spawn_scoped(scope, bytes).map_err(system("start a thread"))?;
        let command =
            thread::Builder::new().spawn_scoped(scope, command).map_err(system("start a thread"))?;
        let outcome = command.join().unwrap_or_else(|panic| resume_unwind(panic));
        let captured = bytes.join().unwrap_or_else(|panic| resume_unwind(panic));
        Ok((captured.map_err(system("read the command's output"))?, outcome))
    })
}

fn conclude(captured: Captured, outcome: Result<RunOutcome, RunError>) -> Result<ExecOutcome, ExecError> {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(_) if captured.cancelled => return Err(ExecError::Cancelled),
        Err(error) => return not_started(error),
    };
    if outcome.cancelled && captured.cancelled {
        return Err(ExecError::Cancelled);
    }
    let timed_out = outcome.cancelled && captured.timed_out;
    Ok(ExecOutcome {
        exit_code: match outcome.ended {
            _ if timed_out => TIMED_OUT,
            Ended::Code(code) => code,
            Ended::Signal(signal) => -signal,
        },
        was_run: true,
        timed_out,
        truncated: captured.said.truncated,
        stdout: captured.said.stdout,
        stderr: captured.said.stderr,
        limit: outcome.limit,
        mediation: outcome.mediation,
    })
}

/// Outcome or error for a failed launch.
fn not_started(error: RunError) -> Result<ExecOutcome, ExecError> {
    match &error {
        RunError::Launch { error: failed, program } => match failed.step {
            Step::Fork | Step::ForkCommand => Err(ExecError::Supervise(error)),
            Step::Exec => {
                let why = io::Error::from_raw_os_error(failed.errno);
                let hint =
                    if why.kind() == io::ErrorKind::PermissionDenied { " (is it granted?)" } else { "" };
                let why = errno::describe(&why);
                Ok(not_run(NOT_EXECUTED, &format!("cannot execute {}: {why}{hint}", program.display())))
            }
            _ => Ok(not_run(NOT_CONFINED, &failed.to_string())),
        },
        RunError::Plan(_) => Ok(not_run(NOT_CONFINED, &error.to_string())),
        RunError::CannotMeasure | RunError::Proxy { .. } | RunError::Supervise { .. } => {
            Err(ExecError::Supervise(error))
        }
    }
}

fn not_run(exit_code: i32, why: &str) -> ExecOutcome {
    ExecOutcome { exit_code, stderr: format!("nono: {why}\n").into_bytes(), ..ExecOutcome::default() }
}
