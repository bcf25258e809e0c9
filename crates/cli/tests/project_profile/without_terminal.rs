//! Project profiles without a terminal: what they open stays closed, what they close is closed.

use super::*;

#[test]
fn it_closes_and_opens_nothing_and_says_so_in_one_line() {
    let world = world();
    let line = format!("cat {}; cat .env; cat src/a", data(&world));
    let ran = nono(&world, &["run", "--allow-cwd", "--", "sh", "-c", &line]);
    assert_eq!(ran.out, "one\n", "{ran:?}");
    let said: Vec<&str> = ran.err.lines().filter(|line| line.contains("profile.json")).collect();
    assert_eq!(said.len(), 1, "{ran:?}");
    assert!(said[0].contains("you have not agreed to it; run `nono profile trust` to review it"), "{ran:?}");
    // Without it, nothing of it holds.
    let ran = nono(&world, &["run", "--allow-cwd", "--no-project-profile", "--", "cat", ".env"]);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("KEY=1\n", ""));
    let silent = nono(&world, &["run", "--allow-cwd", "-s", "--", "cat", "src/a", ".env"]);
    assert!(silent.out == "one\n" && !silent.err.contains("profile.json"), "{silent:?}");
}

#[test]
fn what_only_closes_is_used_without_a_word() {
    let world = world();
    profile(&world, r#"{"filesystem": {"deny": [".env"]}}"#);
    for (dir, command) in [("work", "run"), ("work/src", "run"), ("work", "wrap")] {
        let path = world.path("work/.env").display().to_string();
        let mut started = world.command("nono");
        let work = world.path("work").display().to_string();
        started.current_dir(world.path(dir)).args([command, "--allow", &work, "--", "cat", &path]);
        let output = started.stdin(Stdio::null()).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{dir} {command}: {err}");
        assert!(!err.contains("agreed"), "{err}");
    }
}

#[test]
fn no_agreement_without_a_terminal() {
    let world = world();
    for args in [&["profile", "trust"][..], &["profile", "trust", "."]] {
        let ran = nono(&world, args);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains("no terminal to ask on"), "{ran:?}");
    }
    let shown = nono(&world, &["profile", "trust", "--show"]);
    assert!(shown.out.contains("you have not agreed to it") && shown.out.contains("other/data"), "{shown:?}");
    assert!(!world.path("state/trusted").exists());
    let none = world.path("other").display().to_string();
    assert!(
        nono(&world, &["profile", "trust", &none]).err.contains("is not in a project that has a profile")
    );
}

#[test]
fn status_why_and_dry_run_name_it() {
    let world = world();
    let file = world.path("work/.nono/profile.json").display().to_string();
    let status = nono(&world, &["status"]);
    assert!(status.out.contains(&format!("profile      {file}: you have not agreed")), "{status:?}");
    let why = nono(&world, &["why", "--path", &data(&world)]);
    assert!(why.out.starts_with("DENIED") && why.out.contains("you have not agreed to what"), "{why:?}");
    let dry = nono(&world, &["run", "--dry-run", "--allow-cwd", "--", "true"]);
    assert!(dry.out.contains("only its restrictions are used"), "{dry:?}");

    agree(&world);
    let json = nono(&world, &["status", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["project_profile"]["standing"], "agreed");
    let why = nono(&world, &["why", "--path", &data(&world)]);
    assert!(why.out.starts_with("ALLOWED") && why.out.contains(&format!("[profile:{file}]")), "{why:?}");
    let why = nono(&world, &["why", "--allow-cwd", "--path", ".env"]);
    assert!(why.out.starts_with("DENIED") && why.out.contains(&file), "{why:?}");
    let dry = nono(&world, &["run", "--dry-run", "--", "true"]);
    assert!(dry.out.contains(&format!("other/data (read) dir [profile:{file}]")), "{dry:?}");
}

#[test]
fn the_log_has_its_digest() {
    let world = world();
    let digest = |world: &World| {
        let path = world.path("work/.nono/profile.json");
        let sum = world.command("sha256sum").arg(path).output().unwrap();
        String::from_utf8(sum.stdout).unwrap()[..64].to_owned()
    };
    for agreed in [false, true] {
        if agreed {
            agree(&world);
        }
        assert_eq!(nono(&world, &["run", "--allow-cwd", "--", "true"]).code, 0);
        let log = nono(&world, &["audit", "export", "last"]);
        let started = log.out.lines().find(|line| line.contains("session_started")).unwrap_or_default();
        assert!(started.contains(&digest(&world)), "{log:?}");
        assert!(started.contains(&format!("\"agreed\":{agreed}")), "{log:?}");
    }
}
