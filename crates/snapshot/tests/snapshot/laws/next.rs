//! Snapshots after the first: only if something changed, including closed files, and thinned out; and resuming a
//! session as it is.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nono_snapshot::diff::FileKind;
use nono_snapshot::session::{Session, SessionError};
use nono_snapshot::{
    Cause, ChangeType, ContentHash, ExclusionConfig, Limits, ManagerOptions, Next, SnapshotError, SnapshotId,
    SnapshotManager,
};

use crate::common::user::as_user;
use crate::common::{World, by_hand, bytes, clean, left_out};
use nono_testkit::oracle::{look, same};

const IF_CHANGED: Next = Next { open_closed: false, if_changed: true, first_rules: false };

#[test]
fn nothing_changed_is_no_snapshot() {
    let world = World::new();
    world.write("a", "a");
    world.write("d/b", "b");
    world.write(".gitignore", "*.o\n");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    assert!(manager.create_next(IF_CHANGED).unwrap().is_none());
    assert_eq!(manager.snapshot_count().unwrap(), 1);
    // Each of these is a change: of content, mode, time, of a name, of what is left out; also in the same moment.
    for script in [
        "echo x > a",
        "chmod 600 d/b",
        "touch -d @1 a",
        "mkdir empty",
        "ln -s a link",
        "rm link",
        "ln d/b hard",
        "mv a z",
        "echo x > left.o",
        "chmod 711 .",
    ] {
        let before = manager.snapshot_count().unwrap();
        world.sh(script);
        let manifest = manager.create_next(IF_CHANGED).unwrap().unwrap_or_else(|| panic!("{script}"));
        assert_eq!((manifest.number, manifest.parent), (before, Some(before - 1)), "{script}");
        assert!(manager.create_next(IF_CHANGED).unwrap().is_none(), "nothing after {script}");
    }
    // What is left out may change as it likes, and a change that was taken back is none.
    world.sh(
        "touch -r . ../time; echo y >> left.o; cp -p z z2; mv z2 z; echo n > n; rm n; touch -r ../time .",
    );
    let unchanged = manager.create_next(IF_CHANGED).unwrap();
    assert!(unchanged.is_none(), "{:?}", unchanged.map(|taken| taken.number));
    // Unless it is asked for anyway.
    assert!(manager.create_next(Next::default()).unwrap().is_some());
    assert!(manager.verify().unwrap().is_clean());
}

#[test]
fn what_is_closed_is_in_the_last_snapshot() {
    as_user("laws::next::what_is_closed_is_in_the_last_snapshot", |place| {
        let world = World::on(place);
        world.write("d/sub/f", "f");
        world.write("open", "o");
        world.write("secret", "s");
        let before = look(&world.tree);
        let mut manager = world.manager();
        manager.create_baseline().unwrap();
        world.sh("echo changed > d/sub/f; echo changed > secret; chmod 000 d/sub/f secret; chmod 000 d/sub; chmod 300 d");
        let (without, _) = manager.create_incremental().unwrap();
        assert!(left_out(&without, Cause::Unreadable) > 0);
        let modes = || {
            let mode = |name: &str| world.path(name).metadata().unwrap().permissions().mode() & 0o7777;
            (mode("d"), mode("d/sub"), mode("secret"))
        };
        let closed = modes();
        let last =
            manager.create_next(Next { open_closed: true, if_changed: true, first_rules: false }).unwrap();
        let last = last.unwrap();
        let changes = manager.diff(&without.id, &last.id).unwrap();
        assert_eq!(left_out(&last, Cause::Unreadable), 0, "{:?}", last.coverage);
        assert_eq!(modes(), closed);
        assert!(changes.is_empty(), "what was left out before is no change: {changes:?}");
        assert!(!world.session.join("unlocked").exists());
        let all = manager.diff(&0.into(), &last.id).unwrap();
        let modified = all.iter().filter(|change| change.change_type == ChangeType::Modified).count();
        assert_eq!((modified, all.len()), (2, 4), "{all:?}");
        let entry = manager.entry(&last.id, &world.path("d/sub")).unwrap().unwrap();
        assert_eq!(entry.meta.mode, 0);
        clean(&manager.restore_to(0).unwrap());
        same(&before, &look(&world.tree));
        // And as it was at the end, closed.
        clean(&manager.restore_to(last.number).unwrap());
        assert_eq!(world.path("d").metadata().unwrap().permissions().mode() & 0o7777, 0o300);
        world.sh("chmod 700 d; chmod 700 d/sub; chmod 600 d/sub/f");
        assert_eq!(world.read("d/sub/f"), "changed\n");
    });
}

