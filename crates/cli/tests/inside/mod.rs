//! Agents inside a sandbox: their hooks and `nono checkpoints` speak to the supervisor, which believes none of it.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod first_use;
mod hooks;
mod hostile;
mod model;
mod restores;

use crate::world;

use std::process::Stdio;

use nono_testkit::look::read;
use serde_json::Value;
use world::World;

/// A project in the working directory, another one beside it, and what scripts need to be an agent:
/// `prompt`, `before FILE`, `after FILE`, `shell COMMAND`.
fn world() -> World {
    let world = World::new();
    world.file("work/Makefile", "all:\n", 0o644);
    world.file("work/src/a", "one\n", 0o644);
    world.file("other/project/Makefile", "all:\n", 0o644);
    world.file("other/project/secret", "it says hello\n", 0o644);
    world.file("bin/agent.sh", AGENT, 0o644);
    world
}

const AGENT: &str = r#"
tell() { printf '{"session_id":"s1","cwd":"%s","hook_event_name":"%s"%s}' "$PWD" "$1" "$2" | nono hook claude-code "$1"; }
prompt() { tell UserPromptSubmit ',"prompt":"do it"'; }
before() { tell PreToolUse ",\"tool_name\":\"Write\",\"tool_use_id\":\"t1\",\"tool_input\":{\"file_path\":\"$1\",\"content\":\"x\"}"; }
after() { tell PostToolUse ",\"tool_name\":\"Write\",\"tool_use_id\":\"t1\",\"tool_input\":{\"file_path\":\"$1\",\"content\":\"x\"},\"tool_response\":{}"; }
shell() { tell PreToolUse ",\"tool_name\":\"Bash\",\"tool_use_id\":\"t2\",\"tool_input\":{\"command\":\"$1\"}"; }
"#;

/// What a run came to: exit code, stdout, stderr.
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

/// The script of an agent, in a sandbox with these flags.
fn agent(world: &World, flags: &[&str], script: &str) -> Ran {
    let own = world.path("bin/agent.sh").display().to_string();
    let script = format!(". {own}\n{script}");
    let mut args = vec!["run", "--read-file", &own];
    args.extend(flags);
    args.extend(["--", "sh", "-c", &script]);
    let ran = nono(world, &args);
    println!("{}\n{}", ran.out, ran.err);
    ran
}

const USUAL: &[&str] = &["--allow-cwd", "--checkpoints"];

/// The checkpoints of a folder, newest first, seen from outside.
fn checkpoints(world: &World, dir: &str) -> Vec<Value> {
    let listed = nono(world, &["checkpoints", "list", "--json", "--path", dir]);
    if listed.code != 0 {
        return Vec::new();
    }
    let value: Value = serde_json::from_str(&listed.out).unwrap();
    value["checkpoints"].as_array().cloned().unwrap_or_default()
}

fn reasons(world: &World, dir: &str) -> Vec<String> {
    checkpoints(world, dir).iter().map(|one| one["reason"].as_str().unwrap().to_owned()).collect()
}
