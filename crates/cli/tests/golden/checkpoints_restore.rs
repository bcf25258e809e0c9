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
go back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
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
{"checkpoint":"[id1]","project":"[TMP]/work/project","turns_undone":[],"not_covered":0,"dry_run":false,"undo":"[id2].1","counts":{"created":0,"modified":1,"deleted":1,"permissions_changed":0,"renamed":0},"changes":[{"path":"[TMP]/work/project/main.c","change_type":"modified","size_delta":-3,"old":{"kind":"file","hash":"55579eb26e766aa80ad93a8ebc4ac22c329397411a516b0034ec3e7403ed5a9c","size":17,"mode":420},"new":{"kind":"file","hash":"b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2","size":14,"mode":420}},{"path":"[TMP]/work/project/new/file","change_type":"deleted","size_delta":-4,"old":{"kind":"file","hash":"7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c","size":4,"mode":420}}],"kept":[],"merges":[],"still_executes":[],"lost":[],"failed":[],"interrupted":false,"cannot_tell_conflicts":true,"left_alone":[],"unrecorded":null,"notes":[]}
! [nono] went back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
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
{"checkpoint":"[id1]","project":"[TMP]/work/project","turns_undone":[],"not_covered":0,"dry_run":false,"undo":null,"counts":{"created":0,"modified":0,"deleted":0,"permissions_changed":0,"renamed":0},"changes":[],"kept":[],"merges":[],"still_executes":[],"lost":[],"failed":[],"interrupted":false,"cannot_tell_conflicts":true,"left_alone":[],"unrecorded":null,"notes":[]}
! [nono] go back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
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
{"checkpoint":"[id1]","project":"[TMP]/work/project","turns_undone":[],"not_covered":0,"dry_run":false,"undo":null,"counts":{"created":1,"modified":1,"deleted":0,"permissions_changed":0,"renamed":0},"changes":[{"path":"[TMP]/work/project/main.c","change_type":"modified","size_delta":3,"old":{"kind":"file","hash":"b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2","size":14,"mode":420},"new":{"kind":"file","hash":"55579eb26e766aa80ad93a8ebc4ac22c329397411a516b0034ec3e7403ed5a9c","size":17,"mode":420}},{"path":"[TMP]/work/project/new/file","change_type":"created","size_delta":4,"new":{"kind":"file","hash":"7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c","size":4,"mode":420}}],"kept":[],"merges":[],"still_executes":[],"lost":[],"failed":[],"interrupted":false,"cannot_tell_conflicts":false,"left_alone":[],"unrecorded":null,"notes":[]}
! [nono] took back the last restore of [TMP]/work/project:
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
{"checkpoint":"[id1]","project":"[TMP]/work/project","turns_undone":[],"not_covered":0,"dry_run":false,"undo":"[id2].1","counts":{"created":0,"modified":1,"deleted":0,"permissions_changed":0,"renamed":0},"changes":[{"path":"[TMP]/work/project/main.c","change_type":"modified","size_delta":-3,"old":{"kind":"file","hash":"55579eb26e766aa80ad93a8ebc4ac22c329397411a516b0034ec3e7403ed5a9c","size":17,"mode":420},"new":{"kind":"file","hash":"b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2","size":14,"mode":420}}],"kept":[],"merges":[],"still_executes":[],"lost":[],"failed":[],"interrupted":false,"cannot_tell_conflicts":true,"left_alone":[],"unrecorded":null,"notes":[]}
! [nono] went back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
! [nono] changed 1
! [nono]  ~ main.c
! [nono] undo this with: nono checkpoints undo
$ nono checkpoints restore 1 new --dry-run
go back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
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
! [nono] error: no path [TMP]/work/project/nothing in the project or in the checkpoint
! [nono] hint: `nono checkpoints diff N` shows what changed; with --glob the paths are patterns
= exit 125
$ nono checkpoints restore 1 --glob '{a,b' --yes
! [nono] error: invalid pattern {a,b: a { is not closed
= exit 2
$ nono checkpoints restore 1 --glob '*/f*' --yes
{"checkpoint":"[id1]","project":"[TMP]/work/project","turns_undone":[],"not_covered":0,"dry_run":false,"undo":"[id2].2","counts":{"created":0,"modified":0,"deleted":1,"permissions_changed":0,"renamed":0},"changes":[{"path":"[TMP]/work/project/new/file","change_type":"deleted","size_delta":-4,"old":{"kind":"file","hash":"7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c","size":4,"mode":420}}],"kept":[],"merges":[],"still_executes":[],"lost":[],"failed":[],"interrupted":false,"cannot_tell_conflicts":true,"left_alone":[],"unrecorded":null,"notes":[]}
! [nono] went back to checkpoint [id1] (the beginning, [AGE]) in [TMP]/work/project:
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
    assert_eq!(done["changes"].as_array().unwrap().len(), 2, "{done}");
    for empty in ["turns_undone", "kept", "failed", "merges", "notes"] {
        assert_eq!(done[empty], serde_json::json!([]), "{empty}");
    }
    assert!(done["undo"].is_string(), "{done}");
    let done = kit.json("nono checkpoints undo --yes --json", 0);
    assert_eq!(done["changes"].as_array().unwrap().len(), 2, "{done}");
}
