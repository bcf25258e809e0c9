//! Agents by one word, and what they save. The agents here are scripts of that name: real ones are driven by `tests/agents`.

use serde_json::{Value, json};
use snapbox::str;

use super::world::World;
use nono_testkit::process::Running;

/// An agent that does what its last argument says.
fn with_agent(name: &str) -> World {
    let world = World::new();
    let program = world
        .file(&format!("home/.local/bin/{name}"), "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$last\"\n");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path =
        format!("{}:{}:/usr/bin:/bin", world.path("bin").display(), world.path("home/.local/bin").display());
    world.with("PATH", Some(&path))
}

fn read(world: &World, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(world.path(name)).unwrap()).unwrap()
}

#[test]
fn what_an_agent_is_given_is_shown_and_agreed_to_once() {
    let world = with_agent("claude");
    world.golden(
        &[
            "nono claude -c true",
            "nono claude --yes -c 'echo at work' 2>&1 | grep -v snapshot | sed 's/session [-0-9]*/session ID/'",
            "nono claude -c 'echo again' 2>&1 | grep -v snapshot | sed 's/session [-0-9]*/session ID/'",
            "nono claude --reset -c true",
            "nono hooks status claude-code",
            "nono codex",
        ],
        str![[r#"
$ nono claude -c true
! [nono] Claude Code, in a sandbox:
! [nono]   project  [TMP]/work: read and written
! [nono]   state    ~/.claude, ~/.local/state/claude, ~/.cache/claude, ~/.cache/claude-cli-nodejs: its own, read and written
! [nono]   read     installed programs; none of your other files
! [nono]   network  api.anthropic.com, claude.ai, platform.claude.com, console.anthropic.com and 1 more, nothing else
! [nono]   more     you are asked about whatever else it wants to open
! [nono]   off      its own sandbox, which cannot be made inside another; nono's sandbox takes its place
! [nono]   undo     `nono undo` undoes what it did here; its own state stays
! [nono]   hooks    added to its settings: a checkpoint before a turn changes something
! [nono] error: Claude Code was not started: not confirmed
! [nono] hint: start it in a terminal once, or run `nono claude --yes`
= exit 1
$ nono claude --yes -c 'echo at work' 2>&1 | grep -v snapshot | sed 's/session [-0-9]*/session ID/'
[nono] Claude Code, in a sandbox:
[nono]   project  [TMP]/work: read and written
[nono]   state    ~/.claude, ~/.local/state/claude, ~/.cache/claude, ~/.cache/claude-cli-nodejs: its own, read and written
[nono]   read     installed programs; none of your other files
[nono]   network  api.anthropic.com, claude.ai, platform.claude.com, console.anthropic.com and 1 more, nothing else
[nono]   more     you are asked about whatever else it wants to open
[nono]   off      its own sandbox, which cannot be made inside another; nono's sandbox takes its place
[nono]   undo     `nono undo` undoes what it did here; its own state stays
[nono]   hooks    added to its settings: a checkpoint before a turn changes something
[nono] the hooks of Claude Code are installed
[nono] undo does not change the state of tools: [TMP]/home/.claude, [TMP]/home/.local/share/pnpm/store, [TMP]/home/.local/state/claude and 6 more
at work
[nono] session ID: nothing changed
$ nono claude -c 'echo again' 2>&1 | grep -v snapshot | sed 's/session [-0-9]*/session ID/'
[nono] undo does not change the state of tools: [TMP]/home/.claude, [TMP]/home/.local/share/pnpm/store, [TMP]/home/.local/state/claude and 6 more
again
[nono] session ID: nothing changed
$ nono claude --reset -c true
! [nono] Claude Code, in a sandbox:
! [nono]   project  [TMP]/work: read and written
! [nono]   state    ~/.claude, ~/.local/state/claude, ~/.cache/claude, ~/.cache/claude-cli-nodejs: its own, read and written
! [nono]   read     installed programs; none of your other files
! [nono]   network  api.anthropic.com, claude.ai, platform.claude.com, console.anthropic.com and 1 more, nothing else
! [nono]   more     you are asked about whatever else it wants to open
! [nono]   off      its own sandbox, which cannot be made inside another; nono's sandbox takes its place
! [nono]   undo     `nono undo` undoes what it did here; its own state stays
! [nono] error: Claude Code was not started: not confirmed
! [nono] hint: start it in a terminal once, or run `nono claude --yes`
= exit 1
$ nono hooks status claude-code
claude-code  installed      [TMP]/home/.claude/settings.json
                            calls [TMP]/bin/nono
$ nono codex
! [nono] error: codex: command not found
= exit 127

"#]],
    );
}

#[test]
fn what_is_saved_takes_effect_outside_only_where_it_runs_nothing() {
    let world = with_agent("claude");
    world.file("home/.claude.json", "{\n  \"mine\": 1\n}\n");
    world.file("home/.claude/settings.json", "{\n  \"model\": \"a\"\n}\n");
    let line = r#"cd ~/.claude && cat .claude.json && echo $CLAUDE_CONFIG_DIR &&
        echo '{"model": "b", "env": {"X": "1"}, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "id"}]}]}}' > settings.json &&
        echo '{"mine": 1, "seen": true, "mcpServers": {"x": {"command": "id"}}}' > .claude.json.tmp &&
        cp .claude.json.tmp .claude.json && rm .claude.json.tmp"#;
    let line = line.replace('\n', " ");
    let outcome = world.sh(&format!(
        "nono run -s -p claude-code -- claude -c \"{}\"",
        line.replace('"', "\\\"").replace('$', "\\$")
    ));
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert_eq!(outcome.out(), format!("{{\n  \"mine\": 1\n}}\n{}\n", world.path("home/.claude").display()));
    assert!(outcome.err().contains("env.X: saved for sandboxed runs in this directory only"), "{outcome:?}");
    assert_eq!(read(&world, "home/.claude/settings.json"), json!({"model": "b"}));
    assert_eq!(read(&world, "home/.claude.json"), json!({"mine": 1, "seen": true}));
    assert!(!world.path("home/.claude/.claude.json").exists());

    // The next run here has all of it, one elsewhere what is outside.
    let again = world
        .sh("nono run -s -p claude-code -- claude -c 'cat ~/.claude/settings.json ~/.claude/.claude.json'");
    assert!(
        again.out().contains("\"env\"")
            && !again.out().contains("hooks")
            && again.out().contains("mcpServers"),
        "{again:?}"
    );
    let elsewhere =
        world.sh("mkdir e; cd e; nono run -s -p claude-code -- claude -c 'cat ~/.claude/settings.json'");
    assert_eq!(elsewhere.out(), "{\n  \"model\": \"b\"\n}\n", "{elsewhere:?}");
    world.left_nothing();
}

#[test]
fn what_a_killed_session_saved_is_taken_up_by_the_next() {
    let world = with_agent("claude");
    world.file("home/.claude.json", "{}\n");
    let line = "echo '{\"seen\": 1}' > ~/.claude/.claude.json; echo ready; sleep 1000";
    let args = ["run", "-s", "-p", "claude-code", "--", "claude", "-c", line];
    let running = Running::start(&mut world.nono(&args));
    running.until("ready");
    running.signal(rustix::process::Signal::KILL);
    running.end();
    assert_eq!(read(&world, "home/.claude.json"), json!({}));
    let next = world.sh("nono run -s -- true");
    assert_eq!(next.code(), Some(0), "{next:?}");
    assert_eq!(read(&world, "home/.claude.json"), json!({"seen": 1}));
}

#[test]
fn missing_folders_are_made_and_empty_ones_go() {
    let world = with_agent("opencode");
    let line = "nono run -s -p opencode -- opencode -c 'ls -d ~/.config/opencode ~/.cache/opencode && echo x > ~/.local/state/opencode/kv'";
    let outcome = world.sh(line);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert!(world.path("home/.local/state/opencode/kv").exists());
    assert!(!world.path("home/.config/opencode").exists() && !world.path("home/.cache").exists());
}

#[test]
fn an_agent_that_is_run_has_its_profile() {
    let world = with_agent("claude");
    world.golden(
        &[
            "nono run -- claude -c 'test -w ~/.claude && echo its state is there'",
            "nono run --silent -- claude -c 'test -w ~/.claude && echo silent'",
            "nono run -p default -- claude -c 'test -e ~/.claude || echo nothing of it'",
        ],
        str![[r#"
$ nono run -- claude -c 'test -w ~/.claude && echo its state is there'
its state is there
! [nono] using the profile of Claude Code, as with -p claude-code (`nono claude` sets up more; -p default uses none)
! [nono] hint: the hooks of Claude Code are not installed; `nono hooks install claude-code` adds checkpoints and /rollback
$ nono run --silent -- claude -c 'test -w ~/.claude && echo silent'
silent
$ nono run -p default -- claude -c 'test -e ~/.claude || echo nothing of it'
nothing of it

"#]],
    );
}
