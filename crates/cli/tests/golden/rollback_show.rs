//! `nono rollback show`: a session on one page, its differences, its patch, and the same as JSON.

use serde_json::json;
use snapbox::str;

use super::checkpoints_kit::moments;
use super::sessions::Sessions;
use super::world::golden;

/// A session that did one of everything.
fn sample() -> Sessions {
    let sessions = Sessions::new();
    let world = &sessions.world;
    let lines: String = (1..=30).map(|number| format!("this is line {number}\n")).collect();
    world.file("work/edited.txt", &lines);
    world.file("work/gone.txt", "was here\n");
    world.file("work/old name", lines.replace("line", "row"));
    world.file("work/mode", "x\n");
    world.file("work/data", "\0\x01");
    world.sh("ln -s edited.txt link").quiet(0);
    let commands = [
        "sed -i \"s/line 7/row 7/; 20d\" edited.txt",
        "rm gone.txt",
        "mv \"old name\" new-name; echo last >> new-name",
        "chmod 755 mode",
        "printf \"\\\\0\\\\002\\\\003\" > data",
        "ln -sfn mode link",
        "mkdir -p .git/hooks; printf \"#!/bin/sh\\\\nevil\\\\n\" > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit",
        "printf \"all:\\\\n\\\\tevil\\\\n\" > Makefile",
        "printf x > \"$(printf \"new\\\\nline\\\\033[31m\")\"",
    ];
    sessions.run(&commands.join("; "));
    sessions
}

/// The transcript without moments in time.
fn transcript(sessions: &Sessions, lines: &[&str]) -> String {
    sessions.transcript(lines).lines().map(|line| moments(line) + "\n").collect()
}

