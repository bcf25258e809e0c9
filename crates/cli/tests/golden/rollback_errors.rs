//! Wrong words, wrong places, and a nono inside a sandbox.

use std::os::unix::fs::symlink;

use snapbox::str;

use super::sessions::Sessions;
use super::world::World;

#[test]
fn wrong_words() {
    let sessions = Sessions::new();
    sessions.world.file("work/file", "before\n");
    sessions.run("echo 1 > file");
    sessions.golden(
        &[
            "nono rollback restore nobody --yes",
            "nono rollback restore '' --yes",
            "nono rollback restore ./nowhere --yes",
            "nono rollback restore \"$(printf 'x\\033[31m')\" --yes",
            "nono rollback list --recent -1",
            "nono rollback list --recent many",
            "nono rollback cleanup --max-size much --yes",
            "nono rollback cleanup --older-than soon --yes",
            "nono rollback cleanup --all --keep 3 --yes",
            "nono rollback verify nobody",
            "nono rollback pin nobody",
            "nono rollback nothing",
            "cat file",
        ],
        str![[r#"
$ nono rollback restore nobody --yes
! [nono] error: no session is called "nobody"
! [nono] hint: `nono rollback list` lists the sessions
= exit 125
$ nono rollback restore '' --yes
! [nono] error: no session is called ""
! [nono] hint: `nono rollback list` lists the sessions
= exit 125
$ nono rollback restore ./nowhere --yes
! [nono] error: session [1] has no path [TMP]/work/nowhere
! [nono] hint: `nono rollback show [1]` lists what the session changed
= exit 125
$ nono rollback restore "$(printf 'x\033[31m')" --yes
! [nono] error: no session is called "x\u{1b}[31m"
! [nono] hint: `nono rollback list` lists the sessions
= exit 125
$ nono rollback list --recent -1
! [nono] error: unexpected argument '-1' found
! [nono]
! [nono] Usage: nono rollback list [OPTIONS]
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono rollback list --recent many
! [nono] error: invalid value 'many' for '--recent <N>': write a whole number from 1 on
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono rollback cleanup --max-size much --yes
! [nono] error: invalid value 'much' for '--max-size <SIZE>': "much" is not a size: write 512K, 200M or 2G
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono rollback cleanup --older-than soon --yes
! [nono] error: invalid value 'soon' for '--older-than <DAYS>': write a whole number from 0 on
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono rollback cleanup --all --keep 3 --yes
! [nono] error: the argument '--all' cannot be used with '--keep <N>'
! [nono]
! [nono] Usage: nono rollback cleanup --all --yes
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono rollback verify nobody
! [nono] error: no session is called "nobody"
! [nono] hint: `nono rollback list` lists the sessions
= exit 125
$ nono rollback pin nobody
! [nono] error: no session is called "nobody"
! [nono] hint: `nono rollback list` lists the sessions
= exit 125
$ nono rollback nothing
! [nono] error: unrecognized subcommand 'nothing'
! [nono]
! [nono] Usage: nono rollback <COMMAND>
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ cat file
1

"#]],
    );
}

#[test]
fn a_nono_inside_a_sandbox_stays_out_of_it() {
    let sessions = Sessions::new();
    sessions.world.file("work/file", "before\n");
    sessions.run("echo 1 > file");
    for command in [
        "rollback list",
        "rollback list --json",
        "rollback show last",
        "rollback restore last --yes",
        "rollback undo --yes",
        "rollback review last",
        "rollback verify",
        "rollback pin last",
        "rollback unpin last",
        "rollback cleanup --all --yes",
        "rollback recover",
        "rollback repair",
        "undo --yes",
        "redo --yes",
    ] {
        for way in ["run -s --no-diagnostics", "wrap"] {
            let outcome = sessions.sh(&format!("nono {way} --allow . -- nono {command}"));
            assert_eq!(outcome.code(), Some(125), "{way} {command}: {outcome:?}");
            assert_eq!(
                outcome.err(),
                "[nono] error: nono inside a sandbox cannot read or undo sessions\n",
                "{way} {command}"
            );
            assert_eq!(outcome.out(), "", "{way} {command}");
        }
    }
    assert_eq!(sessions.sh("cat file").out(), "1\n");
}

#[test]
fn a_state_folder_that_cannot_be_trusted() {
    let world = World::new();
    world.sh("chmod 777 ../state").quiet(0);
    world.golden(
        &["nono rollback list", "nono undo --yes"],
        str![[r#"
$ nono rollback list
! [nono] error: [TMP]/state can be written by others (mode 0777): nono does not keep its state there
! [nono] hint: chmod 700 [TMP]/state
= exit 125
$ nono undo --yes
! [nono] error: [TMP]/state can be written by others (mode 0777): nono does not keep its state there
! [nono] hint: chmod 700 [TMP]/state
= exit 125

"#]],
    );
    world.sh("rmdir ../state").quiet(0);
    symlink(world.path("home"), world.path("state")).unwrap();
    world.golden(
        &["nono rollback list"],
        str![[r#"
$ nono rollback list
! [nono] error: [TMP]/state is a symbolic link: nono does not keep its state there
! [nono] hint: move it away, or set NONO_HOME to a folder of your own
= exit 125

"#]],
    );
}
