//! `rollback show`, `review` and `restore` without a session: the last one here, and paths of it.

use snapbox::str;

use super::checkpoints_kit::moments;
use super::sessions::Sessions;
use super::world::{World, golden};

/// Three sessions of one directory; the last one changed nothing.
fn sample() -> Sessions {
    let sessions = Sessions::new();
    sessions.world.file("work/a", "a\n");
    sessions.world.file("work/b", "b\n");
    sessions.run("echo 1 > a; echo 1 > b");
    sessions.run("echo 2 > a; echo 2 > b");
    sessions.run("true");
    sessions
}

#[test]
fn the_last_that_changed_something() {
    let sessions = sample();
    let lines = [
        "nono rollback show",
        "nono rollback show --stat b",
        "nono rollback review",
        "nono rollback show [1] --stat a",
    ];
    let text: String = sessions.transcript(&lines).lines().map(|line| moments(line) + "\n").collect();
    golden(
        text,
        str![[r#"
$ nono rollback show
session [2]  finished
  command sh -c 'echo 2 > a; echo 2 > b'
  started [TIME] ([AGE])
  ended  [TIME]
  exit  0
  tracked [TMP]/work

2 changes: +0 ~2 -0
  ~ a
  ~ b

see the differences: nono rollback show [2] --diff
put everything back: nono rollback restore [2]
! [nono] the last session here: [2] (sh -c 'echo 2 > a; echo 2 > b', [AGE])
$ nono rollback show --stat b
~ b | 2 +-
1 path, 1 line added, 1 line removed
! [nono] the last session here: [2] (sh -c 'echo 2 > a; echo 2 > b', [AGE])
$ nono rollback review
! [nono] the last session here: [2] (sh -c 'echo 2 > a; echo 2 > b', [AGE])
! [nono] error: a review needs a terminal
! [nono] hint: nono rollback show [2]
= exit 125
$ nono rollback show [1] --stat a
~ a | 2 +-
1 path, 1 line added, 1 line removed

"#]],
    );
    let shown = sessions.json("nono rollback show --json", 0);
    assert_eq!(shown["session_id"], sessions.id(2).as_str());
}

#[test]
fn an_empty_one_where_there_is_no_other() {
    let sessions = Sessions::new();
    sessions.run("true");
    sessions.golden(
        &["nono rollback show --stat", "nono rollback restore --yes"],
        str![[r#"
$ nono rollback show --stat
0 paths, 0 lines added, 0 lines removed
! [nono] the last session here: [1] (sh -c true, [AGE])
$ nono rollback restore --yes
! [nono] the last session here: [1] (sh -c true, [AGE])
! [nono] go back to before session [1] (sh -c true, [AGE]) in [TMP]/work:
! [nono] nothing to restore

"#]],
    );
}

#[test]
fn restores() {
    let sessions = sample();
    sessions.golden(
        &[
            "nono rollback restore b --yes",
            "cat a b",
            "nono rollback restore --yes",
            "cat a b",
            "nono rollback restore [1] ./a --yes",
            "cat a b",
            "nono rollback restore [1] --yes",
            "cat a b",
        ],
        str![[r#"
$ nono rollback restore b --yes
! [nono] the last session here: [2] (sh -c 'echo 2 > a; echo 2 > b', [AGE])
! [nono] went back to before session [2] (sh -c 'echo 2 > a; echo 2 > b', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ b
! [nono] undo this with: nono rollback undo [2].1
$ cat a b
2
1
$ nono rollback restore --yes
! [nono] the last session here: [2] (sh -c 'echo 2 > a; echo 2 > b', [AGE])
! [nono] went back to before session [2] (sh -c 'echo 2 > a; echo 2 > b', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ a
! [nono] undo this with: nono rollback undo [2].2
$ cat a b
1
1
$ nono rollback restore [1] ./a --yes
! [nono] went back to before session [1] (sh -c 'echo 1 > a; echo 1 > b', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ a
! [nono] undo this with: nono rollback undo [1].1
$ cat a b
a
1
$ nono rollback restore [1] --yes
! [nono] went back to before session [1] (sh -c 'echo 1 > a; echo 1 > b', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ b
! [nono] undo this with: nono rollback undo [1].2
$ cat a b
a
b

"#]],
    );
}

#[test]
fn a_file_that_is_called_like_a_session() {
    let sessions = Sessions::new();
    sessions.world.file("work/build", "old\n");
    sessions.world.file("work/other", "old\n");
    sessions.run_with("--allow . --name build", "echo new > build; echo new > other");
    sessions.golden(
        &[
            "nono rollback show build --stat",
            "nono rollback show ./build --stat",
            "nono rollback show -- build --stat",
            "nono rollback show --stat -- build",
            "nono rollback restore ./build --yes",
            "cat build other",
            "nono rollback restore build --yes",
            "cat build other",
        ],
        str![[r#"
$ nono rollback show build --stat
~ build | 2 +-
~ other | 2 +-
2 paths, 2 lines added, 2 lines removed
$ nono rollback show ./build --stat
~ build | 2 +-
1 path, 1 line added, 1 line removed
! [nono] the last session here: [1] (sh -c 'echo new > build; echo new > other', [AGE])
$ nono rollback show -- build --stat
! [nono] the last session here: [1] (sh -c 'echo new > build; echo new > other', [AGE])
! [nono] error: session [1] has no path [TMP]/work/--stat
! [nono] hint: `nono rollback show [1]` lists what the session changed
= exit 125
$ nono rollback show --stat -- build
~ build | 2 +-
1 path, 1 line added, 1 line removed
! [nono] the last session here: [1] (sh -c 'echo new > build; echo new > other', [AGE])
$ nono rollback restore ./build --yes
! [nono] the last session here: [1] (sh -c 'echo new > build; echo new > other', [AGE])
! [nono] went back to before session [1] (sh -c 'echo new > build; echo new > other', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ build
! [nono] undo this with: nono rollback undo [1].1
$ cat build other
old
new
$ nono rollback restore build --yes
! [nono] went back to before session [1] (sh -c 'echo new > build; echo new > other', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ other
! [nono] undo this with: nono rollback undo [1].2
$ cat build other
old
old

"#]],
    );
}

#[test]
fn an_argument_that_is_no_session_and_no_path_is_refused() {
    let sessions = sample();
    sessions.golden(
        &[
            "nono rollback show nobody",
            "nono rollback show ./nobody",
            "nono rollback show '' --stat",
            "nono rollback show last nobody",
            "nono rollback show 'no*' --stat",
            "nono rollback show '[ab]' --stat",
            "rm b; nono rollback show b --stat",
        ],
        str![[r#"
$ nono rollback show nobody
! [nono] error: no session is called "nobody"
! [nono] hint: `nono rollback list` lists the sessions
= exit 125
$ nono rollback show ./nobody
! [nono] error: session [2] has no path [TMP]/work/nobody
! [nono] hint: `nono rollback show [2]` lists what the session changed
= exit 125
$ nono rollback show '' --stat
! [nono] error: no session is called ""
! [nono] hint: `nono rollback list` lists the sessions
= exit 125
$ nono rollback show last nobody
! [nono] error: session [3] has no path [TMP]/work/nobody
! [nono] hint: `nono rollback show [3]` lists what the session changed
= exit 125
$ nono rollback show 'no*' --stat
! [nono] error: no session is called "no*"
! [nono] hint: `nono rollback list` lists the sessions
= exit 125
$ nono rollback show '[ab]' --stat
~ a | 2 +-
~ b | 2 +-
2 paths, 2 lines added, 2 lines removed
! [nono] the last session here: [2] (sh -c 'echo 2 > a; echo 2 > b', [AGE])
$ rm b; nono rollback show b --stat
~ b | 2 +-
1 path, 1 line added, 1 line removed
! [nono] the last session here: [2] (sh -c 'echo 2 > a; echo 2 > b', [AGE])

"#]],
    );
}

#[test]
fn without_sessions_each_command_names_the_next_step() {
    World::new().golden(
        &["nono rollback show", "nono rollback restore", "nono rollback review"],
        str![[r#"
$ nono rollback show
! [nono] error: no session has snapshots of [TMP]/work
! [nono] hint: `nono run --rollback -- command` takes them
= exit 125
$ nono rollback restore
! [nono] error: no session has snapshots of [TMP]/work
! [nono] hint: `nono run --rollback -- command` takes them
= exit 125
$ nono rollback review
! [nono] error: no session has snapshots of [TMP]/work
! [nono] hint: `nono run --rollback -- command` takes them
= exit 125

"#]],
    );
    let sessions = Sessions::new();
    sessions.world.dir("work/here", 0o755);
    sessions.world.dir("work/there", 0o755);
    sessions.run_with("--allow here", "echo 1 > here/file");
    sessions.golden(
        &["cd there && nono rollback show", "cd there && nono rollback restore here"],
        str![[r#"
$ cd there && nono rollback show
! [nono] error: no session has snapshots of [TMP]/work/there
! [nono] hint: the last session, [1], has snapshots of [TMP]/work/here: nono rollback show [1]
= exit 125
$ cd there && nono rollback restore here
! [nono] error: no session is called "here"
! [nono] hint: `nono rollback list` lists the sessions
= exit 125

"#]],
    );
}
