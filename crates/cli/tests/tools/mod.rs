//! Real tools in a sandbox: each script in `scripts/` runs bare and with nono, in fresh worlds, and must end with 0 and
//! say the same both times. Its first line names the programs it needs and the Debian packages they are in:
//!
//! `# needs: program … / package …`
//!
//! A script sees `work/`, where it starts, and `../other/`, both granted, and nothing of its own name.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod finish;
mod first;
mod own;

use crate::world;

use std::process::{Command, Stdio};

use finish::{Said, finish};
use world::World;

/// How nono starts it.
const MODES: [&str; 3] = ["run", "wrap", "run --monitor"];

macro_rules! scripts {
    ($($name:ident $(except $mode:literal)*;)*) => {
        $(#[test] fn $name() {
            check(stringify!($name), include_str!(concat!("scripts/", stringify!($name), ".sh")), &[$($mode),*]);
        })*
    };
}

scripts! {
    asyncio;
    bash_jobs;
    bash_syntax;
    debuggers;
    dpkg;
    files;
    gcc;
    gdb_starts;
    git;
    limits;
    make;
    node;
    node_watches;
    npm;
    perl;
    python;
    python_servers;
    ripgrep;
    rsync;
    shared_memory;
    socat;
    tmux;
    venv;
    watching;
}

/// What a script needs: programs, and the packages to install for them.
fn needs(script: &str) -> (Vec<&str>, &str) {
    let line =
        script.lines().next().and_then(|line| line.strip_prefix("# needs: ")).expect("a line of needs");
    let (programs, packages) = line.split_once(" / ").expect("programs / packages");
    (programs.split_whitespace().collect(), packages)
}

fn missing<'a>(world: &World, programs: &[&'a str]) -> Option<&'a str> {
    let there = |program: &str| {
        let mut command = world.command("sh");
        command.args(["-c", "command -v \"$0\"", program]).stdout(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    programs.iter().copied().find(|program| !there(program))
}

fn check(name: &str, script: &str, except: &[&str]) {
    let (programs, packages) = needs(script);
    if let Some(program) = missing(&World::new(), &programs) {
        return nono_testkit::skip(&format!(
            "{name}: {program} is not installed (apt-get install {packages})"
        ));
    }
    let bare = say(&World::new(), script, None);
    assert_eq!(bare.status, Some(0), "the control failed: {bare}");
    for mode in MODES.iter().filter(|mode| !except.contains(mode)) {
        let inside = say(&World::new(), script, Some(mode));
        assert!(inside.agrees(&bare), "nono {mode}: {inside}\nbare: {bare}");
    }
}

fn say(world: &World, script: &str, mode: Option<&str>) -> Said {
    world.file("work/.script", script, 0o644);
    let mut command = match mode {
        None => world.command("bash"),
        Some(mode) => inside(world, mode),
    };
    command.arg(".script");
    finish(command)
}

/// `nono <mode> <grants> -- bash`
fn inside(world: &World, mode: &str) -> Command {
    let mut command = world.command("nono");
    command.args(mode.split_whitespace());
    for dir in ["work", "other"] {
        command.arg("--allow").arg(world.path(dir));
    }
    command.args(["--", "bash"]);
    command
}
