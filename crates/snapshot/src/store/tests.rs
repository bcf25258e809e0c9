//! Tests of the store on real folders.

mod damage;
mod large;
mod many;
mod packs;

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use super::format::{VERSION, WITHOUT_CHUNKS, format_text};
use super::*;
use crate::hash::{ContentHash, ContentHasher, content_hash};
use crate::node::tree_id;

/// A store in a folder of its own.
struct World {
    store: Store,
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        World { store: Store::open(&dir.path().join("store")).unwrap(), dir }
    }

    /// A second process, as far as the store can tell.
    fn again(&self) -> Store {
        Store::open(self.store.dir()).unwrap()
    }

    fn scratch(&self, name: &str) -> File {
        let path = self.dir.path().join(name);
        File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap()
    }
}

fn blob(bytes: &[u8]) -> ObjectKey {
    content_hash(bytes).into()
}

fn put_all(store: &Store, contents: &[&[u8]]) {
    let writer = store.writer(WriteOptions::default()).unwrap();
    let mut appender = writer.appender().unwrap();
    for bytes in contents {
        appender.put(blob(bytes), bytes).unwrap();
    }
    appender.finish().unwrap();
    drop(writer.publish().unwrap());
}

/// Store a file as a large object, however small it is.
fn put_large(store: &Store, file: &File, sparse: bool, options: WriteOptions) -> ContentHash {
    let writer = store.writer(options).unwrap();
    let mut appender = writer.appender().unwrap();
    let staged = appender.put_large(file.as_fd(), file.metadata().unwrap().len(), sparse).unwrap();
    let hash = staged.hash();
    staged.commit().unwrap();
    appender.finish().unwrap();
    drop(writer.publish().unwrap());
    hash
}

/// Store a copy, as version 1 stored large files.
fn put_copy(store: &Store, bytes: &[u8]) -> ContentHash {
    let hash = content_hash(bytes);
    let folder = store.dir().join("large").join(&hash.hex()[..2]);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(hash.hex()), bytes).unwrap();
    hash
}

fn settle(store: &Store) -> Settled {
    store.settle(&|| false, &|_, _| {}).unwrap()
}

fn verify(store: &Store) -> StoreVerified {
    store.verify(&|| false, &|_, _| {}).unwrap()
}

#[track_caller]
fn assert_clean(store: &Store) {
    let found = verify(store);
    assert_eq!(found.problems, []);
}

/// All regular files of the store.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files
}

fn count(dir: &Path, suffix: &str) -> usize {
    files(dir).iter().filter(|file| file.to_string_lossy().ends_with(suffix)).count()
}

/// Compressible text, different for each seed.
fn text(seed: usize, len: usize) -> Vec<u8> {
    format!("line {seed} of a text that says little\n").into_bytes().into_iter().cycle().take(len).collect()
}

/// Incompressible bytes.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}
