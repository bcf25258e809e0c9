//! Exact round trips.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;

use nono_snapshot::diff::{ChangeType, diff};
use rustix::fs::{CWD, FileType, Mode};

use crate::kit::{World, inode, set_mtime, set_xattr};

/// Create one entry of every kind.
pub(crate) fn furnish(world: &World) {
    world.write("a/file", "content");
    world.write("a/b/deep", "deep content");
    world.write("empty-file", "");
    world.write("big", &"0123456789".repeat(40_000));
    fs::create_dir_all(world.at("empty/inner")).unwrap();
    symlink("a/file", world.at("link")).unwrap();
    symlink("/nowhere", world.at("dangling")).unwrap();
    symlink("a", world.at("dirlink")).unwrap();
    let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"any \xff\n bytes");
    fs::write(world.root().join(name), "bytes").unwrap();
    world.write(&"n".repeat(255), "longest name");
    rustix::fs::mkfifoat(CWD, world.at("fifo"), Mode::from_raw_mode(0o640)).unwrap();
    drop(UnixListener::bind(world.at("socket")).unwrap());
    world.write("setuid", "x");
    world.mode("setuid", 0o4751);
    world.write("secret", "an unreadable file");
    world.mode("secret", 0);
    world.write("readonly/inside", "r");
    world.mode("readonly", 0o555);
    world.write("locked/inside", "l");
    world.mode("locked", 0);
    fs::create_dir(world.at("sticky")).unwrap();
    world.mode("sticky", 0o3777);
    set_xattr(&world.at("a/file"), "user.note", b"hello");
    set_xattr(&world.at("a"), "user.dir", b"\0bytes\xff");
    world.mode("a/file", 0o444);
    for (n, path) in
        ["a/file", "big", "link", "fifo", "socket", "empty/inner", "a/b", "a", "."].iter().enumerate()
    {
        set_mtime(&world.at(path), 1_000_000_000 + i64::try_from(n).unwrap(), 123_456_789);
    }
    set_mtime(&world.at("empty-file"), -5, 999_999_999);
}

