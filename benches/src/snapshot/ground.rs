//! A temporary folder on some filesystem, and an ordinary user who works in it.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::time::Instant;

use crate::world::UID;

/// Tools shared by all file systems.
#[derive(Clone)]
pub(crate) struct Tools {
    /// Copy of this program that the ordinary user can run.
    pub(crate) helper: PathBuf,
    /// Wait for the disk before each measurement.
    pub(crate) calm: bool,
}

pub(crate) struct Ground {
    dir: tempfile::TempDir,
    /// The name of the filesystem.
    pub(crate) fs: String,
    tools: Tools,
    user: Option<u32>,
}

impl Ground {
    pub(crate) fn below(parent: &Path, tools: &Tools) -> Ground {
        let dir =
            tempfile::Builder::new().prefix("nono-bench-").tempdir_in(parent).expect("a temporary folder");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        let fs = df(dir.path(), "fstype");
        let ground = Ground { fs, dir, tools: tools.clone(), user: is_root().then_some(UID) };
        fs::create_dir(ground.path("home")).expect("a folder");
        ground.give(&[ground.dir.path(), &ground.path("home")]);
        ground
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Let the ordinary user own these.
    pub(crate) fn give(&self, paths: &[&Path]) {
        for path in paths {
            if let Some(user) = self.user {
                chown(path, Some(user), Some(user)).expect("an ordinary owner");
            }
        }
    }

    /// Command of the ordinary user, in the folder.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir.path()).env("HOME", self.path("home")).env("LC_ALL", "C");
        command.env("GIT_CONFIG_NOSYSTEM", "1").env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    pub(crate) fn helper(&self) -> &Path {
        &self.tools.helper
    }

    /// A session with a store of its own, named so, on this tree.
    pub(crate) fn session(&self, name: &str, tree: &Path) -> Session<'_> {
        let (store, dir) = (self.path(&format!("{name}-store")), self.path(&format!("{name}-session")));
        Session { ground: self, tree: tree.to_owned(), store, dir }
    }

    /// A line for the shell; what it printed.
    pub(crate) fn sh(&self, line: &str) -> String {
        run(self.command("sh").args(["-ec", line]))
    }

    /// The milliseconds a line for the shell takes.
    pub(crate) fn time(&self, line: &str) -> f64 {
        self.calm();
        let begin = Instant::now();
        self.sh(line);
        begin.elapsed().as_secs_f64() * 1e3
    }

    /// Waits until everything written before, by any process, is on the disk.
    pub(crate) fn calm(&self) {
        if self.tools.calm {
            self.sync();
        }
    }

    fn sync(&self) {
        run(Command::new("sync").arg("-f").arg(self.dir.path()));
    }

    /// Bytes that the whole filesystem uses.
    pub(crate) fn used(&self) -> f64 {
        self.sync();
        df(self.dir.path(), "used").parse::<f64>().expect("a number") * 1024.0
    }
}

/// A tree, the store its snapshots are in, and one session.
pub(crate) struct Session<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) tree: PathBuf,
    pub(crate) store: PathBuf,
    pub(crate) dir: PathBuf,
}

/// Output of an operation.
pub(crate) struct Report(HashMap<String, String>);

impl Report {
    pub(crate) fn get<T: FromStr>(&self, name: &str) -> T {
        let value = self.0.get(name).and_then(|text| text.parse().ok());
        value.unwrap_or_else(|| panic!("{name} is missing: {:?}", self.0))
    }

    pub(crate) fn ms(&self) -> f64 {
        self.get("ms")
    }

    /// The peak of memory, in bytes.
    pub(crate) fn peak(&self) -> f64 {
        self.get("peak")
    }

    pub(crate) fn changes(&self) -> usize {
        self.get("changes")
    }
}

impl Session<'_> {
    pub(crate) fn words(&self, operation: &str, number: u32) -> Vec<PathBuf> {
        let words = ["snapshot".into(), operation.into(), self.tree.clone(), self.store.clone()];
        words.into_iter().chain([self.dir.clone(), number.to_string().into()]).collect()
    }

    /// One operation, measured.
    pub(crate) fn run(&self, operation: &str) -> Report {
        self.run_on(operation, 0)
    }

    pub(crate) fn run_on(&self, operation: &str, number: u32) -> Report {
        self.ground.calm();
        let mut command = self.ground.command(self.ground.helper());
        let text = run(command.args(self.words(operation, number)));
        let pair = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.to_owned()))
        };
        Report(text.lines().filter_map(pair).collect())
    }

    /// Bytes on disk of the store and the session's folder.
    pub(crate) fn disk(&self) -> f64 {
        (allocated(&self.store) + allocated(&self.dir)) as f64
    }

    pub(crate) fn remove(&self) {
        for dir in [&self.store, &self.dir] {
            fs::remove_dir_all(dir).expect("what we made can be removed");
        }
    }
}

/// Run it; what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {} {}", output.status, text(&output.stderr));
    text(&output.stdout)
}

pub(crate) use nono_testkit::is_root;

pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// One column of `df`.
pub(crate) fn df(path: &Path, column: &str) -> String {
    let text = run(Command::new("df").arg(format!("--output={column}")).arg(path));
    text.lines().last().unwrap_or_default().trim().to_owned()
}

/// Bytes that all files below take up.
fn allocated(dir: &Path) -> u64 {
    let (mut total, mut dirs) = (0, vec![dir.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).expect("a folder of the store") {
            let entry = entry.expect("an entry");
            let meta = entry.metadata().expect("it is there");
            total += meta.blocks() * 512;
            if meta.is_dir() {
                dirs.push(entry.path());
            }
        }
    }
    total
}
