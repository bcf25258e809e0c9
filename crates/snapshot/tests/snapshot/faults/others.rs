//! A killed restore, then another session in the same tree: the restore is completed first, whichever session began it.

use std::fs;
use std::path::{Path, PathBuf};

use nono_snapshot::SnapshotManager;

use super::kill::every_step;
use super::lab::{Lab, assert_clean, files, scratch};
use super::trees::{assert_same, list, make_new, make_small_old};

fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".nono-"))
}

fn temporary(lab: &Lab) -> Vec<PathBuf> {
    files(&lab.tree()).into_iter().filter(|path| is_temporary(path)).collect()
}

/// Another session, with the same store.
fn other(lab: &Lab) -> SnapshotManager {
    lab.manager_with(lab.base.join("now/other"), Some(lab.shared())).unwrap()
}

fn notes(lab: &Lab) -> Vec<PathBuf> {
    let mut notes = files(&lab.shared().join("restores"));
    // Half of one is no note, and goes with the next restore.
    let half = |name: &str| name == "lock" || name.contains(".tmp-");
    notes.retain(|path| path.file_name().is_some_and(|name| !half(&name.to_string_lossy())));
    notes
}

#[test]
fn the_next_session_in_the_tree_completes_it() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    fs::create_dir(lab.shared()).unwrap();
    make_small_old(&lab.tree());
    let old = list(&lab.tree());
    let mut manager = lab.manager().unwrap();
    manager.create_baseline().unwrap();
    make_new(&lab.tree());
    manager.create_incremental().unwrap();
    let new = list(&lab.tree());
    drop(manager);
    lab.save("start");
    let seen = std::cell::Cell::new(0);
    every_step(&lab, "restore", |when, _| {
        let journal = lab.session().join("restore.journal").exists();
        seen.set(seen.get() + u32::from(!temporary(&lab).is_empty()));
        let mut next = other(&lab);
        let baseline = next.create_baseline().unwrap_or_else(|error| panic!("{when}: {error}"));
        let completed = next.take_completed();
        assert_eq!(completed.len(), usize::from(journal), "{when}: {completed:?}");
        assert!(completed.iter().all(|one| one.restored.is_ok()), "{when}: {completed:?}");
        let now = list(&lab.tree());
        assert!(now == old || (!journal && now == new), "{when}: half of a restore");
        if journal {
            assert_same(&now, &old, when);
        }
        let mut names = Vec::new();
        baseline.each_entry(|path, _| names.push(path.to_owned())).unwrap();
        assert!(!names.iter().any(|path| is_temporary(path)), "{when}: a temporary file is content");
        assert_eq!(temporary(&lab), Vec::<PathBuf>::new(), "{when}");
        assert_eq!(
            (notes(&lab), lab.session().join("restore.journal").exists()),
            (Vec::new(), false),
            "{when}"
        );
        // Both sessions are as sound as before.
        assert_clean(&mut next, when);
        let mut manager = lab.manager().unwrap();
        assert!(manager.recover().unwrap().is_none(), "{when}");
        manager.restore_to(1).unwrap();
        assert_same(&list(&lab.tree()), &new, when);
    });
    assert!(seen.get() > 0, "no kill left a temporary file behind");
}

/// The session is gone, with its journal; or it has a store of its own, so that others do not see its note.
#[test]
fn temporary_files_without_a_journal_are_left_out_by_name() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    fs::write(lab.tree().join("file"), "content").unwrap();
    fs::write(lab.tree().join(".nono-0123456789abcdef-7"), "displaced").unwrap();
    // Not ours: too short, no number, other digits, a directory.
    let taken = [".nono-0123456789abcde-7", ".nono-0123456789abcdef-", ".nono-0123456789ABCDEF-7"];
    for name in taken {
        fs::write(lab.tree().join(name), "theirs").unwrap();
    }
    fs::create_dir(lab.tree().join(".nono-0123456789abcdef-8")).unwrap();
    let mut manager = lab.manager().unwrap();
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(baseline.coverage.files, 4);
    let left_out = baseline.left_out().unwrap();
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert_eq!(left_out[0].0, lab.tree().join(".nono-0123456789abcdef-7"));
    assert!(left_out[0].1.to_string().contains("interrupted restore"), "{left_out:?}");
    fs::write(lab.tree().join("file"), "changed").unwrap();
    manager.restore_to(0).unwrap();
    assert_eq!(fs::read_to_string(lab.tree().join(".nono-0123456789abcdef-7")).unwrap(), "displaced");
}

/// A journal that cannot be read stops its own session only.
#[test]
fn a_restore_that_cannot_be_completed_stops_no_other_session() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    fs::create_dir(lab.shared()).unwrap();
    fs::write(lab.tree().join("file"), "content").unwrap();
    lab.manager().unwrap().create_baseline().unwrap();
    fs::write(lab.session().join("restore.journal"), "damaged").unwrap();
    let note = serde_json::json!({ "format": 1, "session": "../session", "roots": [lab.tree()] });
    fs::create_dir_all(lab.shared().join("restores")).unwrap();
    fs::write(lab.shared().join("restores/0123456789abcdef"), note.to_string()).unwrap();
    // A note that says nothing.
    fs::write(lab.shared().join("restores/0123456789abcde0"), "").unwrap();
    let mut next = other(&lab);
    next.create_baseline().unwrap();
    let completed = next.take_completed();
    assert!(completed.len() == 1 && completed[0].restored.is_err(), "{completed:?}");
    assert!(completed[0].to_string().contains("cannot complete"), "{}", completed[0]);
    fs::write(lab.tree().join("file"), "changed").unwrap();
    assert!(next.restore_to(0).unwrap().failed.is_empty());
    assert_eq!(fs::read_to_string(lab.tree().join("file")).unwrap(), "content");
}
