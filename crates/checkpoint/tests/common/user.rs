//! Running one test as an ordinary user: permissions mean nothing to root. The test binary is copied to where everybody
//! can read it, and runs the one test again through `setpriv`.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

const USER: u32 = 48_124;
const INNER: &str = "NONO_CHECKPOINT_INNER";

/// Run `body` as an ordinary user, in a test of this full name. `body` gets an empty folder of that user's.
pub(crate) fn as_user(name: &str, body: impl FnOnce(&Path)) {
    if let Some(place) = std::env::var_os(INNER) {
        assert!(!rustix::process::geteuid().is_root());
        return body(Path::new(&place));
    }
    let dir = tempfile::Builder::new().prefix("checkpoint-user-").tempdir_in("/tmp").unwrap();
    if !rustix::process::geteuid().is_root() {
        return body(&dir.path().canonicalize().unwrap());
    }
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (program, place) = (dir.path().join("test"), dir.path().join("place"));
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::create_dir(&place).unwrap();
    chown(&place, Some(USER), Some(USER)).unwrap();
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
}
