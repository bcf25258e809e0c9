//! Child process that cannot hang the suite, and its verdict.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Longer than an attack takes beside other work. `NONO_ESCAPE_LIMIT`, in seconds, is for a long flood.
fn limit() -> Duration {
    let wanted = std::env::var("NONO_ESCAPE_LIMIT").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(wanted.unwrap_or(90))
}
const SIGSYS: i32 = 31;

pub(crate) struct Child {
    process: std::process::Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: File,
    seen: String,
    /// Lines that came while others were waited for.
    unheard: Vec<String>,
    /// Dropped when the child has ended: then nothing is killed.
    _alarm: Sender<()>,
}

/// Kills the process group when the time is up, again and again until the alarm is dropped.
fn alarm(pid: u32) -> Sender<()> {
    let (sender, ended) = channel();
    std::thread::spawn(move || {
        let mut left = limit();
        while ended.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
            kill(&format!("-{pid}"));
            left = Duration::from_secs(1);
        }
    });
    sender
}

/// `kill -9` of a pid, or of a group when it begins with a dash.
pub(crate) fn kill(whom: &str) {
    drop(Command::new("kill").args(["-KILL", "--", whom]).stderr(Stdio::null()).status());
}

impl Child {
    /// Starts the command with pipes; `input` replaces the pipe on stdin.
    pub(crate) fn start(mut command: Command, input: Option<File>) -> Self {
        let errors = tempfile::tempfile().expect("temp file");
        let copy = errors.try_clone().expect("clone");
        command.stdin(input.map_or_else(Stdio::piped, Stdio::from)).stdout(Stdio::piped()).stderr(copy);
        let mut process = command.spawn().unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let output = BufReader::new(process.stdout.take().expect("pipe"));
        let (input, alarm) = (process.stdin.take(), alarm(process.id()));
        Self { process, input, output, errors, seen: String::new(), unheard: Vec::new(), _alarm: alarm }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn say(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            drop(writeln!(input, "{line}"));
        }
    }

    /// First unread line that begins with one of these words; `None` when the child ends before. Lines of two processes
    /// come in any order: skipped ones can be read later.
    pub(crate) fn hear(&mut self, words: &[&str]) -> Option<String> {
        let is_wanted = |line: &String| words.iter().any(|word| line.starts_with(word));
        if let Some(at) = self.unheard.iter().position(is_wanted) {
            return Some(self.unheard.remove(at));
        }
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            self.seen.push_str(&line);
            line.truncate(line.trim_end().len());
            if is_wanted(&line) {
                return Some(line);
            }
            self.unheard.push(line);
        }
    }

    /// Ends the child's input and waits for it.
    pub(crate) fn finish(mut self) -> Outcome {
        self.end()
    }

    /// The same for a child that is used by reference.
    pub(crate) fn end(&mut self) -> Outcome {
        drop(self.input.take());
        drop(self.output.read_to_string(&mut self.seen));
        let status = self.process.wait().expect("wait");
        let mut errors = Vec::new();
        self.errors.rewind().and_then(|()| self.errors.read_to_end(&mut errors)).expect("stderr");
        let output = std::mem::take(&mut self.seen);
        Outcome { output, errors: String::from_utf8_lossy(&errors).into_owned(), status }
    }
}

/// A helper ends when its input does; it is waited for, so that its user is free again.
impl Drop for Child {
    fn drop(&mut self) {
        drop(self.input.take());
        drop(self.process.wait());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Escaped,
    Worked,
    Blocked,
    Tried,
    /// nono itself declined to start the command.
    Refused,
    Broken,
}

pub(crate) struct Outcome {
    pub(crate) output: String,
    pub(crate) errors: String,
    pub(crate) status: ExitStatus,
}

impl Outcome {
    pub(crate) fn verdict(&self) -> Verdict {
        let says = |word: &str| self.output.lines().any(|line| line.starts_with(word));
        let killed = self.status.signal() == Some(SIGSYS) || self.status.code() == Some(128 + SIGSYS);
        match self.status.code() {
            _ if says("ESCAPED:") => Verdict::Escaped,
            _ if says("TRYING:") && killed => Verdict::Blocked,
            Some(0) if says("WORKED:") => Verdict::Worked,
            Some(1) if says("BLOCKED:") => Verdict::Blocked,
            Some(3) if says("TRIED:") => Verdict::Tried,
            Some(2 | 125) if !says("TRYING:") && self.errors.contains("[nono]") => Verdict::Refused,
            _ => Verdict::Broken,
        }
    }

    /// Errno name of a `BLOCKED` line.
    pub(crate) fn errno(&self) -> &str {
        let line = self.output.lines().rfind(|line| line.starts_with("BLOCKED:")).unwrap_or_default();
        line.rsplit(' ').next().unwrap_or_default()
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} ({})\n{}{}", self.verdict(), self.status, self.output, self.errors)
    }
}
