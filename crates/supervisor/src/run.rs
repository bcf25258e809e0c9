//! One run: fork, harden, loop, and what happened.
//!
//! Every error path in here ends with the command's tree dead: dropping the control socket is what kills it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::Duration;

use nono_policy::resolved::Limits;
use nono_sandbox::{Command, ExecStrategy, PlanError, Prepared};
use nono_sys::launch::{self, LaunchError, Launched, Notice};
use nono_sys::process::{self, Signals};
use nono_sys::wait::{self, Ended};
use nono_sys::{errno, terminal as tty};
use thiserror::Error;

use crate::limits::{self, LimitHit, MemoryMethod, Watch};
use crate::pump::Pump;
use crate::tap::{Complaint, Tap};
use crate::terminal::Caller;

/// The command, resolved.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    pub program: PathBuf,
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
}

/// How to stand beside it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Keep the caller's terminal: no pty.
    pub interactive: bool,
    /// Listen to the error output for the diagnostic.
    pub listen: bool,
    /// How long what the command leaves behind has between TERM and KILL.
    pub grace_ms: u32,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub ended: Ended,
    pub limit: Option<LimitHit>,
    pub memory_method: Option<MemoryMethod>,
    pub complaints: Vec<Complaint>,
    /// What it said ended without a line's end.
    pub unfinished_line: bool,
}

/// The command was not run, or could not be watched.
#[derive(Debug, Error)]
pub enum RunError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("{error}")]
    Launch { error: LaunchError, program: PathBuf },
    #[error("--max-memory cannot be held: the processes of the command cannot be seen in /proc")]
    CannotMeasure,
    #[error("could not {what}: {}", errno::describe(.source))]
    Supervise { what: &'static str, source: io::Error },
}

fn supervising(what: &'static str) -> impl FnOnce(io::Error) -> RunError {
    move |source| RunError::Supervise { what, source }
}

/// Become the command. Returns only if that failed, and then this process must end: it is half confined.
pub fn replace(prepared: &Prepared, command: &CommandSpec) -> RunError {
    let plan = prepared.plan(Command {
        program: command.program.clone(),
        argv: command.argv.clone(),
        env: command.env.clone(),
        stdio: [-1; 3],
        terminal: launch::Terminal::Inherit { tty: -1, foreground: false },
        signal_mask: process::current_mask(),
        grace_ms: 0,
    });
    match plan {
        Err(error) => error.into(),
        Ok(mut plan) => {
            RunError::Launch { error: launch::replace(&mut plan), program: command.program.clone() }
        }
    }
}

/// Take over the signals for [`run`].
pub fn take_signals() -> Result<Signals, RunError> {
    Signals::block().map_err(supervising("take over the signals"))
}

/// Run the command to its end. `signals` were taken over by the caller, before any thread of its own was started: one
/// that had them unblocked would be killed by them, and this process with it.
pub fn run(
    prepared: &Prepared,
    command: &CommandSpec,
    options: &Options,
    signals: &Signals,
) -> Result<Outcome, RunError> {
    let caller = Caller::new(options.interactive).map_err(supervising("look at the terminal"))?;
    let pipes = Pipes::new(&caller, options.listen).map_err(supervising("make a pipe"))?;
    let mut plan = prepared.plan(Command {
        program: command.program.clone(),
        argv: command.argv.clone(),
        env: command.env.clone(),
        stdio: pipes.stdio,
        terminal: caller.plan().map_err(supervising("look at the terminal"))?,
        signal_mask: signals.former_mask(),
        grace_ms: options.grace_ms,
    })?;
    let failed = |error| RunError::Launch { error, program: command.program.clone() };
    let launched = launch::spawn(&mut plan).map_err(failed)?;
    drop(plan);
    let _hardened = Hardened::new().map_err(supervising("harden this process"))?;
    if let Err(error) = launched.go() {
        launched.finish();
        return Err(failed(error));
    }
    if prepared.blueprint().strategy == ExecStrategy::Monitor {
        prepared.confine_self()?;
    }
    let limits = &prepared.blueprint().limits;
    if limits.memory.is_some() && !limits::can_measure(launched.pid) {
        return Err(RunError::CannotMeasure);
    }
    let watch = Watch::new(limits, launched.pid);
    caller.enter().map_err(supervising("set up the terminal"))?;
    let outputs = pipes.into_pumps();
    let state = Loop {
        signals,
        caller: &caller,
        launched,
        master: None,
        outputs,
        input: None,
        watch,
        tap: Tap::default(),
    };
    let result = state.turn();
    // While `signals` blocks SIGTTOU: taking the terminal back is a background group's call.
    caller.leave();
    let mut outcome = result.map_err(supervising("watch the command"))?;
    outcome.memory_method = limits::memory_method(limits);
    outcome.limit = outcome.limit.or_else(|| file_size_hit(outcome.ended, limits));
    Ok(outcome)
}

