//! Upkeep after a short run: a separate process makes the store small and durable, without disturbing other commands.

use std::fs;
use std::path::Path;

use super::kit::{Kit, wait_for};
use super::settled::settled;

fn bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}

const LINES: &str =
    "for dir in 1 2 3 4; do mkdir $dir; for n in $(seq 100); do seq $n 7 9000 > $dir/$n; done; done";

#[test]
fn a_store_is_small_and_durable_soon_after_a_short_run() {
    let kit = Kit::new();
    kit.bare(LINES);
    let size: u64 = (1..=4).map(|dir| bytes(&kit.tree().join(dir.to_string()))).sum();
    // Its output is read to the end: nothing else may have it open.
    kit.run("true").ok();
    let packs = kit.world.path("state/store/packs");
    wait_for("a small store", || (bytes(&packs) * 100 < size * 35).then_some(()));
    settled(&kit.world.path("bin/nono"));
    let record = fs::read_to_string(kit.session().join("record.json")).unwrap();
    assert!(!record.contains("\"durable\":false"), "{record}");
    kit.bare("rm -r 1 2");
    kit.nono(&["rollback", "restore", "last", "--yes", "--force"]).ok();
    kit.nono(&["rollback", "verify"]).ok();
}

#[test]
fn what_settles_ends_when_the_state_goes() {
    let kit = Kit::new();
    kit.bare(LINES);
    kit.run("true").ok();
    // Moved away, its names lead nowhere any more.
    fs::rename(kit.world.path("state/store"), kit.world.path("state/other")).unwrap();
    settled(&kit.world.path("bin/nono"));
    assert!(!kit.world.path("state/store").exists(), "nothing is made again");
}
