//! A place of its own for each test: home, state, temporary folder and working directory, and nothing else from
//! outside. Commands run in it as an ordinary user, for a bounded time.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::geteuid;
use snapbox::{Assert, IntoData};

pub(crate) use nono_testkit::skip;

use crate::world::place_binary;
use nono_testkit::process::{Outcome, finish};

/// Who runs nono where the tests run as root.
pub(crate) const ORDINARY: u32 = nono_testkit::user::TRANSCRIPTS;

pub(crate) fn uid() -> u32 {
    let uid = geteuid().as_raw();
    if uid == 0 { ORDINARY } else { uid }
}

/// The world's folders: `[TMP]/{bin,home,config,state,tmp,run,work}`. Commands start in `work`.
pub(crate) struct World {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl World {
    pub(crate) fn new() -> World {
        let dir = tempfile::Builder::new().prefix("nono-world-").tempdir().unwrap();
        let world = World { dir, env: Vec::new() };
        fs::set_permissions(world.root(), fs::Permissions::from_mode(0o755)).unwrap();
        own(world.root());
        for (name, mode) in [
            ("bin", 0o755),
            ("home", 0o755),
            ("state", 0o700),
            ("tmp", 0o700),
            ("run", 0o700),
            ("work", 0o755),
        ] {
            world.dir(name, mode);
        }
        place_binary(&world.path("bin/nono"));
        let root = world.root().to_str().unwrap().to_owned();
        let at = |name: &str| format!("{root}/{name}");
        let env = [
            ("PATH", format!("{root}/bin:/usr/bin:/bin")),
            ("HOME", at("home")),
            ("NONO_HOME", at("state")),
            ("XDG_CONFIG_HOME", at("home/.config")),
            ("XDG_DATA_HOME", at("home/.local/share")),
            ("XDG_CACHE_HOME", at("home/.cache")),
            ("XDG_STATE_HOME", at("home/.local/state")),
            ("XDG_RUNTIME_DIR", at("run")),
            ("TMPDIR", at("tmp")),
            ("LC_ALL", "C.UTF-8".to_owned()),
            ("TZ", "UTC".to_owned()),
        ];
        World { env: env.map(|(name, value)| (name.to_owned(), value)).into(), ..world }
    }

    /// This world with one variable changed, or with it gone.
    pub(crate) fn with(mut self, name: &str, value: Option<&str>) -> World {
        self.env.retain(|(known, _)| known != name);
        self.env.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        self
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root().join(below)
    }

    /// A folder of the ordinary user, its parents included.
    pub(crate) fn dir(&self, below: &str, mode: u32) -> PathBuf {
        let mut path = self.root().to_path_buf();
        for part in Path::new(below) {
            path.push(part);
            if !path.exists() {
                fs::create_dir(&path).unwrap();
                own(&path);
            }
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// A file of the ordinary user.
    pub(crate) fn file(&self, below: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        let parent = Path::new(below).parent().unwrap().to_str().unwrap();
        if !self.path(parent).exists() {
            self.dir(parent, 0o755);
        }
        fs::write(&path, content).unwrap();
        own(&path);
        path
    }

    /// A user profile, by its name.
    pub(crate) fn profile(&self, name: &str, text: &str) -> PathBuf {
        self.file(&format!("home/.config/nono/profiles/{name}.json"), text)
    }

    /// A program as the ordinary user, in this world.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.path("work")).stdin(Stdio::null()).process_group(0);
        if geteuid().is_root() {
            command.uid(ORDINARY).gid(ORDINARY);
        }
        command
    }

    /// nono itself, without a shell around it.
    pub(crate) fn nono(&self, args: &[&str]) -> Command {
        let mut command = self.command(self.path("bin/nono"));
        command.args(args);
        command
    }

    /// A line of shell.
    pub(crate) fn sh(&self, line: &str) -> Outcome {
        let mut command = self.command("/bin/sh");
        command.args(["-c", line]);
        finish(&mut command)
    }

    /// Each line as a person would type it, with what came of it.
    pub(crate) fn transcript(&self, lines: &[&str]) -> String {
        lines.iter().map(|line| format!("$ {line}\n{}", self.show(&self.sh(line)))).collect()
    }

    /// The transcript of `lines` is `expected`, and no session left anything behind. What `wrap` leaves is swept by
    /// the next run.
    #[track_caller]
    pub(crate) fn golden(&self, lines: &[&str], expected: impl IntoData) {
        golden(self.transcript(lines), expected);
        if lines.iter().any(|line| line.contains("nono wrap") || line.contains("--exec")) {
            self.sh("nono run -- true");
        }
        self.left_nothing();
    }

    pub(crate) fn show(&self, outcome: &Outcome) -> String {
        let mut text = String::new();
        for (mark, bytes) in [("", &outcome.stdout), ("! ", &outcome.stderr)] {
            let clean = self.clean(&String::from_utf8_lossy(bytes));
            text.extend(clean.lines().map(|line| format!("{mark}{line}").trim_end().to_owned() + "\n"));
        }
        match outcome.status.code() {
            Some(0) => {}
            Some(code) => text.push_str(&format!("= exit {code}\n")),
            None => text.push_str(&format!("= signal {:?}\n", outcome.status.signal())),
        }
        text
    }

    /// What differs from machine to machine, taken out.
    pub(crate) fn clean(&self, text: &str) -> String {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let text = text.replace(self.root().to_str().unwrap(), "[TMP]").replace(kernel.trim(), "[KERNEL]");
        let text = text.replace(&format!("nono-{}", uid()), "nono-[UID]");
        let text = mask(&text, "nono-[UID]/", "[SESSION]");
        let text = mask(&text, "NONO_SESSION=", "[SESSION]");
        mask(&text, "  and ", "[N]")
    }

    /// Every session folder went with its session.
    #[track_caller]
    pub(crate) fn left_nothing(&self) {
        let left = self.sessions();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    /// The folders of sessions, and whatever else lies in the temporary folder. What all sessions of a user share
    /// stays and is not counted.
    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        let below = |dir: &Path| fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
        let ours = format!("nono-{}", uid());
        let shared =
            |path: &PathBuf| ["closed", "closed-file", "empty"].iter().any(|name| path.ends_with(name));
        below(&self.path("tmp"))
            .flat_map(|path| if path.ends_with(&ours) { below(&path).collect() } else { vec![path] })
            .filter(|path| !shared(path))
            .collect()
    }
}

fn own(path: &Path) {
    if geteuid().is_root() {
        chown(path, Some(ORDINARY), Some(ORDINARY)).unwrap();
    }
}

/// A number, or several joined by dashes or dots, behind each `before` becomes `name`.
fn mask(text: &str, before: &str, name: &str) -> String {
    let mut parts = text.split(before);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |done, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit() || c == '-' || c == '.');
        let number = &part[..part.len() - rest.len()];
        let is_number = number.contains(['-', '.']) || number.parse::<u64>().is_ok();
        if is_number { done + before + name + rest } else { done + before + part }
    })
}

/// Compares, with the machine's own backslashes left alone.
#[track_caller]
pub(crate) fn golden(actual: String, expected: impl IntoData) {
    Assert::new().action_env("SNAPSHOTS").normalize_paths(false).eq(actual, expected);
}
