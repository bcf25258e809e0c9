//! Purging a path, clearing, and what a damaged pack takes with it.

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nono_checkpoint::{CheckpointError, CheckpointTarget, Origin};
use nono_snapshot::{CaptureError, Observer, SnapshotError};

use nono_testkit::noise;

use crate::common::{World, taken, text};

fn search(dir: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(search(&path, bytes));
        } else if std::fs::read(&path).unwrap().windows(bytes.len()).any(|part| part == bytes) {
            found.push(path);
        }
    }
    found
}

/// In checkpoints, in what an agent left, in what a restore put aside.
#[test]
fn what_was_forgotten_is_nowhere() {
    let world = World::new();
    let secret = noise(3000, 7);
    world.write("keep", "kept");
    world.write("sub/secret", &secret);
    world.call("1", || world.write("sub/secret", [secret.as_slice(), b"edited"].concat()));
    world.call("2", || world.write("keep", "changed"));
    world.restore("2");
    let manager = world.manager();
    manager.set_pinned(&world.tree, &text("1"), true).unwrap();
    assert!(!search(&world.host.state_dir, &secret[..100]).is_empty(), "the control");
    let ids: Vec<_> = manager.list(&world.tree).unwrap().into_iter().map(|one| one.id).collect();

    let purged = manager.forget(&world.path("sub/secret")).unwrap();
    assert_eq!(purged.held_by, []);
    assert!(purged.snapshots >= 3 && purged.contents == 2, "{purged:?}");
    assert_eq!(search(&world.host.state_dir, &secret[..100]), Vec::<PathBuf>::new());
    let list = manager.list(&world.tree).unwrap();
    assert_eq!(list.iter().map(|one| one.id.clone()).collect::<Vec<_>>(), ids);
    assert!(list.iter().all(|one| (one.files, one.left_out) == (1, 1)), "{list:?}");
    assert!(manager.verify(None).unwrap().is_good());
    // The file itself is there, and restores leave it.
    assert_eq!(std::fs::read(world.path("sub/secret")).unwrap(), secret);
    world.write("keep", "once more");
    world.restore("2");
    assert_eq!(std::fs::read(world.path("sub/secret")).unwrap(), secret);

    let itself = manager.forget(&world.tree);
    assert!(matches!(itself, Err(CheckpointError::IsProject { .. })), "{itself:?}");
}

#[test]
fn others_that_have_the_same_bytes_are_named() {
    let world = World::new();
    let other = world.base.join("home/work/other");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("same"), "the same bytes").unwrap();
    world.write("secret", "the same bytes");
    world.create();
    taken(world.manager().create(&other, "other", &Origin::default()));
    let purged = world.manager().forget(&world.path("secret")).unwrap();
    assert_eq!(purged.held_by.len(), 1);
    assert_eq!(purged.held_by[0].1, [other.join("same")]);
}

#[test]
fn clearing_takes_what_is_named_too() {
    let world = World::new();
    let other = world.base.join("home/work/other");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("file"), "text").unwrap();
    world.write("file", "text");
    world.create();
    let mut manager = world.manager();
    taken(manager.create(&other, "other", &Origin::default()));
    manager.set_name(&world.tree, &text("1"), "good").unwrap();
    let plan = manager.clear(Some(&world.tree), true).unwrap();
    assert_eq!(plan.removed[0].1.len(), 1);
    assert_eq!(manager.list(&world.tree).unwrap().len(), 1);
    manager.clear(Some(&world.tree), false).unwrap();
    assert!(matches!(manager.list(&world.tree), Err(CheckpointError::NoProject { .. })));
    assert_eq!(manager.list(&other).unwrap().len(), 1);
    assert!(matches!(manager.clear(Some(&world.tree), false), Err(CheckpointError::NoProject { .. })));
    let cleared = manager.clear(None, false).unwrap();
    assert_eq!(cleared.projects_removed, [other]);
    // A megabyte is kept for restores on a full disk.
    assert!(cleared.bytes_after < (1 << 20) + (1 << 18), "{cleared:?}");
}

