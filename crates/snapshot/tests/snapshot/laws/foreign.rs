//! Imported states: exactly what they hold, nothing that leads out of the root, and the tree is not read.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;

use nono_snapshot::node::Time;
use nono_snapshot::{
    Adopted, AdoptedPiece, Cause, ContentHash, Contents, ContentsError, CoverageNote, ExclusionConfig,
    ImportedPath, Protection, RestoreOptions, SnapshotId, SnapshotManager,
};

use crate::common::{World, clean, left_out};

/// Contents by number; missing ones cannot be read.
#[derive(Default)]
struct Library {
    texts: Vec<Option<Vec<u8>>>,
    stored: HashMap<usize, (ContentHash, u64)>,
    reads: usize,
}

impl Contents for Library {
    fn known(&self, content: usize) -> Option<(ContentHash, u64)> {
        self.stored.get(&content).copied()
    }

    fn read(&mut self, content: usize) -> Result<Vec<u8>, ContentsError> {
        self.reads += 1;
        self.texts[content].clone().ok_or_else(|| "it is damaged".into())
    }

    fn stored(&mut self, content: usize, hash: ContentHash, size: u64) {
        self.stored.insert(content, (hash, size));
    }
}

fn library(texts: &[&[u8]]) -> Library {
    Library { texts: texts.iter().map(|text| Some(text.to_vec())).collect(), ..Library::default() }
}

fn file(path: &[u8], content: usize) -> ImportedPath {
    ImportedPath { path: path.to_vec(), piece: AdoptedPiece::File { executable: false, content } }
}

const THEN: Time = Time { seconds: 1_600_000_000, nanos: 0 };

fn adopt(manager: &mut SnapshotManager, state: &[ImportedPath], library: &mut Library) -> Adopted {
    manager.adopt(state, library, THEN, "elsewhere", None).unwrap()
}

#[test]
fn it_holds_what_the_list_holds() {
    let world = World::new();
    let large = vec![7; 5 << 20];
    let mut library = library(&[b"text", b"#!/bin/sh\n", &large]);
    let state = [
        file(b"a/b/deep", 0),
        ImportedPath { path: b"run".to_vec(), piece: AdoptedPiece::File { executable: true, content: 1 } },
        ImportedPath { path: b"link".to_vec(), piece: AdoptedPiece::Link { target: b"a/b/deep".to_vec() } },
        file(b"a/\xff\xfe", 0),
        file(b"large", 2),
    ];
    let mut manager = world.manager();
    // The tree itself may be gone.
    std::fs::remove_dir(&world.tree).unwrap();
    let adopted = adopt(&mut manager, &state, &mut library);
    assert_eq!(adopted.left_out, []);
    assert_eq!(adopted.manifest.coverage.notes, [CoverageNote::Foreign { from: "elsewhere".to_owned() }]);
    assert_eq!((adopted.manifest.number, adopted.manifest.timestamp.as_str()), (0, "2020-09-13T12:26:40Z"));
    assert_eq!((adopted.manifest.coverage.files, adopted.manifest.coverage.others), (4, 1));
    assert!(!world.tree.exists(), "the tree was not looked at");
    assert!(manager.verify().unwrap().is_clean());

    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("a/b/deep"), "text");
    assert_eq!(std::fs::read(world.path("large")).unwrap(), large);
    assert_eq!(std::fs::read_link(world.path("link")).unwrap().as_os_str(), "a/b/deep");
    let run = world.path("run").metadata().unwrap();
    assert_eq!(run.permissions().mode() & 0o7777, 0o755);
    let modified = run.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(modified.as_secs(), 1_600_000_000);

    // Captures go on after it, and a content that is stored is not asked for again.
    world.write("run", "changed");
    let (next, changes) = manager.create_incremental().unwrap();
    assert_eq!((next.number, changes.len()), (1, 1));
    let reads = library.reads;
    assert_eq!(adopt(&mut manager, &state, &mut library).manifest.number, 2);
    assert_eq!(library.reads, reads);
}

#[test]
fn names_that_lead_elsewhere_are_no_part_of_it() {
    let world = World::new();
    world.write(".git/config", "mine");
    let mut library = library(&[b"evil"]);
    let evil: [&[u8]; 9] = [
        b"../out",
        b"/etc/passwd",
        b"a/../../out",
        b".",
        b"",
        b"a//b",
        b".git/config",
        b"sub/.GIT/hooks/pre-commit",
        b"nul\0",
    ];
    let mut state: Vec<ImportedPath> = evil.iter().map(|path| file(path, 0)).collect();
    state.push(file(b"good", 0));
    // What stands there already stays: a file is no directory, and a name is given once.
    state.extend([file(b"good", 0), file(b"good/inside", 0)]);
    let mut manager = world.manager();
    let adopted = adopt(&mut manager, &state, &mut library);
    assert_eq!(adopted.left_out.len(), evil.len() + 2);
    assert_eq!(adopted.manifest.coverage.files, 1);
    let files: Vec<_> = adopted.manifest.files().unwrap().into_keys().collect();
    assert_eq!(files, [world.path("good")]);
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read(".git/config"), "mine", "what was left out is not touched");
    assert!(!world.dir.path().join("out").exists());
}

#[test]
fn what_cannot_be_had_is_left_out_by_name() {
    let world = World::new();
    let kept = world.write("damaged", "as it is now");
    let mut library = Library { texts: vec![Some(b"fine".to_vec()), None], ..Library::default() };
    let why = "kept elsewhere".to_owned();
    let state = [
        file(b"fine", 0),
        file(b"damaged", 1),
        ImportedPath { path: b"sub".to_vec(), piece: AdoptedPiece::LeftOut { is_dir: true, why } },
    ];
    let mut manager = world.manager_with(ExclusionConfig::default());
    let adopted = adopt(&mut manager, &state, &mut library);
    let why: Vec<&str> = adopted.left_out.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!(why, ["it is damaged", "kept elsewhere"]);
    assert_eq!(left_out(&adopted.manifest, Cause::NotHeld), 2);
    assert!(matches!(adopted.manifest.protection(&kept).unwrap(), Protection::LeftOut { .. }));
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("damaged"), "as it is now");
    assert_eq!(world.read("fine"), "fine");
}

/// Beyond the budget nothing is imported, and the next import works.
#[test]
fn it_stays_within_its_budget() {
    let world = World::new();
    let noise = crate::common::noise(100_000, 1);
    let mut library = library(&[&noise]);
    let mut manager = world.manager();
    let state = [file(b"noise", 0)];
    assert!(manager.adopt(&state, &mut library, THEN, "elsewhere", Some(50_000)).is_err());
    assert_eq!(manager.snapshot_count().unwrap(), 0);
    assert_eq!(adopt(&mut manager, &state, &mut library).manifest.number, 0);
    let restored = manager.restore(&SnapshotId::Number(0), &RestoreOptions::default()).unwrap();
    assert!(restored.skipped.is_empty());
    assert_eq!(std::fs::read(world.path("noise")).unwrap(), noise);
}
