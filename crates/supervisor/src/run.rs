//! One run: fork, harden, event loop, result.
//!
//! Every error path in here ends with the command's tree dead: dropping the control socket kills it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nono_policy::resolved::Limits;
use nono_sandbox::{Command, ExecStrategy, Prepared};
use nono_sys::launch::{self, Launched, Notice};
use nono_sys::process::{self, Signals};
use nono_sys::wait::{self, Ended};

use crate::channel::{ChannelThreads, Channels};
use crate::error::{RunError, supervising};
use crate::hardening::Hardened;
use crate::limits::{LimitHit, LimitWatch, MemoryMethod};
use crate::mediate::{Mediate, Mediating};
use crate::options::{CommandSpec, GENTLY, Options};
use crate::pipes::Pipes;
use crate::pump::Pump;
use crate::recorded::Recorded;
use crate::report::MediationReport;
use crate::services::{self, Services};
use crate::stderr_scan::{Complaint, StderrScan};
use crate::terminal::Caller;
use crate::terminal_lender::{self, TerminalLender};

/// Result of a supervised run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    pub ended: Ended,
    pub limit: Option<LimitHit>,
    pub memory_method: Option<MemoryMethod>,
    pub complaints: Vec<Complaint>,
    /// Whether its output ended in the middle of a line.
    pub unfinished_line: bool,
    /// Denials and grants while it ran.
    pub mediation: MediationReport,
    /// Record of what it did, if one was wanted.
    pub recorded: Option<Recorded>,
    /// Whether it was stopped by a request on the control socket.
    pub stopped: bool,
    /// Whether it was ended by [`Options::cancel`].
    pub cancelled: bool,
}

/// Becomes the command. Returns only if that failed, and then this process must end: it is half confined.
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

/// Takes over the signals for [`run`].
pub fn take_signals() -> Result<Signals, RunError> {
    Signals::block().map_err(supervising("take over the signals"))
}

/// Runs the command to its end. `signals` were taken over by the caller before it started any thread: a thread that had
/// them unblocked would be killed by them, and this process with it.
///
/// In a process of another program (a library's host) they were only set [aside](Signals::aside), in a thread that does
/// nothing else until this returns. Then nothing is passed on to the command, and nothing about the process is changed,
/// not even hardened: other threads may be about to start processes, and a limit on core files cannot be lifted again.
pub fn run(
    prepared: &Prepared,
    command: &CommandSpec,
    options: &Options,
    signals: &Signals,
    mediate: Mediate,
    channels: Option<Channels>,
) -> Result<RunOutcome, RunError> {
    let caller = Caller::of(options).map_err(supervising("look at the terminal"))?;
    let lender = options.asking.as_ref().map(TerminalLender::new);
    let pipes = match &options.streams {
        Some(streams) => Ok(Pipes::given(streams)),
        None => Pipes::new(&caller, options.listen, options.output_aside),
    };
    let pipes = pipes.map_err(supervising("make a pipe"))?;
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
    let _hardened =
        signals.fd().map(|_| Hardened::new()).transpose().map_err(supervising("harden this process"))?;
    let watch = LimitWatch::new(prepared.blueprint(), &launched)?;
    let proxy = prepared.blueprint().proxy;
    let mediated = prepared.blueprint().mediated().any();
    let workers = services::begin(&launched, prepared.blueprint(), &mediate, failed)?;
    if prepared.blueprint().strategy == ExecStrategy::Monitor {
        prepared.confine_self()?;
    }
    let mediate = mediated.then_some((mediate, workers));
    let Services { mediating, served, terminal } =
        Services::new(&launched, mediate, proxy, options.asking.clone(), channels)?;
    // Dropped before the mediator, which waits for threads that wait for the terminal.
    let lender = lender;
    let limits = &prepared.blueprint().limits;
    caller.enter().map_err(supervising("set up the terminal"))?;
    let outputs = pipes.into_pumps();
    let mut state = Loop {
        signals,
        caller: &caller,
        launched,
        stop: served.as_ref().map(ChannelThreads::stop_wanted),
        cancel: options.cancel.as_ref().map(AsFd::as_fd),
        shares_stops: options.streams.is_none(),
        is_stopped: false,
        limits,
        master: None,
        outputs,
        input: None,
        lender,
        watch,
        scan: StderrScan::default(),
        mediator: mediating.as_ref(),
    };
    if let Some(terminal) = terminal {
        state.connect(terminal).map_err(supervising("connect the terminal"))?;
    }
    let result = state.turn();
    caller.end(signals);
    // The sockets end before the threads that answer their requests.
    drop(served);
    let (mediation, recorded) = mediating.map(Mediating::finish).unzip();
    let mut outcome = result.map_err(supervising("watch the command"))?;
    outcome.mediation = mediation.unwrap_or_default();
    outcome.recorded = recorded.flatten();
    outcome.memory_method = MemoryMethod::of(prepared.blueprint());
    outcome.limit = outcome.limit.or_else(|| file_size_hit(outcome.ended, limits));
    Ok(outcome)
}