/// One pack is damaged: what is in it is named by checkpoint and path, everything else comes back.
#[test]
fn a_damaged_pack_takes_only_what_is_in_it() {
    let world = World::new();
    world.write("old", noise(5000, 1));
    world.write("same", "the same");
    let first = world.create();
    world.write("old", noise(5000, 2));
    let second = world.create();
    let packs = world.host.state_dir.join("store/packs");
    let [new] = &search(&packs, &noise(5000, 2)[..50])[..] else { panic!("one pack has it") };
    let bytes = std::fs::read(new).unwrap();
    let at = bytes.windows(50).position(|part| part == &noise(5000, 2)[..50]).unwrap();
    std::fs::set_permissions(new, std::fs::Permissions::from_mode(0o600)).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(new).unwrap();
    file.write_all_at(b"damage", at as u64 + 100).unwrap();

    let manager = world.manager();
    let verified = manager.verify(Some(&world.tree)).unwrap();
    assert!(!verified.problems.is_empty());
    let lost: Vec<_> = verified.lost.iter().map(|lost| (&lost.checkpoint.id, &lost.paths)).collect();
    assert_eq!(lost, [(&second.id, &vec![world.path("old")])]);
    world.write("same", "changed");
    world.restore(first.id.as_str());
    assert_eq!(std::fs::read(world.path("old")).unwrap(), noise(5000, 1));
    assert_eq!(world.read("same"), "the same");
}

/// What belongs to no object: a cache that is not used any more, a note that names nobody.
#[test]
fn damaged_caches_and_notes_are_found_too() {
    let world = World::new();
    world.write("a", "1");
    world.create();
    let manager = world.manager();
    assert!(manager.verify(None).unwrap().is_good());
    let store = world.host.state_dir.join("store");
    let mut caches: Vec<_> =
        std::fs::read_dir(store.join("cache")).unwrap().map(|one| one.unwrap().path()).collect();
    let Some(cache) = caches.pop() else { panic!("no cache") };
    std::fs::write(&cache, "damage").unwrap();
    let note = store.join("sessions/0123456789abcdef");
    std::fs::create_dir_all(note.parent().unwrap()).unwrap();
    std::fs::write(&note, "damage").unwrap();
    let verified = manager.verify(Some(&world.tree)).unwrap();
    let told = |path: &Path| verified.problems.iter().any(|one| one.starts_with(&*path.to_string_lossy()));
    assert!(told(&cache) && told(&note) && verified.problems.len() == 2, "{:?}", verified.problems);
    assert!(!verified.is_good() && verified.lost.is_empty());
}

/// Counts what it is told, and may have had enough.
#[derive(Clone, Debug, Default)]
struct Watching {
    told: Arc<AtomicU64>,
    enough: bool,
}

impl Observer for Watching {
    fn progress(&self, done: u64, _total: u64) {
        self.told.fetch_max(done, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.enough
    }
}

#[test]
fn verify_reports_progress_and_can_be_cancelled() {
    let world = World::new();
    world.write("file", noise(5000, 1));
    world.create();
    let mut manager = world.manager();
    let watching = Watching::default();
    manager.observe(watching.clone());
    assert!(manager.verify(None).unwrap().is_good());
    assert!(watching.told.load(Ordering::Relaxed) >= 5000);
    manager.observe(Watching { enough: true, ..Watching::default() });
    let cancelled = CheckpointError::from(SnapshotError::from(CaptureError::Cancelled)).to_string();
    assert_eq!(manager.verify(None).unwrap_err().to_string(), cancelled);
}

#[test]
fn unnamed_turns_are_told_apart() {
    let world = World::new();
    world.write("file", "1");
    let mut manager = world.manager();
    let first = manager.begin_turn().unwrap();
    assert_eq!(manager.turn(), Some(first.as_str()));
    let one = taken(manager.ensure_checkpoint(&world.tree, "x", &Origin::default()));
    world.write("file", "2");
    assert_ne!(manager.begin_turn().unwrap(), first);
    let other = taken(manager.ensure_checkpoint(&world.tree, "x", &Origin::default()));
    assert_ne!(one.id, other.id);
    assert_eq!(manager.find(&world.tree, &CheckpointTarget::Turn(first)).unwrap().id, one.id);
}
