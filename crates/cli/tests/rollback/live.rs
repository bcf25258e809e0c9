//! Several sessions on one tree.

use super::kit::{Kit, end};
use nono_testkit::oracle::same;

/// Waits in the sandbox for a file of that name.
fn until(name: &str) -> String {
    format!("until [ -e {name} ]; do sleep 0.02; done")
}

#[test]
fn two_at_once_are_both_restorable() {
    let kit = Kit::with_tree();
    let before = kit.look();
    let first = kit.start(&["--name", "first"], &format!("{}; echo first > by-first", until("go")));
    kit.session();
    let second = kit.start(&["--name", "second"], &format!("echo second > by-second; {}", until("go")));
    super::kit::wait_for("the second", || kit.tree().join("by-second").exists().then_some(()));
    let said = kit.nono(&["rollback", "restore", "first", "--yes"]);
    assert_ne!(said.code, Some(0), "a session is live: {said:?}");
    let live: Vec<String> =
        kit.sessions().iter().map(|dir| dir.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert!(live.iter().any(|id| said.err.contains(id)), "the live session is not named: {said:?}");
    // Times are kept by the second.
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let began = now();
    super::kit::wait_for("the next second", || (now() > began).then_some(()));
    kit.bare("echo > go");
    end(first).ok();
    end(second).ok();
    // Each changed the tree under the other; together they bring everything back.
    let said = kit.nono(&["rollback", "restore", "second", "--yes", "--force"]).ok();
    assert!(said.err.contains("ran here at the same time"), "the first is not named: {said:?}");
    kit.nono(&["rollback", "restore", "first", "--yes", "--force"]).ok();
    same(&before, &kit.look());
    kit.nono(&["rollback", "verify"]).ok();
}

#[test]
fn a_killed_supervisor_leaves_a_session() {
    let kit = Kit::with_tree();
    let before = kit.look();
    let mut run = kit.start(&[], "rm -rf src; echo half > half; sleep 1000");
    super::kit::wait_for("a change", || kit.tree().join("half").exists().then_some(()));
    run.kill().unwrap();
    run.wait().unwrap();
    let listed = kit.nono(&["rollback", "list"]).ok();
    assert!(listed.out.contains("[interrupted]"), "{listed:?}");
    kit.nono(&["rollback", "show", "last"]).ok();
    kit.nono(&["rollback", "verify", "last"]).ok();
    kit.restored(&before);
}

#[test]
fn names_prefixes_and_last() {
    let kit = Kit::with_tree();
    kit.nono(&["run", "--rollback", "--allow", ".", "--name", "mine", "--", "touch", "a"]).ok();
    kit.nono(&["run", "--rollback", "--allow", ".", "--", "touch", "b"]).ok();
    let json = kit.nono(&["rollback", "show", "mine", "--json"]).ok().json();
    assert_eq!(json["name"], "mine");
    let id = json["session_id"].as_str().unwrap().to_owned();
    let by_prefix = kit.nono(&["rollback", "show", &id[..id.len() - 1], "--json"]);
    if by_prefix.code == Some(0) {
        assert_eq!(by_prefix.json()["session_id"], id.as_str());
    }
    kit.nono(&["rollback", "restore", "mine", "--yes", "--force"]).ok();
    assert!(!kit.tree().join("a").exists());
    let unknown = kit.nono(&["rollback", "show", "nobody"]);
    assert_ne!(unknown.code, Some(0));
    assert!(unknown.err.contains("nobody"), "{unknown:?}");
}
