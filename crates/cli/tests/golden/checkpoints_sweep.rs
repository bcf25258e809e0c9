//! `nono checkpoints prune`, `clear`, `clear-legacy`, `forget` and `verify`.

use snapbox::str;

use super::checkpoints_kit::Checkpoints;

#[test]
fn nothing_is_removed_unasked() {
    Checkpoints::changed().golden(
        &[
            "nono checkpoints prune",
            "nono checkpoints clear",
            "nono checkpoints forget main.c",
            "nono checkpoints prune --dry-run",
            "nono checkpoints prune --yes",
            "nono checkpoints list | head -2",
        ],
        str![[r#"
$ nono checkpoints prune
! [nono] error: nothing was removed: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be removed, --yes removes it without asking
= exit 1
$ nono checkpoints clear
! [nono] error: nothing was removed: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be removed, --yes removes it without asking
= exit 1
$ nono checkpoints forget main.c
! [nono] error: nothing was removed: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be removed, --yes removes it without asking
= exit 1
$ nono checkpoints prune --dry-run
nothing to remove
$ nono checkpoints prune --yes
! [nono] nothing to remove
$ nono checkpoints list | head -2
Checkpoints for [TMP]/work/project:
  1. [id1]  [TIME]  the beginning  (2 files, +3/-1)

"#]],
    );
}

#[test]
fn orphans_go() {
    let kit = Checkpoints::changed();
    kit.sh("mv ../project ../gone").ended(0);
    kit.golden_above(
        &[
            "nono checkpoints status",
            "nono checkpoints prune --keep-orphans --yes",
            "nono checkpoints prune --dry-run",
            "nono checkpoints prune --yes",
            "nono checkpoints status",
        ],
        str![[r#"
$ nono checkpoints status
Checkpoint base: [TMP]/state
Total size:  [SIZE]
  store  [SIZE]
  legacy  [SIZE]
Projects:  1

  WORKDIR  COMMITS  LAST TOUCH  STATE
  [TMP]/work/project  1  [AGE]  orphan

Checkpoints are off: none is taken automatically.
turn them on with: nono hooks install AGENT (or `enabled = true` below [checkpoints] in config.toml)
$ nono checkpoints prune --keep-orphans --yes
! [nono] nothing to remove
$ nono checkpoints prune --dry-run
1 checkpoint would be removed, about [SIZE] freed, about [SIZE] still used
  [TMP]/work/project: 1 checkpoint
    [id1]  [TIME]  the beginning
  [TMP]/work/project: its whole history
$ nono checkpoints prune --yes
! [nono] 1 checkpoint removed, [SIZE] freed, [SIZE] still used
! [nono]  [TMP]/work/project: 1 checkpoint
! [nono]  [id1]  [TIME]  the beginning
! [nono]  [TMP]/work/project: its whole history
$ nono checkpoints status
Checkpoint base: [TMP]/state
Total size:  [SIZE]
  store  [SIZE]
  legacy  [SIZE]
Projects:  0

Checkpoints are off: none is taken automatically.
turn them on with: nono hooks install AGENT (or `enabled = true` below [checkpoints] in config.toml)

"#]],
    );
    let kit = Checkpoints::changed();
    kit.sh("rm -r ../project").ended(0);
    let pruned = kit.world.sh("nono checkpoints prune --yes --json").out();
    let pruned: serde_json::Value = serde_json::from_str(&pruned).unwrap();
    assert_eq!(pruned["removed"][0]["checkpoints"].as_array().unwrap().len(), 1, "{pruned}");
    assert_eq!(pruned["dry_run"], false);
}

#[test]
fn clear_removes_pinned_checkpoints_too() {
    let kit = Checkpoints::changed();
    kit.golden(
        &[
            "nono checkpoints pin 1",
            "nono checkpoints clear --dry-run",
            "nono checkpoints clear --path . --yes",
            "nono checkpoints list --path .",
            "cat main.c",
        ],
        str![[r#"
$ nono checkpoints pin 1
! [nono] checkpoint [id1] is kept until it is unpinned
$ nono checkpoints clear --dry-run
1 checkpoint would be removed, about [SIZE] freed, about [SIZE] still used
  [TMP]/work/project: 1 checkpoint
    [id1]  [TIME]  the beginning
  [TMP]/work/project: its whole history
$ nono checkpoints clear --path . --yes
! [nono] 1 checkpoint removed, [SIZE] freed, [SIZE] still used
! [nono]  [TMP]/work/project: 1 checkpoint
! [nono]  [id1]  [TIME]  the beginning
! [nono]  [TMP]/work/project: its whole history
$ nono checkpoints list --path .
! [nono] error: [TMP]/work/project has no checkpoints
! [nono] hint: `nono checkpoints create` takes the first one
= exit 125
$ cat main.c
one
2
three
four

"#]],
    );
}

#[test]
fn clear_legacy_removes_archives_once_confirmed() {
    let kit = Checkpoints::new();
    kit.world.file("state/legacy-20260506-050616/x", "0123456789");
    kit.golden(
        &[
            "nono checkpoints clear-legacy",
            "nono checkpoints clear-legacy --dry-run",
            "nono checkpoints clear-legacy --yes",
            "nono checkpoints clear-legacy --yes",
        ],
        str![[r#"
$ nono checkpoints clear-legacy
! [nono] error: nothing was removed: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be removed, --yes removes it without asking
= exit 1
$ nono checkpoints clear-legacy --dry-run
1 archive would be removed
  legacy-20260506-050616  [SIZE]
$ nono checkpoints clear-legacy --yes
! [nono] 1 archive removed
! [nono]  legacy-20260506-050616  [SIZE]
$ nono checkpoints clear-legacy --yes
! [nono] nothing to remove

"#]],
    );
}

/// Old archives go with the rest, and are told with it.
#[test]
fn archives_are_pruned() {
    let kit = Checkpoints::changed();
    kit.world.file("state/config.toml", "[checkpoints]\nauto_prune = false\n");
    kit.world.file("state/legacy-20200506-050616/x", "0123456789");
    let plan = kit.json("nono checkpoints prune --dry-run --json", 0);
    assert_eq!(plan["legacy"][0]["name"], "legacy-20200506-050616", "{plan}");
    kit.golden(
        &["nono checkpoints prune --dry-run", "nono checkpoints prune --yes", "nono checkpoints prune --yes"],
        str![[r#"
$ nono checkpoints prune --dry-run
1 archive would be removed
  legacy-20200506-050616  [SIZE]
$ nono checkpoints prune --yes
! [nono] 1 archive removed
! [nono]  legacy-20200506-050616  [SIZE]
$ nono checkpoints prune --yes
! [nono] nothing to remove

"#]],
    );
    assert!(!kit.world.path("state/legacy-20200506-050616").exists());
}

/// What a list shows is still there when it ends.
#[test]
fn swept_before_it_is_shown() {
    let kit = Checkpoints::changed();
    for (command, count) in
        [("list", "/checkpoints"), ("list --all", "/0/checkpoints"), ("status", "/projects/0/checkpoints")]
    {
        kit.sh(&format!("echo '{command}' >> main.c")).ended(0);
        kit.create("one more");
        kit.world.file("state/config.toml", "[checkpoints]\nmax_snapshots = 1\n");
        std::fs::remove_file(kit.world.path("state/.last_prune")).unwrap();
        let outcome = kit.sh(&format!("nono checkpoints {command} --json"));
        let shown: serde_json::Value = serde_json::from_str(&outcome.out()).unwrap();
        let shown = shown.pointer(count).unwrap();
        assert_eq!(
            shown.as_array().map_or(shown.as_u64(), |all| Some(all.len() as u64)),
            Some(1),
            "{command}"
        );
        assert!(outcome.err().contains("removed 1 checkpoint that was old"), "{command}: {outcome:?}");
        std::fs::remove_file(kit.world.path("state/config.toml")).unwrap();
    }
}

#[test]
fn a_path_that_no_checkpoint_holds() {
    let kit = Checkpoints::changed();
    kit.golden(
        &[
            "nono checkpoints forget main.x --yes",
            "nono checkpoints forget main.x --dry-run",
            "nono checkpoints list | head -2",
        ],
        str![[r#"
$ nono checkpoints forget main.x --yes
! [nono] no checkpoint of [TMP]/work/project and no session holds [TMP]/work/project/main.x; nothing was removed
= exit 1
$ nono checkpoints forget main.x --dry-run
! [nono] no checkpoint of [TMP]/work/project and no session holds [TMP]/work/project/main.x; nothing was removed
= exit 1
$ nono checkpoints list | head -2
Checkpoints for [TMP]/work/project:
  1. [id1]  [TIME]  the beginning  (2 files, +3/-1)

"#]],
    );
    assert_eq!(kit.json("nono checkpoints forget main.x --yes --json", 1)["snapshots"], 0);
}

#[test]
fn a_path_is_forgotten() {
    let kit = Checkpoints::changed();
    kit.golden(
        &[
            "nono checkpoints forget main.c --dry-run",
            "nono checkpoints forget main.c --yes",
            "cat main.c",
            "nono checkpoints restore 1 --yes",
            "cat main.c; ls",
            "nono checkpoints forget . --yes",
        ],
        str![[r#"
$ nono checkpoints forget main.c --dry-run
[TMP]/work/project/main.c of [TMP]/work/project would be removed from 1 checkpoint
  [id1]  [TIME]  the beginning
$ nono checkpoints forget main.c --yes
! [nono] [TMP]/work/project/main.c of [TMP]/work/project was removed from 1 checkpoint; 1 object deleted from the store
$ cat main.c
one
2
three
four
$ nono checkpoints restore 1 --yes
{"checkpoint":"[id1]","project":"[TMP]/work/project","turns_undone":[],"not_covered":1,"dry_run":false,"undo":"[id2].1","counts":{"created":0,"modified":0,"deleted":1,"permissions_changed":0,"renamed":0},"changes":[{"path":"[TMP]/work/project/new/file","change_type":"deleted","size_delta":-4,"old":{"kind":"file","hash":"7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c","size":4,"mode":420}}],"kept":[],"merges":[],"still_executes":[],"lost":[],"failed":[],"interrupted":false,"cannot_tell_conflicts":true,"left_alone":[],"unrecorded":null,"notes":[]}
! [nono] went back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
! [nono] removed 1
! [nono]  - new/file
! [nono] not covered by this checkpoint, and left as they are: 1 path
! [nono] undo this with: nono checkpoints undo
$ cat main.c; ls
one
2
three
four
Makefile
main.c
$ nono checkpoints forget . --yes
! [nono] error: [TMP]/work/project is the project itself; forget takes a path inside it
= exit 125

"#]],
    );
}

#[test]
fn verify_reports_intact_checkpoints() {
    let kit = Checkpoints::changed();
    kit.golden(
        &["nono checkpoints verify"],
        str![[r#"
$ nono checkpoints verify
good (1 project, 1 checkpoint, [N] objects, [SIZE])

"#]],
    );
    let found = kit.json("nono checkpoints verify --json", 0);
    assert_eq!(found["good"], true);
    assert_eq!(found["checkpoints"], 1);
}
