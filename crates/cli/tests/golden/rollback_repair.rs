//! `nono rollback repair`: what is damaged is set aside and made anew, and said; and nothing else stops for it.

use std::fs;

use snapbox::str;

use super::sessions::Sessions;
use super::settled::settled;

#[test]
fn nothing_to_do() {
    let sessions = Sessions::new();
    sessions.golden(
        &["nono rollback repair", "nono rollback repair --dry-run", "nono rollback repair --json"],
        str![[r#"
$ nono rollback repair
! [nono] nothing is damaged
$ nono rollback repair --dry-run
nothing is damaged
$ nono rollback repair --json
{
  "dry_run": false,
  "stores": [],
  "files_set_aside": [],
  "problems": []
}

"#]],
    );
}

#[test]
fn records_are_made_anew_and_what_is_lost_is_named() {
    let sessions = Sessions::new();
    sessions.world.file("work/file", "before\n");
    sessions.run("echo 1 > file");
    sessions.run("echo 2 > file");
    // The upkeep process would rebuild it.
    settled(&sessions.world.path("bin/nono"));
    fs::write(sessions.folder(1).join("record.json"), "").unwrap();
    fs::write(sessions.folder(1).join("snapshots/001.json"), "").unwrap();
    fs::write(sessions.folder(2).join("session.json"), "").unwrap();
    let report = sessions.json("nono rollback repair --dry-run --json", 1);
    assert_eq!(report["dry_run"], true);
    assert_eq!(report["files_set_aside"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["stores"][0]["records_rebuilt"].as_array().unwrap().len(), 1, "{report}");
    sessions.golden(
        &["nono rollback repair", "nono rollback repair", "nono undo --yes [1]", "cat file"],
        str![[r#"
$ nono rollback repair
! [nono] rebuilt [TMP]/state/rollbacks/[1]/record.json: 1 snapshot (EOF while parsing a value at line 1 column 0)
! [nono] a snapshot of [TMP]/state/rollbacks/[1] is lost: [TMP]/state/rollbacks/[1]/snapshots/001.json cannot be read
! [nono] set aside [TMP]/state/rollbacks/[2]/session.json
= exit 1
$ nono rollback repair
! [nono] nothing is damaged
$ nono undo --yes [1]
! [nono] went back to before session [1] (sh -c 'echo 1 > file', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ file
! [nono] the session has no final snapshot, so nono cannot tell your later changes from the command's: both were undone
! [nono] undo this with: nono rollback undo [1].1
$ cat file
before

"#]],
    );
}

#[test]
fn projects_too() {
    let sessions = Sessions::new();
    sessions.world.file("work/Makefile", "");
    sessions.sh("nono checkpoints create").ended(0);
    let projects = fs::read_dir(sessions.world.path("state/projects")).unwrap();
    let mut projects = projects.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let project = projects.next().unwrap();
    fs::write(project.join("project.json"), "").unwrap();
    // Other commands work before it is repaired, too.
    sessions.sh("nono checkpoints prune --yes").ended(0);
    fs::write(project.join("project.json"), "").unwrap();
    let report = sessions.json("nono rollback repair --json", 0);
    let aside = report["files_set_aside"].as_array().unwrap();
    assert!(aside.len() == 1 && aside[0].as_str().unwrap().ends_with("/project.json"), "{report}");
    assert!(project.join("project.json").metadata().unwrap().len() > 0);
    sessions.sh("nono checkpoints verify").ended(0);
}

/// The state folder was moved, and another one made in its place: neither harms the other.
#[test]
fn a_state_folder_that_was_moved() {
    let sessions = Sessions::new();
    sessions.world.file("work/file", "before\n");
    sessions.run("echo 1 > file");
    sessions.run("echo 2 > file");
    let (state, moved) = (sessions.world.path("state"), sessions.world.path("moved"));
    fs::rename(&state, &moved).unwrap();
    sessions.run("echo 3 > file");
    let outcome = sessions.sh(&format!("NONO_HOME={} nono rollback cleanup --keep 1 --yes", moved.display()));
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    for home in [&state, &moved] {
        let outcome = sessions.sh(&format!("NONO_HOME={} nono rollback verify", home.display()));
        assert_eq!(outcome.code(), Some(0), "{outcome:?}");
        assert!(outcome.out().contains(": good ("), "{outcome:?}");
    }
    let undo =
        format!("NONO_HOME={} nono rollback restore {} --yes --force", moved.display(), sessions.id(2));
    assert_eq!(sessions.sh(&undo).code(), Some(0));
    assert_eq!(fs::read_to_string(sessions.world.path("work/file")).unwrap(), "1\n");
}

/// Cleanups and checks at the same time: what another one removes is gone, which is what was wanted.
#[test]
fn cleanups_and_checks_at_once() {
    let sessions = Sessions::new();
    sessions.world.file("work/file", "before\n");
    for round in 0..3 {
        for line in ["echo a > file", "echo b > file", "echo c > file"] {
            sessions.run(line);
        }
        let commands =
            ["cleanup --all --yes", "verify", "cleanup --all --yes", "verify", "cleanup --keep 1 --yes"];
        let line = commands.map(|command| format!("nono rollback {command} & pids=\"$pids $!\"")).join("; ");
        let wait = "for pid in $pids; do wait $pid || failed=1; done; exit ${failed:-0}";
        let outcome = sessions.sh(&format!("{line}; {wait}"));
        assert_eq!(outcome.code(), Some(0), "round {round}: {outcome:?}");
    }
}
