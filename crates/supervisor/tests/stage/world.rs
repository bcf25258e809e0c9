//! Directory for each test, with this program in it where an ordinary user can start it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;
use tempfile::TempDir;

/// User that runs things where root runs the tests.
const ORDINARY: u32 = 60126;

/// Directories `{bin,home,tmp,work}`; commands start in `work`.
pub(crate) struct World {
    dir: TempDir,
    user: Option<u32>,
}

impl World {
    pub(crate) fn new() -> World {
        let dir = tempfile::Builder::new().prefix("nono-").tempdir_in("/tmp").unwrap();
        let world = World { dir, user: geteuid().is_root().then_some(ORDINARY) };
        world.own(Path::new(""), 0o755);
        for name in ["bin", "home", "tmp", "work"] {
            fs::create_dir(world.path(name)).unwrap();
            world.own(Path::new(name), 0o755);
        }
        // By another process: a thread that forks while this one has the copy open for writing would keep it busy.
        let binary = std::env::current_exe().unwrap();
        assert!(Command::new("cp").arg(binary).arg(world.path("bin/player")).status().unwrap().success());
        let mut fifo = Command::new("mkfifo");
        assert!(fifo.args(["-m", "666"]).arg(world.path("tmp/ask")).status().unwrap().success());
        world
    }

    fn own(&self, below: &Path, mode: u32) {
        let path = self.dir.path().join(below);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        chown(path, self.user, self.user).unwrap();
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    pub(crate) fn file(&self, below: &str, text: &str, mode: u32) {
        fs::write(self.path(below), text).unwrap();
        self.own(Path::new(below), mode);
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.path("work"));
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.path("bin").display()));
        for (name, dir) in [("HOME", "home"), ("TMPDIR", "tmp"), ("TMUX_TMPDIR", "tmp")] {
            command.env(name, self.path(dir));
        }
        command.envs([("LC_ALL", "C.UTF-8"), ("SHELL", "/bin/bash"), ("TERM", "screen-256color")]);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }
}
