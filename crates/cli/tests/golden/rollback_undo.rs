//! `nono undo`, `nono redo` and `nono rollback undo`: the short way, and the way back from there.

use snapbox::str;

use super::sessions::Sessions;

#[test]
fn what_the_last_session_here_did() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    world.file("work/a/file", "before\n");
    world.file("work/b/file", "before\n");
    sessions.run_with("--allow a", "echo first > a/file");
    sessions.run_with("--allow b", "echo second > b/file");
    sessions.golden(
        &[
            "cd a && nono undo --yes",
            "cat a/file b/file",
            "cd a && nono undo --yes",
            "nono redo --yes",
            "cat a/file b/file",
            "nono undo --yes",
            "cat a/file b/file",
            "nono redo --dry-run",
            "nono redo --yes",
            "nono undo --to [1] --yes",
            "cat a/file b/file",
            "cd ../home && nono undo --yes",
            "cat b/file",
        ],
        str![[r#"
$ cd a && nono undo --yes
! [nono] went back to before session [1] (sh -c 'echo first > a/file', [AGE]) in [TMP]/work/a:
! [nono] changed 1
! [nono]  ~ file
! [nono] undo this with: nono rollback undo [1].1
$ cat a/file b/file
before
second
$ cd a && nono undo --yes
! [nono] error: there is nothing left to undo in [TMP]/work/a
! [nono] hint: `nono redo` takes the last undo back, `nono rollback list` shows all
= exit 1
$ nono redo --yes
! [nono] took back the restore of session [1] (sh -c 'echo first > a/file', [AGE]) in [TMP]/work/a:
! [nono] changed 1
! [nono]  ~ file
! [nono] undo this with: nono rollback undo [1].2
$ cat a/file b/file
first
second
$ nono undo --yes
! [nono] went back to before session [2] (sh -c 'echo second > b/file', [AGE]) in [TMP]/work/b:
! [nono] changed 1
! [nono]  ~ file
! [nono] undo this with: nono rollback undo [2].1
$ cat a/file b/file
first
before
$ nono redo --dry-run
take back the restore of session [2] (sh -c 'echo second > b/file', [AGE]) in [TMP]/work/b:
change 1
  ~ file
$ nono redo --yes
! [nono] took back the restore of session [2] (sh -c 'echo second > b/file', [AGE]) in [TMP]/work/b:
! [nono] changed 1
! [nono]  ~ file
! [nono] undo this with: nono rollback undo [2].2
$ nono undo --to [1] --yes
! [nono] went back to before session [2] (sh -c 'echo second > b/file', [AGE]) in [TMP]/work/b:
! [nono] changed 1
! [nono]  ~ file
! [nono] undo this with: nono rollback undo [2].3
! [nono] went back to before session [1] (sh -c 'echo first > a/file', [AGE]) in [TMP]/work/a:
! [nono] changed 1
! [nono]  ~ file
! [nono] undo this with: nono rollback undo [1].3
$ cat a/file b/file
before
before
$ cd ../home && nono undo --yes
! [nono] error: no session has snapshots of [TMP]/home
! [nono] hint: the last session, [2], has snapshots of [TMP]/work/b; `nono rollback list` shows all
= exit 1
$ cat b/file
before

"#]],
    );
}

#[test]
fn a_restore_by_its_id_its_session_or_as_the_last_one() {
    let sessions = Sessions::new();
    sessions.world.file("work/file", "before\n");
    sessions.world.file("work/other", "before\n");
    sessions.run("echo after > file; echo after > other");
    sessions.golden(
        &[
            "nono rollback undo --yes",
            "nono rollback undo [1] --yes",
            "nono rollback restore last file --yes",
            "nono rollback restore last other --yes",
            "nono rollback undo [1].1 --dry-run",
            "nono rollback undo [1].1 --yes",
            "cat file other",
            "nono rollback undo [1].1 --yes",
            "nono rollback undo last --yes",
            "cat file other",
            "nono rollback undo [1].99 --yes",
            "nono rollback undo nobody.1 --yes",
            "nono rollback undo nobody --yes",
        ],
        str![[r#"
$ nono rollback undo --yes
! [nono] error: no restore is left to undo
! [nono] hint: `nono rollback list` lists the sessions
= exit 1
$ nono rollback undo [1] --yes
! [nono] error: there is no restore to undo in session [1]
= exit 1
$ nono rollback restore last file --yes
! [nono] went back to before session [1] (sh -c 'echo after > file; echo after > other', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ file
! [nono] undo this with: nono rollback undo [1].1
$ nono rollback restore last other --yes
! [nono] went back to before session [1] (sh -c 'echo after > file; echo after > other', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ other
! [nono] undo this with: nono rollback undo [1].2
$ nono rollback undo [1].1 --dry-run
take back the restore of session [1] (sh -c 'echo after > file; echo after > other', [AGE]) in [TMP]/work:
change 1
  ~ file
$ nono rollback undo [1].1 --yes
! [nono] took back the restore of session [1] (sh -c 'echo after > file; echo after > other', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ file
! [nono] undo this with: nono rollback undo [1].3
$ cat file other
after
before
$ nono rollback undo [1].1 --yes
! [nono] error: restore [1].1 was undone already
= exit 1
$ nono rollback undo last --yes
! [nono] took back the restore of session [1] (sh -c 'echo after > file; echo after > other', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ other
! [nono] undo this with: nono rollback undo [1].4
$ cat file other
after
after
$ nono rollback undo [1].99 --yes
! [nono] error: there is no restore [1].99
= exit 125
$ nono rollback undo nobody.1 --yes
! [nono] error: no session is called "nobody"
! [nono] hint: `nono rollback list` lists the sessions
= exit 125
$ nono rollback undo nobody --yes
! [nono] error: no session is called "nobody"
! [nono] hint: `nono rollback list` lists the sessions
= exit 125

"#]],
    );
}

#[test]
fn edits_after_a_restore_survive_its_undo() {
    let sessions = Sessions::new();
    sessions.world.file("work/file", "before\n");
    sessions.world.file("work/other", "before\n");
    sessions.run("echo after > file; echo after > other");
    sessions.sh("nono undo --yes");
    sessions.world.file("work/file", "mine\n");
    sessions.golden(
        &["nono redo --yes", "cat file other"],
        str![[r#"
$ nono redo --yes
! [nono] took back the restore of session [1] (sh -c 'echo after > file; echo after > other', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ other
! [nono] kept unchanged: 1 path
! [nono]  file: changed later
! [nono] undo this with: nono rollback undo [1].2
= exit 1
$ cat file other
mine
after

"#]],
    );
}
