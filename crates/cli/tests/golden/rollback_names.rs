//! What a restore is asked for by name: sessions, and files of any bytes.

use std::fs;

use snapbox::str;

use super::sessions::Sessions;
use nono_testkit::process::finish;

#[test]
fn a_session_by_the_beginning_of_its_id_its_name_or_its_folder() {
    let sessions = Sessions::new();
    sessions.world.file("work/file", "before\n");
    sessions.run_with("--allow . --name mine", "echo 1 > file");
    let id = sessions.id(1);
    let day = &id[..8];
    for name in [id.as_str(), &id[..id.len() - 1], "mine", "last", sessions.folder(1).to_str().unwrap(), day]
    {
        let outcome = sessions.sh(&format!("nono rollback restore {name} --dry-run"));
        outcome.quiet(0);
        assert!(outcome.out().contains("~ file"), "{name}: {outcome:?}");
    }
    sessions.run_with("--allow . --name other", "echo 2 > file");
    let outcome = sessions.sh("nono rollback restore 2 --dry-run");
    assert!(outcome.err().contains("2 matches several sessions"), "{outcome:?}");
    assert!(
        outcome.err().contains(&sessions.id(1)) && outcome.err().contains(&sessions.id(2)),
        "{outcome:?}"
    );
    assert_eq!(outcome.code(), Some(125));
}

/// The names come from the tree, so they may be anything.
#[test]
fn names_of_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let sessions = Sessions::new();
    let name = std::ffi::OsStr::from_bytes(b"a\xff\n\x1b[31m");
    let path = sessions.world.path("work").join(name);
    finish(sessions.world.command("touch").arg(&path)).quiet(0);
    sessions.run("rm a*");
    let plan = sessions.json("nono rollback restore last --dry-run --json", 0);
    let hex = plan["changes"][0]["path"]["hex"].as_str().unwrap();
    assert!(hex.ends_with("2f61ff0a1b5b33316d"), "{plan}");
    sessions.golden(
        &["nono rollback restore last --dry-run", "nono rollback restore last --yes"],
        str![[r#"
$ nono rollback restore last --dry-run
go back to before session [1] (sh -c 'rm a*', [AGE]) in [TMP]/work:
bring back 1
  + a�\u{a}\u{1b}[31m
these changed while the command ran; some of the changes may be your own
$ nono rollback restore last --yes
! [nono] went back to before session [1] (sh -c 'rm a*', [AGE]) in [TMP]/work:
! [nono] brought back 1
! [nono]  + a�\u{a}\u{1b}[31m
! [nono] undo this with: nono rollback undo [1].1

"#]],
    );
    assert_eq!(fs::read(&path).unwrap(), b"");
}
