//! `nono hook` for real: the binary as an ordinary user, with what agents send and with what they never would.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod model;
mod strange;
mod turns;
mod worked;

use crate::world;
use crate::world::said;

use std::io::Write;
use std::process::Stdio;

use said::Said;
use serde_json::{Value, json};
use world::World;

/// A world with checkpoints turned on and a project in `work`.
fn enabled() -> World {
    let world = World::new();
    world.file("state/config.toml", "[checkpoints]\nenabled = true\n", 0o600);
    world.file("work/Makefile", "all:\n", 0o644);
    world.file("work/a.txt", "one\n", 0o644);
    world
}

/// The hook with these bytes on its standard input.
fn hook(world: &World, args: &[&str], input: &[u8]) -> Said {
    let mut command = world.command("nono");
    command.arg("hook").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A hook that does not read all of it is within its rights.
    let _ = child.stdin.take().unwrap().write_all(input);
    Said::of(&child.wait_with_output().unwrap())
}

fn payload(world: &World, event: &str, more: Value) -> Value {
    let mut payload = json!({"session_id": "s1", "cwd": world.path("work"), "hook_event_name": event});
    if let Value::Object(more) = more {
        payload.as_object_mut().unwrap().extend(more);
    }
    payload
}

fn claude(world: &World, event: &str, more: Value) -> Value {
    let payload = payload(world, event, more).to_string();
    hook(world, &["claude-code", event], payload.as_bytes()).ok().json()
}

fn bash(command: &str) -> Value {
    json!({"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": command}})
}

/// Oldest first.
fn reasons(world: &World) -> Vec<String> {
    let output = world.command("nono").args(["checkpoints", "list", "--json"]).output().unwrap();
    let listed = Said::of(&output);
    if listed.code != Some(0) {
        return Vec::new();
    }
    let list = listed.json();
    let text = |line: &Value| line["reason"].as_str().unwrap().to_owned();
    list["checkpoints"].as_array().into_iter().flatten().rev().map(text).collect()
}
