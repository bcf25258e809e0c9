//! Tests of renames, autorun marks, display names and JSON.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nono_snapshot::{Limits, SnapshotManager};
use serde_json::json;

use super::testing::{Sample, TestTree, everything, file, link, numbered, path, program, tree, write};
use super::{ChangeSet, ItemKind};

#[test]
fn each_kind_of_change_is_itself() {
    let old = tree(&[("changed", file("a")), ("gone", file("b")), ("mode", file("c")), ("same", file("d"))]);
    let new =
        tree(&[("changed", file("A")), ("came", file("e")), ("mode", program("c")), ("same", file("d"))]);
    let sample = Sample::new(&old, &new);
    assert_eq!(
        sample.summary(),
        ["created came", "modified changed", "deleted gone", "permissionschanged mode"]
    );
    let counts = sample.changes().counts();
    let numbers =
        [counts.created, counts.modified, counts.deleted, counts.permissions_changed, counts.renamed];
    assert_eq!(numbers, [1, 1, 1, 1, 0]);
}

#[test]
fn the_same_content_elsewhere_is_a_rename() {
    let old = tree(&[("one/name", file("alpha")), ("other", file("beta"))]);
    let new = tree(&[("two/name", file("alpha")), ("another", program("beta"))]);
    let sample = Sample::new(&old, &new);
    assert_eq!(sample.summary(), ["renamed other -> another", "renamed one/name -> two/name"]);
    let set = sample.changes();
    let (old, new) = (set.items[0].old.as_ref().unwrap(), set.items[0].new.as_ref().unwrap());
    assert_eq!((old.mode & 0o111, new.mode & 0o111), (0, 0o111));
    assert_eq!(set.items[0].old_path(), sample.root.join("other"));
    assert_eq!(set.counts().renamed, 2);
}

/// Among several files with the same content, the same name is preferred, then the same folder.
#[test]
fn a_rename_prefers_the_name_and_then_the_folder() {
    let old = tree(&[("a/x", file("same")), ("b/y", file("same")), ("c/z", file("same"))]);
    let new = tree(&[("b/new", file("same")), ("n/x", file("same")), ("q/w", file("same"))]);
    let expected = ["renamed b/y -> b/new", "renamed a/x -> n/x", "renamed c/z -> q/w"];
    assert_eq!(Sample::new(&old, &new).summary(), expected);
}

#[test]
fn an_empty_file_is_no_sign_of_a_rename() {
    let sample = Sample::new(&tree(&[("a", file(""))]), &tree(&[("b", file(""))]));
    assert_eq!(sample.summary(), ["deleted a", "created b"]);
}

#[test]
fn a_similar_content_is_a_rename_and_another_is_not() {
    let old = tree(&[("a.txt", file(numbered(0..20))), ("b.txt", file(numbered(100..120)))]);
    let mut edited = numbered(0..16);
    edited.push_str("something new here\n");
    let new = tree(&[("c.txt", file(&edited)), ("d.txt", file(numbered(200..220)))]);
    let sample = Sample::new(&old, &new);
    assert_eq!(sample.summary(), ["deleted b.txt", "renamed a.txt -> c.txt", "created d.txt"]);
    let delta = sample.changes().items[1].size_delta;
    assert_eq!(delta, i64::try_from(edited.len()).unwrap() - i64::try_from(numbered(0..20).len()).unwrap());
}

#[test]
fn the_most_similar_one_is_taken() {
    let old = tree(&[("far", file(numbered(0..12) + &numbered(50..58))), ("near", file(numbered(0..19)))]);
    let new = tree(&[("new", file(numbered(0..20)))]);
    assert_eq!(Sample::new(&old, &new).summary(), ["deleted far", "renamed near -> new"]);
}

#[test]
fn binary_files_are_renamed_by_content_only() {
    let bytes = |end: u8| [&[0, 1, 2][..], numbered(0..20).as_bytes(), &[end]].concat();
    let old = tree(&[("a", file(bytes(1))), ("b", file(bytes(2)))]);
    let new = tree(&[("c", file(bytes(1))), ("d", file(bytes(3)))]);
    assert_eq!(Sample::new(&old, &new).summary(), ["deleted b", "renamed a -> c", "created d"]);
}

#[test]
fn a_renamed_directory_is_its_files() {
    let old = tree(&[("old/a", file("1")), ("old/in/b", file("2")), ("old/l", link("a"))]);
    let new = tree(&[("new/a", file("1")), ("new/in/b", file("2")), ("new/l", link("a"))]);
    assert_eq!(
        Sample::new(&old, &new).summary(),
        ["renamed old/a -> new/a", "renamed old/in/b -> new/in/b", "created new/l", "deleted old/l"],
    );
}

