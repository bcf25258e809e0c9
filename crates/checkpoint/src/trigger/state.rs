//! Where a line is while it runs: the working directories it may be in, and the variables it has set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// More than one directory where the line may have gone either way (`cd a; rm b` runs `rm` even if `cd` failed).
const DIRS: usize = 8;
const VARIABLES: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) dirs: Vec<PathBuf>,
    pub(super) before: Option<Vec<PathBuf>>,
    pub(super) stack: Vec<Vec<PathBuf>>,
    /// Those whose value is known. What comes from the environment is not.
    variables: BTreeMap<String, String>,
    pub(super) left: Left,
}

/// `exit`, `return` and the like: what follows is not reached this way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Left {
    #[default]
    No,
    /// The loop or function.
    Block,
    Shell,
}

impl State {
    pub(super) fn new(cwd: &Path, home: &Path) -> State {
        let variables = BTreeMap::from([("HOME".to_owned(), home.to_string_lossy().into_owned())]);
        State { dirs: vec![cwd.to_owned()], before: None, stack: Vec::new(), variables, left: Left::No }
    }

    /// A path of the line, wherever it may be.
    pub(super) fn paths(&self, text: &str) -> Vec<PathBuf> {
        self.dirs.iter().map(|dir| dir.join(text)).collect()
    }

    pub(super) fn go(&mut self, dirs: Vec<PathBuf>) {
        if !dirs.is_empty() {
            self.before = Some(std::mem::replace(&mut self.dirs, dirs));
            self.dirs.truncate(DIRS);
        }
    }

    pub(super) fn value(&self, name: &str) -> Option<String> {
        match name {
            "PWD" => match self.dirs.as_slice() {
                [one] => Some(one.to_string_lossy().into_owned()),
                _ => None,
            },
            "OLDPWD" => match self.before.as_deref() {
                Some([one]) => Some(one.to_string_lossy().into_owned()),
                _ => None,
            },
            _ => self.variables.get(name).cloned(),
        }
    }

    pub(super) fn set(&mut self, name: &str, value: Option<String>) {
        match value {
            Some(value) if self.variables.len() < VARIABLES && value.len() <= 4096 => {
                self.variables.insert(name.to_owned(), value);
            }
            _ => {
                self.variables.remove(name);
            }
        }
    }

    /// Either of two ways was taken.
    pub(super) fn or(mut self, other: State) -> State {
        if self.left > Left::No {
            return other;
        }
        if other.left > Left::No {
            return self;
        }
        for dir in other.dirs {
            if !self.dirs.contains(&dir) && self.dirs.len() < DIRS {
                self.dirs.push(dir);
            }
        }
        if self.before != other.before {
            self.before = None;
        }
        if self.stack != other.stack {
            self.stack = Vec::new();
        }
        self.variables.retain(|name, value| other.variables.get(name) == Some(value));
        self
    }
}

/// Not a device that swallows what is written to it, nor a number of an open file.
pub(super) fn normal(path: &Path) -> bool {
    const DEVICES: [&str; 8] = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/stdin",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/tty",
        "/dev/random",
    ];
    const FOLDERS: [&str; 6] = ["/dev/fd", "/dev/pts", "/dev/tcp", "/dev/udp", "/proc", "/sys"];
    !DEVICES.iter().any(|device| path == Path::new(device))
        && !FOLDERS.iter().any(|folder| path.starts_with(folder))
}
