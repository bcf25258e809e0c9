//! Comparison, and changes as JSON.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nono_snapshot::diff::{Change, ChangeType, diff};
use nono_snapshot::node::Reason;

use crate::kit::{World, set_mtime, set_xattr};

fn list(world: &World, changes: &[Change]) -> Vec<String> {
    let root = world.root();
    let name = |change: &Change| change.path.strip_prefix(&root).unwrap().display().to_string();
    changes
        .iter()
        .map(|change| format!("{:?} {} {}", change.change_type, name(change), change.size_delta))
        .collect()
}

#[test]
fn what_people_see() {
    let world = World::new();
    world.write("same", "s");
    world.write("touched", "t");
    world.write("modified", "12345");
    world.write("mode", "m");
    world.write("attribute", "a");
    world.write("gone/a", "aa");
    world.write("gone/b/c", "c");
    fs::create_dir_all(world.at("gone-empty/x")).unwrap();
    world.write("dir/file", "f");
    world.write("to-link", "four");
    world.write("to-dir", "td");
    world.write("from-dir/in", "in");
    let before = world.snap();
    set_mtime(&world.at("touched"), 1, 1);
    set_mtime(&world.at("dir"), 1, 1);
    world.write("modified", "123");
    world.mode("mode", 0o600);
    set_xattr(&world.at("attribute"), "user.x", b"1");
    fs::remove_dir_all(world.at("gone")).unwrap();
    fs::remove_dir_all(world.at("gone-empty")).unwrap();
    world.mode("dir", 0o700);
    world.write("new/file", "xyz");
    fs::create_dir(world.at("new-empty")).unwrap();
    fs::remove_file(world.at("to-link")).unwrap();
    symlink("x", world.at("to-link")).unwrap();
    fs::remove_file(world.at("to-dir")).unwrap();
    world.write("to-dir/now", "n");
    fs::remove_dir_all(world.at("from-dir")).unwrap();
    world.write("from-dir", "file");
    let after = world.snap();
    let changes = diff(&before, &after, &world.objects).unwrap();
    let expected = [
        "PermissionsChanged attribute 0",
        "PermissionsChanged dir 0",
        "Created from-dir 4",
        "Deleted from-dir/in -2",
        "Deleted gone/a -2",
        "Deleted gone/b/c -1",
        "Deleted gone-empty/x 0",
        "PermissionsChanged mode 0",
        "Modified modified -2",
        "Created new/file 3",
        "Created new-empty 0",
        "Deleted to-dir -2",
        "Created to-dir/now 1",
        "Modified to-link -4",
    ];
    assert_eq!(list(&world, &changes), expected);
    assert!(changes.is_sorted_by(|a, b| a.path <= b.path));
    assert!(diff(&after, &after, &world.objects).unwrap().is_empty());
}

#[test]
fn what_was_left_out_is_no_change() {
    let world = World::new();
    world.write("ignored/a", "1");
    world.write("kept/a", "1");
    let only =
        |name: &'static str| move |path: &Path| path.ends_with(name).then(|| Reason::Pattern(name.into()));
    let without = world.snap_without(&only("ignored"));
    let with = world.snap();
    assert!(diff(&without, &with, &world.objects).unwrap().is_empty());
    assert!(diff(&with, &without, &world.objects).unwrap().is_empty());
    // A directory that holds only excluded entries is listed itself.
    fs::remove_dir_all(world.at("kept")).unwrap();
    let gone = world.snap();
    let inner = |path: &Path| path.ends_with("kept/a").then_some(Reason::Unstable);
    world.write("kept/a", "1");
    let held = world.snap_without(&inner);
    assert_eq!(list(&world, &diff(&gone, &held, &world.objects).unwrap()), ["Created kept 0"]);
}

#[test]
fn json_round_trip() {
    let path =
        |bytes: &[u8]| PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes));
    for path in [path(b"/plain/text"), path(b"/not \xff\xfe utf-8")] {
        let change = Change {
            path,
            change_type: ChangeType::PermissionsChanged,
            size_delta: -3,
            old: None,
            new: None,
        };
        let json = serde_json::to_string(&change).unwrap();
        assert!(json.contains("\"permissions_changed\""), "{json}");
        assert_eq!(serde_json::from_str::<Change>(&json).unwrap(), change);
    }
}
