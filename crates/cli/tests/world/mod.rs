//! A place of its own for each test: home, state and temporary folder, a project folder to work in, and a copy of the
//! binary where an ordinary user can reach it. Everything runs as that user, also when root runs the tests.

pub(crate) mod said;
pub(crate) mod settled;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub(crate) use nono_testkit::is_root;

/// Who runs things where root runs the tests.
pub(crate) const ORDINARY: u32 = nono_testkit::user::COMMANDS;

/// A copy of the binary at `path`, and no link: nono says of a binary with several names that only one is closed. It shares
/// the bytes where the file system can. Another process makes it: a thread that forks while this one has it open for writing
/// would keep it busy.
pub(crate) fn place_binary(path: &Path) {
    let mut copy = Command::new("cp");
    copy.arg("--reflink=auto").arg(stripped()).arg(path);
    assert!(copy.status().unwrap().success());
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The binary without symbols, which are more than half of it: each test copies it.
fn stripped() -> &'static Path {
    static STRIPPED: OnceLock<PathBuf> = OnceLock::new();
    STRIPPED.get_or_init(|| {
        let whole = Path::new(env!("CARGO_BIN_EXE_nono"));
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let name = |end: &str| dir.join(format!("nono-without-symbols{end}"));
        // Other test programs do the same meanwhile: a name of its own, renamed when it is whole.
        let own = name(&format!(".{}", std::process::id()));
        let made = Command::new("strip").arg("-o").arg(&own).arg(whole).status().unwrap();
        assert!(made.success(), "strip {}", whole.display());
        fs::rename(&own, name("")).unwrap();
        name("")
    })
}

/// `{bin,home,state,tmp,work,other}` with nono in `bin`; commands start in `work`.
pub(crate) struct World(nono_testkit::World);

impl World {
    pub(crate) fn new() -> World {
        World::of(is_root().then_some(ORDINARY))
    }

    /// A world of another user; `None`: the user who runs the tests.
    pub(crate) fn of(user: Option<u32>) -> World {
        let folders = [
            ("bin", 0o755),
            ("home", 0o700),
            ("state", 0o700),
            ("tmp", 0o700),
            ("work", 0o755),
            ("other", 0o755),
        ];
        let world = World(nono_testkit::World::new(user, &folders));
        place_binary(&world.path("bin/nono"));
        world
    }
}

impl std::ops::Deref for World {
    type Target = nono_testkit::World;

    fn deref(&self) -> &nono_testkit::World {
        &self.0
    }
}
