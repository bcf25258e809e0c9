//! Kit for tests of all crates: folders and commands of an ordinary user, commands under way and terminals that are
//! looked at, the state of a tree by other programs, scripts, pseudo-random contents.
//!
//! Tests run as root here and there, and root is refused nothing: what a test is about runs as the user of a
//! [`World`], or through [`as_user`].

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::print_stderr,
    reason = "a failed step of a test ends it"
)]

pub mod look;
pub mod oracle;
pub mod process;
pub mod screen;
pub mod user;
mod world;

use std::path::Path;
use std::process::Command;

pub use user::{as_user, give, prepared_by_root};
pub use world::World;

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Say that a test, or a part of one, cannot run here; on CI that is a failure.
#[track_caller]
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "cannot be tried here: {why}");
    eprintln!("skipped: {why}");
}

/// Write a file, creating its parent directories.
#[track_caller]
pub fn write(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Run a shell script in a directory; it must succeed. `git` has a name and none of the user's settings.
#[track_caller]
pub fn sh(dir: &Path, script: &str) {
    succeed(alone(Command::new("bash").args(["-euc", script]).current_dir(dir)), script);
}

/// Run git in a directory, with a name and none of the user's settings; it must succeed.
#[track_caller]
pub fn git(dir: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "init.defaultBranch=main"]).args(args).current_dir(dir);
    succeed(alone(&mut command), &format!("git {args:?}"));
}

fn alone(command: &mut Command) -> &mut Command {
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "n").env(format!("GIT_{role}_EMAIL"), "n@n");
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1")
}

#[track_caller]
fn succeed(command: &mut Command, what: &str) {
    let out = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{what}\n{stdout}{stderr}");
}

/// Pseudo-random, incompressible bytes.
pub fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed.to_be_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}
