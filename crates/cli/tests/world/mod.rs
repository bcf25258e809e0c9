//! A place of its own for each test: home, state and temporary folder, a project folder to work in, and a copy of the
//! binary where an ordinary user can reach it. Everything runs as that user, also when root runs the tests.

pub(crate) mod said;
pub(crate) mod settled;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::geteuid;
use tempfile::TempDir;

/// Who runs things where root runs the tests.
pub(crate) const ORDINARY: u32 = 60125;

pub(crate) fn is_root() -> bool {
    geteuid().is_root()
}

/// A copy of the binary at `path`, and no link: nono says of a binary with several names that only one is closed. It shares
/// the bytes where the file system can. Another process makes it: a thread that forks while this one has it open for writing
/// would keep it busy.
pub(crate) fn place_binary(path: &Path) {
    let mut copy = Command::new("cp");
    copy.arg("--reflink=auto").arg(stripped()).arg(path);
    assert!(copy.status().unwrap().success());
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The binary without symbols, which are more than half of it: each test copies it.
fn stripped() -> &'static Path {
    static STRIPPED: OnceLock<PathBuf> = OnceLock::new();
    STRIPPED.get_or_init(|| {
        let whole = Path::new(env!("CARGO_BIN_EXE_nono"));
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let name = |end: &str| dir.join(format!("nono-without-symbols{end}"));
        // Other test programs do the same meanwhile: a name of its own, renamed when it is whole.
        let own = name(&format!(".{}", std::process::id()));
        let made = Command::new("strip").arg("-o").arg(&own).arg(whole).status().unwrap();
        assert!(made.success(), "strip {}", whole.display());
        fs::rename(&own, name("")).unwrap();
        name("")
    })
}

/// `{bin,home,state,tmp,work,other}`; commands start in `work`.
pub(crate) struct World {
    dir: TempDir,
    user: Option<u32>,
}

impl World {
    pub(crate) fn new() -> World {
        World::of(is_root().then_some(ORDINARY))
    }

    /// A world of another user; `None`: the user who runs the tests.
    pub(crate) fn of(user: Option<u32>) -> World {
        let dir = tempfile::Builder::new().prefix("nono-").tempdir_in("/tmp").unwrap();
        let world = World { dir, user };
        world.own(Path::new(""), 0o755);
        let dirs = [
            ("bin", 0o755),
            ("home", 0o700),
            ("state", 0o700),
            ("tmp", 0o700),
            ("work", 0o755),
            ("other", 0o755),
        ];
        for (name, mode) in dirs {
            fs::create_dir(world.path(name)).unwrap();
            world.own(Path::new(name), mode);
        }
        place_binary(&world.path("bin/nono"));
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

    /// A file of the user's, with the folders above it.
    pub(crate) fn file(&self, below: &str, text: &str, mode: u32) {
        let below = Path::new(below);
        for parent in below.ancestors().skip(1).filter(|dir| !self.dir.path().join(dir).exists()) {
            fs::create_dir_all(self.dir.path().join(parent)).unwrap();
        }
        for parent in below.ancestors().skip(1).filter(|dir| dir.components().count() > 1) {
            self.own(parent, 0o755);
        }
        fs::write(self.dir.path().join(below), text).unwrap();
        self.own(below, mode);
    }

    /// A command in this world, by its user.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = self.command_of_tester(program);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// A command run by the user who runs the tests.
    pub(crate) fn command_of_tester(&self, program: &str) -> Command {
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
