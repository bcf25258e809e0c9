//! Restores that are cut off, by a kill or by Ctrl-C: completed by the next command, or by `recover`.

use std::process::Command;

use super::sessions::Sessions;
use nono_testkit::look::eventually;
use nono_testkit::process::{MIDDLE, Outcome, Running, delayed, finish, killed};
use rustix::process::Signal;

const FILES: usize = 40;

/// A session that emptied a folder.
fn emptied() -> Sessions {
    let sessions = Sessions::new();
    sessions.world.sh(&format!("mkdir many; cd many; seq {FILES} | split -l 1 -a 4 - f")).quiet(0);
    sessions.run("rm -r many");
    sessions
}

fn count(sessions: &Sessions) -> usize {
    let many = sessions.world.path("work/many");
    let names = std::fs::read_dir(many).into_iter().flatten().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.as_encoded_bytes().starts_with(b"f")).count()
}

const RESTORE: [&str; 4] = ["rollback", "restore", "last", "--yes"];

/// Restores a part, and is killed.
fn restore_killed(sessions: &Sessions) {
    finish(&mut killed(sessions.world.command("strace"), &RESTORE));
    assert!(sessions.folder(1).join("restore.journal").exists());
}

/// Restores a part, and then gets the signal.
fn signalled(sessions: &Sessions, signal: Signal, restore: &mut Command) -> Outcome {
    let running = Running::start(restore);
    eventually(|| "a part".to_owned(), || (count(sessions) > 0).then_some(()));
    running.signal(signal);
    running.end()
}

#[test]
fn a_killed_restore_is_completed() {
    let sessions = emptied();
    restore_killed(&sessions);
    assert!((1..FILES).contains(&count(&sessions)), "{}", count(&sessions));
    let outcome = sessions.sh("nono rollback recover");
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert!(outcome.err().contains("completed an interrupted restore of session"), "{outcome:?}");
    assert!(outcome.err().contains("undo this with: nono rollback undo"), "{outcome:?}");
    assert_eq!(count(&sessions), FILES);
    let outcome = sessions.sh("nono rollback recover");
    assert_eq!(
        (outcome.code(), outcome.err().as_str()),
        (Some(0), "[nono] there is no interrupted restore\n")
    );
    let back = sessions.sh("nono rollback undo --yes");
    assert_eq!(back.code(), Some(0), "{back:?}");
    assert!(!sessions.world.path("work/many").exists());
}

#[test]
fn an_interrupted_restore_says_how_to_go_on() {
    let sessions = emptied();
    let mut restore = delayed(sessions.world.command("strace"), MIDDLE, &RESTORE);
    let outcome = signalled(&sessions, Signal::INT, &mut restore);
    assert!(sessions.folder(1).join("restore.journal").exists());
    assert_eq!(outcome.code(), Some(130), "{outcome:?}");
    assert!(outcome.err().contains("interrupted; `nono rollback recover` completes it"), "{outcome:?}");
    assert!((1..FILES).contains(&count(&sessions)), "{}", count(&sessions));
    let report = sessions.json("nono rollback recover --json", 0);
    assert_eq!(report.as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report[0]["session_id"], sessions.id(1));
    assert_eq!(count(&sessions), FILES);
    assert_eq!(sessions.json("nono rollback recover --json", 0).as_array().unwrap().len(), 0);
}

/// The next command that looks at the tree goes on by itself, and says so.
#[test]
fn the_next_command_completes_it_too() {
    let sessions = emptied();
    restore_killed(&sessions);
    let outcome = sessions.sh("nono rollback restore last --dry-run");
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert!(outcome.err().contains("completed an interrupted restore of session"), "{outcome:?}");
    assert_eq!(count(&sessions), FILES);
}

/// A process that ignores SIGHUP keeps ignoring it.
#[test]
fn nohup_is_respected() {
    let sessions = emptied();
    let command = delayed(sessions.world.command("strace"), MIDDLE, &RESTORE);
    let mut ignoring = sessions.world.command("/bin/sh");
    ignoring
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    let outcome = signalled(&sessions, Signal::HUP, &mut ignoring);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert_eq!(count(&sessions), FILES);
}
