//! `nono checkpoints list`, `status` and `diff`: what there is.

use snapbox::str;

use super::checkpoints_kit::Checkpoints;
use super::world::World;

/// Three steps of work.
fn worked() -> Checkpoints {
    let kit = Checkpoints::new();
    kit.create("before write_file");
    kit.world.file("work/project/main.c", "one\ntwo\n");
    kit.create("before patch");
    kit.world.file("work/project/main.c", "one\ntwo\nthree\n");
    kit.create("before terminal: sed -i s/a/b/ main.c");
    kit
}

#[test]
fn each_line_has_the_numbers_of_its_step() {
    let kit = worked();
    kit.golden(
        &[
            "nono checkpoints list",
            "nono checkpoints name 2 works",
            "nono checkpoints pin 3",
            "nono checkpoints unpin 3",
            "nono checkpoints pin works",
            "nono checkpoints list",
            "cd / && nono checkpoints list --path $HOME/../work/project | head -2",
        ],
        str![[r#"
$ nono checkpoints list
Checkpoints for [TMP]/work/project:
  1. [id1]  [TIME]  before terminal: sed -i s/a/b/ main.c
  2. [id2]  [TIME]  before patch  (1 file, +1/-0)
  3. [id3]  [TIME]  before write_file  (1 file, +2/-0)

go back to one:  nono checkpoints restore N
see what changed:  nono checkpoints diff N
only one file:  nono checkpoints restore N FILE
$ nono checkpoints name 2 works
! [nono] checkpoint [id2] is named works and will not be pruned
$ nono checkpoints pin 3
! [nono] checkpoint [id3] is kept until it is unpinned
$ nono checkpoints unpin 3
! [nono] checkpoint [id3] may be removed when room is needed
$ nono checkpoints pin works
! [nono] checkpoint [id2] is kept until it is unpinned
$ nono checkpoints list
Checkpoints for [TMP]/work/project:
  1. [id1]  [TIME]  before terminal: sed -i s/a/b/ main.c
  2. [id2]  [TIME]  before patch  (1 file, +1/-0)  [pinned] [name: works]
  3. [id3]  [TIME]  before write_file  (1 file, +2/-0)

go back to one:  nono checkpoints restore N
see what changed:  nono checkpoints diff N
only one file:  nono checkpoints restore N FILE
$ cd / && nono checkpoints list --path $HOME/../work/project | head -2
Checkpoints for [TMP]/work/project:
  1. [id1]  [TIME]  before terminal: sed -i s/a/b/ main.c

"#]],
    );
    let list = kit.json("nono checkpoints list --json", 0);
    assert_eq!(list["project"], kit.path("").to_str().unwrap().trim_end_matches('/'));
    let first = &list["checkpoints"][1];
    assert_eq!(first["number"], 2);
    assert_eq!(first["reason"], "before patch");
    assert_eq!(first["name"], "works");
    assert_eq!(first["pinned"], true);
    assert_eq!(first["stats"], serde_json::json!({"files": 1, "insertions": 1, "deletions": 0}));
    assert_eq!(first["not_covered"], 0);
    for unknown in ["agent", "session", "turn", "tool", "call", "run", "imported_from"] {
        assert!(first[unknown].is_null() && first.get(unknown).is_some(), "{unknown}");
    }
}

#[test]
fn what_is_not_covered_is_said() {
    let kit = Checkpoints::new();
    kit.world.file("work/project/.venv/pyvenv.cfg", "x\n");
    kit.golden(
        &["nono checkpoints create", "nono checkpoints list", "nono checkpoints create"],
        str![[r#"
$ nono checkpoints create
! [nono] checkpoint [id1] of [TMP]/work/project: 1 file
! [nono] not covered: 1 directory (.venv: Python virtual environment)
$ nono checkpoints list
Checkpoints for [TMP]/work/project:
  1. [id1]  [TIME]  by hand  [not covered: 1]

go back to one:  nono checkpoints restore N
see what changed:  nono checkpoints diff N
only one file:  nono checkpoints restore N FILE
$ nono checkpoints create
! [nono] nothing changed in [TMP]/work/project since checkpoint [id1]

"#]],
    );
}

#[test]
fn the_status() {
    World::new().golden(
        &["nono checkpoints", "nono checkpoints list", "nono checkpoints list --all"],
        str![[r#"
$ nono checkpoints
Checkpoint base: [TMP]/state
Total size:      0 bytes
  store          0 bytes
  legacy         0 bytes
Projects:        0

Checkpoints are off: none is taken automatically.
turn them on with: nono hooks install AGENT (or `enabled = true` below [checkpoints] in config.toml)
$ nono checkpoints list
Checkpoint base: [TMP]/state
Total size:      0 bytes
  store          0 bytes
  legacy         0 bytes
Projects:        0

Checkpoints are off: none is taken automatically.
turn them on with: nono hooks install AGENT (or `enabled = true` below [checkpoints] in config.toml)
$ nono checkpoints list --all
no checkpoints; `nono checkpoints create` takes one

"#]],
    );
    let kit = worked();
    kit.world.file("work/other/Makefile", "all:\n");
    kit.world.sh("nono checkpoints create other").ended(0);
    kit.world.file("state/config.toml", "[checkpoints]\nenabled = true\n");
    kit.golden(
        &["nono checkpoints", "cd / && nono checkpoints list | head -1", "nono checkpoints list --all"],
        str![[r#"
$ nono checkpoints
Checkpoint base: [TMP]/state
Total size:  about [SIZE]
  store  about [SIZE]
  legacy  [SIZE]
Projects:  2

  WORKDIR  COMMITS  LAST TOUCH  STATE
  [TMP]/work/other  1  [AGE]  live
  [TMP]/work/project  3  [AGE]  live
$ cd / && nono checkpoints list | head -1
Checkpoint base: [TMP]/state
$ nono checkpoints list --all
Checkpoints for [TMP]/work/other:
  1. [id1]  [TIME]  by hand

Checkpoints for [TMP]/work/project:
  1. [id2]  [TIME]  before terminal: sed -i s/a/b/ main.c
  2. [id3]  [TIME]  before patch  (1 file, +1/-0)
  3. [id4]  [TIME]  before write_file  (1 file, +2/-0)

"#]],
    );
    let status = kit.json("nono checkpoints --json", 0);
    assert_eq!(status["enabled"], true);
    assert_eq!(status["projects"].as_array().unwrap().len(), 2);
    assert_eq!(status["projects"][0]["state"], "live");
    assert!(status["store_bytes"].as_u64().unwrap() > 0, "{status}");
}

#[test]
fn what_changed_since() {
    let kit = Checkpoints::changed();
    kit.golden(
        &[
            "nono checkpoints diff 1 --stat",
            "nono checkpoints diff 1",
            "nono checkpoints diff 1 new",
            "nono checkpoints diff 1 --side-by-side main.c",
            "nono checkpoints diff 1 --exit-code Makefile",
            "nono checkpoints diff 1 --exit-code main.c --stat",
            "nono checkpoints diff 1 --glob '*.c' --stat",
            "nono checkpoints diff 1 '*.c'",
            "nono checkpoints diff 1 | git apply -R && ls && cat main.c",
        ],
        str![[r#"
$ nono checkpoints diff 1 --stat
~ main.c  | 3 ++-
+ new/file | 1 +
2 paths, 3 lines added, 1 line removed
$ nono checkpoints diff 1
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
$ nono checkpoints diff 1 new
diff --git a/new/file b/new/file
new file mode 100644
index 0000000000000000000000000000000000000000..3e757656cf36eca53338e520d134963a44f793f8
--- /dev/null
+++ b/new/file
@@ -0,0 +1 @@
+new
$ nono checkpoints diff 1 --side-by-side main.c
~ main.c | 3 ++-
1 path, 2 lines added, 1 line removed

~ main.c
1  one  | 1  one
2- two  | 2+ 2
3  three  | 3  three
                                       | 4+ four
$ nono checkpoints diff 1 --exit-code Makefile
! [nono] nothing changed since this checkpoint
$ nono checkpoints diff 1 --exit-code main.c --stat
~ main.c | 3 ++-
1 path, 2 lines added, 1 line removed
= exit 1
$ nono checkpoints diff 1 --glob '*.c' --stat
~ main.c | 3 ++-
1 path, 2 lines added, 1 line removed
$ nono checkpoints diff 1 '*.c'
! [nono] error: no path [TMP]/work/project/*.c in the project or in the checkpoint
! [nono] hint: `nono checkpoints diff N` shows what changed
= exit 125
$ nono checkpoints diff 1 | git apply -R && ls && cat main.c
Makefile
main.c
one
two
three

"#]],
    );
    let diff = Checkpoints::changed().json("nono checkpoints diff 1 --json", 0);
    assert_eq!(diff["counts"]["created"], 1);
    assert_eq!(diff["changes"][0]["change_type"], "modified");
    assert!(diff["changes"][0]["patch"].as_str().unwrap().contains("+four\n"), "{diff}");
}

/// A folder whose first checkpoint failed is no project, and is told all the same.
#[test]
fn a_folder_without_a_project_is_not_protected() {
    let kit = Checkpoints::new();
    kit.world.file("work/project/main.c", "one\n");
    kit.world.file("state/config.toml", "[checkpoints]\nenabled = true\nmax_files = 1\n");
    let call = r#"{"session_id":"s","hook_event_name":"PreToolUse","cwd":"'$PWD'","tool_name":"Write","tool_input":{"file_path":"'$PWD'/main.c","content":"x"}}"#;
    let told = kit.sh(&format!("echo '{call}' | nono hook claude-code PreToolUse"));
    assert!(told.out().contains("no checkpoint of"), "{told:?}");
    kit.golden(
        &["nono checkpoints status"],
        str![[r#"
$ nono checkpoints status
Checkpoint base: [TMP]/state
Total size:  [SIZE]
  store  [SIZE]
  legacy  [SIZE]
Projects:  0

NOT PROTECTED: [TMP]/work/project: [TMP]/work/project has more than 1 files; raise max_files in [checkpoints] of config.toml

"#]],
    );
    let status = kit.json("nono checkpoints status --json", 0);
    assert_eq!(status["unprotected"][0]["path"], kit.path("").to_str().unwrap().trim_end_matches('/'));
    assert!(status["unprotected"][0]["why"].as_str().unwrap().contains("max_files"), "{status}");
    // Until it is protected.
    kit.world.file("state/config.toml", "[checkpoints]\nenabled = true\n");
    kit.create("it fits");
    assert_eq!(kit.json("nono checkpoints status --json", 0)["unprotected"], serde_json::json!([]));
}
