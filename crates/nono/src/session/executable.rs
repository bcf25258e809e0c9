//! Digest of the program that is run.
//!
//! Reading a program of a hundred megabytes before each run takes noticeable time, so digests are cached by device,
//! inode, size, mtime and ctime. Only the kernel sets ctime; a file that changed within the last seconds is always
//! read, since a second change within the clock's resolution would not show.

use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nono_audit::Digest;
use nono_audit::event::Executable;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Maximum number of cached digests.
const MOST: usize = 64;
/// Minimum size in bytes for caching: reading a smaller file costs as much as a lookup.
const WORTH_IT: u64 = 1 << 20;
/// Minimum age of the last change in seconds for a cached digest to be trusted.
const SETTLED: i64 = 2;

/// File attributes that a cached digest is valid for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    mtime: (i64, i64),
    ctime: (i64, i64),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KnownExecutable {
    stamp: Stamp,
    sha256: Digest,
}

/// The digest of `path`, cached in the file `memory`.
pub(super) fn identify(path: &Path, memory: &Path) -> io::Result<Executable> {
    let resolved_path = path.canonicalize()?;
    let mut file = File::open(&resolved_path)?;
    let stamp = Stamp::of(&file)?;
    let is_old = stamp.ctime.0 + SETTLED < now();
    let remembered = stamp.size >= WORTH_IT && is_old;
    let mut known = if remembered { recall(memory) } else { Vec::new() };
    if let Some(known) = known.iter().find(|known| known.stamp == stamp) {
        return Ok(Executable { resolved_path, sha256: known.sha256 });
    }
    let sha256 = digest(&mut file)?;
    if remembered && Stamp::of(&file)? == stamp {
        known.insert(0, KnownExecutable { stamp, sha256 });
        known.truncate(MOST);
        remember(memory, &known);
    }
    Ok(Executable { resolved_path, sha256 })
}

impl Stamp {
    fn of(file: &File) -> io::Result<Stamp> {
        let meta = file.metadata()?;
        Ok(Stamp {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.len(),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            ctime: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    i64::try_from(now).unwrap_or(i64::MAX)
}

fn digest(file: &mut File) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    // In larger pieces than `copy` takes by itself.
    io::copy(&mut BufReader::with_capacity(256 << 10, file), &mut hasher)?;
    Ok(Digest::from_bytes(hasher.finalize().into()))
}

/// Read the cache; an unreadable one counts as empty.
fn recall(memory: &Path) -> Vec<KnownExecutable> {
    let text = std::fs::read(memory).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Write the cache; on failure the next run reads the program again.
fn remember(memory: &Path, known: &[KnownExecutable]) {
    let Ok(text) = serde_json::to_vec(known) else { return };
    let _ = nono_sys::fs::write_atomic(memory, &text);
}

pub(super) fn memory(audit_dir: &Path) -> PathBuf {
    audit_dir.join("executables.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_remembered_until_the_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (path, memory) = (dir.path().join("program"), memory(dir.path()));
        let small = dir.path().join("small");
        std::fs::write(&small, b"abc").unwrap();
        let found = identify(&small, &memory).unwrap();
        assert_eq!(found.sha256.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(!memory.exists());

        std::fs::write(&path, vec![7; 2 << 20]).unwrap();
        let fresh = identify(&path, &memory).unwrap();
        assert!(!memory.exists(), "it changed just now");
        // A cached digest is used for exactly this state of the file.
        let stamp = Stamp::of(&File::open(&path).unwrap()).unwrap();
        let old = Stamp { ctime: (stamp.ctime.0 - 60, 0), ..stamp.clone() };
        remember(&memory, &[KnownExecutable { stamp: old, sha256: Digest::ZERO }]);
        assert_eq!(identify(&path, &memory).unwrap().sha256, fresh.sha256);
    }
}
