//! The profile that a project carries, with the real binary: on a terminal, without one, and against a hostile child.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod agreeing;
mod hostile;
mod without_terminal;

use crate::world;

use std::process::Stdio;

use world::World;

/// A project whose profile opens `other/data` and closes `.env`.
fn world() -> World {
    let world = World::new();
    world.file("work/Makefile", "all:\n", 0o644);
    world.file("work/src/a", "one\n", 0o644);
    world.file("work/.env", "KEY=1\n", 0o644);
    world.file("other/data/x", "data\n", 0o644);
    world.file("other/more/y", "more\n", 0o644);
    profile(&world, r#"{"filesystem": {"read": ["../other/data"], "deny": [".env"]}}"#);
    world
}

fn profile(world: &World, text: &str) {
    world.file("work/.nono/profile.json", text, 0o644);
}

/// What a run came to: exit code, stdout, stderr.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn nono(world: &World, args: &[&str]) -> Ran {
    let output = world.command("nono").args(args).stdin(Stdio::null()).output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Agree to whatever the profile says, on a terminal.
fn agree(world: &World) {
    let screen = nono_testkit::screen::Screen::new(world);
    screen.start("nono profile trust");
    screen.wait_for("exactly this?");
    screen.enter("y");
    assert_eq!(screen.prompt(), 0);
}

fn data(world: &World) -> String {
    world.path("other/data/x").display().to_string()
}
