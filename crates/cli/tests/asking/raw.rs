//! A terminal that is nothing but a pair of descriptors: the test sees every byte, and sends what a terminal would.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::{fs, pty, termios};

use super::world::World;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Raw {
    master: File,
    child: Child,
    /// Everything that was written to the terminal, and how much of it was looked at.
    seen: Vec<u8>,
    looked: usize,
}

impl Raw {
    /// `nono run --ask` of a command, on a terminal of 24 by 80.
    pub(crate) fn start(world: &World, flags: &[&str], command: &[&str]) -> Raw {
        Raw::start_by(world, &[], flags, command)
    }

    /// The same, with nono started by another program.
    pub(crate) fn start_by(world: &World, by: &[&str], flags: &[&str], command: &[&str]) -> Raw {
        let master = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).unwrap();
        pty::grantpt(&master).unwrap();
        pty::unlockpt(&master).unwrap();
        let name = pty::ptsname(&master, vec![]).unwrap();
        let slave = File::from(fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
        let size = termios::Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        termios::tcsetwinsize(slave.as_fd(), size).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let mut setsid = world.command("setsid");
        setsid.arg("--ctty").args(by).args(["nono", "run", "--ask", "--allow-cwd"]);
        setsid.args(flags).arg("--").args(command);
        let child = setsid.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Raw { master: master.into(), child, seen: vec![], looked: 0 }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.master.write_all(bytes).unwrap();
    }

    /// Takes what is there, or comes, in this time. Whether something did.
    fn take(&mut self, patience: Duration) -> bool {
        let patience = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        if rustix::event::poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&patience)).unwrap() == 0
        {
            return false;
        }
        let mut bytes = [0; 4096];
        // A terminal that no process has open any more reads as an error.
        let count = self.master.read(&mut bytes).unwrap_or(0);
        self.seen.extend(&bytes[..count]);
        count > 0
    }

    /// Whether this was written since the last look; looks no further than to its end.
    fn look(&mut self, part: &str) -> bool {
        let rest = &self.seen[self.looked..];
        let found = rest.windows(part.len()).position(|window| window == part.as_bytes());
        self.looked += found.map_or(0, |at| at + part.len());
        found.is_some()
    }

    pub(crate) fn wait_for(&mut self, part: &str) {
        let start = Instant::now();
        while !self.look(part) {
            assert!(start.elapsed() < PATIENCE, "waiting for {part:?} in {}", self.text());
            self.take(Duration::from_millis(100));
        }
    }

    /// Whether this is there already.
    pub(crate) fn has(&mut self, part: &str) -> bool {
        while self.take(Duration::ZERO) {}
        let looked = self.looked;
        let found = self.look(part);
        self.looked = looked;
        found
    }

    /// Presses a key again and again until this is seen: it counts once nothing else came for a while.
    pub(crate) fn press_until(&mut self, key: &str, part: &str) {
        let start = Instant::now();
        while !self.look(part) {
            assert!(start.elapsed() < PATIENCE, "pressing {key:?} for {part:?} in {}", self.text());
            self.send(key.as_bytes());
            self.take(Duration::from_millis(400));
        }
    }

    /// Everything that was written to the terminal, up to where was looked.
    pub(crate) fn written(&self) -> &[u8] {
        &self.seen[..self.looked]
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// The exit status, once everything was read.
    pub(crate) fn end(&mut self) -> i32 {
        let start = Instant::now();
        loop {
            self.take(Duration::from_millis(50));
            if let Some(status) = self.child.try_wait().unwrap() {
                while self.take(Duration::ZERO) {}
                return status.code().unwrap_or(-1);
            }
            assert!(start.elapsed() < PATIENCE, "it does not end: {}", self.text());
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // One that has ended is not there to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
