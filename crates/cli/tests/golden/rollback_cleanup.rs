//! `nono rollback cleanup`, `pin` and `unpin`.

use serde_json::Value;
use snapbox::str;

use super::sessions::Sessions;
use super::settled::settled;

/// Three sessions, each with content of its own.
fn three() -> Sessions {
    let sessions = Sessions::new();
    for number in 1..=3 {
        sessions.world.dir(&format!("work/{number}"), 0o755);
        sessions
            .run_with(&format!("--allow {number}"), &format!("head -c 300000 /dev/urandom > {number}/file"));
    }
    // One that is being settled is passed over.
    settled(&sessions.world.path("bin/nono"));
    sessions
}

fn ids(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|one| one["session_id"].as_str().unwrap()).collect()
}

#[test]
fn the_oldest_go_and_their_bytes_with_them() {
    let sessions = three();
    sessions.golden(
        &[
            "nono rollback cleanup",
            "nono rollback cleanup --dry-run",
            "nono rollback cleanup --keep 2",
            "nono rollback cleanup --keep 2 --dry-run",
            "nono rollback cleanup --keep 2 --yes",
            "nono rollback list",
            "nono rollback cleanup --keep 2 --yes",
            "nono rollback cleanup --older-than 1 --yes",
        ],
        str![[r#"
$ nono rollback cleanup
! [nono] error: nothing was removed: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be removed, --yes removes it without asking
= exit 1
$ nono rollback cleanup --dry-run
nothing to remove
$ nono rollback cleanup --keep 2
! [nono] error: nothing was removed: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be removed, --yes removes it without asking
= exit 1
$ nono rollback cleanup --keep 2 --dry-run
1 session would be removed, about [SIZE] freed, about [SIZE] still used
  [1]  [AGE]  sh -c 'head -c 300000 /dev/urandom > 1/file'  [TMP]/work/1
$ nono rollback cleanup --keep 2 --yes
! [nono] 1 session removed, [SIZE] freed, [SIZE] still used
! [nono]  [1]  [AGE]  sh -c 'head -c 300000 /dev/urandom > 1/file'  [TMP]/work/1
$ nono rollback list
[TMP]/work/3 (1 session)
  [3]  [AGE]  sh -c 'head -c 300000 /dev/urandom > 3/file'  +1 ~0 -0
[TMP]/work/2 (1 session)
  [2]  [AGE]  sh -c 'head -c 300000 /dev/urandom > 2/file'  +1 ~0 -0
$ nono rollback cleanup --keep 2 --yes
! [nono] nothing to remove
$ nono rollback cleanup --older-than 1 --yes
! [nono] nothing to remove

"#]],
    );
    let done = sessions.json("nono rollback cleanup --all --yes --json", 0);
    assert_eq!(ids(&done["removed"]).len(), 2, "{done}");
    let (before, after) = (done["bytes_before"].as_u64().unwrap(), done["bytes_after"].as_u64().unwrap());
    assert!(before - after > 500_000, "{done}");
    assert_eq!(sessions.json("nono rollback list --json", 0), Value::Array(Vec::new()));
}

#[test]
fn by_size() {
    let sessions = three();
    // A megabyte of it is kept for restores on a full disk.
    let done = sessions.json("nono rollback cleanup --max-size 1800K --yes --json", 0);
    assert!(!ids(&done["removed"]).is_empty(), "{done}");
    assert!(!ids(&done["removed"]).contains(&sessions.id(3).as_str()), "the newest went: {done}");
    assert!(done["bytes_after"].as_u64().unwrap() <= 1800 << 10, "{done}");
    assert_eq!(done["over_budget"], false);
}

#[test]
fn what_is_pinned_stays() {
    let sessions = three();
    sessions.golden(
        &[
            "nono rollback pin [1]",
            "nono rollback pin [1]",
            "nono rollback cleanup --all --dry-run",
            "nono rollback cleanup --all --yes",
            "nono rollback list",
            "nono rollback verify",
            "nono rollback cleanup --max-size 1K --yes",
            "nono rollback unpin [1]",
            "nono rollback cleanup --all --yes",
            "nono rollback list",
        ],
        str![[r#"
$ nono rollback pin [1]
! [nono] session [1] is kept until it is unpinned
$ nono rollback pin [1]
! [nono] session [1] is kept until it is unpinned
$ nono rollback cleanup --all --dry-run
2 sessions would be removed, about [SIZE] freed, about [SIZE] still used
  [2]  [AGE]  sh -c 'head -c 300000 /dev/urandom > 2/file'  [TMP]/work/2
  [3]  [AGE]  sh -c 'head -c 300000 /dev/urandom > 3/file'  [TMP]/work/3
$ nono rollback cleanup --all --yes
! [nono] 2 sessions removed, [SIZE] freed, [SIZE] still used
! [nono]  [2]  [AGE]  sh -c 'head -c 300000 /dev/urandom > 2/file'  [TMP]/work/2
! [nono]  [3]  [AGE]  sh -c 'head -c 300000 /dev/urandom > 3/file'  [TMP]/work/3
$ nono rollback list
[TMP]/work/1 (1 session)
  [1]  [AGE]  sh -c 'head -c 300000 /dev/urandom > 1/file'  +1 ~0 -0  [pinned]
$ nono rollback verify
[1]: good (2 snapshots, [N] objects, [SIZE], sealed)
$ nono rollback cleanup --max-size 1K --yes
! [nono] nothing to remove
! [nono] still over the size limit: the sessions left are running, pinned or made by another program
$ nono rollback unpin [1]
! [nono] session [1] may be removed when room is needed
$ nono rollback cleanup --all --yes
! [nono] 1 session removed, [SIZE] freed, [SIZE] still used
! [nono]  [1]  [AGE]  sh -c 'head -c 300000 /dev/urandom > 1/file'  [TMP]/work/1
$ nono rollback list
no sessions; `nono run --rollback -- command` makes one

"#]],
    );
}

#[test]
fn the_configured_limits_hold_where_none_is_given() {
    let sessions = three();
    sessions.run_with("--allow 1", "echo again > 1/file");
    sessions.world.file("state/config.toml", "[rollback]\nmax_sessions = 1\n");
    // Of each project.
    let plan = sessions.json("nono rollback cleanup --dry-run --json", 0);
    assert_eq!(ids(&plan["removed"]), [sessions.id(1)], "{plan}");
    assert_eq!(plan["dry_run"], true);
    assert_eq!(sessions.json("nono rollback list --json", 0).as_array().unwrap().len(), 4);
    sessions.world.file("state/config.toml", "[rollback]\nmax_session = 1\n");
    sessions.golden(
        &["nono rollback cleanup --dry-run"],
        str![[r#"
$ nono rollback cleanup --dry-run
! [nono] error: [TMP]/state/config.toml: unknown key "rollback.max_session" (nearest: "rollback.max_sessions")
= exit 125

"#]],
    );
}
