//! A temporary home for the runs, and an ordinary user to run as.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The ordinary user, when root measures.
pub(crate) use nono_testkit::user::BENCHES as UID;

pub(crate) struct World {
    dir: tempfile::TempDir,
    root: bool,
}

impl World {
    /// Copies of the binaries where an ordinary user can reach them, a home and a project.
    pub(crate) fn new(nono: &Path) -> World {
        let dir = tempfile::Builder::new().prefix("nono-bench-").tempdir().expect("a temporary folder");
        let root = fs::metadata("/proc/self").expect("/proc").uid() == 0;
        let world = World { dir, root };
        fs::set_permissions(world.dir.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        fs::copy(nono, world.nono_binary()).expect("the nono binary");
        fs::copy(std::env::current_exe().expect("this program"), world.helper())
            .expect("a copy of this program");
        for name in ["home", "project", "tmp"] {
            fs::create_dir(world.dir.path().join(name)).expect("a folder");
        }
        fs::write(world.project().join("file"), "content").expect("a file");
        if root {
            for name in ["home", "project", "tmp", "project/file"] {
                chown(world.dir.path().join(name), Some(UID), Some(UID)).expect("an ordinary owner");
            }
        }
        world
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn helper(&self) -> PathBuf {
        self.dir.path().join("helper")
    }

    pub(crate) fn nono_binary(&self) -> PathBuf {
        self.dir.path().join("nono")
    }

    /// `nono flags -- command`
    pub(crate) fn nono(&self, flags: &[&str], command: &[&str]) -> Vec<String> {
        let binary = self.nono_binary().display().to_string();
        let words = std::iter::once(binary.as_str()).chain(flags.iter().copied());
        words.chain(["--"]).chain(command.iter().copied()).map(str::to_owned).collect()
    }

    pub(crate) fn has(&self, program: &str) -> bool {
        self.command(&["which".to_owned(), program.to_owned()])
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    }

    /// Command of an ordinary user. The change of user is part of every command, so of both sides of a ratio; it is
    /// done in the forked child itself and costs no further program.
    fn command(&self, words: &[String]) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.dir.path().join("home"));
        command.env("TMPDIR", self.dir.path().join("tmp")).current_dir(self.project());
        if self.root {
            command.uid(UID).gid(UID);
        }
        command
    }

    pub(crate) fn run(&self, words: &[String]) {
        let status = self.command(words).status().expect("the command starts");
        assert!(status.success(), "{words:?}: {status}");
    }

    /// The number a command prints.
    pub(crate) fn number(&self, words: &[String]) -> f64 {
        let output = self.command(words).output().expect("the command starts");
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        text.parse()
            .unwrap_or_else(|_| panic!("{words:?}: {text} {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Resident megabytes of nono while its command waits for input.
    pub(crate) fn resident_mib(&self, words: &[String]) -> f64 {
        let mut child = self
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        // Once a line came back through `cat`, everything is up and waiting.
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(b"line\n").expect("cat reads");
        let mut reply = [0u8; 5];
        std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut reply).expect("cat answers");
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it is alive");
        drop(stdin);
        child.wait().expect("it ends");
        let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        let kilobytes: f64 = kilobytes.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0.0);
        kilobytes / 1024.0
    }
}
