//! Restores are on record.

use super::kit::Kit;

#[test]
fn a_restore_is_attributed() {
    let kit = Kit::project();
    let id = kit.take();
    kit.bare("rm src/main.rs; echo new > new");
    kit.restore(&["1"]).ok();
    kit.checkpoints(&["undo", "--yes"]).ok();
    let all = kit.nono(&["audit", "list", "--json"]).ok().json();
    assert_eq!(all.as_array().unwrap().len(), 2, "{all}");
    kit.nono(&["audit", "verify"]).ok();
    let shown = kit.nono(&["audit", "show", "last", "--json"]).ok();
    assert!(shown.out.contains("\"checkpoints\"") && shown.out.contains("undo"), "{}", shown.out);
    let first = all[1]["session_id"].as_str().unwrap();
    let shown = kit.nono(&["audit", "show", first]).ok();
    assert!(shown.out.contains(&id) && shown.out.contains("restored 2, kept 0, failed 0"), "{}", shown.out);
    assert!(shown.out.contains("checkpoints restore"), "{}", shown.out);
}

#[test]
fn one_that_cannot_be_recorded_is_made_and_says_so() {
    let kit = Kit::project();
    kit.take();
    kit.bare("rm src/main.rs; : > $NONO_HOME/audit");
    let said = kit.restore(&["1"]).ok();
    assert!(said.err.contains("warning: this restore is not in the audit log"), "{}", said.err);
    assert_eq!(kit.read("src/main.rs"), "fn main() {}\n");
}
