//! `nono checkpoints restore` and `undo`: the plan, the consent, the outcome.

use snapbox::str;

use super::checkpoints_kit::Checkpoints;

#[test]
fn a_dry_run_shows_everything_and_does_nothing() {
    let kit = Checkpoints::changed();
    kit.golden(
        &["nono checkpoints restore 1 --dry-run", "nono checkpoints restore 1", "cat main.c"],
        str![[r#"
$ nono checkpoints restore 1 --dry-run
back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
change 1, remove 1
  ~ main.c
  - new/file
your changes cannot be told from the agent's: everything will be restored
$ nono checkpoints restore 1
! [nono] error: nothing was done: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be done, --yes does it without asking
= exit 1
$ cat main.c
one
2
three
four

"#]],
    );
    let plan = kit.json("nono checkpoints restore 1 --dry-run --json", 0);
    assert_eq!(plan["dry_run"], true);
    assert_eq!(plan["counts"]["modified"], 1);
    assert_eq!(plan["counts"]["deleted"], 1);
    assert_eq!(plan["turns_undone"], serde_json::json!([]));
}

#[test]
fn back_and_forth() {
    Checkpoints::changed().golden(
        &[
            "nono checkpoints restore 1 --yes",
            "cat main.c; ls",
            "nono checkpoints restore 1 --yes",
            "nono checkpoints undo",
            "nono checkpoints undo --dry-run",
            "nono checkpoints undo --yes",
            "cat main.c; ls",
        ],
        str![[r#"
$ nono checkpoints restore 1 --yes
{"checkpoint":"[id1]","project":"[TMP]/work/project","turns_undone":[],"files":["[TMP]/work/project/main.c","[TMP]/work/project/new/file"],"merged":[],"kept":[],"lost":[],"failed":[],"interrupted":false,"unattributed":true,"left_alone":[],"not_covered":0,"undo":"[id2].1"}
! [nono] back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
! [nono] changed 1, removed 1
! [nono]  ~ main.c
! [nono]  - new/file
! [nono] undo this with: nono checkpoints undo
$ cat main.c; ls
one
two
three
Makefile
main.c
$ nono checkpoints restore 1 --yes
{"checkpoint":"[id1]","project":"[TMP]/work/project","turns_undone":[],"files":[],"merged":[],"kept":[],"lost":[],"failed":[],"interrupted":false,"unattributed":true,"left_alone":[],"not_covered":0,"undo":null}
! [nono] back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
! [nono] nothing to restore
$ nono checkpoints undo
! [nono] error: nothing was done: there is no terminal to ask on
! [nono] hint: --dry-run shows what would be done, --yes does it without asking
= exit 1
$ nono checkpoints undo --dry-run
take back the last restore of [TMP]/work/project:
bring back 1, change 1
  ~ main.c
  + new/file
$ nono checkpoints undo --yes
{"checkpoint":"[id1]","project":"[TMP]/work/project","turns_undone":[],"files":["[TMP]/work/project/main.c","[TMP]/work/project/new/file"],"merged":[],"kept":[],"lost":[],"failed":[],"interrupted":false,"unattributed":false,"left_alone":[],"not_covered":0,"undo":null}
! [nono] take back the last restore of [TMP]/work/project:
! [nono] brought back 1, changed 1
! [nono]  ~ main.c
! [nono]  + new/file
$ cat main.c; ls
one
2
three
four
Makefile
main.c
new

"#]],
    );
}

#[test]
fn a_part_of_it() {
    Checkpoints::changed().golden(
        &[
            "nono checkpoints restore 1 main.c --yes",
            "nono checkpoints restore 1 new --dry-run",
            "cat main.c; ls",
            "nono checkpoints restore 1 nothing --yes",
            "nono checkpoints restore 1 --glob '{a,b' --yes",
            "nono checkpoints restore 1 --glob '*/f*' --yes",
            "ls",
        ],
        str![[r#"
$ nono checkpoints restore 1 main.c --yes
{"checkpoint":"[id1]","project":"[TMP]/work/project","turns_undone":[],"files":["[TMP]/work/project/main.c"],"merged":[],"kept":[],"lost":[],"failed":[],"interrupted":false,"unattributed":true,"left_alone":[],"not_covered":0,"undo":"[id2].1"}
! [nono] back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
! [nono] changed 1
! [nono]  ~ main.c
! [nono] undo this with: nono checkpoints undo
$ nono checkpoints restore 1 new --dry-run
back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
remove 1
  - new/file
your changes cannot be told from the agent's: everything will be restored
$ cat main.c; ls
one
two
three
Makefile
main.c
new
$ nono checkpoints restore 1 nothing --yes
! [nono] error: [TMP]/work/project/nothing is neither in the checkpoint nor in [TMP]/work/project
! [nono] hint: `nono checkpoints diff N` shows what changed; with --glob the paths are patterns
= exit 125
$ nono checkpoints restore 1 --glob '{a,b' --yes
! [nono] error: the pattern {a,b cannot be used: a { is not closed
= exit 2
$ nono checkpoints restore 1 --glob '*/f*' --yes
{"checkpoint":"[id1]","project":"[TMP]/work/project","turns_undone":[],"files":["[TMP]/work/project/new/file"],"merged":[],"kept":[],"lost":[],"failed":[],"interrupted":false,"unattributed":true,"left_alone":[],"not_covered":0,"undo":"[id2].2"}
! [nono] back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
! [nono] removed 1
! [nono]  - new/file
! [nono] undo this with: nono checkpoints undo
$ ls
Makefile
main.c
new

"#]],
    );
}

#[test]
fn the_outcome_as_json() {
    let kit = Checkpoints::changed();
    let id = kit.json("nono checkpoints list --json", 0)["checkpoints"][0]["id"].clone();
    let done = kit.json("nono checkpoints restore 1 --yes --json", 0);
    assert_eq!(done["checkpoint"], id);
    assert_eq!(done["files"].as_array().unwrap().len(), 2, "{done}");
    for empty in ["turns_undone", "kept", "failed", "merged"] {
        assert_eq!(done[empty], serde_json::json!([]), "{empty}");
    }
    assert!(done["undo"].is_string(), "{done}");
    let done = kit.json("nono checkpoints undo --yes --json", 0);
    assert_eq!(done["files"].as_array().unwrap().len(), 2, "{done}");
}
