//! Hooks and checkpoints of well-behaved agents inside a sandbox.

use super::*;

#[test]
fn a_turn_inside_is_in_the_history_outside_with_the_session() {
    let world = world();
    let script = "prompt; echo two > src/a; prompt; before $PWD/src/a; echo three > src/a; after $PWD/src/a; \
                  before $PWD/src/a; echo four > src/a; echo $NONO_SESSION";
    let ran = agent(&world, USUAL, script);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let run = ran.out.lines().last().unwrap();
    let all = checkpoints(&world, ".");
    assert_eq!(all.len(), 2, "one before the run, one for the turn: {all:?}");
    assert!(all.iter().all(|one| one["run"] == run), "{all:?}");
    assert_eq!(all[0]["agent"], "claude-code");
    assert_eq!((&all[0]["session"], &all[0]["tool"]), (&Value::from("s1"), &Value::from("Write")));
    assert!(all[1]["reason"].as_str().unwrap().starts_with("before run: sh -c"), "{all:?}");
    let log = nono(&world, &["audit", "show", "last"]).out;
    for one in &all {
        assert!(log.contains(one["id"].as_str().unwrap()), "{log}");
    }
}

#[test]
fn what_the_agent_did_goes_back_and_nothing_else() {
    let world = world();
    let script = "prompt; before $PWD/src/a; echo two > src/a; after $PWD/src/a";
    assert_eq!(agent(&world, USUAL, script).code, 0);
    world.file("work/mine", "a person's\n", 0o644);
    let restored = nono(&world, &["checkpoints", "restore", "--yes", "1"]);
    assert_eq!(read(&world, "work/src/a"), "one\n", "{}", restored.err);
    assert_eq!(read(&world, "work/mine"), "a person's\n", "{}", restored.err);
}

#[test]
fn what_a_person_changed_between_calls_stays_when_the_session_is_undone() {
    let world = world();
    world.file("other/signal/here", "", 0o644);
    let script = "prompt; before $PWD/src/a; echo two > src/a; after $PWD/src/a; touch ../other/signal/ready; \
                  while ! test -e ../other/signal/go; do sleep 0.05; done; \
                  before $PWD/src/b; echo b > src/b; after $PWD/src/b";
    let signal = world.path("other/signal");
    let flags =
        [USUAL, &["--rollback", "--no-rollback-prompt", "--allow", signal.to_str().unwrap()]].concat();
    let ran = std::thread::scope(|scope| {
        let running = scope.spawn(|| agent(&world, &flags, script));
        while !signal.join("ready").exists() && !running.is_finished() {
            std::thread::yield_now();
        }
        world.file("work/mine", "a person's\n", 0o644);
        world.file("work/Makefile", "a person's\n", 0o644);
        world.file("other/signal/go", "", 0o644);
        running.join().unwrap()
    });
    assert_eq!(ran.code, 0, "{}", ran.err);
    let undone = nono(&world, &["undo", "--yes"]);
    assert_eq!(undone.code, 1, "something was kept: {}", undone.err);
    assert!(undone.err.contains("Makefile") && !undone.err.contains("may be your own"), "{}", undone.err);
    assert_eq!(read(&world, "work/src/a"), "one\n", "{}", undone.err);
    assert!(!world.path("work/src/b").exists(), "{}", undone.err);
    for mine in ["work/mine", "work/Makefile"] {
        assert_eq!(read(&world, mine), "a person's\n", "{}", undone.err);
    }
    // By force all of it goes back, and comes back.
    assert_eq!(nono(&world, &["undo", "--yes", "--force"]).code, 0);
    assert_eq!((read(&world, "work/Makefile").as_str(), world.path("work/mine").exists()), ("all:\n", false));
    assert_eq!(nono(&world, &["redo", "--yes"]).code, 0);
    assert_eq!(read(&world, "work/mine"), "a person's\n");
}