#[test]
fn everything_comes_back_after_rm() {
    let world = World::new();
    furnish(&world);
    let target = world.snap();
    for path in fs::read_dir(world.root()).unwrap().map(|entry| entry.unwrap().path()) {
        let is_dir = fs::symlink_metadata(&path).unwrap().is_dir();
        if is_dir { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    let outcome = world.check(&target);
    assert!(outcome.changes.iter().all(|change| change.change_type == ChangeType::Created));
    // Nothing is left to do, and nothing is done.
    let again = world.check(&target);
    assert_eq!((again.done, again.changes.len()), (0, 0));
}

#[test]
fn the_root_itself_comes_back() {
    let world = World::new();
    furnish(&world);
    let target = world.snap();
    fs::remove_dir_all(world.root()).unwrap();
    world.check(&target);
}

#[test]
fn what_is_new_goes_and_what_changed_comes_back() {
    let world = World::new();
    furnish(&world);
    let target = world.snap();
    let kept = inode(&world.at("big"));
    let ctime =
        |path: &str| fs::symlink_metadata(world.at(path)).map(|meta| (meta.ctime(), meta.ctime_nsec()));
    let untouched = (ctime("a/b").unwrap(), ctime("a/b/deep").unwrap());
    world.mode("a/file", 0o644);
    world.write("a/file", "other");
    world.write("new/deep/er/file", "new");
    fs::create_dir(world.at("newempty")).unwrap();
    fs::remove_file(world.at("link")).unwrap();
    symlink("a/b", world.at("link")).unwrap();
    fs::remove_file(world.at("fifo")).unwrap();
    fs::remove_dir(world.at("empty/inner")).unwrap();
    let current = world.snap();
    let outcome = world.check(&target);
    let expected = diff(&current, &target, &world.objects).unwrap();
    assert_eq!(outcome.changes, expected);
    assert_eq!(inode(&world.at("big")), kept);
    assert_eq!((ctime("a/b").unwrap(), ctime("a/b/deep").unwrap()), untouched);
}

#[test]
fn metadata_alone_keeps_the_inode() {
    let world = World::new();
    furnish(&world);
    let target = world.snap();
    let paths = ["a/file", "big", "secret", "fifo", "link", "a", "readonly", "setuid"];
    let before = paths.map(|path| inode(&world.at(path)));
    for path in ["a/file", "big", "secret", "fifo", "a", "readonly", "setuid"] {
        world.mode(path, 0o610);
    }
    for path in paths {
        set_mtime(&world.at(path), 77, 1);
    }
    set_xattr(&world.at("a/file"), "user.note", b"forged");
    set_xattr(&world.at("big"), "user.extra", b"extra");
    rustix::fs::lremovexattr(world.at("a"), "user.dir").unwrap();
    world.check(&target);
    assert_eq!(before, paths.map(|path| inode(&world.at(path))));
}

/// Each kind in the place of each other, both ways.
#[test]
fn swaps_in_every_direction() {
    let make: [(&str, fn(&World, &str)); 5] = [
        ("file", |world, path| world.write(path, "a file")),
        ("empty", |world, path| fs::create_dir(world.at(path)).unwrap()),
        ("full", |world, path| world.write(&format!("{path}/in/side"), "inside")),
        ("link", |world, path| symlink("elsewhere", world.at(path)).unwrap()),
        ("fifo", |world, path| {
            rustix::fs::mknodat(CWD, world.at(path), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        }),
    ];
    for (from, make_from) in &make {
        for (to, make_to) in &make {
            let world = World::new();
            make_from(&world, "x");
            let target = world.snap();
            let path = world.at("x");
            let is_dir = fs::symlink_metadata(&path).unwrap().is_dir();
            if is_dir {
                fs::remove_dir_all(&path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            make_to(&world, "x");
            let current = world.snap();
            let outcome = world.check(&target);
            let expected = diff(&current, &target, &world.objects).unwrap();
            assert_eq!(outcome.changes, expected, "{from} in the place of {to}");
        }
    }
}

#[test]
fn a_root_may_be_a_single_file_or_link() {
    let world = World::new();
    fs::remove_dir(world.root()).unwrap();
    fs::write(world.root(), "just a file").unwrap();
    let file = world.snap();
    fs::remove_file(world.root()).unwrap();
    symlink("somewhere", world.root()).unwrap();
    let link = world.snap();
    world.check(&file);
    world.check(&link);
    fs::remove_file(world.root()).unwrap();
    let gone = world.snap();
    world.check(&file);
    world.check(&gone);
    assert!(fs::symlink_metadata(world.root()).is_err());
}

/// Access control lists, including those that new files inherit from their directory.
#[test]
fn access_control_lists() {
    let world = World::new();
    world.write("plain/file", "x");
    world.write("acl/file", "y");
    let acl = |entries: &[(u16, u16, u32)]| {
        let mut bytes = 2u32.to_le_bytes().to_vec();
        for (tag, perm, id) in entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(perm.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        bytes
    };
    let none = u32::MAX;
    let list = acl(&[(1, 6, none), (2, 4, 12345), (4, 4, none), (16, 4, none), (32, 0, none)]);
    set_xattr(&world.at("acl/file"), "system.posix_acl_access", &list);
    let target = world.snap();
    fs::remove_file(world.at("plain/file")).unwrap();
    fs::remove_file(world.at("acl/file")).unwrap();
    world.check(&target);
    // A default list that was not there: what is made below must not keep what it gets from it.
    fs::remove_dir_all(world.at("acl")).unwrap();
    fs::remove_dir_all(world.at("plain")).unwrap();
    let default = acl(&[(1, 7, none), (2, 7, 54321), (4, 5, none), (16, 7, none), (32, 5, none)]);
    set_xattr(&world.root(), "system.posix_acl_default", &default);
    world.check(&target);
}

#[test]
fn owners_come_back() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give files away");
        return;
    }
    let world = World::new();
    world.write("theirs", "x");
    world.write("dir/theirs", "y");
    for path in ["theirs", "dir"] {
        std::os::unix::fs::chown(world.at(path), Some(1234), Some(4321)).unwrap();
    }
    world.mode("theirs", 0o6755);
    symlink("x", world.at("link")).unwrap();
    std::os::unix::fs::lchown(world.at("link"), Some(55), Some(66)).unwrap();
    let target = world.snap();
    fs::remove_file(world.at("theirs")).unwrap();
    fs::remove_file(world.at("link")).unwrap();
    fs::remove_dir_all(world.at("dir")).unwrap();
    world.check(&target);
    std::os::unix::fs::chown(world.at("theirs"), Some(0), Some(0)).unwrap();
    std::os::unix::fs::chown(world.at("dir"), Some(7), Some(7)).unwrap();
    world.check(&target);
}
