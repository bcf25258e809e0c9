//! Running one test as an ordinary user: permissions mean nothing to root. The test binary is copied to where all users
//! can read it, and runs the one test again through `setpriv`.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

const USER: u32 = 48_123;
const INNER: &str = "NONO_LAWS_INNER";

/// Run `body` as an ordinary user, in a test of this full name. `body` gets an empty folder of that user's.
pub(crate) fn as_user(name: &str, body: impl FnOnce(&Path)) {
    prepared(name, |_| {}, body);
}

/// The same, after `prepare` ran in that folder as root.
pub(crate) fn prepared(name: &str, prepare: impl FnOnce(&Path), body: impl FnOnce(&Path)) {
    if let Some(place) = std::env::var_os(INNER) {
        assert!(!super::is_root());
        return body(Path::new(&place));
    }
    if !super::is_root() {
        let place = tempfile::tempdir().unwrap();
        prepare(place.path());
        return body(&place.path().canonicalize().unwrap());
    }
    let dir = tempfile::Builder::new().prefix("laws-user-").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (program, place) = (dir.path().join("laws"), dir.path().join("place"));
    // A link where that works: a copy may still be open for writing in a child of another thread, and cannot be run then.
    let own = std::env::current_exe().unwrap();
    std::fs::hard_link(&own, &program).or_else(|_| std::fs::copy(&own, &program).map(drop)).unwrap();
    std::fs::create_dir(&place).unwrap();
    chown(&place, Some(USER), Some(USER)).unwrap();
    prepare(&place);
    let id = USER.to_string();
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
pub(crate) fn give(path: &Path) {
    if super::is_root() {
        std::os::unix::fs::lchown(path, Some(USER), Some(USER)).unwrap();
    }
}

/// Limit open files to what a shell usually allows. Applies to the whole process: only in a test that runs as a user.
pub(crate) fn few_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(1024), maximum: limit.maximum }).unwrap();
}