#[test]
fn the_command_is_protected_without_any_hook() {
    let world = world();
    assert_eq!(agent(&world, USUAL, "rm -r src; rm Makefile").code, 0);
    assert_eq!(nono(&world, &["checkpoints", "restore", "--yes", "1"]).code, 0);
    assert_eq!(
        (read(&world, "work/src/a").as_str(), read(&world, "work/Makefile").as_str()),
        ("one\n", "all:\n")
    );
}

#[test]
fn they_are_on_by_setting_and_off_by_flag() {
    let world = world();
    assert_eq!(agent(&world, &["--allow-cwd"], "true").code, 0);
    assert!(checkpoints(&world, ".").is_empty(), "off until it is turned on");
    world.file("state/config.toml", "[checkpoints]\nenabled = true\n", 0o600);
    assert_eq!(agent(&world, &["--allow-cwd", "--no-checkpoints"], "true").code, 0);
    assert!(checkpoints(&world, ".").is_empty());
    assert_eq!(agent(&world, &["--allow-cwd"], "true").code, 0);
    assert_eq!(checkpoints(&world, ".").len(), 1);
    assert_eq!(agent(&world, &["--allow-cwd"], "true").code, 0);
    assert_eq!(checkpoints(&world, ".").len(), 1, "nothing changed");
}

#[test]
fn who_has_no_supervisor_is_refused_with_the_reason() {
    let world = world();
    for (args, why) in [
        (["wrap", "--checkpoints", "--allow-cwd", "--", "true"].as_slice(), "`nono wrap` has none"),
        (&["run", "--exec", "--checkpoints", "--allow-cwd", "--", "true"], "--exec starts none"),
        (&["run", "--monitor", "--checkpoints", "--allow-cwd", "--", "true"], "--monitor confines it too"),
    ] {
        let ran = nono(&world, args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.err.contains("--checkpoints needs a supervisor") && ran.err.contains(why), "{}", ran.err);
    }
}

#[test]
fn a_missing_protection_is_said_at_the_end() {
    let world = world();
    let home = world.path("home").display().to_string();
    let ran = nono(
        &world,
        &["run", "--checkpoints", "--allow-cwd", "--workdir", &home, "--", "sh", "-c", "exit 3"],
    );
    assert_eq!(ran.code, 3, "{}", ran.err);
    let lines = ran.err.lines().filter(|line| line.contains("is not protected by a checkpoint"));
    assert_eq!(lines.count(), 1, "{}", ran.err);
    // Nothing but the store is broken: the command runs.
    let projects = world.path("state/projects");
    if projects.is_dir() {
        std::fs::remove_dir_all(projects).unwrap();
    }
    world.file("state/projects", "in the way\n", 0o600);
    let ran = agent(&world, USUAL, "echo ran");
    assert_eq!((ran.code, ran.out.as_str()), (0, "ran\n"));
    assert!(ran.err.contains("is not protected by a checkpoint"), "{}", ran.err);
}