#[test]
fn another_kind_of_file_is_no_rename() {
    let old = tree(&[("a", file("x")), ("d/in", file("y"))]);
    let new = tree(&[("a", link("elsewhere")), ("d", file("z"))]);
    assert_eq!(Sample::new(&old, &new).summary(), ["modified a", "created d", "deleted d/in"]);
}

/// Many renames are paired by content hash in linear time; similarity is not computed for them.
#[test]
fn thousands_of_renames_are_found_by_content() {
    let files = |prefix: &str| -> TestTree {
        let name = |number: usize| format!("{prefix}/{number}").into_bytes();
        (0..3000).map(|number| (name(number), file(format!("content {number}\n")))).collect()
    };
    let mut new = files("b");
    new.insert(b"b/0".to_vec(), file("another content\n"));
    let counts = Sample::new(&files("a"), &new).changes().counts();
    assert_eq!((counts.renamed, counts.created, counts.deleted), (2999, 1, 1));
}

#[test]
fn what_executes_later_comes_first() {
    let old = tree(&[("Makefile", file("all:\n")), ("gone/Makefile", file("no\n"))]);
    let new = tree(&[
        ("Makefile", file("all: x\n")),
        ("a", file("1")),
        (".git/config", file("[core]\n\tbare = false\n")),
        (".git/hooks/pre-commit", program("#!/bin/sh\n")),
        ("sub/.git/config", file("[core]\n\tsshCommand = evil\n")),
        ("zz/.vscode/tasks.json", link("../../a")),
    ]);
    let sample = Sample::new(&old, &new);
    let set = sample.changes();
    let marked: Vec<_> =
        set.items.iter().filter_map(|item| item.executes_later.map(|later| later.what)).collect();
    assert_eq!(marked, ["git hook", "build script", "git config", "editor task"]);
    assert_eq!(
        sample.summary(),
        [
            "created .git/hooks/pre-commit",
            "modified makefile",
            "created sub/.git/config",
            "created zz/.vscode/tasks.json",
            "created .git/config",
            "created a",
            "deleted gone/makefile",
        ],
    );
}

/// Setting the executable bit of an old file makes it run later; clearing it does not.
#[test]
fn a_mode_alone_can_make_a_file_run_later() {
    let old = tree(&[("bin/a", file("x")), ("bin/b", program("y"))]);
    let new = tree(&[("bin/a", program("x")), ("bin/b", file("y"))]);
    let set = Sample::new(&old, &new).changes();
    let marked: Vec<bool> = set.items.iter().map(|item| item.executes_later.is_some()).collect();
    assert_eq!(marked, [true, false]);
}

#[test]
fn several_roots_have_names() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let roots = ["one/src", "two/src", "src-2", "single"].map(|name| top.join(name));
    for root in &roots[..3] {
        write(root, &tree(&[("file", file("a"))]));
    }
    fs::write(&roots[3], "a").unwrap();
    let mut manager = SnapshotManager::new(top.join("session"), &roots, everything(), Limits::NONE).unwrap();
    manager.create_baseline().unwrap();
    for root in &roots[..3] {
        fs::write(root.join("file"), "b").unwrap();
    }
    fs::write(&roots[3], "b").unwrap();
    manager.create_incremental().unwrap();
    let set = ChangeSet::between(&manager, &0.into(), &1.into()).unwrap();
    let mut shown: Vec<PathBuf> = set.items.iter().map(|item| set.shown(&item.path)).collect();
    shown.sort();
    assert_eq!(shown, ["single", "src/file", "src-2/file", "src-3/file"].map(PathBuf::from));
    let alone = ChangeSet { roots: vec![roots[3].clone()], ..set };
    assert_eq!(alone.shown(&roots[3]), Path::new("single"));
}

#[test]
fn json_loses_no_name() {
    let mut new = tree(&[("b", program("1\n"))]);
    new.insert(b"\xff".to_vec(), file("2\n"));
    let sample = Sample::new(&tree(&[("a", file("1\n"))]), &new);
    let mode = |at: &[u8]| sample.root.join(path(at)).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(b"b"), 0o755);
    let set = sample.changes();
    let value = serde_json::to_value(&set).unwrap();
    assert_eq!((&value["from"], &value["to"]), (&json!(0), &json!(1)));
    let item = &value["items"][0];
    assert_eq!(item["path"], json!(sample.root.join("b").to_str().unwrap()));
    assert_eq!((&item["change_type"], &item["size_delta"]), (&json!("renamed"), &json!(0)));
    assert_eq!(item["renamed_from"], json!(sample.root.join("a").to_str().unwrap()));
    assert_eq!(item["new"]["kind"], json!("file"));
    let odd = &value["items"][1];
    assert!(odd["path"]["hex"].as_str().unwrap().ends_with("2fff"), "{odd}");
    assert!(matches!(set.items[0].kind, ItemKind::Renamed { .. }));
}
