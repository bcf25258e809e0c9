//! A session under way, and the processes it is made of.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::town::{Ran, Town};

/// Only keeps what hangs from hanging the suite.
const LONG: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

pub(crate) struct Live {
    child: Child,
    stdin: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
    err: JoinHandle<String>,
}

impl Live {
    pub(crate) fn start(command: &mut Command) -> Live {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let (stdin, out) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut stderr = child.stderr.take().unwrap();
        let err = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        Live { child, stdin, out, err }
    }

    /// Wait until the command says this line.
    #[track_caller]
    pub(crate) fn until(&mut self, line: &str) {
        let mut said = String::new();
        while !said.lines().any(|said| said == line) {
            assert_ne!(self.out.read_line(&mut said).unwrap(), 0, "it never said {line:?}: {said}");
        }
    }

    /// Let a command go on that waits for a line.
    pub(crate) fn go(&mut self) {
        self.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// What came of it, and what it said since.
    pub(crate) fn end(mut self) -> Ran {
        drop(self.stdin.take());
        let mut out = String::new();
        self.out.read_to_string(&mut out).unwrap();
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        Ran { code, out, err: self.err.join().unwrap() }
    }
}

/// A running process, with its command line and environment.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) line: Vec<u8>,
    pub(crate) env: Vec<u8>,
}

impl Process {
    fn has(&self, variable: &str) -> bool {
        self.env.split(|byte| *byte == 0).any(|entry| entry.starts_with(variable.as_bytes()))
    }

    /// A line of `/proc/PID/status`, without its name.
    pub(crate) fn status(&self, key: &str) -> String {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let found = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        found.unwrap().trim().to_owned()
    }

    /// Whether this is anywhere in what it can write. A process that ends meanwhile has nothing any more.
    pub(crate) fn holds(&self, what: &[u8]) -> bool {
        use std::os::unix::fs::FileExt;
        let Ok(maps) = fs::read_to_string(format!("/proc/{}/maps", self.pid)) else { return false };
        let Ok(memory) = fs::File::open(format!("/proc/{}/mem", self.pid)) else { return false };
        let writable =
            maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|flags| flags.starts_with("rw")));
        writable.filter_map(|line| line.split(' ').next()?.split_once('-')).any(|(from, to)| {
            let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).unwrap());
            let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
            // Some of what is mapped cannot be read.
            let read = memory.read_at(&mut bytes, from).unwrap_or(0);
            is_in(&bytes[..read], what)
        })
    }

    /// End it, and wait until it is gone.
    pub(crate) fn kill(&self) {
        let pid = Pid::from_raw(self.pid.cast_signed()).unwrap();
        let watched = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        assert_eq!(poll(&mut [PollFd::new(&watched, PollFlags::IN)], Some(&LONG)).unwrap(), 1);
    }

    /// Wait until it is gone by itself.
    pub(crate) fn is_over(watched: &std::os::fd::OwnedFd) -> bool {
        poll(&mut [PollFd::new(watched, PollFlags::IN)], Some(&LONG)).unwrap() == 1
    }

    pub(crate) fn watch(&self) -> std::os::fd::OwnedFd {
        pidfd_open(Pid::from_raw(self.pid.cast_signed()).unwrap(), PidfdFlags::empty()).unwrap()
    }
}

fn is_in(bytes: &[u8], what: &[u8]) -> bool {
    let first = what[0];
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        if rest[at..].starts_with(what) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

/// All processes whose home is this town's.
fn processes(town: &Town) -> Vec<Process> {
    let home = format!("HOME={}", town.world.path("home").display());
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    // Some end while they are looked at.
    let read = |pid: u32| {
        let [line, env] = ["cmdline", "environ"].map(|name| fs::read(format!("/proc/{pid}/{name}")).ok());
        Some(Process { pid, line: line?, env: env? })
    };
    let binary = town.world.path("bin/nono").into_os_string().into_encoded_bytes();
    let ours = |process: &Process| process.has(&home) || process.line.starts_with(&binary);
    pids.filter_map(read).filter(ours).collect()
}

/// The proxy's own process.
pub(crate) fn helper(town: &Town) -> Process {
    let is = |process: &Process| process.line.split(|byte| *byte == 0).nth(1) == Some(b"__proxy");
    let mut found: Vec<_> = processes(town).into_iter().filter(is).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// The supervisor.
pub(crate) fn supervisor(town: &Town) -> Process {
    let is = |process: &Process| {
        let mut words = process.line.split(|byte| *byte == 0);
        words.next().is_some_and(|word| word.ends_with(b"nono"))
            && words.next() == Some(b"run")
            && !process.has("NONO_SESSION=")
    };
    let found: Vec<_> = processes(town).into_iter().filter(is).collect();
    // It has children of the same name.
    let is_child =
        |process: &Process| found.iter().any(|other| process.status("PPid") == other.pid.to_string());
    let mut parents = found.iter().filter(|process| !is_child(process));
    let (pid, none) = (parents.next().unwrap().pid, parents.next());
    assert!(none.is_none(), "{found:?}");
    found.into_iter().find(|process| process.pid == pid).unwrap()
}

/// What runs inside the sandbox.
pub(crate) fn inside(town: &Town) -> Vec<Process> {
    processes(town).into_iter().filter(|process| process.has("NONO_SESSION=")).collect()
}