fn file_size_hit(ended: Ended, limits: &Limits) -> Option<LimitHit> {
    (ended == Ended::Signal(libc::SIGXFSZ)).then_some(limits.file_size.map(LimitHit::FileSize)).flatten()
}

/// While a command runs nobody of the same user may look into its supervisor.
struct Hardened {
    was_dumpable: bool,
}

impl Hardened {
    fn new() -> io::Result<Hardened> {
        process::forbid_core_dumps()?;
        Ok(Hardened { was_dumpable: process::set_dumpable(false)? })
    }
}

impl Drop for Hardened {
    fn drop(&mut self) {
        // A library's host process gets its setting back; failing that, it stays on the safe side.
        let _ = process::set_dumpable(self.was_dumpable);
    }
}

/// The descriptors between the command's output and the caller's.
struct Pipes {
    stdio: [RawFd; 3],
    /// (our end, where it goes), and the child's end, open until the fork.
    tapped: Option<(OwnedFd, OwnedFd)>,
    _childs: Option<OwnedFd>,
}

impl Pipes {
    /// Errors are listened to through a pipe, unless they go to a terminal: then the command would notice, and with a
    /// pty we see them anyway. Where both outputs are one file they stay one pipe, so that their order is kept. Errors
    /// that were sent elsewhere go there, pty or not.
    fn new(caller: &Caller, listen: bool) -> io::Result<Pipes> {
        let stderr = io::stderr();
        let shared = matches!(caller, Caller::Shared { .. });
        let elsewhere = !tty::is_terminal(stderr.as_fd());
        if !listen || !elsewhere {
            let kept = if elsewhere { stderr.as_raw_fd() } else { -1 };
            return Ok(Pipes { stdio: [-1, -1, kept], tapped: None, _childs: None });
        }
        let (ours, childs) = launch::output_pipe()?;
        let one_file = shared && process::same_open_file(1, 2);
        let stdio = [-1, if one_file { childs.as_raw_fd() } else { -1 }, childs.as_raw_fd()];
        let sink = stderr.as_fd().try_clone_to_owned()?;
        Ok(Pipes { stdio, tapped: Some((ours, sink)), _childs: Some(childs) })
    }

    fn into_pumps(self) -> Vec<Pump> {
        self.tapped.into_iter().map(|(from, to)| Pump::new(from, to)).collect()
    }
}

/// The loop's state. With a pty: its master, what the command says there among `outputs`, what the caller types in
/// `input`.
struct Loop<'a> {
    signals: &'a Signals,
    caller: &'a Caller,
    launched: Launched,
    master: Option<OwnedFd>,
    outputs: Vec<Pump>,
    input: Option<Pump>,
    watch: Watch,
    tap: Tap,
}

/// How often a job in the background looks whether it was brought to the foreground.
const LOOK: Duration = Duration::from_millis(100);

