//! How a tracked run can end, and be ended.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::kit::{Kit, end, has_children, wait_for};
use nono_testkit::oracle::{Oracle, same};
use nono_testkit::process::MIDDLE;

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn the_commands_own_exit_code() {
    let kit = Kit::with_tree();
    let before = kit.look();
    kit.run("rm closed; exit 37").code(37);
    kit.restored(&before);
    kit.run("rm closed; kill -9 $$").code(137);
    kit.restored(&before);
}

#[test]
fn a_signal_to_the_run() {
    let kit = Kit::with_tree();
    let before = kit.look();
    let run = kit.start(&[], "rm closed; echo > started; sleep 1000");
    wait_for("the command", || kit.tree().join("started").exists().then_some(()));
    signal(&run, Signal::TERM);
    end(run).code(143);
    kit.restored(&before);
}

/// A few files, for a restore that is cut off in its middle.
fn few(kit: &Kit) {
    kit.bare("mkdir few; cd few; seq 40 | split -l 1 - f");
}

/// A run whose snapshot takes a second longer as it opens the file.
fn run_delayed(kit: &Kit, file: &str, script: &str) -> Child {
    let args = ["run", "--rollback", "--snapshot-interval", "1h", "--allow", ".", "--", "bash", "-c", script];
    kit.start_delayed("openat:when=1", Some(file), &args)
}

#[test]
fn an_interrupt_during_the_baseline_leaves_nothing() {
    let kit = Kit::with_tree();
    few(&kit);
    let before = kit.look();
    let run = run_delayed(&kit, "xaf", "echo > started");
    wait_for("the session's folder", || (!kit.sessions().is_empty()).then_some(()));
    signal(&run, Signal::INT);
    let said = end(run).code(130);
    assert!(said.err.contains("before the command started; nothing was left behind"), "{said:?}");
    assert!(kit.sessions().is_empty(), "left behind: {:?}", kit.sessions());
    same(&before, &kit.look());
}

#[test]
fn an_interrupt_during_the_final_snapshot_keeps_the_baseline() {
    let kit = Kit::with_tree();
    let before = kit.look();
    // The command itself does not open the file under this name.
    let run = run_delayed(&kit, "made", "echo > closed; echo x > new; mv new made; exit 7");
    wait_for("the command", || kit.tree().join("made").exists().then_some(()));
    wait_for("the command's end", || (!has_children(run.id())).then_some(()));
    signal(&run, Signal::INT);
    let said = end(run).code(7);
    assert!(said.err.contains("cannot take the final snapshot"), "{said:?}");
    assert!(said.err.contains("nono rollback restore"), "{said:?}");
    kit.restored(&before);
}

#[test]
fn an_interrupt_during_a_restore_is_completed_later() {
    let kit = Kit::with_tree();
    few(&kit);
    let before = kit.look();
    kit.run("rm -rf few; echo x > closed").ok();
    let journal = kit.session().join("restore.journal");
    let restore = kit.start_delayed(MIDDLE, None, &["rollback", "restore", "last", "--yes"]);
    wait_for("the restore", || journal.exists().then_some(()));
    signal(&restore, Signal::INT);
    end(restore).code(130);
    assert!(journal.exists());
    kit.nono(&["rollback", "recover"]).ok();
    assert!(!journal.exists());
    same(&before, &kit.look());
}

/// A restore that was killed in its middle; the tree as it should be after it, and its journal.
fn killed_restore() -> (Kit, Oracle, PathBuf) {
    let kit = Kit::with_tree();
    few(&kit);
    let before = kit.look();
    kit.run("rm -rf few; echo x > closed").ok();
    kit.killed(&["rollback", "restore", "last", "--yes"]);
    let journal = kit.session().join("restore.journal");
    assert!(journal.exists());
    (kit, before, journal)
}

#[test]
fn a_killed_restore_is_completed_by_the_next_command() {
    let (kit, before, journal) = killed_restore();
    kit.nono(&["rollback", "recover"]).ok();
    same(&before, &kit.look());
    assert!(!journal.exists());
}

