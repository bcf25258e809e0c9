//! Restores that are cut off, by a kill or by Ctrl-C: completed by the next command, or by `recover`.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::sessions::Sessions;
use nono_testkit::process::Running;

const FILES: usize = 6000;

/// A session that emptied a folder of many files: restoring it takes a while.
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

/// Restores until a part is there, and then sends the signal.
fn cut_off(sessions: &Sessions, signal: Signal) -> nono_testkit::process::Outcome {
    let mut command = sessions.world.nono(&["rollback", "restore", "last", "--yes"]);
    let running = Running::start(&mut command);
    let journal = sessions.folder(1).join("restore.journal");
    until(&journal);
    running.signal(signal);
    running.end()
}

fn until(path: &Path) {
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < Duration::from_secs(20), "{} never came", path.display());
        std::thread::yield_now();
    }
}

#[test]
fn a_killed_restore_is_completed() {
    let sessions = emptied();
    cut_off(&sessions, Signal::KILL);
    assert!(count(&sessions) < FILES, "it was too fast to be cut off");
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
    let outcome = cut_off(&sessions, Signal::INT);
    assert_eq!(outcome.code(), Some(130), "{outcome:?}");
    assert!(outcome.err().contains("interrupted; `nono rollback recover` completes it"), "{outcome:?}");
    assert!(count(&sessions) < FILES, "it was too fast to be cut off");
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
    cut_off(&sessions, Signal::KILL);
    let outcome = sessions.sh("nono rollback restore last --dry-run");
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert!(outcome.err().contains("completed an interrupted restore of session"), "{outcome:?}");
    assert_eq!(count(&sessions), FILES);
}

/// A process that ignores SIGHUP keeps ignoring it.
#[test]
fn nohup_is_respected() {
    let sessions = emptied();
    let mut command = sessions.world.command("/bin/sh");
    command.args(["-c", "trap '' HUP; exec nono rollback restore last --yes"]);
    let running = Running::start(&mut command);
    until(&sessions.folder(1).join("restore.journal"));
    running.signal(Signal::HUP);
    let outcome = running.end();
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert_eq!(count(&sessions), FILES);
}