/// How long output may still come once nobody is left who could write it.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Loop<'_> {
    /// Turn until init is gone and the output is through.
    fn turn(mut self) -> io::Result<Outcome> {
        let mut ended = None;
        let mut limit = None;
        let mut init_gone = false;
        while !(init_gone && self.output_done()) {
            let ready = self.wait(init_gone, limit.is_none() && ended.is_none())?;
            // Everything that was started is dead; what keeps the output open is somebody outside who was handed it.
            if init_gone && !ready.contains(&true) {
                break;
            }
            if ready[0] {
                self.pass_signals()?;
            }
            if ready[1] && !init_gone {
                match self.launched.control.receive()? {
                    None => init_gone = true,
                    Some(Notice::Terminal(fd)) => self.connect(fd)?,
                    Some(Notice::Stopped(signal)) => {
                        self.stopped(signal)?;
                        // What was readable before the stop may be somebody else's now.
                        continue;
                    }
                    Some(Notice::Continued) => {}
                    Some(Notice::Ended(status)) => ended = Some(wait::decode(status)),
                }
            }
            self.pump(&ready[2..]);
            if self.caller.waits_for_foreground() {
                self.resume()?;
            }
            if limit.is_none() && ended.is_none() {
                limit = self.watch.check();
                match limit {
                    None => {}
                    Some(LimitHit::Memory { .. }) => self.launched.control.kill_all()?,
                    Some(_) => self.launched.control.end_all()?,
                }
            }
        }
        wait::reap(self.launched.pidfd.as_fd())?;
        // Without a last word init was killed from outside, and everything with it.
        let ended = ended.unwrap_or(Ended::Signal(libc::SIGKILL));
        let unfinished_line = self.tap.in_line();
        Ok(Outcome { ended, limit, memory_method: None, complaints: self.tap.finish(), unfinished_line })
    }

    /// What the command said is through; what the caller might still type is of no interest.
    fn output_done(&self) -> bool {
        self.outputs.iter().all(Pump::is_done)
    }

    fn wait(&self, init_gone: bool, watching: bool) -> io::Result<Vec<bool>> {
        let control = (!init_gone).then(|| (self.launched.control.as_fd(), false));
        let mut fds = vec![Some((self.signals.as_fd(), false)), control];
        fds.extend(self.outputs.iter().flat_map(|pump| [pump.source(), pump.sink()]));
        if let Some(input) = &self.input {
            fds.extend([input.source().filter(|_| self.caller.listens()), input.sink()]);
        }
        let timeout = if watching { self.watch.timeout() } else { None };
        let look = self.caller.waits_for_foreground().then_some(LOOK);
        let last_words = init_gone.then_some(LAST_WORDS);
        wait::poll(&fds, timeout.into_iter().chain(look).chain(last_words).min())
    }

    fn pump(&mut self, ready: &[bool]) {
        let outputs = self.outputs.len();
        let pumps = self.outputs.iter_mut().chain(&mut self.input);
        for (index, (pump, ready)) in pumps.zip(ready.chunks(2)).enumerate() {
            if ready[0] && (index < outputs || self.caller.listens()) {
                // Only what the command says is listened to, not what the person types.
                pump.fill(|bytes| {
                    if index < outputs {
                        self.tap.listen(bytes);
                    }
                });
            }
            if ready[1] {
                pump.flush();
            }
        }
        // The caller's terminal is gone, so the command's goes too.
        if self.master.is_some() && self.outputs.last().is_some_and(Pump::is_done) {
            (self.master, self.input) = (None, None);
        }
    }

    /// Everything the command said before it stopped belongs on the screen before the shell's prompt.
    fn drain(&mut self) -> io::Result<()> {
        loop {
            let fds: Vec<_> = self.outputs.iter().flat_map(|pump| [pump.source(), pump.sink()]).collect();
            let waiting = self.outputs.iter().any(|pump| pump.sink().is_some());
            let ready = wait::poll(&fds, Some(if waiting { LOOK } else { Duration::ZERO }))?;
            if !ready.contains(&true) {
                return Ok(());
            }
            self.pump(&ready);
        }
    }

    /// The command's pty is there: connect it to the caller's terminal both ways.
    fn connect(&mut self, master: OwnedFd) -> io::Result<()> {
        self.caller.resize(master.as_fd())?;
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        self.outputs.push(Pump::new(master.try_clone()?, output));
        self.input = Some(Pump::new(input, master.try_clone()?));
        self.master = Some(master);
        Ok(())
    }

    fn stopped(&mut self, signal: i32) -> io::Result<()> {
        self.drain()?;
        self.caller.stopped(signal, &self.launched.control)?;
        self.resize();
        Ok(())
    }

    /// Continued, or brought to the foreground: the terminal may have another size and other settings by now.
    fn resume(&self) -> io::Result<()> {
        self.caller.enter()?;
        self.resize();
        Ok(())
    }

    fn resize(&self) {
        if let Some(master) = &self.master {
            // A terminal that is gone has no size; its end is noticed elsewhere.
            let _ = self.caller.resize(master.as_fd());
        }
    }

    fn pass_signals(&self) -> io::Result<()> {
        while let Some(received) = self.signals.next() {
            match (received.signal, &self.master) {
                (libc::SIGWINCH, Some(_)) => self.resize(),
                // After a stop of ours both sides were continued already; after somebody's SIGSTOP only this one.
                (libc::SIGCONT, _) => self.resume()?,
                // Somebody else of this job wants to read from the terminal that was lent to the command.
                (libc::SIGTTIN, _) if self.caller.take_back() => process::continue_job(),
                // As at a real hang-up: a stopped process hears it only when it goes on.
                (libc::SIGHUP, _) => {
                    self.pass(libc::SIGHUP)?;
                    self.pass(libc::SIGCONT)?;
                }
                (signal, _) => self.pass(signal)?,
            }
        }
        Ok(())
    }

    fn pass(&self, signal: i32) -> io::Result<()> {
        match self.launched.control.signal(signal) {
            // It ended a moment ago.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET)) => Ok(()),
            result => result,
        }
    }
}