fn file_size_hit(ended: Ended, limits: &Limits) -> Option<LimitHit> {
    (ended == Ended::Signal(libc::SIGXFSZ)).then_some(limits.file_size.map(LimitHit::FileSize)).flatten()
}

/// State of the event loop. With a pty: its master, its output among `outputs`, and what the user types in `input`.
struct Loop<'a> {
    signals: &'a Signals,
    caller: &'a Caller,
    launched: Launched,
    /// Readable when a client asks for the command to stop; read once.
    stop: Option<BorrowedFd<'a>>,
    /// Readable or closed when everything has to end; see [`Options::cancel`].
    cancel: Option<BorrowedFd<'a>>,
    /// Whether this process stops when the command is stopped, if it is a job of a terminal.
    shares_stops: bool,
    /// Whether the command was stopped and this process was not.
    is_stopped: bool,
    limits: &'a Limits,
    master: Option<OwnedFd>,
    outputs: Vec<Pump>,
    input: Option<Pump>,
    lender: Option<TerminalLender>,
    watch: LimitWatch,
    scan: StderrScan,
    mediator: Option<&'a Mediating>,
}

/// Interval at which a background job checks whether it was brought to the foreground.
const LOOK: Duration = Duration::from_millis(100);

/// Time that output may still take once no process is left that could write it.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Loop<'_> {
    /// Runs until init is gone and all output is written.
    fn turn(mut self) -> io::Result<RunOutcome> {
        let mut ended = None;
        let mut limit = None;
        let (mut stopped, mut cancelled) = (false, false);
        let mut init_gone = false;
        while !(init_gone && self.output_done() && !self.is_lent()) {
            let ready = self.wait(init_gone, limit.is_none() && ended.is_none())?;
            // Every process of the tree is dead; the output is kept open by a process outside that was handed it.
            if init_gone && !ready.contains(&true) {
                break;
            }
            if ready[0] {
                self.pass_signals()?;
            }
            if ready[1] && !init_gone {
                match self.launched.control.receive()? {
                    None => {
                        init_gone = true;
                        self.lender.iter_mut().for_each(TerminalLender::over);
                    }
                    Some(Notice::Terminal(fd)) => self.connect(fd)?,
                    Some(Notice::Stopped(signal)) if self.shares_stops => {
                        self.is_stopped = !self.stopped(signal)?;
                        // What was readable before the stop may belong to another job now.
                        continue;
                    }
                    // Handed-over descriptors come before the loop.
                    Some(Notice::Continued) => self.is_stopped = false,
                    Some(Notice::Counted(pages)) => self.watch.counted(pages),
                    Some(Notice::TimeOver) => limit = self.limits.time.map(LimitHit::Time),
                    Some(
                        Notice::Stopped(_)
                        | Notice::Root(_)
                        | Notice::Pairs(_)
                        | Notice::SocketList(_)
                        | Notice::Listener(_)
                        | Notice::Serving(_),
                    ) => {}
                    Some(Notice::Ended(status)) => ended = Some(wait::decode(status)),
                }
            }
            if ready[2] && self.stop.take().is_some() && !init_gone {
                stopped = ended.is_none();
                unless_gone(self.launched.control.end_all())?;
            }
            if ready[3] && self.mediator.take().is_some_and(|mediator| !mediator.ended_well()) {
                // Trapped calls are not answered any more, and a process that makes one would wait for ever.
                unless_gone(self.launched.control.kill_all())?;
            }
            if ready[5] {
                cancelled |= ended.is_none();
                self.end(init_gone)?;
            }
            self.pump(&ready[6..]);
            self.attend(ready[4], init_gone);
            if self.caller.waits_for_foreground() {
                self.resume()?;
            }
            if limit.is_none() && ended.is_none() {
                limit = self.watch.check(&self.launched, self.mediator)?;
                match limit {
                    None => {}
                    Some(LimitHit::Memory { .. }) => self.launched.control.kill_all()?,
                    Some(_) => self.launched.control.end_all()?,
                }
            }
        }
        wait::reap(self.launched.pidfd.as_fd())?;
        // Without a final notice init was killed from outside, and everything with it.
        let ended = ended.unwrap_or(Ended::Signal(libc::SIGKILL));
        let unfinished_line = self.scan.in_line();
        Ok(RunOutcome {
            ended,
            limit: limit.or_else(|| self.watch.struck()),
            memory_method: None,
            complaints: self.scan.finish(),
            unfinished_line,
            mediation: MediationReport::default(),
            recorded: None,
            stopped,
            cancelled,
        })
    }

    /// Ends the command, gently or at once.
    fn end(&mut self, init_gone: bool) -> io::Result<()> {
        let Some(cancel) = self.cancel else { return Ok(()) };
        let mut word = [0];
        let heard = File::from(cancel.try_clone_to_owned()?).read(&mut word);
        let gently = matches!(heard, Ok(1..)) && word == [GENTLY];
        if !gently {
            self.cancel = None;
        }
        match (init_gone, gently) {
            (true, _) => Ok(()),
            (false, true) => unless_gone(self.launched.control.end_all()),
            (false, false) => unless_gone(self.launched.control.kill_all()),
        }
    }

    /// Whether all output is written; further input does not matter.
    fn output_done(&self) -> bool {
        self.outputs.iter().all(Pump::is_done)
    }

    fn wait(&self, init_gone: bool, watching: bool) -> io::Result<Vec<bool>> {
        let control = (!init_gone).then(|| (self.launched.control.as_fd(), false));
        let stop = self.stop.map(|stop| (stop, false));
        let mediator = self.mediator.filter(|_| !init_gone).map(|mediator| (mediator.ended(), false));
        let bell = self.lender.as_ref().map(|lender| (lender.bell(), false));
        let signals = self.signals.fd().map(|signals| (signals, false));
        let cancel = self.cancel.map(|cancel| (cancel, false));
        let mut fds = vec![signals, control, stop, mediator, bell, cancel];
        fds.extend(self.polled_outputs());
        if let Some(input) = &self.input {
            fds.extend([input.source().filter(|_| self.listens()), input.sink()]);
        }
        let timeout = if watching { self.watch.timeout() } else { None };
        let look = self.caller.waits_for_foreground().then_some(LOOK);
        let last_words = init_gone.then_some(LAST_WORDS);
        wait::poll(&fds, timeout.into_iter().chain(look).chain(last_words).min())
    }

    /// Outputs to poll. While the terminal is leased, the command's output waits in its pty.
    fn polled_outputs(&self) -> impl Iterator<Item = Option<(BorrowedFd<'_>, bool)>> {
        let screen = self.screen();
        let paused = self.lender.as_ref().is_some_and(TerminalLender::pauses);
        self.outputs.iter().enumerate().flat_map(move |(index, pump)| {
            [pump.source().filter(|_| !(paused && Some(index) == screen)), pump.sink()]
        })
    }

    /// Index of the output that goes to the user's screen.
    fn screen(&self) -> Option<usize> {
        self.master.as_ref().and_then(|_| self.outputs.len().checked_sub(1))
    }

    fn listens(&self) -> bool {
        self.caller.listens() && !self.lender.as_ref().is_some_and(TerminalLender::pauses)
    }

    fn is_lent(&self) -> bool {
        self.lender.as_ref().is_some_and(TerminalLender::is_lent)
    }

    fn pump(&mut self, ready: &[bool]) {
        let (outputs, screen, listens) = (self.outputs.len(), self.screen(), self.listens());
        let pumps = self.outputs.iter_mut().chain(&mut self.input);
        for (index, (pump, ready)) in pumps.zip(ready.chunks(2)).enumerate() {
            if ready[0] && (index < outputs || listens) {
                let mut held = 0;
                pump.fill(|bytes| {
                    // Only the command's output is scanned, not what the user types.
                    if index < outputs {
                        self.scan.listen(bytes);
                    }
                    match &mut self.lender {
                        Some(lender) if Some(index) == screen => held = lender.follow(bytes),
                        Some(lender) if index >= outputs => lender.typed(),
                        _ => {}
                    }
                });
                pump.hold(held);
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

    /// Writes out everything the command wrote before it stopped: it belongs on the screen before the shell's prompt.
    fn drain(&mut self) -> io::Result<()> {
        loop {
            let fds: Vec<_> = self.polled_outputs().collect();
            let waiting = self.outputs.iter().any(|pump| pump.sink().is_some());
            let ready = wait::poll(&fds, Some(if waiting { LOOK } else { Duration::ZERO }))?;
            if !ready.contains(&true) {
                return Ok(());
            }
            self.pump(&ready);
        }
    }

    /// Connects the command's pty to the caller's terminal, both ways.
    fn connect(&mut self, master: OwnedFd) -> io::Result<()> {
        self.caller.resize(master.as_fd())?;
        let (input, output) = self.caller.ends()?;
        self.outputs.push(Pump::new(master.try_clone()?, output));
        self.input = Some(Pump::new(input, master.try_clone()?));
        self.master = Some(master);
        Ok(())
    }

    /// Leases the terminal to a waiting prompt, or goes on after one.
    fn attend(&mut self, rung: bool, over: bool) {
        let screen = self.screen();
        let Some(lender) = &mut self.lender else { return };
        if rung {
            lender.listen();
        }
        if over {
            lender.over();
        }
        let again = lender.go_on(screen.map(|at| &mut self.outputs[at]));
        if let Some(at) = screen.filter(|_| lender.catches_up()) {
            self.catch_up(at);
        }
        let Some(lender) = &mut self.lender else { return };
        lender.hand_over(screen.map(|at| &self.outputs[at]), self.master.as_ref().map(AsFd::as_fd));
        if let Some(again) = again {
            if again.resize {
                self.resize();
            } else if let Some(master) = self.master.as_ref().filter(|_| again.nudge) {
                terminal_lender::nudge(master.as_fd());
            }
        }
    }

    /// Reads what the command wrote to its terminal before it asked: it belongs on the screen before the question.
    fn catch_up(&mut self, at: usize) {
        while let Some(source) = self.outputs[at].source() {
            if !wait::poll(&[Some(source)], Some(Duration::ZERO)).is_ok_and(|ready| ready == [true]) {
                return;
            }
            let (scan, lender, mut held) = (&mut self.scan, &mut self.lender, 0);
            self.outputs[at].fill(|bytes| {
                scan.listen(bytes);
                held = lender.as_mut().map_or(0, |lender| lender.follow(bytes));
            });
            self.outputs[at].hold(held);
        }
    }

    /// Handles a stop of the command. Returns whether it goes on, or has gone on since.
    fn stopped(&mut self, signal: i32) -> io::Result<bool> {
        self.drain()?;
        self.lender.iter().for_each(TerminalLender::set_aside);
        let goes_on = self.caller.stopped(signal, &self.launched.control)?;
        self.lender.iter().for_each(TerminalLender::take_up);
        self.resize();
        Ok(goes_on)
    }

    /// Continued, or brought to the foreground: the terminal may have another size and other settings by now.
    fn resume(&mut self) -> io::Result<()> {
        self.caller.enter()?;
        self.lender.iter().for_each(TerminalLender::take_up);
        self.resize();
        Ok(())
    }

    fn resize(&mut self) {
        if let Some(master) = &self.master
            && self.lender.as_mut().is_none_or(TerminalLender::resize)
        {
            // A terminal that is gone has no size; its end is noticed elsewhere.
            let _ = self.caller.resize(master.as_fd());
        }
    }

    fn pass_signals(&mut self) -> io::Result<()> {
        while let Some(received) = self.signals.next() {
            match (received.signal, &self.master) {
                (libc::SIGWINCH, Some(_)) => self.resize(),
                // After a stop by this process both sides were continued already; after a SIGSTOP from outside only
                // this one.
                (libc::SIGCONT, _) => {
                    self.resume()?;
                    if self.is_stopped {
                        self.pass(libc::SIGCONT)?;
                    }
                }
                // Another process of this job wants to read from the terminal that was lent to the command.
                (libc::SIGTTIN, _) if self.caller.take_back() => process::continue_job(),
                // As at a real hang-up: a stopped process receives it only when it goes on.
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
        unless_gone(self.launched.control.signal(signal))
    }
}

/// Ignores the errors of an init that has just ended.
fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET)) => Ok(()),
        result => result,
    }
}