#[test]
fn a_session_on_one_page() {
    let sessions = sample();
    golden(
        transcript(&sessions, &["nono rollback show last"]),
        str![[r##"
$ nono rollback show last
session [1]  finished
  command sh -c 'sed -i "s/line 7/row 7/; 20d" edited.txt; rm gone.txt; mv "old name" new-name; echo last >> new-name; chmod 755 mode; printf "\\0\\002\\003" > data; ln -sfn mode link; mkdir -p .git/hooks; printf "#!/bin/sh\\nevil\\n" > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit; printf "all:\\n\\tevil\\n" > Makefile; printf x > "$(printf "new\\nline\\033[31m")"'
  started [TIME] ([AGE])
  ended  [TIME]
  exit  0
  tracked [TMP]/work

9 changes: +3 ~3 -1 (1 renamed) (1 with other permissions)
will execute later:
  + .git/hooks/pre-commit  +15 bytes
      git hook: git runs it at commits, checkouts, merges or pushes
  + Makefile  +11 bytes
      build script: the next build runs it
everything else:
  ~ data  +1 bytes
  ~ edited.txt  -17 bytes
  - gone.txt  -9 bytes
  ~ link
  M mode  0644 -> 0755
  + new\u{a}line\u{1b}[31m  +1 bytes
  R old name -> new-name  +5 bytes

see the differences: nono rollback show [1] --diff
put everything back: nono rollback restore [1]

"##]],
    );
    golden(
        transcript(
            &sessions,
            &["nono rollback show [1] edited.txt 'new*'", "nono rollback show last nowhere"],
        ),
        str![[r##"
$ nono rollback show [1] edited.txt 'new*'
session [1]  finished
  command sh -c 'sed -i "s/line 7/row 7/; 20d" edited.txt; rm gone.txt; mv "old name" new-name; echo last >> new-name; chmod 755 mode; printf "\\0\\002\\003" > data; ln -sfn mode link; mkdir -p .git/hooks; printf "#!/bin/sh\\nevil\\n" > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit; printf "all:\\n\\tevil\\n" > Makefile; printf x > "$(printf "new\\nline\\033[31m")"'
  started [TIME] ([AGE])
  ended  [TIME]
  exit  0
  tracked [TMP]/work

3 changes: +1 ~1 -0 (1 renamed)
  ~ edited.txt  -17 bytes
  + new\u{a}line\u{1b}[31m  +1 bytes
  R old name -> new-name  +5 bytes

see the differences: nono rollback show [1] --diff
put everything back: nono rollback restore [1]
$ nono rollback show last nowhere
! [nono] error: session [1] has no path [TMP]/work/nowhere
! [nono] hint: `nono rollback show [1]` lists what the session changed
= exit 125

"##]],
    );
}

#[test]
fn differences_for_people() {
    let sessions = sample();
    golden(
        transcript(
            &sessions,
            &[
                "nono rollback show last --stat",
                "COLUMNS=100 nono rollback show last --side-by-side edited.txt link data",
                "nono rollback show last --side-by-side .git",
            ],
        ),
        str![[r#"
$ nono rollback show last --stat
+ .git/hooks/pre-commit  | 2 ++
+ Makefile  | 2 ++
~ data  | binary, [SIZE] -> [SIZE]
~ edited.txt  | 3 +--
- gone.txt  | 1 -
~ link  | link
M mode  | only its permissions changed
+ new\u{a}line\u{1b}[31m | 1 +
R old name -> new-name  | 1 +
9 paths, 7 lines added, 3 lines removed
$ COLUMNS=100 nono rollback show last --side-by-side edited.txt link data
~ data
  binary, before: [SIZE], sha256 b413f47d13ee2fe6c845b2ee141af81de858df4ec549a58b7970bb96645bc8d2
  binary, now: [SIZE], sha256 e9969bdc67747c3797d62fd1c3e4277269a0945fdb999e8ccc6c7bfb4eeb06bd

~ edited.txt
 4  this is line 4  |  4  this is line 4
 5  this is line 5  |  5  this is line 5
 6  this is line 6  |  6  this is line 6
 7- this is line 7  |  7+ this is row 7
 8  this is line 8  |  8  this is line 8
 9  this is line 9  |  9  this is line 9
10  this is line 10  | 10  this is line 10
  ...
17  this is line 17  | 17  this is line 17
18  this is line 18  | 18  this is line 18
19  this is line 19  | 19  this is line 19
20- this is line 20  |
21  this is line 21  | 20  this is line 21
22  this is line 22  | 21  this is line 22
23  this is line 23  | 22  this is line 23

~ link
  link, before: edited.txt
  link, now: mode
$ nono rollback show last --side-by-side .git
+ .git/hooks/pre-commit  0755
  will execute later (git hook): git runs it at commits, checkouts, merges or pushes
                                       | 1+ #!/bin/sh
                                       | 2+ evil

"#]],
    );
}

#[test]
fn the_patch_is_what_a_program_gets() {
    let sessions = sample();
    golden(
        transcript(&sessions, &["nono rollback show last --diff"]),
        str![[r#"
$ nono rollback show last --diff
# diff --git a/.git/hooks/pre-commit b/.git/hooks/pre-commit
# new file mode 100755
# index 0000000000000000000000000000000000000000..c6253a355e2b8efb5a6dcc0afc30c4f1b018ea6a
# --- /dev/null
# +++ b/.git/hooks/pre-commit
# @@ -0,0 +1,2 @@
# +#!/bin/sh
# +evil
diff --git a/Makefile b/Makefile
new file mode 100644
index 0000000000000000000000000000000000000000..f80d6919ca8aa526b24fb3704334fd23d1de694f
--- /dev/null
+++ b/Makefile
@@ -0,0 +1,2 @@
+all:
+	evil
diff --git a/data b/data
index bdc955b7b2e610ad5a72302b139a2e6cb325519a..350ed01038bfaa2fda2722ada23a75bdd971bd68 100644
GIT binary patch
literal 3
KcmZQzVg>*J3IGNG

literal 2
JcmZQz1ONa700IC2

diff --git a/edited.txt b/edited.txt
index a79bd901c20754d6af62a34b2bbcdddfcc564dc9..a0713a00c4c0cfc4de1b734e3e76ce05b3804643 100644
--- a/edited.txt
+++ b/edited.txt
@@ -4,7 +4,7 @@
 this is line 4
 this is line 5
 this is line 6
-this is line 7
+this is row 7
 this is line 8
 this is line 9
 this is line 10
@@ -17,7 +17,6 @@
 this is line 17
 this is line 18
 this is line 19
-this is line 20
 this is line 21
 this is line 22
 this is line 23
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
index 7ca72eac498920c97f56173819c482948517b9b0..0000000000000000000000000000000000000000
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-was here
diff --git a/link b/link
index 76e522423ab2524b12349ad371ce0a5deb8ca319..95338077e6a8e654a5c8e11a38047998d09a95d9 120000
--- a/link
+++ b/link
@@ -1 +1 @@
-edited.txt
\ No newline at end of file
+mode
\ No newline at end of file
diff --git a/mode b/mode
old mode 100644
new mode 100755
diff --git "a/new\nline\033[31m" "b/new\nline\033[31m"
new file mode 100644
index 0000000000000000000000000000000000000000..c1b0730e0133447badcfd47fd144e254807b06e1
--- /dev/null
+++ "b/new\nline\033[31m"
@@ -0,0 +1 @@
+x
\ No newline at end of file
diff --git "a/old name" b/new-name
similarity index 98%
rename from old name
rename to new-name
index 3ab9100ae71582db906971cc6eb9758db11f3c97..05eb43e3b5139cde999bbe5dc460b44fe7c857e2 100644
--- a/old name
+++ b/new-name
@@ -28,3 +28,4 @@
 this is row 28
 this is row 29
 this is row 30
+last
! [nono] warning: a patch cannot express all changes, they are comments in it: .git/hooks/pre-commit

"#]],
    );
}

/// What the help promises: the patch undoes the session, by git and by patch.
#[test]
fn the_patch_takes_everything_back() {
    let sessions = sample();
    let world = &sessions.world;
    world.sh("rm -r .git").quiet(0);
    let outcome = world.sh("nono rollback show last --diff | git apply -R --whitespace=nowarn");
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    for (line, expected) in [
        ("sed -n 7p edited.txt; sed -n 20p edited.txt", "this is line 7\nthis is line 20\n"),
        ("cat gone.txt", "was here\n"),
        ("sed -n 30p 'old name'; wc -l < 'old name'", "this is row 30\n30\n"),
        ("test -x mode || echo no", "no\n"),
        ("od -An -c data | tr -d ' '", "\\0001\n"),
        ("readlink link", "edited.txt\n"),
        ("ls", "data\nedited.txt\ngone.txt\nlink\nmode\nold name\n"),
    ] {
        let outcome = world.sh(line);
        assert_eq!(outcome.out(), expected, "{line}: {outcome:?}");
    }
}

#[test]
fn snapshots_and_coverage() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    world.file("work/.venv/pyvenv.cfg", "x\n");
    world.file("work/a", "1\n");
    sessions.run("echo 2 > a");
    golden(
        transcript(
            &sessions,
            &[
                "nono rollback show last --snapshots",
                "nono rollback show last --coverage",
                "nono rollback show last",
                "nono rollback show last --from 1 --to 0 --diff",
                "nono rollback show last --from 7",
                "nono rollback show nobody",
                "nono rollback show last --diff | head -1",
            ],
        ),
        str![[r#"
$ nono rollback show last --snapshots
0  [TIME] ([AGE])  baseline
1  [TIME] ([AGE])
$ nono rollback show last --coverage
snapshot 0: 1 file, [SIZE]
not covered: 1 path
  [TMP]/work/.venv: Python virtual environment
$ nono rollback show last
session [1]  finished
  command sh -c 'echo 2 > a'
  started [TIME] ([AGE])
  ended  [TIME]
  exit  0
  tracked [TMP]/work

1 change: +0 ~1 -0
  ~ a

not covered: 1 directory (.venv: Python virtual environment); --coverage lists all
see the differences: nono rollback show [1] --diff
put everything back: nono rollback restore [1]
$ nono rollback show last --from 1 --to 0 --diff
diff --git a/a b/a
index 0cfbf08886fca9a91cb753ec8734c84fcbe52c9f..d00491fd7e5bb6fa28c517a0bb32b8b506539d4d 100644
--- a/a
+++ b/a
@@ -1 +1 @@
-2
+1
$ nono rollback show last --from 7
! [nono] error: session [1] has no snapshot 7
! [nono] hint: `nono rollback show [1] --snapshots` lists them
= exit 125
$ nono rollback show nobody
! [nono] error: no session is called "nobody"
! [nono] hint: `nono rollback list` lists the sessions
= exit 125
$ nono rollback show last --diff | head -1
diff --git a/a b/a

"#]],
    );
}

#[test]
fn nothing_changed() {
    let sessions = Sessions::new();
    sessions.world.file("work/a", "1\n");
    sessions.run("true");
    golden(
        transcript(
            &sessions,
            &["nono rollback show last", "nono rollback show last --diff", "nono rollback show last --stat"],
        ),
        str![[r#"
$ nono rollback show last
session [1]  finished
  command sh -c true
  started [TIME] ([AGE])
  ended  [TIME]
  exit  0
  tracked [TMP]/work

nothing changed

$ nono rollback show last --diff
$ nono rollback show last --stat
0 paths, 0 lines added, 0 lines removed

"#]],
    );
}

#[test]
fn the_same_as_json() {
    let sessions = sample();
    let value = sessions.json("nono rollback show last --json --diff", 0);
    assert_eq!(value["session_id"], json!(sessions.id(1)));
    assert_eq!((&value["status"], &value["exit_code"]), (&json!("finished"), &json!(0)));
    assert_eq!(
        value["counts"],
        json!({"created": 3, "modified": 3, "deleted": 1, "permissions_changed": 1, "renamed": 1})
    );
    assert_eq!(value["snapshots"][0]["id"], json!(0));
    assert_eq!(value["coverage"]["files"], json!(5));
    let changes = value["changes"].as_array().unwrap();
    let root = sessions.world.path("work");
    let at = |name: &str| {
        let path = json!(root.join(name).to_str().unwrap());
        changes.iter().find(|change| change["path"] == path).unwrap_or_else(|| panic!("{name}: {value}"))
    };
    assert_eq!(changes[0]["executes_later"]["what"], json!("git hook"), "it comes first");
    let renamed = at("new-name");
    assert_eq!(renamed["change_type"], json!("renamed"));
    assert_eq!(renamed["renamed_from"], json!(root.join("old name").to_str().unwrap()));
    assert_eq!((&renamed["size_delta"], &renamed["binary"]), (&json!(5), &json!(false)));
    assert_eq!((&at("data")["binary"], &at("data")["size_delta"]), (&json!(true), &json!(1)));
    assert_eq!((&at("mode")["old"]["mode"], &at("mode")["new"]["mode"]), (&json!(0o644), &json!(0o755)));
    assert_eq!(at("link")["new"]["target"], json!("mode"));
    assert!(
        at("edited.txt")["patch"].as_str().unwrap().starts_with("diff --git a/edited.txt b/edited.txt\n")
    );
    assert!(at("edited.txt")["executes_later"].is_null());
    let without = sessions.json("nono rollback show last --json gone.txt", 0);
    assert_eq!(without["changes"].as_array().unwrap().len(), 1);
    assert!(without["changes"][0].get("patch").is_none());
    let covered = sessions.json("nono rollback show last --json --coverage", 0);
    assert_eq!(covered["left_out"], json!([]));
}
