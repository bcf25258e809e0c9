//! Reference for verification: `zstd -d` and SHA-256 of the same bytes, in as many threads as there are processors.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sha2::{Digest, Sha256};

/// The level of the store.
const LEVEL: i32 = 3;

/// The bytes of a tree's files, in one compressed file for each processor.
pub(crate) fn compress(tree: &Path, out: &Path) {
    fs::create_dir(out).expect("a folder");
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let part = |index: usize| {
        let file = File::create(out.join(index.to_string())).expect("a file");
        zstd::Encoder::new(file, LEVEL).expect("memory").auto_finish()
    };
    let mut parts: Vec<_> = (0..count).map(part).collect();
    let mut sizes = vec![0; count];
    for path in regular_files(tree) {
        let smallest = (0..count).min_by_key(|index| sizes[*index]).unwrap_or(0);
        let mut file = File::open(path).expect("a file of the tree");
        sizes[smallest] += io::copy(&mut file, &mut parts[smallest]).expect("space");
    }
}

/// Prints the milliseconds.
pub(crate) fn decompress(dir: &Path) {
    let begin = Instant::now();
    let hash = |path: PathBuf| {
        let mut decoder = zstd::Decoder::new(File::open(path).expect("a part")).expect("memory");
        let mut hasher = Sha256::new();
        io::copy(&mut decoder, &mut hasher).expect("what was compressed");
        hasher.finalize()
    };
    let parts = fs::read_dir(dir).expect("the parts").map(|entry| entry.expect("a part").path());
    let threads: Vec<_> = parts.map(|path| std::thread::spawn(move || hash(path))).collect();
    for thread in threads {
        std::hint::black_box(thread.join().expect("it hashes"));
    }
    println!("{}", begin.elapsed().as_secs_f64() * 1e3);
}

fn regular_files(tree: &Path) -> Vec<PathBuf> {
    let (mut files, mut dirs) = (Vec::new(), vec![tree.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).expect("a folder of the tree") {
            let entry = entry.expect("an entry");
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files
}
