//! Programs of the suite: the real `nono`, and the hostile child compiled from `attacks/*.c`. Both are copied to a
//! folder that an ordinary user can reach; it is removed with the last world that uses it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tempfile::TempDir;

/// `NONO_ESCAPE=controls` runs the positive controls only, without any `nono`.
pub(crate) fn controls_only() -> bool {
    std::env::var("NONO_ESCAPE").is_ok_and(|mode| mode == "controls")
}

/// Shared folder with `attacks` and, unless only controls run, `nono`.
pub(crate) fn shared() -> Arc<TempDir> {
    static SHARED: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let folder = Arc::new(stage());
        *shared = Arc::downgrade(&folder);
        folder
    })
}

fn stage() -> TempDir {
    let folder =
        tempfile::Builder::new().prefix("nono-escape-bin-").tempdir_in("/var/tmp").expect("bin folder");
    publish(folder.path());
    install(attacks(), &folder.path().join("attacks"));
    if !controls_only() {
        install(nono(), &folder.path().join("nono"));
        install(approver(), &folder.path().join("approver"));
        install(filtered(), &folder.path().join("filtered"));
    }
    folder
}

fn install(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap_or_else(|e| panic!("cannot copy {}: {e}", from.display()));
    publish(to);
}

pub(crate) fn publish(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("chmod");
}

/// Binary in `NONO_BIN`, or that of this workspace in the profile of this test.
fn nono() -> &'static Path {
    static NONO: OnceLock<PathBuf> = OnceLock::new();
    NONO.get_or_init(|| std::env::var_os("NONO_BIN").map_or_else(build_nono, PathBuf::from))
}

fn build_nono() -> PathBuf {
    build(&["nono-cli", "--bin", "nono"]).join("nono")
}

/// The library's example of an approver: the test decides what it answers, and when.
fn approver() -> &'static Path {
    static APPROVER: OnceLock<PathBuf> = OnceLock::new();
    APPROVER.get_or_init(|| example("approver"))
}

/// The library's example of a run whose network is filtered.
fn filtered() -> &'static Path {
    static FILTERED: OnceLock<PathBuf> = OnceLock::new();
    FILTERED.get_or_init(|| example("filtered"))
}

/// Example in `NONO_EXAMPLES`, or built.
fn example(name: &str) -> PathBuf {
    let built = || build(&["nono", "--example", name]).join("examples");
    std::env::var_os("NONO_EXAMPLES").map_or_else(built, PathBuf::from).join(name)
}

/// Builds a package, and returns the folder of this test's profile.
fn build(package: &[&str]) -> PathBuf {
    let here = std::env::current_exe().expect("own path");
    let profile = here.ancestors().nth(2).expect("target/profile/deps/suite");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package"]).args(package);
    build.args(profile.ends_with("release").then_some("--release"));
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    build.arg("--target-dir").arg(profile.parent().expect("target"));
    assert!(build.status().expect("cargo").success(), "{package:?} does not build");
    profile.to_owned()
}

/// Program compiled once for each version of the sources, and kept in the target folder.
fn attacks() -> &'static Path {
    static ATTACKS: OnceLock<PathBuf> = OnceLock::new();
    ATTACKS.get_or_init(|| {
        let sources = sources();
        let mut hash = DefaultHasher::new();
        for path in &sources {
            fs::read(path).expect("source").hash(&mut hash);
        }
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("attacks-{:016x}", hash.finish()));
        if !program.exists() {
            compile(&sources, &program);
        }
        program
    })
}

fn sources() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("attacks");
    let mut found: Vec<_> =
        fs::read_dir(folder).expect("attacks").map(|entry| entry.expect("entry").path()).collect();
    found.sort();
    found
}

fn compile(sources: &[PathBuf], program: &Path) {
    let unfinished = program.with_extension(std::process::id().to_string());
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o"]).arg(&unfinished);
    cc.args(sources.iter().filter(|path| path.extension().is_some_and(|e| e == "c"))).arg("-lrt");
    assert!(cc.status().expect("a C compiler").success(), "the attacks do not compile");
    fs::rename(unfinished, program).expect("rename");
}
