//! The users of all tests, and running one test as an ordinary user: permissions mean nothing to root. The test program is put where all users can
//! read it, and runs the one test again through `setpriv`.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::is_root;

// Programs with tests run at the same time, so no two share a user: one would count, see and end the other's processes,
// and use its folder in `/tmp`. scripts/python-tests has 60125.

/// User of the tests that [`as_user`] runs again.
pub const TESTER: u32 = 60_110;
/// User who may have one process: nothing else runs as this one.
pub const ALONE: u32 = 60_111;
/// User who owns what a test is refused.
pub const STRANGER: u32 = 60_112;
/// User of a [`World`](crate::World) of the binary.
pub const COMMANDS: u32 = 60_120;
/// User of the golden transcripts.
pub const TRANSCRIPTS: u32 = 60_124;
/// User of the random policies that the query and the kernel have to agree on.
pub const AGREEMENT: u32 = 60_126;
/// User of the benchmarks.
pub const BENCHES: u32 = 60_127;
/// User of the terminals that the supervisor leases.
pub const STAGE: u32 = 60_128;
/// Users of the escape suite, which takes some for each world.
pub const ESCAPES: std::ops::Range<u32> = 56_000..60_096;

const INNER: &str = "NONO_TEST_INNER";

/// Run `body` as an ordinary user, in a test of this full name. `body` gets an empty folder of that user's.
pub fn as_user(name: &str, body: impl FnOnce(&Path)) {
    if let Some(place) = inner() {
        return body(&place);
    }
    if is_root() {
        return again(name, |_| {});
    }
    let place = tempfile::tempdir().unwrap();
    body(&place.path().canonicalize().unwrap());
}

/// The same, after root ran `prepare` in that folder; skipped where the tests do not run as root.
pub fn prepared_by_root(name: &str, prepare: impl FnOnce(&Path), body: impl FnOnce(&Path)) {
    match inner() {
        Some(place) => body(&place),
        None if is_root() => again(name, prepare),
        None => super::skip("its files are prepared by root"),
    }
}

/// Folder of the ordinary user, in the second run of a test.
fn inner() -> Option<PathBuf> {
    let place = std::env::var_os(INNER)?;
    assert!(!is_root());
    Some(place.into())
}

/// Run the test of this name again, as the ordinary user.
fn again(name: &str, prepare: impl FnOnce(&Path)) {
    let dir = tempfile::Builder::new().prefix("nono-user-").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (program, place) = (dir.path().join("test"), dir.path().join("place"));
    // A link where that works: a copy may still be open for writing in a child of another thread, and cannot be run then.
    let own = std::env::current_exe().unwrap();
    std::fs::hard_link(&own, &program).or_else(|_| std::fs::copy(&own, &program).map(drop)).unwrap();
    std::fs::create_dir(&place).unwrap();
    chown(&place, Some(TESTER), Some(TESTER)).unwrap();
    prepare(&place);
    let id = TESTER.to_string();
    let out = Command::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
        .arg(&program)
        .args(["--exact", name, "--nocapture"])
        .env(INNER, &place)
        .env("TMPDIR", &place)
        .current_dir("/")
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{text}");
    assert!(text.contains("1 passed"), "the inner test did not run: {text}");
    if text.contains("skipped: ") {
        eprintln!("{text}");
    }
}

/// Give a path that root made to that user.
pub fn give(path: &Path) {
    if is_root() {
        std::os::unix::fs::lchown(path, Some(TESTER), Some(TESTER)).unwrap();
    }
}
