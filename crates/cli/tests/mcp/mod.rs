//! `nono mcp` over its wire, the real binary at the other end.
//!
//! How each part of it would fail, which is what is tried:
//!
//! - the wire: something that is no message on stdout, a call that keeps others waiting, an end that hangs (`wire.rs`);
//! - the tools: an answer that is endless, hostile to a terminal, or without a next step (`tools.rs`);
//! - a restore: done without a yes of the person (`restores.rs`);
//! - inside a sandbox: done behind the supervisor's back, or asked on after the call was cancelled (`inside.rs`).

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod inside;
mod kit;
mod restores;
mod tools;
mod wire;

use crate::world;

use std::process::Stdio;

use world::World;

/// A project in the working directory.
fn world() -> World {
    let world = World::new();
    world.file("work/Makefile", "all:\n", 0o644);
    world.file("work/src/a", "one\n", 0o644);
    world
}

/// A command line that ends well.
fn nono(world: &World, args: &[&str]) -> String {
    let output = world.command("nono").args(args).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The same with a checkpoint, after which a file was changed.
fn changed_world() -> World {
    let world = world();
    nono(&world, &["checkpoints", "create", "-m", "by hand"]);
    world.file("work/src/a", "two\n", 0o644);
    world
}
