//! A supervisor that was killed: the next command in the project ends its session.

use std::fs;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::kit::{Kit, end, wait_for};
use nono_testkit::oracle::same;

/// A run that changed something and was killed together with its supervisor.
fn killed(kit: &Kit, flags: &[&str], script: &str) {
    let run = kit.start(flags, &format!("{script}; echo > started; sleep 1000"));
    wait_for("the command", || kit.tree().join("started").exists().then_some(()));
    kill_process(Pid::from_child(&run), Signal::KILL).unwrap();
    end(run);
}

fn json(kit: &Kit, args: &[&str]) -> Value {
    kit.nono(args).ok().json()
}

const HARM: &str =
    "rm closed; mkdir -p .git/hooks; echo 'echo x' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit";

#[test]
fn the_next_command_takes_the_last_snapshot_and_says_what_will_execute_later() {
    let kit = Kit::with_tree();
    let before = kit.look();
    killed(&kit, &["--snapshot-interval", "1h"], HARM);
    let said = kit.nono(&["status"]).ok();
    assert!(said.err.contains("ended without a review: nono was killed"), "{said:?}");
    assert!(said.err.contains("will execute later: .git/hooks/pre-commit"), "{said:?}");
    let said = kit.nono(&["status"]).ok();
    assert!(!said.err.contains("killed"), "once is enough: {said:?}");
    let sessions = json(&kit, &["rollback", "list", "--json"]);
    let one = &sessions[0];
    assert_eq!(one["status"], "interrupted", "{sessions}");
    let id = one["session_id"].as_str().unwrap();
    let verified = kit.nono(&["rollback", "verify", id]).ok();
    assert!(verified.out.contains("sealed") || verified.err.contains("sealed"), "{verified:?}");
    let log = kit.nono(&["audit", "verify", id]);
    assert_eq!(log.code, Some(0), "{log:?}");
    let shown = kit.nono(&["audit", "show", id]).ok();
    assert!(shown.out.contains("interrupted"), "{shown:?}");
    kit.nono(&["undo", "--yes"]).ok();
    same(&before, &kit.look());
}

#[test]
fn a_run_begins_after_it() {
    let kit = Kit::with_tree();
    killed(&kit, &[], "rm closed");
    let said = kit.run("rm run.sh").ok();
    let (first, last) = (said.err.find("nono was killed").unwrap(), said.err.find("snapshot 0").unwrap());
    assert!(first < last, "{said:?}");
    // Each is undone on its own, the last one first.
    kit.nono(&["undo", "--yes"]).ok();
    assert!(kit.tree().join("run.sh").exists() && !kit.tree().join("closed").exists());
    kit.nono(&["undo", "--yes"]).ok();
    assert!(kit.tree().join("closed").exists());
}

#[test]
fn other_projects_and_running_sessions_are_left_alone() {
    let kit = Kit::with_tree();
    killed(&kit, &[], "rm closed");
    let home = kit.world.path("home");
    let other = kit.world.command("nono").args(["status"]).current_dir(&home).output().unwrap();
    assert!(!String::from_utf8_lossy(&other.stderr).contains("killed"), "{other:?}");
    let beside = kit.tree().join("beside");
    fs::create_dir(&beside).unwrap();
    kit.nono(&["status"]).ok();
    // A second one, alive, beside the first that is over.
    kit.bare("rm -f started");
    let run = kit.start(&[], "echo > started; sleep 1000");
    wait_for("the command", || kit.tree().join("started").exists().then_some(()));
    let said = kit.nono(&["status"]).ok();
    assert!(!said.err.contains("killed"), "{said:?}");
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    end(run).code(143);
}

/// Ten commands at once: one of them does it.
#[test]
fn one_of_many_ends_it() {
    let kit = Kit::with_tree();
    killed(&kit, &[], HARM);
    let all: Vec<_> = (0..10)
        .map(|_| kit.command(&["status"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        .collect();
    let said: Vec<_> = all.into_iter().map(end).collect();
    let told = said.iter().filter(|said| said.err.contains("nono was killed")).count();
    assert_eq!(told, 1, "{said:?}");
    let one = &json(&kit, &["rollback", "list", "--json"])[0];
    assert!(one["changes"].is_object(), "{one}");
}

/// Elsewhere, by `--rollback-dest`.
#[test]
fn a_session_elsewhere_is_ended_too() {
    let kit = Kit::with_tree();
    let before = kit.look();
    let dest = kit.world.path("elsewhere");
    killed(&kit, &["--rollback-dest", dest.to_str().unwrap()], HARM);
    let said = kit.nono(&["status"]).ok();
    assert!(said.err.contains("nono was killed"), "{said:?}");
    kit.nono(&["undo", "--yes"]).ok();
    same(&before, &kit.look());
}

/// One that tracks nothing has no review to lose, but a log to close.
#[test]
fn the_log_of_a_session_that_tracked_nothing_is_closed() {
    for elsewhere in [false, true] {
        let kit = Kit::with_tree();
        let script = "echo > started; sleep 1000";
        let mut run = kit.command(&["run", "--allow", ".", "--", "sh", "-c", script]);
        let run = run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("the command", || kit.tree().join("started").exists().then_some(()));
        kill_process(Pid::from_child(&run), Signal::KILL).unwrap();
        end(run);
        if elsewhere {
            // The next run anywhere closes it, too, and has nothing to say about it.
            let (home, nothing) = (kit.world.path("home"), Stdio::null());
            let other = kit
                .world
                .command("nono")
                .args(["run", "--", "true"])
                .current_dir(&home)
                .stdin(nothing)
                .output();
            let other = other.unwrap();
            assert!(other.status.success() && other.stderr.is_empty(), "{other:?}");
        } else {
            let said = kit.nono(&["status"]).ok();
            assert!(said.err.contains("was killed together with nono"), "{said:?}");
            assert!(said.err.contains("its audit log was closed and marked as interrupted"), "{said:?}");
        }
        let said = kit.nono(&["status"]).ok();
        assert!(!said.err.contains("killed"), "once is enough: {said:?}");
        let logs = json(&kit, &["audit", "list", "--json"]);
        let killed = logs.as_array().unwrap().iter().find(|log| log["command"][0] == "sh").unwrap();
        let id = killed["session_id"].as_str().unwrap_or_else(|| panic!("{logs}"));
        let verified = kit.nono(&["audit", "verify", id]).ok();
        assert!(verified.out.contains("sealed"), "{verified:?}");
        assert!(kit.nono(&["audit", "show", id]).ok().out.contains("interrupted"));
    }
}
