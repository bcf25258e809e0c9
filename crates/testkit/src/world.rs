//! A place of its own for each test, with folders of an ordinary user and commands of that user in it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Folders below `/tmp`; commands start in `work`, and find `bin` first.
#[derive(Debug)]
pub struct World {
    dir: TempDir,
    user: Option<u32>,
}

impl World {
    /// A world of this user; `None`: the user who runs the tests.
    pub fn new(user: Option<u32>, folders: &[(&str, u32)]) -> World {
        let dir = tempfile::Builder::new().prefix("nono-").tempdir_in("/tmp").unwrap();
        let world = World { dir, user };
        world.own(Path::new(""), 0o755);
        for (name, mode) in folders {
            fs::create_dir(world.path(name)).unwrap();
            world.own(Path::new(name), *mode);
        }
        world
    }

    fn own(&self, below: &Path, mode: u32) {
        let path = self.dir.path().join(below);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        chown(path, self.user, self.user).unwrap();
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// A file of the user's, with the folders above it.
    pub fn file(&self, below: &str, text: &str, mode: u32) {
        let below = Path::new(below);
        fs::create_dir_all(self.dir.path().join(below).parent().unwrap()).unwrap();
        for parent in below.ancestors().skip(1).filter(|dir| dir.components().count() > 1) {
            self.own(parent, 0o755);
        }
        fs::write(self.dir.path().join(below), text).unwrap();
        self.own(below, mode);
    }

    /// A command in this world, by its user.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.command_of_tester(program);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// A command run by the user who runs the tests.
    pub fn command_of_tester(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.path("work"));
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.path("bin").display()));
        for (name, dir) in
            [("HOME", "home"), ("NONO_HOME", "state"), ("TMPDIR", "tmp"), ("TMUX_TMPDIR", "tmp")]
        {
            command.env(name, self.path(dir));
        }
        command.envs([("LC_ALL", "C.UTF-8"), ("TZ", "UTC"), ("SHELL", "/bin/bash"), ("TERM", "screen")]);
        command
    }
}
