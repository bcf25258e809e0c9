//! Deep trees: paths beyond the kernel's limit, and chains of 100,000 directories. Nothing here recurses.

use std::ffi::CString;
use std::fmt::Write as _;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nono_snapshot::hash::content_hash;
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::common::{World, clean, go_back};
use nono_testkit::oracle::{look_with_find, same};

const MODE: Mode = Mode::from_raw_mode(0o755);

fn open_dir(dir: impl AsFd, name: &str) -> OwnedFd {
    rustix::fs::openat(dir, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
        .unwrap()
}

fn put(dir: &OwnedFd, name: &str, text: &str) {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let file = rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o644)).unwrap();
    rustix::io::write(&file, text.as_bytes()).unwrap();
}

/// A chain of `depth` directories `d`, with a file `f` at each `every`th.
fn chain(top: &Path, depth: usize, every: usize) {
    let mut dir = rustix::fs::open(top, OFlags::RDONLY, Mode::empty()).unwrap();
    for level in 1..=depth {
        rustix::fs::mkdirat(&dir, "d", MODE).unwrap();
        dir = open_dir(&dir, "d");
        if level % every == 0 {
            put(&dir, "f", &format!("level {level}"));
        }
    }
}

/// Go down to a level.
fn at(top: &Path, level: usize) -> OwnedFd {
    let mut dir = rustix::fs::open(top, OFlags::RDONLY, Mode::empty()).unwrap();
    for _ in 0..level {
        dir = open_dir(&dir, "d");
    }
    dir
}

/// One digest for each level: the directory's mode and time, and the file in it.
fn digests(top: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut dir = rustix::fs::open(top, OFlags::RDONLY, Mode::empty()).unwrap();
    loop {
        let stat = rustix::fs::fstat(&dir).unwrap();
        let mut text = format!("{:o} {}.{}", stat.st_mode, stat.st_mtime, stat.st_mtime_nsec);
        let mut names: Vec<String> = rustix::fs::Dir::read_from(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let _ = write!(text, " {names:?}");
        if let Ok(file) = rustix::fs::openat(&dir, "f", OFlags::RDONLY, Mode::empty()) {
            let mut bytes = Vec::new();
            std::fs::File::from(file).read_to_end(&mut bytes).unwrap();
            text += &content_hash(&bytes).hex();
        }
        all.push(text);
        if !names.iter().any(|name| name == "d") {
            return all;
        }
        dir = open_dir(&dir, "d");
    }
}

/// Remove everything below, and `top` itself, with one directory open at a time and no long paths.
pub(crate) fn remove(top: &Path) {
    let mut dir = rustix::fs::open(top, OFlags::RDONLY, Mode::empty()).unwrap();
    let mut above: Vec<(CString, Vec<CString>)> = Vec::new();
    let mut below = empty(&dir);
    loop {
        if let Some(name) = below.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            dir = rustix::fs::openat(&dir, &name, flags, Mode::empty()).unwrap();
            above.push((name, std::mem::replace(&mut below, empty(&dir))));
            continue;
        }
        let Some((name, rest)) = above.pop() else { break };
        dir = open_dir(&dir, "..");
        rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR).unwrap();
        below = rest;
    }
    std::fs::remove_dir(top).unwrap();
}

/// Remove what is no directory, and tell what is.
fn empty(dir: &OwnedFd) -> Vec<CString> {
    let mut dirs = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        if entry.file_type() != rustix::fs::FileType::Directory {
            rustix::fs::unlinkat(dir, name, AtFlags::empty()).unwrap();
        } else if ![&b"."[..], b".."].contains(&name.to_bytes()) {
            dirs.push(name.to_owned());
        }
    }
    dirs
}

/// The tree goes even when the test fails: the usual way of removing it would recurse.
struct Remove<'a>(&'a Path);

impl Drop for Remove<'_> {
    fn drop(&mut self) {
        remove(self.0);
    }
}

