//! The first run of an agent with its profile.

use super::*;
use nono_testkit::screen::Screen;

fn with_claude() -> World {
    let world = world();
    world.file("bin/claude", "#!/bin/sh\necho claude ran\n", 0o755);
    world
}

const HINT: &str = "`nono hooks install claude-code` adds checkpoints and /rollback";

#[test]
fn without_a_terminal_there_is_a_hint_and_nothing_else() {
    let world = with_claude();
    let ran = nono(&world, &["run", "-p", "claude-code", "--", "claude"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "claude ran\n"), "{}", ran.err);
    assert_eq!(ran.err.lines().filter(|line| line.contains(HINT)).count(), 1, "{}", ran.err);
    assert!(!world.path("home/.claude").exists() && !world.path("state/config.toml").exists());
    let other = nono(&world, &["run", "-p", "claude-code", "--", "true"]);
    assert_eq!((other.code, other.err.as_str()), (0, ""), "only the agent itself");
    let silent = nono(&world, &["run", "-s", "-p", "claude-code", "--", "claude"]);
    assert_eq!(silent.err, "");
}

#[test]
fn a_no_is_remembered() {
    let world = with_claude();
    let screen = Screen::new(&world);
    screen.start("nono run -p claude-code -- claude");
    screen.wait_for("can be undone?");
    screen.enter("n");
    screen.wait_line("claude ran");
    assert_eq!(screen.prompt(), 0);
    assert!(!world.path("home/.claude/settings.json").exists());
    screen.clear();
    assert_eq!(screen.run("nono run -p claude-code -- claude"), 0);
    assert!(!screen.text().contains("can be undone?"), "{}", screen.text());
}

#[test]
fn a_yes_installs_and_the_next_run_cannot_change_it() {
    let world = with_claude();
    let screen = Screen::new(&world);
    screen.start("nono run -p claude-code -- claude");
    screen.wait_for("can be undone?");
    screen.enter("y");
    screen.wait_line("claude ran");
    assert_eq!(screen.prompt(), 0);
    let settings = read(&world, "home/.claude/settings.json");
    assert!(settings.contains("PreToolUse"), "{settings}");
    let ran = nono(
        &world,
        &["run", "-p", "claude-code", "--", "sh", "-c", "echo {} > $HOME/.claude/settings.json"],
    );
    // It has a copy, and what calls nono stays in the next one, too.
    assert_eq!(ran.code, 0);
    assert_eq!(read(&world, "home/.claude/settings.json"), settings);
    let line = "cat $HOME/.claude/settings.json";
    let again = nono(&world, &["run", "-s", "-p", "claude-code", "--", "sh", "-c", line]);
    assert_eq!((again.code, again.out), (0, settings));
    assert_eq!(checkpoints(&world, ".").len(), 1, "they are enabled now");
}

#[test]
fn an_agent_with_hooks_that_never_calls_one_is_named() {
    let world = with_claude();
    assert_eq!(nono(&world, &["hooks", "install", "claude-code", "--yes"]).code, 0);
    let flags = ["-p", "claude-code", "--rollback", "--no-rollback-prompt", "--checkpoints"];
    // As an SDK does that starts the agent without its settings.
    let ran = agent(&world, &flags, "echo two > src/a");
    assert!(ran.err.contains("Claude Code called no hook"), "{}", ran.err);
    assert_eq!(ran.err.lines().filter(|line| line.contains("setting_sources")).count(), 1, "{}", ran.err);
    for script in ["prompt; before $PWD/src/a; echo three > src/a", "prompt; echo four > src/a", "true"] {
        let ran = agent(&world, &flags, script);
        assert!(!ran.err.contains("called no hook"), "{script}: {}", ran.err);
    }
    let ran = agent(&world, &["--allow-cwd", "--rollback", "--checkpoints"], "echo five > src/a");
    assert!(!ran.err.contains("called no hook"), "{}", ran.err);
}
