//! A world with a tree in `work`, runs in it, and waiting for something to be there.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) use super::said::Said;
use super::world::World;
use nono_testkit::look::eventually;
use nono_testkit::oracle::{Oracle, look, same};
use nono_testkit::process::{delayed, killed};

/// Nothing here takes that long; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Kit {
    pub(crate) world: World,
}

impl Kit {
    pub(crate) fn new() -> Kit {
        Kit { world: World::new() }
    }

    /// With a tree of many kinds of things.
    pub(crate) fn with_tree() -> Kit {
        let kit = Kit::new();
        kit.bare(
            "mkdir -p src/deep/er docs empty .hidden
             echo 'fn main() {}' > src/main.rs; echo deep > src/deep/er/file
             printf 'no newline' > docs/plain; : > docs/nothing; echo '*.log' > .gitignore
             echo secret > closed; chmod 600 closed; printf '#!/bin/sh\\n' > run.sh; chmod 755 run.sh
             ln -s src/main.rs link; ln -s /nowhere dangling; ln src/main.rs hard
             echo x > \"$(printf 'new\\nline')\"; echo y > \"$(printf 'esc\\033[31m')\"
             mkfifo fifo; chmod 750 .hidden; touch -d '2001-02-03 04:05:06.789' docs/plain src/deep
             head -c 300000 /dev/urandom > binary",
        );
        kit
    }

    /// A line of shell in the tree, as the user and without nono.
    #[track_caller]
    pub(crate) fn bare(&self, script: &str) {
        let mut command = self.world.command("bash");
        command.args(["-ec", script]);
        Kit::wait(&mut command).ok();
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.world.path("work")
    }

    pub(crate) fn look(&self) -> Oracle {
        look(&self.tree())
    }

    /// `nono` with these arguments, in the tree.
    pub(crate) fn nono(&self, args: &[&str]) -> Said {
        Kit::wait(&mut self.command(args))
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.command("nono");
        command.args(args);
        command
    }

    /// A tracked run of a script, with the tree granted.
    pub(crate) fn run(&self, script: &str) -> Said {
        self.nono(&["run", "--rollback", "--allow", ".", "--", "bash", "-c", script])
    }

    /// The same, started.
    pub(crate) fn start(&self, flags: &[&str], script: &str) -> Child {
        let mut command = self.command(&["run", "--rollback", "--allow", "."]);
        command.args(flags).args(["--", "bash", "-c", script]);
        start(&mut command)
    }

    /// A command that is killed in the middle of a restore.
    pub(crate) fn killed(&self, args: &[&str]) {
        Kit::wait(&mut killed(self.world.command("strace"), args));
    }

    /// A command that takes longer at a point of `delayed`, where it uses the file `named`.
    pub(crate) fn start_delayed(&self, point: &str, named: Option<&str>, args: &[&str]) -> Child {
        let mut strace = self.world.command("strace");
        if let Some(name) = named {
            strace.args(["-P", name]);
        }
        start(&mut delayed(strace, point, args))
    }

    /// Runs a command to its end, in bounded time.
    fn wait(command: &mut Command) -> Said {
        end(start(command))
    }

    /// Back to the baseline, and the tree is what it was.
    #[track_caller]
    pub(crate) fn restored(&self, before: &Oracle) {
        // From another directory, since the tree may be inaccessible.
        let mut command = self.command(&["rollback", "restore", "last", "--yes"]);
        let said = Kit::wait(command.current_dir("/")).ok();
        same(before, &self.look());
        assert!(!said.err.contains('\x1b') && !said.out.contains('\x1b'), "escape codes in {said:?}");
        self.nono(&["rollback", "verify"]).ok();
    }

    /// The folders of all sessions.
    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.world.path("state/rollbacks")) else { return Vec::new() };
        let mut all: Vec<PathBuf> =
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
        all.sort();
        all
    }

    /// The one session's folder, once its baseline is there.
    pub(crate) fn session(&self) -> PathBuf {
        wait_for("a session", || self.sessions().into_iter().find(|dir| dir.join("session.json").exists()))
    }

    /// Waits until `count` numbered snapshots were taken.
    pub(crate) fn wait_for_snapshots(&self, count: usize) {
        let session = self.session();
        wait_for("a snapshot", || {
            let record = fs::read_to_string(session.join("record.json")).ok()?;
            (record.matches("\"number\":").count() >= count).then_some(())
        });
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.tree().join(name)).unwrap()
    }
}

/// Waits until `look` returns a value.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    eventually(|| what.to_owned(), look)
}

/// Processes whose parent this is.
pub(crate) fn has_children(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).is_ok_and(|text| !text.trim().is_empty())
}

fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Its end, in bounded time.
pub(crate) fn end(child: Child) -> Said {
    let pid = rustix::process::Pid::from_child(&child);
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output = receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        panic!("it does not end");
    });
    Said::of(&output.unwrap())
}
