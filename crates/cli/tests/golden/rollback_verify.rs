//! `nono rollback verify`: 0 when everything is as it was, 1 and the names of what is not.

use std::fs;

use snapbox::str;

use super::sessions::Sessions;
use super::settled::settled;

#[test]
fn good_ones() {
    let sessions = Sessions::new();
    sessions.world.file("work/file", "before\n");
    sessions.run("echo 1 > file");
    sessions.run("echo 2 > file");
    sessions.golden(
        &["nono rollback verify", "nono rollback verify last", "nono undo --yes", "nono rollback verify"],
        str![[r#"
$ nono rollback verify
[2]: good (2 snapshots, [N] objects, [SIZE], sealed)
[1]: good (2 snapshots, [N] objects, [SIZE], sealed)
$ nono rollback verify last
[2]: good (2 snapshots, [N] objects, [SIZE], sealed)
$ nono undo --yes
! [nono] went back to before session [2] (sh -c 'echo 2 > file', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ file
! [nono] undo this with: nono rollback undo [2].1
$ nono rollback verify
[2]: good (3 snapshots, [N] objects, [SIZE], sealed)
[1]: good (2 snapshots, [N] objects, [SIZE], sealed)

"#]],
    );
    let report = sessions.json("nono rollback verify --json", 0);
    assert_eq!(report["good"], true);
    assert_eq!(report["sessions"].as_array().unwrap().len(), 2, "{report}");
    let session = &report["sessions"][0];
    assert_eq!(
        (&session["session_id"], &session["sealed"]),
        (&sessions.id(2).into(), &true.into()),
        "{report}"
    );
}

#[test]
fn an_altered_one_is_named_and_the_others_are_checked() {
    let sessions = Sessions::new();
    sessions.world.file("work/file", "before\n");
    sessions.run("echo 1 > file");
    sessions.run("echo 2 > file");
    let file = sessions.folder(1).join("session.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("echo 1 > file", "echo 9 > file")).unwrap();
    sessions.golden(
        &[
            "nono rollback verify",
            "nono rollback verify [2]",
            "nono rollback verify [1]",
            "nono rollback verify nobody",
        ],
        str![[r#"
$ nono rollback verify
[2]: good (2 snapshots, [N] objects, [SIZE], sealed)
[1]: BAD (2 snapshots, [N] objects, [SIZE], seal broken)
  [TMP]/state/rollbacks/[1]/session.json was changed after the session was sealed
= exit 1
$ nono rollback verify [2]
[2]: good (2 snapshots, [N] objects, [SIZE], sealed)
$ nono rollback verify [1]
[1]: BAD (2 snapshots, [N] objects, [SIZE], seal broken)
  [TMP]/state/rollbacks/[1]/session.json was changed after the session was sealed
= exit 1
$ nono rollback verify nobody
! [nono] error: no session is called "nobody"
! [nono] hint: `nono rollback list` lists the sessions
= exit 125

"#]],
    );
    let report = sessions.json("nono rollback verify --json", 1);
    assert_eq!(report["good"], false);
    assert_eq!(report["sessions"][1]["good"], false, "{report}");
    assert_eq!(report["sessions"][0]["good"], true, "{report}");
}

/// A flipped bit in what is stored.
#[test]
fn damaged_content() {
    let sessions = Sessions::new();
    sessions.world.file("work/file", "before\n");
    sessions.run("echo 1 > file");
    // Later the pack would be replaced, and its damage with it.
    settled(&sessions.world.path("bin/nono"));
    let packs = fs::read_dir(sessions.world.path("state/store/packs")).unwrap();
    let packs =
        packs.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "pack"));
    let pack = packs.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let outcome = sessions.sh("nono rollback verify");
    assert_eq!(outcome.code(), Some(1), "{outcome:?}");
    assert!(outcome.out().contains("BAD ("), "{outcome:?}");
    assert!(outcome.out().contains(pack.to_str().unwrap()), "{outcome:?}");
}
