//! `nono rollback restore`: the plan, the consent, the outcome, and what is kept.

use snapbox::str;

use super::sessions::Sessions;

/// One session that changed, removed and made something.
fn changed() -> Sessions {
    let sessions = Sessions::new();
    let world = &sessions.world;
    world.file("work/changed", "before\n");
    world.file("work/removed", "before\n");
    world.file("work/dir/mode", "before\n");
    sessions.run("echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file");
    sessions
}

#[test]
fn a_dry_run_shows_everything_and_does_nothing() {
    let sessions = changed();
    sessions.golden(
        &["nono rollback restore last --dry-run", "cat changed; ls", "nono undo --dry-run"],
        str![[r#"
$ nono rollback restore last --dry-run
go back to before session [1] (sh -c 'echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file', [AGE]) in [TMP]/work:
bring back 1, change 1, remove 1, set permissions of 1
  ~ changed
  M dir/mode
  - new/file
  + removed
these changed while the command ran; some of the changes may be your own
$ cat changed; ls
after
changed
dir
new
$ nono undo --dry-run
go back to before session [1] (sh -c 'echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file', [AGE]) in [TMP]/work:
bring back 1, change 1, remove 1, set permissions of 1
  ~ changed
  M dir/mode
  - new/file
  + removed
these changed while the command ran; some of the changes may be your own

"#]],
    );
    let plan = sessions.json("nono rollback restore [1] --dry-run --json", 0);
    assert_eq!(plan["dry_run"], true);
    assert_eq!(plan["session_id"], sessions.id(1));
    assert_eq!(plan["counts"]["created"], 1, "{plan}");
    assert_eq!(plan["counts"]["deleted"], 1, "{plan}");
    assert_eq!(plan["changes"].as_array().unwrap().len(), 4, "{plan}");
    assert_eq!(sessions.sh("cat changed").out(), "after\n");
}

#[test]
fn without_a_terminal_and_a_yes_nothing_is_done() {
    let sessions = changed();
    sessions.golden(
        &[
            "nono rollback restore last",
            "nono rollback restore last --json",
            "nono undo",
            "cat changed",
            "nono rollback restore last --yes",
            "nono rollback undo",
            "nono redo",
            "cat changed",
        ],
        str![[r#"
$ nono rollback restore last
! [nono] error: nothing was done: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be done, --yes does it without asking
= exit 1
$ nono rollback restore last --json
! [nono] error: nothing was done: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be done, --yes does it without asking
= exit 1
$ nono undo
! [nono] error: nothing was done: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be done, --yes does it without asking
= exit 1
$ cat changed
after
$ nono rollback restore last --yes
! [nono] went back to before session [1] (sh -c 'echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file', [AGE]) in [TMP]/work:
! [nono] brought back 1, changed 1, removed 1, set permissions of 1
! [nono]  ~ changed
! [nono]  M dir/mode
! [nono]  - new/file
! [nono]  + removed
! [nono] undo this with: nono rollback undo [1].1
$ nono rollback undo
! [nono] error: nothing was done: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be done, --yes does it without asking
= exit 1
$ nono redo
! [nono] error: nothing was done: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be done, --yes does it without asking
= exit 1
$ cat changed
before

"#]],
    );
}

#[test]
fn everything_back_and_forth() {
    let sessions = changed();
    sessions.golden(
        &[
            "nono rollback restore last --yes",
            "cat changed removed; stat -c %a dir/mode; ls",
            "nono rollback restore last --yes",
            "nono rollback undo --yes",
            "cat changed; stat -c %a dir/mode; ls",
            "nono rollback undo --yes",
        ],
        str![[r#"
$ nono rollback restore last --yes
! [nono] went back to before session [1] (sh -c 'echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file', [AGE]) in [TMP]/work:
! [nono] brought back 1, changed 1, removed 1, set permissions of 1
! [nono]  ~ changed
! [nono]  M dir/mode
! [nono]  - new/file
! [nono]  + removed
! [nono] undo this with: nono rollback undo [1].1
$ cat changed removed; stat -c %a dir/mode; ls
before
before
644
changed
dir
removed
$ nono rollback restore last --yes
! [nono] go back to before session [1] (sh -c 'echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file', [AGE]) in [TMP]/work:
! [nono] nothing to restore
$ nono rollback undo --yes
! [nono] took back the restore of session [1] (sh -c 'echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file', [AGE]) in [TMP]/work:
! [nono] brought back 1, changed 1, removed 1, set permissions of 1
! [nono]  ~ changed
! [nono]  M dir/mode
! [nono]  + new/file
! [nono]  - removed
! [nono] undo this with: nono rollback undo [1].2
$ cat changed; stat -c %a dir/mode; ls
after
600
changed
dir
new
$ nono rollback undo --yes
! [nono] error: no restore is left to undo
! [nono] hint: `nono rollback list` lists the sessions
= exit 1

"#]],
    );
}

#[test]
fn the_outcome_as_json() {
    let sessions = changed();
    let done = sessions.json("nono rollback restore [1] --yes --json", 0);
    assert_eq!(done["dry_run"], false);
    assert_eq!(done["counts"]["modified"], 1, "{done}");
    assert_eq!(done["kept"].as_array().unwrap().len(), 0, "{done}");
    let undo = done["undo"].as_str().unwrap();
    assert!(undo.starts_with(&sessions.id(1)), "{done}");
    let back = sessions.json(&format!("nono rollback undo {undo} --yes --json"), 0);
    assert_eq!(back["counts"]["modified"], 1, "{back}");
    assert_eq!(sessions.sh("cat changed").out(), "after\n");
}

#[test]
fn parts_of_it() {
    let sessions = changed();
    sessions.golden(
        &[
            "nono rollback restore last changed --yes",
            "cat changed; ls",
            "cd dir && nono rollback restore last ../re* mode --yes",
            "ls; stat -c %a dir/mode",
            "nono rollback restore last new --dry-run",
            "nono rollback restore last new --yes",
            "ls",
            "nono rollback restore last nowhere --yes",
            "nono rollback restore last /etc --yes",
        ],
        str![[r#"
$ nono rollback restore last changed --yes
! [nono] went back to before session [1] (sh -c 'echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ changed
! [nono] undo this with: nono rollback undo [1].1
$ cat changed; ls
before
changed
dir
new
$ cd dir && nono rollback restore last ../re* mode --yes
! [nono] went back to before session [1] (sh -c 'echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file', [AGE]) in [TMP]/work:
! [nono] brought back 1, set permissions of 1
! [nono]  M dir/mode
! [nono]  + removed
! [nono] undo this with: nono rollback undo [1].2
$ ls; stat -c %a dir/mode
changed
dir
new
removed
644
$ nono rollback restore last new --dry-run
go back to before session [1] (sh -c 'echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file', [AGE]) in [TMP]/work:
remove 1
  - new/file
these changed while the command ran; some of the changes may be your own
$ nono rollback restore last new --yes
! [nono] went back to before session [1] (sh -c 'echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file', [AGE]) in [TMP]/work:
! [nono] removed 1
! [nono]  - new/file
! [nono] undo this with: nono rollback undo [1].3
$ ls
changed
dir
removed
$ nono rollback restore last nowhere --yes
! [nono] error: session [1] has no path [TMP]/work/nowhere
! [nono] hint: `nono rollback show [1]` lists what the session changed
= exit 125
$ nono rollback restore last /etc --yes
! [nono] error: session [1] has no path /etc
! [nono] hint: `nono rollback show [1]` lists what the session changed
= exit 125

"#]],
    );
}

#[test]
fn what_was_changed_since_is_kept_forced_or_merged() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    let text = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n{last}\n");
    world.file("work/apart", text("1", "8"));
    world.file("work/same", "one\n");
    sessions.run("sed -i s/1/agent/ apart; echo agent > same");
    world.file("work/apart", text("agent", "mine"));
    world.file("work/same", "mine\n");
    world.file("work/mine", "mine\n");
    sessions.golden(
        &[
            "nono rollback restore last --dry-run",
            "nono rollback restore last --yes",
            "nono rollback restore last --merge --yes",
            "cat apart same",
            "nono rollback undo --yes",
            "cat apart same",
            "nono rollback restore last --merge --conflict-markers --yes same",
            "cat same",
            "nono rollback undo --yes",
            "nono rollback restore last --force --yes",
            "cat apart same; ls",
            "nono rollback undo --yes",
            "cat apart same",
            "nono rollback restore last --conflict-markers --yes",
            "nono rollback restore last --force --merge --yes",
        ],
        str![[r#"
$ nono rollback restore last --dry-run
go back to before session [1] (sh -c 'sed -i s/1/agent/ apart; echo agent > same', [AGE]) in [TMP]/work:
nothing to restore
kept unchanged: 3 paths
  apart: changed later
  mine: changed later
  same: changed later
hint: --force also restores what changed later (`nono rollback undo` takes that back), --merge merges text files
$ nono rollback restore last --yes
! [nono] go back to before session [1] (sh -c 'sed -i s/1/agent/ apart; echo agent > same', [AGE]) in [TMP]/work:
! [nono] nothing to restore
! [nono] kept unchanged: 3 paths
! [nono]  apart: changed later
! [nono]  mine: changed later
! [nono]  same: changed later
! [nono] hint: --force also restores what changed later (`nono rollback undo` takes that back), --merge merges text files
= exit 1
$ nono rollback restore last --merge --yes
! [nono] went back to before session [1] (sh -c 'sed -i s/1/agent/ apart; echo agent > same', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ apart
! [nono] merged with later changes: 1 file
! [nono]  apart
! [nono] kept unchanged: 2 paths
! [nono]  mine: changed later
! [nono]  same: changed later, and it cannot be merged
! [nono] undo this with: nono rollback undo [1].1
! [nono] hint: --conflict-markers writes both versions into files that do not merge; --force overwrites them (`nono rollback undo` takes that back)
= exit 1
$ cat apart same
1
2
3
4
5
6
7
mine
mine
$ nono rollback undo --yes
! [nono] took back the restore of session [1] (sh -c 'sed -i s/1/agent/ apart; echo agent > same', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ apart
! [nono] undo this with: nono rollback undo [1].2
$ cat apart same
agent
2
3
4
5
6
7
mine
mine
$ nono rollback restore last --merge --conflict-markers --yes same
! [nono] went back to before session [1] (sh -c 'sed -i s/1/agent/ apart; echo agent > same', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ same
! [nono] merged with later changes: 1 file
! [nono]  same: with conflict markers
! [nono] undo this with: nono rollback undo [1].3
$ cat same
<<<<<<< now
mine
||||||| what the session left
agent
=======
one
>>>>>>> snapshot 0
$ nono rollback undo --yes
! [nono] took back the restore of session [1] (sh -c 'sed -i s/1/agent/ apart; echo agent > same', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ same
! [nono] undo this with: nono rollback undo [1].4
$ nono rollback restore last --force --yes
! [nono] went back to before session [1] (sh -c 'sed -i s/1/agent/ apart; echo agent > same', [AGE]) in [TMP]/work:
! [nono] changed 2, removed 1
! [nono]  ~ apart
! [nono]  - mine
! [nono]  ~ same
! [nono] undo this with: nono rollback undo [1].5
$ cat apart same; ls
1
2
3
4
5
6
7
8
one
apart
same
$ nono rollback undo --yes
! [nono] took back the restore of session [1] (sh -c 'sed -i s/1/agent/ apart; echo agent > same', [AGE]) in [TMP]/work:
! [nono] brought back 1, changed 2
! [nono]  ~ apart
! [nono]  + mine
! [nono]  ~ same
! [nono] undo this with: nono rollback undo [1].6
$ cat apart same
agent
2
3
4
5
6
7
mine
mine
$ nono rollback restore last --conflict-markers --yes
! [nono] error: the following required arguments were not provided:
! [nono]  --merge
! [nono]
! [nono] Usage: nono rollback restore --merge --conflict-markers --yes <ID> [PATH]... [-- <PATH>...]
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono rollback restore last --force --merge --yes
! [nono] error: the argument '--force' cannot be used with '--merge'
! [nono]
! [nono] Usage: nono rollback restore --force --yes <ID> [PATH]... [-- <PATH>...]
! [nono]
! [nono] For more information, try '--help'.
= exit 2

"#]],
    );
}

#[test]
fn a_snapshot_that_there_is_and_one_that_there_is_not() {
    let sessions = changed();
    sessions.golden(
        &[
            "nono rollback restore last --yes > /dev/null",
            "nono rollback restore last --snapshot 1 --yes",
            "cat changed; ls",
            "nono rollback restore last --snapshot 7 --yes",
            "nono rollback restore last --snapshot x --yes",
            "nono rollback restore last --snapshot -1 --yes",
        ],
        str![[r#"
$ nono rollback restore last --yes > /dev/null
! [nono] went back to before session [1] (sh -c 'echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file', [AGE]) in [TMP]/work:
! [nono] brought back 1, changed 1, removed 1, set permissions of 1
! [nono]  ~ changed
! [nono]  M dir/mode
! [nono]  - new/file
! [nono]  + removed
! [nono] undo this with: nono rollback undo [1].1
$ nono rollback restore last --snapshot 1 --yes
! [nono] went back to snapshot 1 of session [1] (sh -c 'echo after > changed; rm removed; chmod 600 dir/mode; mkdir new; echo x > new/file', [AGE]) in [TMP]/work:
! [nono] brought back 1, changed 1, removed 1, set permissions of 1
! [nono]  ~ changed
! [nono]  M dir/mode
! [nono]  + new/file
! [nono]  - removed
! [nono] undo this with: nono rollback undo [1].2
$ cat changed; ls
after
changed
dir
new
$ nono rollback restore last --snapshot 7 --yes
! [nono] error: session [1] has no snapshot 7
! [nono] hint: `nono rollback show [1] --snapshots` lists them
= exit 125
$ nono rollback restore last --snapshot x --yes
! [nono] error: invalid value 'x' for '--snapshot <N>': write a whole number from 0 on
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono rollback restore last --snapshot -1 --yes
! [nono] error: unexpected argument '-1' found
! [nono]
! [nono]  tip: to pass '-1' as a value, use '-- -1'
! [nono]
! [nono] Usage: nono rollback restore [OPTIONS] [ID] [PATH]... [-- <PATH>...]
! [nono]
! [nono] For more information, try '--help'.
= exit 2

"#]],
    );
}
