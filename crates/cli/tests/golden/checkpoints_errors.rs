//! What can be wrong, and the sentence for it.

use std::fs;

use snapbox::str;

use super::checkpoints_kit::Checkpoints;
use super::world::World;

#[test]
fn where_there_is_nothing() {
    let kit = Checkpoints::new();
    kit.golden(
        &[
            "nono checkpoints list --path .",
            "nono checkpoints diff 1",
            "nono checkpoints restore 1 --yes",
            "nono checkpoints undo --yes",
            "nono checkpoints name 1 a",
            "nono checkpoints pin 1",
            "nono checkpoints forget Makefile --yes",
        ],
        str![[r#"
$ nono checkpoints list --path .
! [nono] error: [TMP]/work/project has no checkpoints
! [nono] hint: `nono checkpoints create` takes the first one
= exit 125
$ nono checkpoints diff 1
! [nono] error: [TMP]/work/project has no checkpoints
! [nono] hint: `nono checkpoints create` takes the first one
= exit 125
$ nono checkpoints restore 1 --yes
! [nono] error: [TMP]/work/project has no checkpoints
! [nono] hint: `nono checkpoints create` takes the first one
= exit 125
$ nono checkpoints undo --yes
! [nono] error: [TMP]/work/project has no checkpoints
! [nono] hint: `nono checkpoints create` takes the first one
= exit 125
$ nono checkpoints name 1 a
! [nono] error: [TMP]/work/project has no checkpoints
! [nono] hint: `nono checkpoints create` takes the first one
= exit 125
$ nono checkpoints pin 1
! [nono] error: [TMP]/work/project has no checkpoints
! [nono] hint: `nono checkpoints create` takes the first one
= exit 125
$ nono checkpoints forget Makefile --yes
! [nono] no checkpoint of [TMP]/work/project and no session holds [TMP]/work/project/Makefile; nothing was removed
= exit 1

"#]],
    );
}

#[test]
fn too_broad() {
    World::new().golden(
        &[
            "nono checkpoints create ~",
            "nono checkpoints create /",
            "cd ~ && nono checkpoints create",
            "nono checkpoints list --path ~",
            "cd ~ && nono checkpoints list",
        ],
        str![[r#"
$ nono checkpoints create ~
! [nono] error: [TMP]/home is too broad for a project: it is the home folder
! [nono] hint: cd to a project, or name a path in one
= exit 125
$ nono checkpoints create /
! [nono] error: / is too broad for a project: it is the root directory
! [nono] hint: cd to a project, or name a path in one
= exit 125
$ cd ~ && nono checkpoints create
! [nono] error: [TMP]/home is too broad for a project: it is the home folder
! [nono] hint: cd to a project, or name a path in one
= exit 125
$ nono checkpoints list --path ~
! [nono] error: [TMP]/home is too broad for a project: it is the home folder
! [nono] hint: cd to a project, or name a path in one
= exit 125
$ cd ~ && nono checkpoints list
Checkpoint base: [TMP]/state
Total size:      0 bytes
  store          0 bytes
  legacy         0 bytes
Projects:        0

NOT PROTECTED: /: / is too broad for a project: it is the root directory
NOT PROTECTED: [TMP]/home: [TMP]/home is too broad for a project: it is the home folder

Checkpoints are off: none is taken automatically.
turn them on with: nono hooks install AGENT (or `enabled = true` below [checkpoints] in config.toml)

"#]],
    );
}

#[test]
fn unknown_and_foreign_checkpoints_are_refused() {
    let kit = Checkpoints::changed();
    kit.world.file("work/other/Makefile", "all:\n");
    kit.world.sh("nono checkpoints create other").ended(0);
    let other = kit.json("nono checkpoints list --path ../other --json", 0);
    let other = other["checkpoints"][0]["id"].as_str().unwrap().to_owned();
    kit.golden(
        &[
            "nono checkpoints restore 2 --yes",
            "nono checkpoints restore 0 --yes",
            "nono checkpoints restore nothing --yes",
            &format!("nono checkpoints restore {other} --yes"),
            &format!("nono checkpoints diff {}", &other[..8]),
            "nono checkpoints restore --turn msg_1 --yes",
            "nono checkpoints restore 1 ../other/Makefile --yes",
            "nono checkpoints restore --yes",
            "nono checkpoints name 1 2",
            "nono checkpoints restore 1 --merge --force --yes",
            "nono checkpoints restore 1 --conflict-markers --yes",
        ],
        str![[r#"
$ nono checkpoints restore 2 --yes
! [nono] error: [TMP]/work/project has no checkpoint "2"
! [nono] hint: `nono checkpoints list` lists them
= exit 125
$ nono checkpoints restore 0 --yes
! [nono] error: [TMP]/work/project has no checkpoint "0"
! [nono] hint: `nono checkpoints list` lists them
= exit 125
$ nono checkpoints restore nothing --yes
! [nono] error: [TMP]/work/project has no checkpoint "nothing"
! [nono] hint: `nono checkpoints list` lists them
= exit 125
$ nono checkpoints restore [id1] --yes
! [nono] error: checkpoint [id1] belongs to [TMP]/work/other, not to [TMP]/work/project
! [nono] hint: cd to [TMP]/work/other, or use --path
= exit 1
$ nono checkpoints diff [id1]
! [nono] error: checkpoint [id1] belongs to [TMP]/work/other, not to [TMP]/work/project
! [nono] hint: cd to [TMP]/work/other, or use --path
= exit 1
$ nono checkpoints restore --turn msg_1 --yes
! [nono] error: no checkpoint of [TMP]/work/project was taken in turn msg_1
! [nono] hint: `nono turns` lists them
= exit 125
$ nono checkpoints restore 1 ../other/Makefile --yes
! [nono] error: no path [TMP]/work/other/Makefile in the project or in the checkpoint
! [nono] hint: `nono checkpoints diff N` shows what changed; with --glob the paths are patterns
= exit 125
$ nono checkpoints restore --yes
! [nono] error: the following required arguments were not provided:
! [nono]  <N|ID>
! [nono]
! [nono] Usage: nono checkpoints restore --yes <N|ID> [PATH]...
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono checkpoints name 1 2
! [nono] error: "2" cannot be a checkpoint's name: it could be confused with a number of the list
= exit 2
$ nono checkpoints restore 1 --merge --force --yes
! [nono] error: the argument '--merge' cannot be used with '--force'
! [nono]
! [nono] Usage: nono checkpoints restore --merge --yes <N|ID> [PATH]...
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono checkpoints restore 1 --conflict-markers --yes
! [nono] error: the following required arguments were not provided:
! [nono]  --merge
! [nono]
! [nono] Usage: nono checkpoints restore --merge --conflict-markers --yes <N|ID> [PATH]...
! [nono]
! [nono] For more information, try '--help'.
= exit 2

"#]],
    );
}

/// Of seven ids two begin with the same letter.
#[test]
fn a_beginning_of_several() {
    let kit = Checkpoints::new();
    let mut ids: Vec<String> = Vec::new();
    let twice = loop {
        kit.world.file("work/project/file", ids.len().to_string());
        let id = kit.create("another");
        if ids.iter().any(|known| known[..1] == id[..1]) {
            break id;
        }
        ids.push(id);
        assert!(ids.len() < 7, "{ids:?}");
    };
    let outcome = kit.sh(&format!("nono checkpoints restore {} --yes", &twice[..1]));
    assert_eq!(outcome.code(), Some(125), "{outcome:?}");
    let begins = format!("[nono] error: {} is ambiguous: it could be ", &twice[..1]);
    assert!(outcome.err().starts_with(&begins) && outcome.err().contains(&twice), "{outcome:?}");
}

#[test]
fn damaged_state() {
    let kit = Checkpoints::changed();
    let mut all = fs::read_dir(kit.world.path("state/projects")).unwrap().map(|entry| entry.unwrap().path());
    let project = all.find(|path| path.is_dir()).unwrap();
    fs::write(project.join("history.json"), "{").unwrap();
    let name = project.file_name().unwrap().to_str().unwrap().to_owned();
    let status = kit.sh("nono checkpoints status");
    assert_eq!(status.code(), Some(0), "{status:?}");
    assert!(status.err().contains(&format!("state/projects/{name}/history.json is damaged")), "{status:?}");
    // What the engine knows is still there to be restored.
    kit.golden(&["nono checkpoints list | head -2", "nono checkpoints restore 1 --yes", "ls"], str![[r#"
$ nono checkpoints list | head -2
Checkpoints for [TMP]/work/project:
  1. [id1]  [TIME]  recovered  (2 files, +3/-1)
$ nono checkpoints restore 1 --yes
{"checkpoint":"[id1]","project":"[TMP]/work/project","turns_undone":[],"not_covered":0,"dry_run":false,"undo":"[id2].1","counts":{"created":0,"modified":1,"deleted":1,"permissions_changed":0,"renamed":0},"changes":[{"path":"[TMP]/work/project/main.c","change_type":"modified","size_delta":-3,"old":{"kind":"file","hash":"55579eb26e766aa80ad93a8ebc4ac22c329397411a516b0034ec3e7403ed5a9c","size":17,"mode":420},"new":{"kind":"file","hash":"b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2","size":14,"mode":420}},{"path":"[TMP]/work/project/new/file","change_type":"deleted","size_delta":-4,"old":{"kind":"file","hash":"7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c","size":4,"mode":420}}],"kept":[],"merges":[],"still_executes":[],"lost":[],"failed":[],"interrupted":false,"cannot_tell_conflicts":true,"left_alone":[],"unrecorded":null,"notes":[]}
! [nono] went back to checkpoint [id1] (recovered, [AGE]) in [TMP]/work/project:
! [nono] changed 1, removed 1
! [nono]  ~ main.c
! [nono]  - new/file
! [nono] undo this with: nono checkpoints undo
$ ls
Makefile
main.c

"#]]);
    // What is lost is not kept silent about.
    let status = kit.sh("nono checkpoints status");
    assert!(status.err().contains("names, pins and reasons"), "{status:?}");
}

#[test]
fn a_folder_that_cannot_be_trusted() {
    let kit = Checkpoints::changed();
    kit.golden(
        &[
            "chmod 777 $NONO_HOME; nono checkpoints list",
            "nono checkpoints create",
            "nono checkpoints restore 1 --yes",
            "chmod 700 $NONO_HOME; nono checkpoints list | head -1",
        ],
        str![[r#"
$ chmod 777 $NONO_HOME; nono checkpoints list
! [nono] error: [TMP]/state can be written by others (mode 0777): nono does not keep its state there
! [nono] hint: chmod 700 [TMP]/state
= exit 125
$ nono checkpoints create
! [nono] error: [TMP]/state can be written by others (mode 0777): nono does not keep its state there
! [nono] hint: chmod 700 [TMP]/state
= exit 125
$ nono checkpoints restore 1 --yes
! [nono] error: [TMP]/state can be written by others (mode 0777): nono does not keep its state there
! [nono] hint: chmod 700 [TMP]/state
= exit 125
$ chmod 700 $NONO_HOME; nono checkpoints list | head -1
Checkpoints for [TMP]/work/project:

"#]],
    );
}

#[test]
fn settings() {
    let kit = Checkpoints::changed();
    kit.world.file("state/config.toml", "[checkpoints]\nenabeld = true\n");
    kit.golden(
        &["nono checkpoints list"],
        str![[r#"
$ nono checkpoints list
! [nono] error: [TMP]/state/config.toml: unknown key "checkpoints.enabeld" (nearest: "checkpoints.enabled")
= exit 125

"#]],
    );
    kit.world.file("state/config.toml", "[checkpoints]\nmax_snapshots = 0\n");
    kit.golden(
        &["nono checkpoints create"],
        str![[r#"
$ nono checkpoints create
! [nono] error: [TMP]/state/config.toml: `checkpoints.max_snapshots` should be a whole number from 1 on
= exit 125

"#]],
    );
}

#[test]
fn inside_a_sandbox() {
    Checkpoints::changed().golden(
        &[
            "nono run -s --allow . -- nono checkpoints prune --yes",
            "nono run -s --allow . -- nono checkpoints undo --yes",
            "nono run -s --allow . -- nono checkpoints",
        ],
        str![[r#"
$ nono run -s --allow . -- nono checkpoints prune --yes
! [nono] error: inside a sandbox only checkpoints list, create, diff and restore work
! [nono] hint: run this command outside
= exit 125
$ nono run -s --allow . -- nono checkpoints undo --yes
! [nono] error: inside a sandbox only checkpoints list, create, diff and restore work
! [nono] hint: run this command outside
= exit 125
$ nono run -s --allow . -- nono checkpoints
! [nono] error: inside a sandbox only checkpoints list, create, diff and restore work
! [nono] hint: run this command outside
= exit 125

"#]],
    );
}
