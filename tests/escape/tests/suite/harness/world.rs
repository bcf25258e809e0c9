//! A small world for one run of one attack, owned by an ordinary user:
//!
//! | name | what | granted |
//! |---|---|---|
//! | `{prj}` | `project/`, the working directory | read and write |
//! | `{ro}` | `ro/` | read |
//! | `{out}` | `outside/`, with `secret` and `target` | no |
//! | `{users}`, `{home}` | `users/` and `users/home/`, the user's `HOME` | no |
//! | `{bin}` | the shared folder with the two programs | read |
//!
//! `{w}` is the folder around it all, `{secret}` a word that must never come out of a sandbox
//! (`{terces}` the same backwards, for attacks that search for it).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nono_testkit::user::ESCAPES;
use tempfile::TempDir;

use super::binaries;

pub(crate) struct World {
    folder: TempDir,
    binaries: Arc<TempDir>,
    pub(crate) secret: String,
    /// `None` when the harness itself is an ordinary user, or when the attack is about root.
    pub(crate) user: Option<u32>,
}

pub(crate) use nono_testkit::is_root;

/// Users of the worlds that exist now.
fn users() -> MutexGuard<'static, BTreeSet<u32>> {
    static USERS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a user. Every world has its own, so that an attack on "all my processes" meets only its own victims. Suites
/// that run at the same time take theirs from different blocks.
fn take_user() -> u32 {
    let first = ESCAPES.start + std::process::id() % 64 * 64;
    let mut users = users();
    let free = (first..first + 64).find(|user| !users.contains(user)).expect("a free user");
    users.insert(free);
    free
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(user) = self.user {
            drop(fs::remove_dir_all(format!("/tmp/nono-{user}")));
            users().remove(&user);
        }
    }
}

impl World {
    pub(crate) fn new(base: &str, as_root: bool) -> Self {
        let folder = tempfile::Builder::new().prefix("nono-escape-").tempdir_in(base).expect("world");
        let secret = format!("SECRET-{:016x}", RandomState::new().hash_one(folder.path()));
        let user = (is_root() && !as_root).then(take_user);
        let world = Self { folder, binaries: binaries::shared(), secret, user };
        world.populate();
        world
    }

    fn populate(&self) {
        self.own(self.folder.path(), 0o755);
        for dir in ["project", "project/sub", "ro", "ro/dir", "outside", "outside/dir", "users", "users/home"]
        {
            let path = self.path(dir);
            fs::create_dir(&path).expect("mkdir");
            self.own(&path, if dir == "users/home" { 0o700 } else { 0o755 });
        }
        for file in ["project/own", "ro/file", "outside/target", "outside/dir/target"] {
            self.file(file, "harmless\n", 0o644);
        }
        self.file("outside/secret", &self.secret, 0o600);
    }

    fn file(&self, name: &str, text: &str, mode: u32) {
        fs::write(self.path(name), text).expect("write");
        self.own(&self.path(name), mode);
    }

    /// Gives a path to the user of this world.
    pub(crate) fn own(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
        if let Some(user) = self.user {
            chown(path, Some(user), Some(user)).expect("chown");
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.binaries.path().join(name)
    }

    /// Replaces the names in braces.
    pub(crate) fn expand(&self, text: &str) -> String {
        let root = self.folder.path().to_str().expect("path is text");
        text.replace("{prj}", &format!("{root}/project"))
            .replace("{ro}", &format!("{root}/ro"))
            .replace("{out}", &format!("{root}/outside"))
            .replace("{users}", &format!("{root}/users"))
            .replace("{home}", &format!("{root}/users/home"))
            .replace("{bin}", self.binaries.path().to_str().expect("path is text"))
            .replace("{secret}", &self.secret)
            .replace("{terces}", &self.secret.chars().rev().collect::<String>())
            .replace("{w}", root)
    }

    /// Command of this world's user: clean environment, in the project, its own process group.
    pub(crate) fn command(&self, program: &Path) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(program);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LANG", "C");
        command.env("HOME", self.path("users/home")).env("NONO_HOME", self.path("users/home/.nono"));
        command.current_dir(self.path("project")).process_group(0);
        if let Some(user) = self.user {
            command.gid(user).uid(user);
        }
        command
    }

    /// Command of this world's user, begun by root with a step that changes the machine for it: `mounted` with two
    /// folders, `addressed` with an address and a port.
    pub(crate) fn begun_by_root(&self, step: &str, program: &str) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = self.command(&self.program("attacks"));
        command.gid(0).uid(0).args(self.expand(step).split(' '));
        command.arg(self.user.expect("begun by root").to_string()).arg(program);
        command
    }

    /// Everything about the named trees that an attack could change; the change time reveals the rest.
    pub(crate) fn state(&self, names: &[&str]) -> String {
        let mut text = String::new();
        for name in names {
            describe(Path::new(&self.expand(name)), &mut text);
        }
        text
    }
}

fn describe(path: &Path, text: &mut String) {
    let Ok(meta) = fs::symlink_metadata(path) else {
        writeln!(text, "{} absent", path.display()).expect("text");
        return;
    };
    let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
    let owner = (meta.uid(), meta.gid(), meta.mode(), meta.ino(), meta.nlink(), meta.size());
    let content = if meta.is_file() { fs::read(path).unwrap_or_default() } else { Vec::new() };
    writeln!(text, "{} {owner:?} {times:?} {}", path.display(), String::from_utf8_lossy(&content))
        .expect("text");
    if meta.is_dir() {
        let mut inside: Vec<_> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
        inside.sort();
        for path in inside {
            describe(&path, text);
        }
    }
}
