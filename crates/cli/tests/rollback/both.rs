//! One undo for sessions and checkpoints: in the order in which things happened, further back each time.

use super::kit::Kit;

/// A command that only checkpoints protect.
fn protected(kit: &Kit, script: &str) {
    kit.nono(&["run", "--checkpoints", "--allow", ".", "--", "bash", "-c", script]).ok();
}

/// A project whose file says 3 after a run with checkpoints, a session, and another run with checkpoints.
fn mixed() -> Kit {
    let kit = Kit::new();
    kit.bare("git init -q .; echo 0 > file; echo 0 > other");
    protected(&kit, "echo 1 > file");
    kit.run("echo 2 > file; echo 2 > other").ok();
    protected(&kit, "echo 3 > file; echo new > new");
    kit
}

fn file(kit: &Kit) -> String {
    kit.read("file").trim().to_owned()
}

/// The id of the checkpoint that was taken before the first run.
fn first_checkpoint(kit: &Kit) -> String {
    let list = kit.nono(&["checkpoints", "list", "--json"]).ok();
    let list: serde_json::Value = serde_json::from_str(&list.out).unwrap();
    let all = list["checkpoints"].as_array().or(list.as_array()).unwrap();
    all.last().unwrap()["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_without_snapshots_is_undone_by_its_checkpoint() {
    let kit = Kit::new();
    kit.bare("git init -q .; echo 0 > file");
    protected(&kit, "echo 1 > file; rm -f gone; echo made > made");
    let said = kit.nono(&["undo", "--yes"]).ok();
    for part in ["back to checkpoint", "before run: bash", "work", "~ file", "- made", "nono redo"] {
        assert!(said.err.contains(part), "{part}: {said:?}");
    }
    assert_eq!(said.out, "", "nothing for programs");
    assert_eq!((file(&kit).as_str(), kit.tree().join("made").exists()), ("0", false));
    let said = kit.nono(&["undo", "--yes"]).code(1);
    assert!(said.err.contains("nothing left to undo"), "{said:?}");
    kit.nono(&["redo", "--yes"]).ok();
    assert_eq!((file(&kit).as_str(), kit.read("made").as_str()), ("1", "made\n"));
}

#[test]
fn undo_goes_back_through_sessions_and_checkpoints_and_redo_comes_back() {
    let kit = mixed();
    for left in ["2", "1", "0"] {
        kit.nono(&["undo", "--yes"]).ok();
        assert_eq!(file(&kit), left);
    }
    assert_eq!((kit.read("other").as_str(), kit.tree().join("new").exists()), ("0\n", false));
    kit.nono(&["undo", "--yes"]).code(1);
    for back in ["1", "2", "3"] {
        kit.nono(&["redo", "--yes"]).ok();
        assert_eq!(file(&kit), back);
    }
    assert_eq!(kit.read("new"), "new\n");
    kit.nono(&["redo", "--yes"]).code(1);
    // New work after an undo is what the next one undoes.
    kit.nono(&["undo", "--yes"]).ok();
    protected(&kit, "echo 4 > file");
    for left in ["2", "1", "0"] {
        kit.nono(&["undo", "--yes"]).ok();
        assert_eq!(file(&kit), left);
    }
}

/// The counter is lost between the undo of a session and that of a checkpoint: the last restore is still the last.
#[test]
fn redo_takes_the_last_restore_also_when_the_counter_was_lost() {
    let kit = Kit::new();
    kit.bare("git init -q .; echo 0 > file");
    protected(&kit, "echo 1 > file");
    kit.run("echo 2 > file").ok();
    kit.nono(&["undo", "--yes"]).ok();
    std::fs::write(kit.world.path("state/rollbacks/.sequence"), "").unwrap();
    kit.nono(&["undo", "--yes"]).ok();
    assert_eq!(file(&kit), "0");
    for back in ["1", "2"] {
        kit.nono(&["redo", "--yes"]).ok();
        assert_eq!(file(&kit), back);
    }
}

#[test]
fn undo_to_an_id_or_a_time_takes_back_everything_since() {
    let to = |to: &dyn Fn(&Kit) -> String| {
        let kit = mixed();
        kit.nono(&["undo", "--yes", "--to", &to(&kit)]).ok();
        (file(&kit), kit.read("other").trim().to_owned(), kit.tree().join("new").exists())
    };
    let all = ("0".to_owned(), "0".to_owned(), false);
    assert_eq!(to(&|_| "2h".to_owned()), all);
    assert_eq!(to(&first_checkpoint), all);
    let session = |kit: &Kit| kit.sessions()[0].file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(to(&session), ("1".to_owned(), "0".to_owned(), false));
    // One path of it.
    let kit = mixed();
    kit.nono(&["undo", "file", "--yes", "--to", "1h"]).ok();
    assert_eq!(
        (file(&kit).as_str(), kit.read("other").as_str(), kit.read("new").as_str()),
        ("0", "2\n", "new\n")
    );
}

#[test]
fn bad_times_and_ids_are_refused() {
    let kit = mixed();
    for wrong in ["yesterday", "25:00", "ffffff", ""] {
        let said = kit.nono(&["undo", "--yes", "--to", wrong]);
        assert!(
            said.code != Some(0) && said.err.contains("not a session, a checkpoint here or a time"),
            "{said:?}"
        );
    }
    let said = kit.nono(&["undo", "--yes", "--to", "2999-01-01"]).code(1);
    assert!(said.err.contains("began at 2999-01-01 or later"), "{said:?}");
    assert_eq!(file(&kit), "3");
}

#[test]
fn what_a_person_changed_after_a_run_with_checkpoints_stays() {
    let kit = Kit::new();
    kit.bare("git init -q .; echo 0 > file; echo 0 > mine");
    protected(&kit, "echo 1 > file; echo 1 > mine");
    kit.bare("echo person > mine; echo person > new");
    let said = kit.nono(&["undo", "--yes"]).code(1);
    assert!(said.err.contains("mine"), "{said:?}");
    assert_eq!(
        (file(&kit).as_str(), kit.read("mine").as_str(), kit.read("new").as_str()),
        ("0", "person\n", "person\n")
    );
    // The same again, with force: that is still to be done.
    kit.nono(&["undo", "--yes", "--force"]).ok();
    assert_eq!((kit.read("mine").as_str(), kit.tree().join("new").exists()), ("0\n", false));
    kit.nono(&["redo", "--yes"]).ok();
    assert_eq!((kit.read("mine").as_str(), kit.read("new").as_str()), ("person\n", "person\n"));
}

#[test]
fn a_checkpoint_of_a_person_is_gone_back_to_by_name_only() {
    let kit = Kit::new();
    kit.bare("git init -q .; echo 0 > file");
    kit.nono(&["checkpoints", "create", "-m", "mine"]).ok();
    kit.nono(&["checkpoints", "name", "1", "good"]).ok();
    kit.bare("echo days of work > file");
    kit.nono(&["undo", "--yes"]).code(1);
    assert_eq!(kit.read("file"), "days of work\n");
    kit.nono(&["undo", "--yes", "--to", "good"]).ok();
    assert_eq!(kit.read("file"), "0\n");
}

#[test]
fn a_dry_run_over_several_points_changes_nothing() {
    let kit = mixed();
    let said = kit.nono(&["undo", "--dry-run", "--to", "2h"]).ok();
    assert!(said.err.contains("each plan starts from the current files"), "{said:?}");
    assert!(
        said.out.contains("back to checkpoint") && said.out.contains("back to before session"),
        "{said:?}"
    );
    assert_eq!(file(&kit), "3");
}

#[test]
fn a_run_that_began_from_an_earlier_checkpoint_is_undone() {
    let kit = Kit::new();
    kit.bare("git init -q .; echo 0 > file");
    // A person's, and one of a session that was undone: nothing changed since, so no other one is taken.
    kit.nono(&["checkpoints", "create", "-m", "mine"]).ok();
    protected(&kit, "echo 1 > file");
    kit.nono(&["undo", "--yes"]).ok();
    assert_eq!(file(&kit), "0");
    kit.nono(&["run", "--rollback", "--checkpoints", "--allow", ".", "--", "bash", "-c", "echo 2 > file"])
        .ok();
    kit.nono(&["undo", "--yes"]).ok();
    assert_eq!(file(&kit), "0");
    protected(&kit, "echo 3 > file");
    let said = kit.nono(&["undo", "--yes"]).ok();
    assert!(said.err.contains("back to checkpoint"), "{said:?}");
    assert_eq!(file(&kit), "0");
    kit.nono(&["undo", "--yes"]).code(1);
}
