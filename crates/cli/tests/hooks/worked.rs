//! What agents did, turn by turn: `nono turns`, `undo --turn`, `log` and `cat`, with real hooks before.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::said::Said;
use super::world::World;
use super::{bash, claude, enabled};

fn nono(world: &World, args: &[&str]) -> Said {
    Said::of(&world.command("nono").args(args).output().unwrap())
}

fn read(world: &World, name: &str) -> String {
    fs::read_to_string(world.path("work").join(name)).unwrap()
}

/// A call of an agent's, with what it does.
fn call(world: &World, command: &str, work: impl FnOnce()) {
    claude(world, "PreToolUse", bash(command));
    work();
    claude(world, "PostToolUse", bash(command));
}

/// Two turns: the first changes the second line and adds a folder, the second changes the ninth line and removes a file.
fn two_turns() -> World {
    let world = enabled();
    let numbers = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
    world.file("work/a.txt", numbers, 0o644);
    world.file("work/b.txt", "x\n", 0o644);
    let write = |name: &str, text: &str| fs::write(world.path("work").join(name), text).unwrap();
    claude(&world, "UserPromptSubmit", json!({"prompt": "the second line, please"}));
    call(&world, "sed -i s/2/two/ a.txt", || {
        write("a.txt", &numbers.replace("2\n", "two\n"));
        world.file("work/made/new", "n\n", 0o644);
    });
    claude(&world, "Stop", json!({}));
    claude(&world, "UserPromptSubmit", json!({"prompt": "and the ninth"}));
    call(&world, "rm b.txt", || {
        write("a.txt", &numbers.replace("2\n", "two\n").replace("9\n", "nine\n"));
        fs::remove_file(world.path("work/b.txt")).unwrap();
    });
    claude(&world, "Stop", json!({}));
    world
}