/// Completing it is the undo that was asked for: the session before is not undone with it.
#[test]
fn an_undo_completes_one_that_was_killed_and_goes_no_further() {
    let kit = Kit::with_tree();
    few(&kit);
    kit.run("echo older > older").ok();
    let before = kit.look();
    kit.run("rm -rf few; echo x > closed").ok();
    kit.killed(&["undo", "--yes"]);
    assert!(kit.sessions()[1].join("restore.journal").exists());
    let said = kit.nono(&["undo", "--yes"]).ok();
    assert!(said.err.contains("completed an interrupted restore"), "{said:?}");
    same(&before, &kit.look());
    kit.nono(&["undo", "--yes"]).ok();
    assert!(!kit.tree().join("older").exists());
}

#[test]
fn a_run_completes_what_was_cut_off_before_it_begins() {
    let (kit, before, _) = killed_restore();
    let said = kit.run("true").ok();
    assert!(said.err.contains("completed an interrupted restore"), "{said:?}");
    same(&before, &kit.look());
}

#[test]
fn no_run_begins_while_a_restore_is_under_way() {
    let kit = Kit::with_tree();
    kit.run("echo one > one").ok();
    let id = kit.session().file_name().unwrap().to_str().unwrap().to_owned();
    kit.nono(&["run", "--rollback", "--allow", ".", "--name", "other", "--", "touch", "two"]).ok();
    // As a restore of the first session would.
    let mut flock = kit.world.command("flock");
    flock.arg(kit.session().join("restores.lock")).args(["sh", "-c", "echo locked; cat"]);
    let mut held = flock.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut reply = [0; 6];
    held.stdout.as_mut().unwrap().read_exact(&mut reply).unwrap();
    let said = kit.run("touch three").code(125);
    assert!(said.err.contains(&id) && said.err.contains("under way"), "{said:?}");
    assert_eq!(kit.sessions().len(), 2, "nothing is left of it");
    let said = kit.nono(&["rollback", "restore", "other", "--yes", "--force"]);
    assert!(said.code != Some(0) && said.err.contains(&id), "{said:?}");
    assert!(kit.tree().join("two").exists() && !kit.tree().join("three").exists());
    drop(held.stdin.take());
    held.wait().unwrap();
    kit.nono(&["rollback", "restore", "other", "--yes", "--force"]).ok();
    assert!(!kit.tree().join("two").exists());
}

#[test]
fn a_final_snapshot_that_fails_keeps_code_and_baseline() {
    let kit = Kit::with_tree();
    let before = kit.look();
    let run = kit.start(&[], "rm closed; echo > started; until [ -e go ]; do sleep 0.02; done; exit 9");
    wait_for("the command", || kit.tree().join("started").exists().then_some(()));
    // Another process puts a file where the snapshot's manifest would go.
    let manifests = kit.session().join("snapshots");
    fs::rename(&manifests, manifests.with_extension("away")).unwrap();
    fs::write(&manifests, "in the way").unwrap();
    kit.bare("echo > go");
    let said = end(run).code(9);
    assert!(said.err.contains("cannot take the final snapshot"), "{said:?}");
    fs::remove_file(&manifests).unwrap();
    fs::rename(manifests.with_extension("away"), &manifests).unwrap();
    kit.restored(&before);
}

#[test]
fn without_a_supervisor_outside_it_is_refused() {
    let kit = Kit::with_tree();
    for args in [
        ["wrap", "--rollback"].as_slice(),
        &["run", "--monitor", "--rollback"],
        &["run", "--exec", "--rollback"],
    ] {
        let said = kit.nono(&[args, &["--allow", ".", "--", "touch", "x"]].concat()).code(2);
        assert!(said.err.contains("--rollback needs a supervisor"), "{said:?}");
        assert!(!kit.tree().join("x").exists());
    }
    let said = kit.nono(&["run", "--paranoid", "--allow", ".", "--", "touch", "x"]).code(2);
    assert!(said.err.contains("--paranoid"), "{said:?}");
}
