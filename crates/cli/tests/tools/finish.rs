//! A command run to its end, in bounded time.

use std::fmt;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(120);

/// What came out.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: Option<i32>,
    pub(crate) output: String,
    errors: String,
}

impl Said {
    pub(crate) fn agrees(&self, other: &Said) -> bool {
        self.status == other.status && self.output == other.output
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {:?}\n{}--\n{}", self.status, self.output, self.errors)
    }
}

pub(crate) fn finish(mut command: Command) -> Said {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    let pid = Pid::from_child(&child);
    let (sender, receiver) = channel();
    let waiting = std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output = receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        kill_process(pid, Signal::KILL).expect("kill");
        panic!("{command:?} does not end");
    });
    drop(waiting);
    let output = output.expect("its output");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { status: output.status.code(), output: text(&output.stdout), errors: text(&output.stderr) }
}