fn names(turn: &Value) -> Vec<String> {
    let name = |file: &Value| file["path"].as_str().unwrap().rsplit("/work/").next().unwrap().to_owned();
    turn["files"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn turns_are_listed_with_prompt_calls_and_files() {
    let world = two_turns();
    let listed = nono(&world, &["turns", "--json"]).ok().json();
    let turns = listed["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 2);
    assert_eq!(
        (turns[0]["prompt"].as_str(), names(&turns[0])),
        (Some("and the ninth"), vec!["a.txt".into(), "b.txt".into()])
    );
    assert_eq!(
        (turns[1]["number"].as_u64(), names(&turns[1])),
        (Some(2), vec!["a.txt".into(), "made/new".into()])
    );
    assert_eq!(turns[1]["calls"][0]["reason"], "before Bash: sed -i s/2/two/ a.txt");
    assert_eq!(turns[1]["stats"], json!({"files": 2, "insertions": 2, "deletions": 1}));
    let text = nono(&world, &["turns"]).ok();
    assert!(text.out.contains("  2. ") && text.out.contains("claude-code  (2 files, +2/-1)"), "{text:?}");
    assert!(
        text.out.contains("\u{201c}the second line, please\u{201d}\n       a.txt, made/new\n"),
        "{text:?}"
    );
    let one = nono(&world, &["turns", "2"]).ok();
    assert!(
        one.out.contains("Bash: sed -i s/2/two/ a.txt  (2 paths)") && one.out.contains("  + made/new\n"),
        "{one:?}"
    );
    assert_eq!(nono(&world, &["turns", "2", "--json"]).ok().json()["turn"], turns[1]["turn"]);
    let none = nono(&world, &["turns", "3"]);
    assert!(none.code != Some(0) && none.err.contains("`nono turns` lists them"), "{none:?}");
}

#[test]
fn one_turn_is_undone_and_redone() {
    let world = two_turns();
    let plan = nono(&world, &["undo", "--turn", "2", "--dry-run"]).ok();
    assert!(plan.out.contains("only the turn \u{201c}the second line, please\u{201d}"), "{plan:?}");
    assert_eq!(read(&world, "a.txt").lines().nth(1), Some("two"), "a plan changes nothing");
    nono(&world, &["undo", "--turn", "2", "--yes"]).ok();
    let lines: Vec<String> = read(&world, "a.txt").lines().map(str::to_owned).collect();
    assert_eq!((lines[1].as_str(), lines[8].as_str()), ("2", "nine"), "the later turn's line stays");
    assert!(!world.path("work/made").exists() && !world.path("work/b.txt").exists());
    let turns = nono(&world, &["turns", "--json"]).ok().json();
    assert_eq!((&turns["turns"][0]["undone"], &turns["turns"][1]["undone"]), (&json!(false), &json!(true)));
    // The agent is told, and that its later work stays.
    let told = claude(&world, "UserPromptSubmit", json!({"prompt": "x"})).to_string();
    assert!(told.contains("what you did later stays") && !told.contains("/rewind"), "{told}");
    nono(&world, &["redo", "--yes"]).ok();
    assert!(world.path("work/made/new").exists());
    assert_eq!(read(&world, "a.txt").lines().nth(1), Some("two"));
}

#[test]
fn a_turn_and_everything_since_is_undone() {
    let world = two_turns();
    let undone = nono(&world, &["undo", "--to-turn", "2", "--yes"]).ok();
    assert!(undone.err.contains("to take the conversation back too, in claude-code: /rewind"), "{undone:?}");
    assert_eq!(read(&world, "a.txt").lines().nth(8), Some("9"));
    assert_eq!(read(&world, "b.txt"), "x\n");
    assert!(!world.path("work/made").exists());
    let listed = nono(&world, &["checkpoints", "list"]).ok();
    let here = listed.out.lines().find(|line| line.contains("<- you are here")).unwrap();
    assert!(here.starts_with("  2. "), "{listed:?}");
    assert!(nono(&world, &["turns"]).ok().out.contains("made/new\n     <- you are here\n"));
    let told = claude(&world, "UserPromptSubmit", json!({"prompt": "x"})).to_string();
    assert!(told.contains("A person takes this conversation back to the same point by /rewind."), "{told}");
    // Work goes on from there: the newest state is the current one again.
    call(&world, "touch c", || fs::write(world.path("work/c"), "").unwrap());
    assert!(!nono(&world, &["checkpoints", "list"]).ok().out.contains("you are here"));
}

#[test]
fn a_file_has_its_versions_and_their_authors() {
    let world = two_turns();
    fs::write(world.path("work/a.txt"), read(&world, "a.txt") + "mine\n").unwrap();
    let log = nono(&world, &["log", "a.txt", "--json"]).ok().json();
    let versions = log["versions"].as_array().unwrap();
    let by: Vec<&str> = versions.iter().map(|version| version["by"].as_str().unwrap()).collect();
    assert_eq!(by, ["others", "turn", "turn", "beginning"]);
    assert_eq!(versions[1]["reason"], "before Bash: rm b.txt");
    assert_eq!(
        (&versions[2]["prompt"], &versions[2]["insertions"]),
        (&json!("the second line, please"), &json!(1))
    );
    let text = nono(&world, &["log", "a.txt"]).ok();
    assert!(text.out.contains("(+1/-1)  claude-code: Bash: sed -i s/2/two/ a.txt\n"), "{text:?}");
    // Every version can be printed, by its digest and by its checkpoint.
    let digest = &versions[2]["new"].as_str().unwrap()[..8];
    assert_eq!(nono(&world, &["cat", &format!("{digest}:a.txt")]).ok().out.lines().nth(1), Some("two"));
    assert_eq!(nono(&world, &["cat", "2:a.txt"]).ok().out.lines().nth(1), Some("2"));
    assert_eq!(nono(&world, &["cat", "1:b.txt"]).ok().out, "x\n");
    let gone = nono(&world, &["log", "b.txt"]).ok();
    assert!(gone.out.contains("(deleted)  claude-code: Bash: rm b.txt\n"), "{gone:?}");
    for (args, why) in [
        (&["cat", "zz:a.txt"][..], "is not a checkpoint, a session or a version of"),
        (&["cat", "2:made/new"], "did not exist at that time"),
        (&["cat", "a.txt"], "write it as ID:FILE"),
        (&["log", "nothing"], "no session or checkpoint has a version of"),
        (&["log", "made"], "is a directory"),
    ] {
        let said = nono(&world, args);
        assert!(said.code != Some(0) && said.err.contains(why), "{args:?}: {said:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_not_said_to_be_deleted() {
    let world = two_turns();
    fs::set_permissions(world.path("work/a.txt"), fs::Permissions::from_mode(0o000)).unwrap();
    let log = nono(&world, &["log", "a.txt", "--json"]).ok().json();
    assert_eq!(log["versions"][0]["by"], "turn", "{log}");
    // Nor one in a folder that cannot be looked into.
    fs::set_permissions(world.path("work/made"), fs::Permissions::from_mode(0o000)).unwrap();
    let log = nono(&world, &["log", "made/new", "--json"]).ok().json();
    assert_eq!(log["versions"][0]["by"], "turn", "{log}");
    fs::remove_file(world.path("work/a.txt")).unwrap();
    let log = nono(&world, &["log", "a.txt", "--json"]).ok().json();
    assert_eq!(
        (&log["versions"][0]["by"], &log["versions"][0]["new"]),
        (&json!("others"), &json!(null)),
        "{log}"
    );
}

#[test]
fn a_run_is_in_the_log_of_what_it_changed() {
    let world = enabled();
    nono(
        &world,
        &["run", "--rollback", "--no-rollback-prompt", "--allow-cwd", "--", "sh", "-c", "echo two > a.txt"],
    )
    .ok();
    let log = nono(&world, &["log", "a.txt", "--json"]).ok().json();
    assert_eq!(log["versions"][0]["by"], "session");
    assert_eq!(log["versions"][0]["command"], json!(["sh", "-c", "echo two > a.txt"]));
    let id = log["versions"][0]["session_id"].as_str().unwrap();
    assert_eq!(nono(&world, &["cat", &format!("{id}:a.txt")]).ok().out, "one\n");
}