#[test]
fn a_chain_of_100_000_directories() {
    const DEPTH: usize = 100_000;
    let world = World::new();
    let _remove = Remove(&world.tree);
    world.write("top", "top");
    chain(&world.tree, DEPTH, 1000);
    let before = digests(&world.tree);
    assert_eq!(before.len(), DEPTH + 1);
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(baseline.coverage.files, 101);
    let (_, changes) = manager.create_incremental().unwrap();
    assert!(changes.is_empty());
    put(&at(&world.tree, 99_000), "f", "changed");
    let (_, changes) = manager.create_incremental().unwrap();
    assert_eq!(changes.len(), 1);
    clean(&manager.restore_to(0).unwrap());
    assert!(before == digests(&world.tree), "one file at the bottom");
    // The deep part is moved out and removed.
    let cut = at(&world.tree, 500);
    let side = world.dir.path().join("side");
    std::fs::create_dir(&side).unwrap();
    let to = rustix::fs::open(&side, OFlags::RDONLY, Mode::empty()).unwrap();
    rustix::fs::renameat(&cut, "d", &to, "d").unwrap();
    drop((cut, to));
    remove(&side);
    let short = digests(&world.tree);
    assert_eq!(short.len(), 501);
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    assert!(before == digests(&world.tree), "everything below 500 came back");
    clean(&go_back(&mut manager, &restored.safety));
    assert!(short == digests(&world.tree), "and went again");
    assert!(manager.verify().unwrap().is_clean());
}

/// An unstored file at the bottom of a deep tree that is to be removed: all of it stays, and memory does not grow with
/// the square of the depth.
#[test]
fn an_ignored_file_at_the_bottom_holds_a_deep_chain() {
    let world = World::new();
    let _remove = Remove(&world.tree);
    world.write(".gitignore", "*.mine\n");
    world.write("top", "top");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    chain(&world.tree, 20_000, 5_000);
    put(&at(&world.tree, 20_000), "a.mine", "mine");
    let restored = manager.restore_to(0).unwrap();
    assert!(restored.failed.is_empty());
    let mut text = Vec::new();
    let bottom = at(&world.tree, 20_000);
    let file = rustix::fs::openat(&bottom, "a.mine", OFlags::RDONLY, Mode::empty()).unwrap();
    std::fs::File::from(file).read_to_end(&mut text).unwrap();
    assert_eq!(text, b"mine");
    let bytes: usize = restored.skipped.iter().map(|skipped| skipped.path.as_os_str().len()).sum();
    assert!(bytes < 50_000_000, "the report has {bytes} bytes in {} paths", restored.skipped.len());
}

#[test]
fn paths_beyond_the_kernels_limit() {
    let world = World::new();
    let _remove = Remove(&world.tree);
    let mut dir = rustix::fs::open(&world.tree, OFlags::RDONLY, Mode::empty()).unwrap();
    for level in 0..60 {
        let name = format!("{level:0>200}");
        rustix::fs::mkdirat(&dir, &name, MODE).unwrap();
        dir = open_dir(&dir, &name);
        put(&dir, "file", &format!("{level}"));
        rustix::fs::symlinkat("file", &dir, "link").unwrap();
        rustix::fs::linkat(&dir, "file", &dir, "hard", AtFlags::empty()).unwrap();
        if level % 7 == 0 {
            rustix::fs::fchmod(&dir, Mode::from_raw_mode(0o2711)).unwrap();
        }
    }
    let before = look_with_find(&world.tree);
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(baseline.coverage.files, 120);
    let files = baseline.files().unwrap();
    let longest = files.keys().max_by_key(|path| path.as_os_str().len()).unwrap();
    assert!(longest.as_os_str().len() > 12_000);
    assert_eq!(baseline.protection(longest).unwrap(), nono_snapshot::Protection::Captured);
    put(&dir, "file", "changed at the bottom");
    rustix::fs::unlinkat(&dir, "link", AtFlags::empty()).unwrap();
    let (_, changes) = manager.create_incremental().unwrap();
    assert_eq!(changes.len(), 3, "{changes:?}");
    let changed = look_with_find(&world.tree);
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    same(&before, &look_with_find(&world.tree));
    clean(&go_back(&mut manager, &restored.safety));
    same(&changed, &look_with_find(&world.tree));
    drop(dir);
    // And all of it at once.
    world.sh("find . -mindepth 1 -delete");
    clean(&manager.restore_to(0).unwrap());
    same(&before, &look_with_find(&world.tree));
}

/// A wide and deep tree, with more directories open at once than a process may have.
#[test]
fn thousands_of_directories_in_one() {
    let world = World::new();
    (0..3000).for_each(|n| drop(world.write(format!("d/{n}/x/f"), "f")));
    let before = nono_testkit::oracle::look(&world.tree);
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("rm -rf d");
    clean(&manager.restore_to(0).unwrap());
    same(&before, &nono_testkit::oracle::look(&world.tree));
}
