//! Commands under way and what came of them, for a bounded time.

use std::fmt;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

/// Nothing here takes a tenth of this; it only keeps a hang from hanging the suite.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a command did.
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nstdout: {}\nstderr: {}", self.status, self.out(), self.err())
    }
}

impl Outcome {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Ended with `code`, whatever it said.
    #[track_caller]
    pub fn ended(&self, code: i32) -> &Outcome {
        assert_eq!(self.code(), Some(code), "{self:?}");
        self
    }

    /// Ended with `code` and said nothing at all of nono's.
    #[track_caller]
    pub fn quiet(&self, code: i32) -> &Outcome {
        self.ended(code);
        assert_eq!(self.err(), "");
        self
    }
}

/// The point in a restore at which it puts the tenth file in its place.
pub const MIDDLE: &str = "renameat2:when=10";

/// A command of nono's that is killed in the middle of a restore. `strace` is the command `strace` of the user who calls.
pub fn killed(strace: Command, args: &[&str]) -> Command {
    disturbed(strace, MIDDLE, "signal=SIGKILL", args)
}

/// A command of nono's that takes a second longer at `point`, a system call in the words of strace's `inject`; each thread
/// counts for itself. The process is nono's. `strace` is the command `strace` of the user who calls, which may choose paths.
pub fn delayed(mut strace: Command, point: &str, args: &[&str]) -> Command {
    strace.arg("-D");
    disturbed(strace, point, "delay_enter=1000000", args)
}

fn disturbed(mut strace: Command, point: &str, how: &str, args: &[&str]) -> Command {
    let (call, when) = point.split_once(':').expect("a call, and when");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"]);
    strace.arg(format!("inject={call}:{how}:{when}")).args(["--", "nono"]).args(args);
    strace
}

/// Run to the end.
pub fn finish(command: &mut Command) -> Outcome {
    Running::start(command).end()
}

/// Run to the end with this on stdin.
pub fn finish_with(command: &mut Command, input: Vec<u8>) -> Outcome {
    let mut running = Running::start(command.stdin(Stdio::piped()));
    let mut stdin = running.child.stdin.take().unwrap();
    // A command that does not read its input is no failure of the test.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let outcome = running.end();
    writer.join().unwrap();
    outcome
}

/// A command under way; killed, with its group, when it outlasts all patience.
#[derive(Debug)]
pub struct Running {
    pub child: Child,
    ended: Sender<()>,
    watchdog: JoinHandle<bool>,
    lines: Receiver<String>,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (ended, over) = channel();
        let pid = Pid::from_child(&child);
        let watchdog = thread::spawn(move || {
            let late = over.recv_timeout(PATIENCE).is_err();
            if late {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            late
        });
        let (heard, lines) = channel();
        let stdout = child.stdout.take().unwrap();
        let stdout = thread::spawn(move || drain(stdout, |line| drop(heard.send(line))));
        let stderr = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || drain(stderr, drop));
        Running { child, ended, watchdog, lines, stdout, stderr }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// To the command and everything in its process group, as a terminal does it.
    pub fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid(), signal).unwrap();
    }

    /// Whether the command is stopped now.
    pub fn is_stopped(&self) -> bool {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid()), options).unwrap().is_some()
    }

    /// Whether the command says this line on stdout next, within a moment.
    #[track_caller]
    pub fn says(&self, line: &str) -> bool {
        match self.lines.recv_timeout(Duration::from_millis(100)) {
            Ok(said) => said == line,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => panic!("never said {line:?}"),
        }
    }

    /// Wait for the command to have said this line on stdout.
    #[track_caller]
    pub fn until(&self, line: &str) {
        while self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("never said {line:?}")) != line {}
    }

    /// Wait for the command, and for everybody who holds its output.
    #[track_caller]
    pub fn end(mut self) -> Outcome {
        let status = self.child.wait().unwrap();
        let (stdout, stderr) = (self.stdout.join().unwrap(), self.stderr.join().unwrap());
        let _ = self.ended.send(());
        assert!(!self.watchdog.join().unwrap(), "hung: {}", String::from_utf8_lossy(&stderr));
        Outcome { status, stdout, stderr }
    }
}

/// Read to the end, telling of each complete line of text.
fn drain(mut from: impl Read, mut tell: impl FnMut(String)) -> Vec<u8> {
    let (mut all, mut told, mut buffer) = (Vec::new(), 0, vec![0u8; 65536]);
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        all.extend_from_slice(&buffer[..n]);
        while let Some(end) = all[told..].iter().position(|byte| *byte == b'\n') {
            tell(String::from_utf8_lossy(&all[told..told + end]).into_owned());
            told += end + 1;
        }
    }
    all
}
