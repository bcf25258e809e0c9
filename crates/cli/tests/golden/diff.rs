//! `nono diff`: of the last session here; without one, since the newest checkpoint.

use snapbox::str;

use super::checkpoints_kit::Checkpoints;
use super::sessions::Sessions;
use super::world::World;

#[test]
fn of_the_last_session_here() {
    let sessions = Sessions::new();
    sessions.world.file("work/a", "a\n");
    sessions.world.file("work/b", "b\n");
    sessions.run("echo 1 > a; echo 1 > b");
    sessions.run("true");
    sessions.golden(
        &[
            "nono diff",
            "nono diff b --exit-code",
            "nono diff --stat",
            "nono diff --side-by-side --stat",
            "nono diff nobody",
            "nono diff | git apply -R; cat a b",
        ],
        str![[r#"
$ nono diff
diff --git a/a b/a
index 78981922613b2afb6025042ff6bd878ac1994e85..d00491fd7e5bb6fa28c517a0bb32b8b506539d4d 100644
--- a/a
+++ b/a
@@ -1 +1 @@
-a
+1
diff --git a/b b/b
index 61780798228d17af2d34fce4cfbdf35556832472..d00491fd7e5bb6fa28c517a0bb32b8b506539d4d 100644
--- a/b
+++ b/b
@@ -1 +1 @@
-b
+1
! [nono] changes of session [1] (sh -c 'echo 1 > a; echo 1 > b', [AGE])
$ nono diff b --exit-code
diff --git a/b b/b
index 61780798228d17af2d34fce4cfbdf35556832472..d00491fd7e5bb6fa28c517a0bb32b8b506539d4d 100644
--- a/b
+++ b/b
@@ -1 +1 @@
-b
+1
! [nono] changes of session [1] (sh -c 'echo 1 > a; echo 1 > b', [AGE])
= exit 1
$ nono diff --stat
~ a | 2 +-
~ b | 2 +-
2 paths, 2 lines added, 2 lines removed
! [nono] changes of session [1] (sh -c 'echo 1 > a; echo 1 > b', [AGE])
$ nono diff --side-by-side --stat
~ a | 2 +-
~ b | 2 +-
2 paths, 2 lines added, 2 lines removed
! [nono] changes of session [1] (sh -c 'echo 1 > a; echo 1 > b', [AGE])
$ nono diff nobody
! [nono] changes of session [1] (sh -c 'echo 1 > a; echo 1 > b', [AGE])
! [nono] error: session [1] has no path [TMP]/work/nobody
! [nono] hint: `nono rollback show [1]` lists what the session changed
= exit 125
$ nono diff | git apply -R; cat a b
a
b
! [nono] changes of session [1] (sh -c 'echo 1 > a; echo 1 > b', [AGE])

"#]],
    );
    let shown = sessions.json("nono diff a --json --exit-code", 1);
    assert_eq!(shown["session_id"], sessions.id(1).as_str());
    assert_eq!(shown["changes"].as_array().unwrap().len(), 1);
    assert!(shown["changes"][0]["patch"].as_str().unwrap().contains("+1\n"), "{shown}");
}

#[test]
fn of_a_session_that_changed_nothing() {
    let sessions = Sessions::new();
    sessions.run("true");
    sessions.golden(
        &["nono diff --exit-code", "nono diff --stat"],
        str![[r#"
$ nono diff --exit-code
! [nono] changes of session [1] (sh -c true, [AGE])
! [nono] nothing changed
$ nono diff --stat
0 paths, 0 lines added, 0 lines removed
! [nono] changes of session [1] (sh -c true, [AGE])
! [nono] nothing changed

"#]],
    );
}

#[test]
fn since_the_newest_checkpoint() {
    let project = Checkpoints::changed();
    project.golden(
        &["nono diff", "nono diff --stat --exit-code", "nono diff nobody", "nono diff main.c --exit-code"],
        str![[r#"
$ nono diff
diff --git a/main.c b/main.c
index 4cb29ea38f70d7c61b2a3a25b02e3bdf44905402..ea14db2cbfbc66490839aedb0930134deee503ad 100644
--- a/main.c
+++ b/main.c
@@ -1,3 +1,4 @@
 one
-two
+2
 three
+four
diff --git a/new/file b/new/file
new file mode 100644
index 0000000000000000000000000000000000000000..3e757656cf36eca53338e520d134963a44f793f8
--- /dev/null
+++ b/new/file
@@ -0,0 +1 @@
+new
! [nono] changes since checkpoint [id1] (the beginning, [AGE])
$ nono diff --stat --exit-code
~ main.c  | 3 ++-
+ new/file | 1 +
2 paths, 3 lines added, 1 line removed
! [nono] changes since checkpoint [id1] (the beginning, [AGE])
= exit 1
$ nono diff nobody
! [nono] changes since checkpoint [id1] (the beginning, [AGE])
! [nono] error: no path [TMP]/work/project/nobody in the project or in the checkpoint
! [nono] hint: `nono checkpoints diff N` shows what changed
= exit 125
$ nono diff main.c --exit-code
diff --git a/main.c b/main.c
index 4cb29ea38f70d7c61b2a3a25b02e3bdf44905402..ea14db2cbfbc66490839aedb0930134deee503ad 100644
--- a/main.c
+++ b/main.c
@@ -1,3 +1,4 @@
 one
-two
+2
 three
+four
! [nono] changes since checkpoint [id1] (the beginning, [AGE])
= exit 1

"#]],
    );
}

#[test]
fn without_sessions_diff_names_the_next_step() {
    World::new().golden(
        &["nono diff", "nono diff --json --exit-code"],
        str![[r#"
$ nono diff
! [nono] error: no session has snapshots of [TMP]/work
! [nono] hint: `nono run --rollback -- command` takes them
= exit 125
$ nono diff --json --exit-code
! [nono] error: no session has snapshots of [TMP]/work
! [nono] hint: `nono run --rollback -- command` takes them
= exit 125

"#]],
    );
}
