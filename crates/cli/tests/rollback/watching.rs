//! Snapshots while the command runs.

use super::kit::{Kit, end};
use nono_testkit::oracle::same;

const WAIT: &str = "wait_for() { until [ -e $1 ]; do sleep 0.02; done; }; ";

/// A run that is looked at ten times a second.
fn quickly(kit: &Kit, script: &str) -> super::kit::Said {
    end(kit.start(&["--snapshot-interval", "100ms"], script))
}

#[test]
fn each_quiet_moment_is_a_point_to_go_back_to() {
    let kit = Kit::with_tree();
    let script = WAIT.to_owned()
        + "echo one > state; mkdir -p new/dir; wait_for go1; echo two > state; echo x > new/dir/x; wait_for go2; rm -rf src state";
    let run = kit.start(&["--snapshot-interval", "200ms"], &script);
    kit.wait_for_snapshots(2);
    kit.bare("echo > go1");
    kit.wait_for_snapshots(3);
    kit.bare("echo > go2");
    end(run).ok();
    let shown = kit.nono(&["rollback", "show", "last", "--snapshots", "--json"]).ok().json();
    assert!(shown["snapshots"].as_array().unwrap().len() >= 4, "{shown}");
    // Somewhere on the way each state is.
    let mut states = Vec::new();
    for number in 0..shown["snapshots"].as_array().unwrap().len() {
        kit.nono(&["rollback", "restore", "last", "--snapshot", &number.to_string(), "--yes", "--force"])
            .ok();
        states.push(std::fs::read_to_string(kit.tree().join("state")).unwrap_or_default());
    }
    assert!(states.contains(&"one\n".to_owned()) && states.contains(&"two\n".to_owned()), "{states:?}");
}

#[test]
fn nothing_changed_is_no_snapshot() {
    let kit = Kit::with_tree();
    // Also where something changes that is left out.
    kit.world.file("state/config.toml", "[rollback]\nignored = \"leave-out\"\n", 0o600);
    kit.bare("echo > log.log; git init -q .");
    let script = "for i in $(seq 1 40); do echo $i >> log.log; cat src/main.rs > /dev/null; sleep 0.02; done";
    let said = quickly(&kit, script);
    assert_eq!(said.code, Some(0), "{said:?}");
    let shown = kit.nono(&["rollback", "show", "last", "--snapshots", "--json"]).ok().json();
    assert_eq!(shown["snapshots"].as_array().unwrap().len(), 2, "{shown}");
}

/// More events than the queue holds, and more directories than one may watch: nothing is missed.
#[test]
fn a_flood_is_not_missed() {
    let kit = Kit::with_tree();
    let before = kit.look();
    let script = "for r in 1 2 3; do for i in $(seq 1 3000); do : > f$i; done; rm $(seq -f f%.0f 1 3000); done; echo last > last";
    let said = quickly(&kit, script).ok();
    assert!(!said.err.contains("error") && !said.err.contains("warning"), "{said:?}");
    let shown = kit.nono(&["rollback", "show", "last", "--json"]).ok().json();
    assert_eq!(shown["changes"].as_array().unwrap().len(), 1, "{shown}");
    kit.restored(&before);
}

#[test]
fn many_snapshots_are_thinned() {
    let kit = Kit::with_tree();
    let before = kit.look();
    let run = kit.start(
        &["--snapshot-interval", "20ms"],
        "i=0; until [ -e go ]; do i=$((i+1)); echo $i > count; sleep 0.03; done",
    );
    kit.wait_for_snapshots(30);
    kit.bare("echo > go");
    end(run).ok();
    let shown = kit.nono(&["rollback", "show", "last", "--snapshots", "--json"]).ok().json();
    let snapshots = shown["snapshots"].as_array().unwrap();
    assert!(snapshots.iter().any(|one| one["thinned"] == true), "{shown}");
    let there = snapshots.iter().filter(|one| one["thinned"] != true).count();
    assert!((16..=45).contains(&there), "{there} of {}", snapshots.len());
    kit.nono(&["rollback", "verify", "last"]).ok();
    kit.nono(&["rollback", "restore", "last", "--yes", "--force"]).ok();
    same(&before, &kit.look());
}