#[test]
fn thinned_snapshots_keep_their_numbers_and_digests() {
    let world = World::new();
    world.write("file", "0");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    let mut roots = Vec::new();
    for n in 1..6u8 {
        world.write("file", [b'0' + n]);
        world.write(format!("only-{n}"), vec![n; 50_000]);
        world.sh(&format!("rm -f only-{}", n - 1));
        roots.push(manager.create_incremental().unwrap().0.merkle_root);
    }
    for (needed, why) in [(0, "the first"), (5, "the last")] {
        let error = manager.thin(&[2, needed]).unwrap_err();
        assert!(matches!(error, SnapshotError::Needed { number, .. } if number == needed), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    let missing = manager.thin(&[2, 17]).unwrap_err();
    assert!(matches!(missing, SnapshotError::Session(SessionError::NoSnapshot { .. })), "{missing}");
    // Nothing of that was done in part.
    (0..6).for_each(|n| drop(manager.load_manifest(n).unwrap()));
    let manifests = || std::fs::read_dir(world.session.join("snapshots")).unwrap().count();
    assert_eq!(manifests(), 6);
    manager.thin(&[1, 2, 4]).unwrap();
    manager.thin(&[2]).unwrap();
    assert_eq!(manifests(), 3);
    for n in [1, 2, 4] {
        let error = manager.load_manifest(n).unwrap_err();
        assert!(matches!(error, SnapshotError::Session(SessionError::Thinned { .. })), "{error}");
        assert!(manager.diff(&0.into(), &n.into()).is_err() && manager.restore_to(n).is_err());
    }
    let record = Session::new(&world.session).record().unwrap().unwrap();
    let kept: Vec<_> = record.snapshots.iter().skip(1).map(|recorded| recorded.merkle_root).collect();
    assert_eq!((kept, manager.snapshot_count().unwrap()), (roots, 6));
    let content = nono_snapshot::hash::content_hash(&vec![2; 50_000]);
    assert!(manager.content(content, u64::MAX).unwrap().is_some());
    manager.settle().unwrap();
    manager.gc().unwrap();
    assert!(manager.content(content, u64::MAX).is_err(), "what only it held goes");
    assert!(manager.verify().unwrap().is_clean());
    // The numbers go on, also behind one that is gone.
    world.write("file", "6");
    assert_eq!(manager.create_incremental().unwrap().0.number, 6);
    manager.thin(&[5]).unwrap();
    let mut manager = world.manager();
    world.write("file", "7");
    let (next, changes) = manager.create_incremental().unwrap();
    assert_eq!((next.number, next.parent, changes.len()), (7, Some(6), 1));
    manager.thin(&[6]).unwrap();
    assert_eq!(manager.load_manifest(7).unwrap().parent, Some(6));
    assert_eq!(manager.diff(&3.into(), &7.into()).unwrap().len(), 3);
    clean(&manager.restore_to(3).unwrap());
    assert_eq!(world.read("file"), "3");
    assert!(manager.verify().unwrap().is_clean());
}

#[test]
fn a_session_is_taken_up_as_it_is() {
    let world = World::new();
    world.write("file", "old");
    let shared = world.dir.path().join("shared");
    let resumed = |options: ManagerOptions| SnapshotManager::resume(&world.session, options);
    // Nothing is there, and nothing is made.
    assert!(matches!(resumed(by_hand()).unwrap_err(), SnapshotError::NoSession { .. }));
    assert!(!world.session.exists());
    std::fs::create_dir(&world.session).unwrap();
    assert!(matches!(resumed(by_hand()).unwrap_err(), SnapshotError::NoSession { .. }));
    assert_eq!(std::fs::read_dir(&world.session).unwrap().count(), 0);
    // With a store of its own that one counts, whatever the options say.
    world.manager().create_baseline().unwrap();
    let options = || ManagerOptions { store: Some(shared.clone()), ..by_hand() };
    let mut manager = resumed(options()).unwrap();
    assert_eq!(manager.roots(), std::slice::from_ref(&world.tree));
    assert!(!shared.exists());
    world.write("file", "new");
    assert_eq!(manager.create_incremental().unwrap().0.number, 1);
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("file"), "old");
    drop(manager);
    std::fs::remove_dir_all(&world.session).unwrap();
    // Without one, that of the options; and without any, nothing is made.
    let make = || {
        SnapshotManager::with_options(
            &world.session,
            [&world.tree],
            ExclusionConfig::default(),
            Limits::NONE,
            options(),
        )
    };
    make().unwrap().create_baseline().unwrap();
    assert!(matches!(resumed(by_hand()).unwrap_err(), SnapshotError::NoStore { .. }));
    let elsewhere = ManagerOptions { store: Some(world.dir.path().join("nowhere")), ..by_hand() };
    assert!(matches!(resumed(elsewhere).unwrap_err(), SnapshotError::NoStore { .. }));
    assert!(!world.dir.path().join("nowhere").exists() && !world.session.join("store").exists());
    world.write("file", "new");
    clean(&resumed(options()).unwrap().restore_to(0).unwrap());
    assert_eq!(world.read("file"), "old");
    // A damaged record is made anew from the manifests; where none can be read, it is no empty session.
    std::fs::write(world.session.join("record.json"), "{}").unwrap();
    clean(&resumed(options()).unwrap().restore_to(0).unwrap());
    world.sh("echo > ../session/record.json; for file in ../session/s*/*.json; do echo > $file; done");
    assert!(matches!(resumed(options()).unwrap_err(), SnapshotError::Session(_)));
}

#[test]
fn one_path_and_one_content() {
    let world = World::new();
    world.write("d/small", "small");
    let large: Vec<u8> = (0..6_000_000u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    world.write("large", &large);
    world.write(".gitignore", "*.o\n");
    world.write("left.o", "o");
    world.sh("ln -s d/small link; chmod 640 d/small");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    let zero = SnapshotId::Number(0);
    let entry = |path: &Path| manager.entry(&zero, path).unwrap();
    for name in ["none", "d/small/below", "left.o", "d/../large", "link/small"] {
        assert_eq!(entry(&world.path(name)), None, "{name}");
    }
    assert_eq!(entry(Path::new("/etc/passwd")), None);
    assert!(entry(&world.tree).unwrap().is_dir());
    assert_eq!(entry(&world.path("d/small")).unwrap().meta.mode, 0o640);
    assert!(manager.entry(&7.into(), &world.tree).is_err());
    let hash = |name: &str| manager.load(&zero).unwrap().files().unwrap()[&world.path(name)].hash;
    for (name, content) in [("d/small", &b"small"[..]), ("large", &large)] {
        let size = content.len() as u64;
        assert_eq!(manager.content(hash(name), size).unwrap().unwrap(), content, "{name}");
        assert!(manager.content(hash(name), size - 1).unwrap().is_none(), "{name}");
    }
    assert!(manager.content(ContentHash::from_bytes([7; 32]), 10).is_err());
}

#[test]
fn changes_say_size_mode_and_where_a_link_leads() {
    let world = World::new();
    world.write("file", "12345");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("chmod 600 file; echo more >> file; mkdir -m 711 dir; mkfifo -m 640 pipe");
    for (name, target) in [("text", &b"some where"[..]), ("bytes", b"not \xff text")] {
        std::os::unix::fs::symlink(bytes(target), world.path(name)).unwrap();
    }
    let (_, changes) = manager.create_incremental().unwrap();
    let new = |name: &str| {
        let change = changes.iter().find(|change| change.path == world.path(name)).unwrap();
        change.new.clone().unwrap()
    };
    let file = changes.iter().find(|change| change.path == world.path("file")).unwrap();
    let (was, is) = (file.old.clone().unwrap(), new("file"));
    assert_eq!((was.size, was.mode, is.size, is.mode), (Some(5), 0o644, Some(10), 0o600));
    assert_eq!((was.target, is.target), (None, None));
    assert_eq!((new("dir").kind, new("dir").mode, new("dir").size), (FileKind::Directory, 0o711, None));
    assert_eq!((new("pipe").kind, new("pipe").mode, new("pipe").size), (FileKind::Fifo, 0o640, None));
    assert_eq!(new("text").target.unwrap(), Path::new("some where"));
    assert_eq!(new("bytes").target.unwrap(), Path::new(bytes(b"not \xff text")));
    let json = serde_json::to_value(&changes).unwrap();
    let text = json.to_string();
    assert!(text.contains(r#""target":"some where""#), "{text}");
    assert!(text.contains(r#""target":{"hex":"6e6f7420ff2074657874"}"#), "{text}");
    assert_eq!(serde_json::from_value::<Vec<nono_snapshot::Change>>(json).unwrap(), changes);
}
