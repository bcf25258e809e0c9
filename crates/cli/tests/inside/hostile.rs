//! Hostile requests about checkpoints from inside a sandbox.

use super::*;

#[test]
fn nothing_outside_the_grants_is_touched_or_shown() {
    let world = world();
    let other = world.path("other/project").display().to_string();
    world.file("other/project/mine", "x\n", 0o644);
    // It has a history of its own, which must not be visible in here.
    assert_eq!(nono(&world, &["checkpoints", "create", &other]).code, 0);
    world.file("other/project/secret", "it says more\n", 0o644);
    let script = format!(
        "prompt; before {other}/secret; shell 'rm -rf {other}'; ln -s {other} src/link; before $PWD/src/link/secret; \
         nono checkpoints list --path {other}; nono checkpoints diff 1 --path {other}; \
         nono checkpoints restore 1 --path {other}; nono checkpoints list --path $PWD/src/link; \
         nono checkpoints diff 1 --path $PWD/src/link; nono checkpoints list --path /; echo over"
    );
    let ran = agent(&world, USUAL, &script);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.ends_with("over\n"));
    assert!(!ran.out.contains("it says") && !ran.err.contains("it says"), "{} {}", ran.out, ran.err);
    assert!(ran.err.matches("is not writable in this sandbox").count() >= 6, "{}", ran.err);
    assert_eq!(checkpoints(&world, &other).len(), 1, "only the person's own");
    assert_eq!(read(&world, "other/project/secret"), "it says more\n");
}

#[test]
fn a_project_reaches_no_further_up_than_the_grant() {
    let world = world();
    world.file("work/top", "not granted\n", 0o600);
    let sub = world.path("work/src").display().to_string();
    let flags = ["--allow", &sub, "--workdir", &sub, "--checkpoints"];
    let ran = agent(
        &world,
        &flags,
        "prompt; echo two > a; before $PWD/a; nono checkpoints diff 1; nono checkpoints list",
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains(&format!("Checkpoints for {sub}:")), "{}", ran.out);
    assert_eq!(checkpoints(&world, "src").len(), 2);
    let above = nono(&world, &["checkpoints", "list", "--json"]);
    assert!(!above.out.contains("before run"), "{}", above.out);
}

#[test]
fn a_diff_shows_nothing_that_is_denied() {
    let world = world();
    world.file("work/.env", "KEY=old\n", 0o600);
    let env = world.path("work/.env").display().to_string();
    assert_eq!(nono(&world, &["checkpoints", "create"]).code, 0);
    world.file("work/.env", "KEY=new\n", 0o600);
    world.file("work/src/a", "two\n", 0o644);
    let flags = ["--allow-cwd", "--checkpoints", "--deny", &env];
    let ran = agent(&world, &flags, "nono checkpoints diff 2");
    assert!(ran.out.contains("+two") && !ran.out.contains("KEY"), "{}", ran.out);
    assert!(ran.err.contains("1 path not shown"), "{}", ran.err);
    let outside = nono(&world, &["checkpoints", "diff", "2"]).out;
    assert!(outside.contains("KEY=new"), "control: {outside}");
}

#[test]
fn a_flood_of_turns_ends_in_a_bound_and_not_the_session() {
    let world = world();
    let script = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo $i > src/a; prompt; before $PWD/src/a; done > /dev/null; echo over";
    let ran = agent(&world, USUAL, script);
    assert_eq!((ran.code, ran.out.as_str()), (0, "over\n"), "{}", ran.err);
    assert!(ran.err.contains("too many checkpoints in a short time"), "{}", ran.err);
    let log = nono(&world, &["audit", "show", "last"]).out;
    let taken = log.lines().filter(|line| line.contains(" checkpt ")).count();
    assert!((20..=31).contains(&taken), "{taken}\n{log}");
    assert!(checkpoints(&world, ".").len() <= 20);
}

#[test]
fn what_is_no_request_is_answered_with_an_error() {
    let world = world();
    let long = "x".repeat(3000);
    let script = format!(
        "for json in '' '{{' '[]' '{{\"session_id\": 7}}' '{{\"session_id\":\"{long}\",\"tool_name\":\"{long}\"}}'; do \
         printf '%s' \"$json\" | nono hook claude-code PreToolUse > /dev/null || echo failed; done; \
         nono checkpoints list --path /{long}; nono checkpoints diff {long}; nono checkpoints restore nothing; echo over"
    );
    let ran = agent(&world, USUAL, &script);
    assert_eq!((ran.code, ran.out.as_str()), (0, "over\n"), "{}", ran.err);
}

#[test]
fn a_session_without_checkpoints_says_so() {
    let world = world();
    let ran = agent(&world, &["--allow-cwd"], "prompt; before $PWD/src/a; nono checkpoints list; echo over");
    assert_eq!(ran.code, 0);
    assert!(ran.err.contains("this session has no checkpoints"), "{}", ran.err);
    assert!(checkpoints(&world, ".").is_empty());
}

#[test]
fn a_payload_cannot_name_another_run() {
    let world = world();
    let script = "prompt; echo two > src/a; tell PreToolUse ',\"run\":\"evil\",\"tool_name\":\"Write\",\
                  \"tool_input\":{\"file_path\":\"src/a\"}'";
    assert_eq!(agent(&world, USUAL, script).code, 0);
    assert!(checkpoints(&world, ".").iter().all(|one| one["run"] != "evil"));
    assert_eq!(reasons(&world, ".").len(), 2);
}
