//! One command under a set of grants, with its output captured: what `subprocess.run` is, confined.
//!
//! [`run`] checks what was asked for, compiles the sandbox, and hands it to the supervisor with pipes for streams.
//! It may be called from any number of threads of a process that is somebody else's: its signals, limits and standard streams
//! stay as they are, everything is compiled before the fork, and when it returns nothing it started is left, neither
//! processes nor threads nor folders. Nobody is asked for more than was granted.

mod capture;
mod checks;
mod ground;

use std::ffi::OsString;
use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nono_policy::{CapabilitySet, PolicyError};
use nono_supervisor::report::MediationReport;
use nono_supervisor::{LimitHit, Options, Outcome, RunError};
use nono_sys::errno;
use nono_sys::launch::Step;
use nono_sys::process::Signals;
use nono_sys::wait::Ended;
use thiserror::Error;

use crate::streams::{Bell, End};
use capture::{Capture, Captured};
pub(crate) use checks::environment;
pub use checks::{EnvError, seconds};
use ground::Ground;

/// The code of a command whose time ran out.
pub const TIMED_OUT: i32 = 124;
/// The code of a command whose sandbox or working folder could not be had. It was not run.
pub const NOT_CONFINED: i32 = 126;
/// The code of a command that could not be executed, not being granted for one reason.
pub const NOT_EXECUTED: i32 = 127;

/// How long what the command leaves running has to end by itself.
const GRACE_MS: u32 = 1000;

/// Where the command's input comes from.
#[derive(Clone, Copy, Debug, Default)]
pub enum Input<'a> {
    /// This process's own.
    #[default]
    Inherited,
    /// These bytes, then the end.
    Given(&'a [u8]),
}

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct ExecRequest<'a> {
    /// The program and its arguments. A name with a slash is looked for where the command runs, any other on
    /// [`ExecHost::path`].
    pub command: Vec<OsString>,
    /// Where it runs; `None`: where this process is.
    pub cwd: Option<PathBuf>,
    /// Its variables, all of them. Of two with one name the later counts.
    pub env: Vec<(OsString, OsString)>,
    pub input: Input<'a>,
    /// After that it is ended, with everything it started.
    pub timeout: Option<Duration>,
    /// How much of each output is kept. The rest is read and dropped, so that the command goes on, and the outcome says
    /// that there was more.
    pub max_output: Option<u64>,
    /// The only way to a network, whatever the set says about that. A set whose network is
    /// [filtered](nono_policy::NetworkPolicy::Filtered) needs one.
    pub proxy: Option<Arc<dyn Proxy>>,
}

/// A filtering proxy that runs in this process.
pub trait Proxy: Send + Sync {
    /// Its port on this machine's loopback address. The command finds it there, and nothing else.
    fn port(&self) -> u16;

    /// Serve this socket, too, until what is returned is dropped. It is of the command's own network.
    fn serve_also(&self, listener: std::os::fd::OwnedFd) -> io::Result<Box<dyn Send>>;
}

impl std::fmt::Debug for dyn Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({})", self.port())
    }
}

/// What the edge knows about the machine and hands in.
#[derive(Clone, Debug)]
pub struct ExecHost {
    /// Where this process is.
    pub cwd: PathBuf,
    /// The `PATH` by which programs are found.
    pub path: Option<OsString>,
    /// Where folders for sessions are made.
    pub session_base: PathBuf,
    /// nono's own state, never within reach.
    pub state_dir: Option<PathBuf>,
    /// This process is itself inside a nono sandbox, which holds whatever happens here.
    pub nested: bool,
}

impl ExecHost {
    fn own(&self) -> Vec<PathBuf> {
        self.state_dir.iter().chain([&self.session_base]).cloned().collect()
    }
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct ExecOutcome {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// The command's own code; `-n` when it was ended by signal n; else one of the codes above.
    pub exit_code: i32,
    /// The command was run; otherwise `stderr` says why not.
    pub was_run: bool,
    pub timed_out: bool,
    /// There was more output than was to be kept.
    pub truncated: bool,
    /// Which limit of the set ended it.
    pub limit: Option<LimitHit>,
    /// What it was refused.
    pub mediation: MediationReport,
}

/// Why there is no outcome. Nothing was run, or it was ended.
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
    #[error("the working folder {} cannot be had: {}", .path.display(), errno::describe(.source))]
    Cwd { path: PathBuf, source: io::Error },
    #[error("{base} cannot hold what a sandbox needs: {}", errno::describe(.source), base = .base.display())]
    Folder { base: PathBuf, source: io::Error },
    #[error("this set cannot be enforced: {0}")]
    Policy(#[from] PolicyError),
    #[error("the network is to be reached through a proxy, and none was given")]
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

/// Run the command to its end. `cancelled` is asked a few times a second; once it says so everything is ended.
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
    let ground = match Ground::new(caps, request, host, checked.workdir) {
        Ok(ground) => ground,
        Err(ground::Failed::Refused(why)) => return Ok(not_run(NOT_CONFINED, &why)),
        Err(ground::Failed::Error(error)) => return Err(error),
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

/// In threads of our own, which hear no signals: one runs the command, and waits for its end as the one that forked it
/// has to; the other moves bytes.
fn beside<'a>(
    capture: Capture<'a>,
    run: impl FnOnce(Arc<std::os::fd::OwnedFd>, &Signals) -> Result<Outcome, RunError> + Send + 'a,
) -> Result<(Captured, Result<Outcome, RunError>), ExecError> {
    let (over, end) = End::new().map_err(system("make a pipe"))?;
    let (cancel, bell) = Bell::new().map_err(system("make a pipe"))?;
    let command = move || {
        // Told when the run is over, however it ends.
        let _end = end;
        let signals = Signals::aside()
            .map_err(|source| RunError::Supervise { what: "set the signals aside", source })?;
        run(cancel, &signals)
    };
    let bytes = move || -> io::Result<Captured> {
        // Or a command that does not read could end this process: a SIGPIPE that waits goes with this thread.
        std::mem::forget(Signals::aside()?);
        capture.until(&over, bell)
    };
    thread::scope(|scope| {
        let bytes = thread::Builder::new().spawn_scoped(scope, bytes).map_err(system("start a thread"))?;
        let command =
            thread::Builder::new().spawn_scoped(scope, command).map_err(system("start a thread"))?;
        let outcome = command.join().unwrap_or_else(|panic| resume_unwind(panic));
        let captured = bytes.join().unwrap_or_else(|panic| resume_unwind(panic));
        Ok((captured.map_err(system("read what the command says"))?, outcome))
    })
}

fn conclude(captured: Captured, outcome: Result<Outcome, RunError>) -> Result<ExecOutcome, ExecError> {
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

/// What a launch that failed is to whoever wanted the command's output.
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
