//! Links that a command left in a project: what nono does outside afterwards follows none of them out of it.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod grants;
mod installs;
mod outputs;

use crate::world;
use crate::world::said;

use std::process::Stdio;

use said::Said;
use world::World;

/// A project, a key at home, and data elsewhere.
fn world() -> World {
    let world = World::new();
    world.file("work/Makefile", "all:\n", 0o644);
    world.file("home/.ssh/id_rsa", "KEY\n", 0o600);
    world.file("home/diary", "dear diary\n", 0o600);
    world.file("other/data/x", "data\n", 0o644);
    world
}

fn nono(world: &World, args: &[&str]) -> Said {
    Said::of(&world.command("nono").args(args).stdin(Stdio::null()).output().unwrap())
}

/// The hostile command: a first run that may write the project, and does this there.
#[track_caller]
fn first_run(world: &World, script: &str) {
    nono(world, &["run", "--allow-cwd", "--", "sh", "-ec", script]).ok();
}

fn text(world: &World, below: &str) -> String {
    std::fs::read_to_string(world.path(below)).unwrap()
}

fn path(world: &World, below: &str) -> String {
    world.path(below).display().to_string()
}
