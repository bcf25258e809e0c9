//! `why` and the kernel agree: random policies over a small tree, and for every path in it what the query says and what
//! a real sandboxed shell can then do.
//!
//! How it would fail: the query models Landlock's union of rules, carving and masks; if any of the three is modelled
//! wrongly in either direction, some path is "allowed" and refused, or "denied" and done.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::format_push_string,
    reason = "a failed step of a test ends it"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nono_testkit::is_root;
use nono_testkit::user::AGREEMENT as UID;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

/// Directories and files of the tree, below the home folder, in the order they are made.
const DIRS: &[&str] =
    &["", "a", "a/b", "a/b/c", "d", "d/e", ".ssh", ".config", ".config/app", ".config/gcloud"];
const FILES: &[&str] = &[
    "top",
    "a/f",
    "a/b/f",
    "a/b/c/f",
    "d/f",
    "d/e/f",
    ".ssh/id",
    ".bashrc",
    ".config/app/f",
    ".config/gcloud/f",
];
/// Names that are not there: nothing may be made where the query says no.
const ABSENT: &[&str] = &["new", "a/new", "a/b/new", "d/e/new", ".config/new", ".profile", ".netrc", ".aws"];

#[derive(Clone, Debug)]
struct Case {
    /// (flag, directory)
    grants: Vec<(&'static str, &'static str)>,
    /// (flag, file)
    file_grants: Vec<(&'static str, &'static str)>,
    denies: Vec<&'static str>,
}

fn cases() -> impl Strategy<Value = Case> {
    let dirs = prop::sample::select(DIRS);
    let files = prop::sample::select(FILES);
    let any_path = prop::sample::select([DIRS, FILES].concat());
    (
        prop::collection::vec((prop::sample::select(&["--allow", "--read", "--write"][..]), dirs), 0..4),
        prop::collection::vec(
            (prop::sample::select(&["--allow-file", "--read-file", "--write-file"][..]), files),
            0..3,
        ),
        prop::collection::vec(any_path, 0..3),
    )
        .prop_map(|(grants, file_grants, denies)| Case { grants, file_grants, denies })
}

struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let dir = tempfile::Builder::new().prefix("nono-agree-").tempdir().unwrap();
        let world = World { dir };
        fs::set_permissions(world.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for sub in ["home", "state", "tmp"] {
            fs::create_dir(world.dir.path().join(sub)).unwrap();
            own(&world.dir.path().join(sub));
            fs::set_permissions(world.dir.path().join(sub), fs::Permissions::from_mode(0o700)).unwrap();
        }
        for sub in &DIRS[1..] {
            fs::create_dir(world.home().join(sub)).unwrap();
            own(&world.home().join(sub));
        }
        for file in FILES {
            fs::write(world.home().join(file), "content").unwrap();
            own(&world.home().join(file));
        }
        crate::world::place_binary(&world.binary());
        world
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn binary(&self) -> PathBuf {
        self.dir.path().join("nono")
    }

    /// nono as an ordinary user: as root the kernel's own permissions would prove nothing.
    fn nono(&self, args: &[String]) -> Output {
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            let id = UID.to_string();
            command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).arg(self.binary());
            command
        } else {
            Command::new(self.binary())
        };
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home())
            .env("NONO_HOME", self.dir.path().join("state"))
            .env("TMPDIR", self.dir.path().join("tmp"))
            .current_dir("/")
            .output()
            .unwrap()
    }
}

fn own(path: &Path) {
    if is_root() {
        chown(path, Some(UID), Some(UID)).unwrap();
    }
}

fn flags(case: &Case, home: &Path) -> Vec<String> {
    let at =
        |path: &str| if path.is_empty() { home.to_owned() } else { home.join(path) }.display().to_string();
    let granted =
        case.grants.iter().chain(&case.file_grants).flat_map(|(flag, path)| [(*flag).to_owned(), at(path)]);
    let denied = case.denies.iter().flat_map(|path| ["--deny".to_owned(), at(path)]);
    granted.chain(denied).collect()
}

/// One line per path and operation: `read|write path yes|no`, tried for real. Writing leaves no trace.
fn probe_script(home: &Path) -> String {
    let mut script = String::new();
    let mut add = |op: &str, path: &Path, attempt: &str| {
        let path = path.display();
        script.push_str(&format!(
            "if ( {attempt} ) 2>/dev/null; then echo '{op} {path} yes'; else echo '{op} {path} no'; fi\n"
        ));
    };
    for dir in DIRS {
        let path = if dir.is_empty() { home.to_owned() } else { home.join(dir) };
        add("read", &path, &format!("ls '{}' > /dev/null", path.display()));
        add("write", &path, &format!("mkdir '{0}/.probe' && rmdir '{0}/.probe'", path.display()));
    }
    for file in FILES {
        let path = home.join(file);
        add("read", &path, &format!("cat '{}' > /dev/null", path.display()));
        add("write", &path, &format!(": >> '{}'", path.display()));
    }
    for name in ABSENT {
        let path = home.join(name);
        add("write", &path, &format!(": > '{0}' && rm '{0}'", path.display()));
    }
    script
}

/// What `why` says for the same.
fn predicted(world: &World, flags: &[String], op: &str, path: &str) -> bool {
    let mut args = vec!["why".to_owned(), "--json".to_owned(), "--op".to_owned(), op.to_owned()];
    args.extend(["--path".to_owned(), path.to_owned()]);
    args.extend(flags.iter().cloned());
    let output = world.nono(&args);
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("why {args:?}: {}", String::from_utf8_lossy(&output.stderr)));
    answer["status"] == "allowed"
}

/// Directories are written to by making something in them.
fn asked_path(op: &str, path: &str, home: &Path) -> String {
    let is_dir = DIRS.iter().any(|dir| home.join(dir).to_str().unwrap().trim_end_matches('/') == path);
    if op == "write" && is_dir { format!("{path}/.probe") } else { path.to_owned() }
}

/// Compares the two for one policy; one that nono refuses is rejected, and another is drawn in its place.
fn check(world: &World, case: &Case) -> Result<(), TestCaseError> {
    let home = world.home();
    let flags = flags(case, &home);
    let mut args = vec!["run".to_owned(), "--no-diagnostics".to_owned()];
    args.extend(flags.iter().cloned());
    args.extend(["--".to_owned(), "sh".to_owned(), "-c".to_owned(), probe_script(&home)]);
    let output = world.nono(&args);
    if output.status.code() == Some(125) {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let contradicts = said.contains(" is protected (group ") || said.contains(" is granted but lies in ");
        prop_assert!(contradicts, "refused for another reason: {}", said);
        return Err(TestCaseError::reject("grants what is denied or protected"));
    }
    let seen = String::from_utf8(output.stdout).unwrap();
    let expected_lines = 2 * (DIRS.len() + FILES.len()) + ABSENT.len();
    prop_assert_eq!(seen.lines().count(), expected_lines, "{}", String::from_utf8_lossy(&output.stderr));
    for line in seen.lines() {
        let [op, path, done] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let predicted = predicted(world, &flags, op, &asked_path(op, path, &home));
        prop_assert_eq!(predicted, done == "yes", "{} {} with {:?}", op, path, flags);
    }
    Ok(())
}

#[test]
fn the_kernel_does_what_why_says() {
    let world = World::new();
    let mut runner = TestRunner::new(Config {
        cases: 12,
        failure_persistence: None,
        max_shrink_iters: 30,
        ..Config::default()
    });
    if let Err(error) = runner.run(&cases(), |case| check(&world, &case)) {
        panic!("{error}");
    }
}