/// A tool that was given a closed path is told why it failed, and so is a line that ended well in spite of it.
#[test]
fn every_tool_is_told_of_the_sandbox() {
    let world = world();
    let secret = world.path("home/secret");
    world.file("home/secret", "x", 0o600);
    let hook = |event: &str, call: Value| {
        let mut payload = call;
        payload["session_id"] = Value::from("s1");
        payload["cwd"] = Value::from(world.path("work").to_str().unwrap());
        let script = format!("nono hook claude-code {event} <<'EOF'\n{payload}\nEOF");
        let ran = agent(&world, USUAL, &script);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let said: Value = serde_json::from_str(&ran.out).unwrap();
        said["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
    };
    let path = secret.to_str().unwrap();
    for (tool, error) in [("Read", "File does not exist."), ("Write", "EACCES"), ("Edit", "it failed")] {
        let call = serde_json::json!({"tool_name": tool, "tool_input": {"file_path": path}, "error": error});
        let said = hook("PostToolUseFailure", call);
        assert!(said.contains("denied by the nono sandbox") && said.contains(path), "{tool}: {said}");
    }
    let output = format!("cat: {path}: Permission denied\n");
    let line = serde_json::json!({"tool_name": "Bash", "tool_input": {"command": format!("cat {path}; true")},
        "tool_response": {"stdout": "", "stderr": output}});
    let said = hook("PostToolUse", line);
    assert!(said.contains("denied by the nono sandbox") && said.contains(path), "{said}");
    // What only looks like it is nothing.
    let quiet = serde_json::json!({"tool_name": "Bash", "tool_input": {"command": "cat log"},
        "tool_response": {"stdout": "response 403\nPermission denied\nnono: no", "stderr": ""}});
    assert_eq!(hook("PostToolUse", quiet), "");
    let own = serde_json::json!({"tool_name": "Read", "tool_input": {"file_path": world.path("work/absent")}, "error": "File does not exist."});
    assert_eq!(hook("PostToolUseFailure", own), "");
}

/// The log has what the person said as a digest, and what was run without the secrets in it.
#[test]
fn prompts_and_calls_are_in_the_log() {
    let world = world();
    let script = "prompt; shell 'GITHUB_TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345 make deploy'; shell 'ls -la'; \
                  before $PWD/src/a; echo two > src/a; after $PWD/src/a";
    assert_eq!(agent(&world, USUAL, script).code, 0);
    let log = nono(&world, &["audit", "show", "last", "--json"]).out;
    let events: Vec<Value> =
        serde_json::from_str::<Value>(&log).unwrap()["events"].as_array().unwrap().clone();
    let of = |kind: &str| {
        events.iter().map(|record| &record["event"]).filter(|event| event["type"] == kind).collect::<Vec<_>>()
    };
    // SHA-256 of `do it`.
    let said = "f51c362d5cc7defb17b2b1290bb8e9b5a4d7e1319f85b90741ff3f8578fc6bba";
    assert_eq!(of("agent_prompt").iter().map(|event| &event["sha256"]).collect::<Vec<_>>(), [said], "{log}");
    let calls = of("agent_call");
    let tools: Vec<&str> = calls.iter().map(|event| event["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["Bash", "Bash", "Write"], "{log}");
    assert!(calls[0]["command"].as_str().unwrap().ends_with("make deploy"), "{log}");
    assert_eq!((&calls[1]["command"], &calls[2]["command"]), (&Value::from("ls -la"), &Value::Null));
    assert!(!log.contains("ghp_0123456789"), "{log}");
    assert!(calls.iter().all(|call| call["turn"] == of("agent_prompt")[0]["turn"]), "{log}");
    let text = nono(&world, &["audit", "show", "last"]).out;
    assert!(text.contains("claude-code: Bash: ls -la") && text.contains("sha256 f51c362d"), "{text}");
    assert_eq!(nono(&world, &["audit", "verify", "last"]).code, 0);
}

/// With the run its turns are gone, and come back with it; the agent hears of both.
#[test]
fn a_session_that_is_undone_takes_its_turns_with_it() {
    let world = world();
    let script = "prompt; before $PWD/src/a; echo two > src/a; after $PWD/src/a";
    let flags = [USUAL, &["--rollback", "--no-rollback-prompt"]].concat();
    assert_eq!(agent(&world, &flags, script).code, 0);
    let undone = |world: &World| {
        let turns: Value = serde_json::from_str(&nono(world, &["turns", "--json"]).out).unwrap();
        turns["turns"][0]["undone"].as_bool().unwrap()
    };
    assert!(!undone(&world));
    assert_eq!(nono(&world, &["undo", "--yes"]).code, 0);
    assert!(undone(&world));
    assert!(agent(&world, &flags, "prompt").out.contains("back to the same point by /rewind"));
    assert_eq!(nono(&world, &["redo", "--yes"]).code, 0);
    assert!(!undone(&world));
    assert_eq!(read(&world, "work/src/a"), "two\n");
    // One turn of a run goes back alone, too, and the run stays undoable.
    assert_eq!(nono(&world, &["undo", "--turn", "1", "--yes"]).code, 0);
    assert_eq!(read(&world, "work/src/a"), "one\n");
}
