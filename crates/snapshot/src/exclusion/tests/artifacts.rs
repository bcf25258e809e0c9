//! Build artifacts.

use super::*;
use crate::exclusion::artifacts;

fn artifact(what: &str) -> ExclusionVerdict {
    ExclusionVerdict::Leave(Reason::Artifact(what.into()))
}

fn place(files: &[&str]) -> Place {
    let mut place = Place::with(files);
    place.config.artifacts = true;
    place
}

#[test]
fn artifacts_are_known_by_evidence() {
    let place = place(&[
        "target/.rustc_info.json",
        "web/package-lock.json",
        "web/node_modules/a",
        "web/.next/x",
        "py/.venv/pyvenv.cfg",
        "py/m/m.py",
        "py/m/__pycache__/m.pyc",
        "c/build/CMakeCache.txt",
        "java/target/maven-status/x",
    ]);
    place.write("web/package.json", "{}");
    for (path, what) in [
        ("target", "build output of cargo"),
        ("java/target", "build output of Maven"),
        ("web/node_modules", "packages installed by npm"),
        ("web/.next", "build output of Next.js"),
        ("py/.venv", "Python virtual environment"),
        ("py/m/__pycache__", "compiled Python"),
        ("c/build", "build output of CMake"),
    ] {
        assert_eq!(place.ask(path), artifact(what), "{path}");
    }
}

#[test]
fn a_name_alone_is_no_evidence() {
    let files = [
        "src/build/main.c",
        "src/target/x",
        "env/README",
        "dist/x",
        "venv/x",
        "node_modules/own.js",
        "package.json",
        "Cargo.toml",
        "target/data",
        "pom.xml",
        "__pycache__/only.pyc",
        "orphan.pyc",
        "a.tmp.12.34",
        // A tag is recognised by its content.
        "cache/CACHEDIR.TAG",
    ];
    let place = place(&files);
    for path in files {
        assert_eq!(place.ask(path), ExclusionVerdict::Take, "{path}");
    }
    // Empty files are no evidence.
    let empty = self::place(&["web/node_modules/own"]);
    empty.write("web/package-lock.json", "");
    assert_eq!(empty.ask("web/node_modules"), ExclusionVerdict::Take);
    // A file is not a directory.
    assert_eq!(
        self::place(&["package-lock.json", "node_modules"]).ask("node_modules"),
        ExclusionVerdict::Take
    );
}

#[test]
fn what_git_tracks_among_artifacts_is_taken() {
    let place = place(&["target/.rustc_info.json", "target/kept/a", "target/other/b"]);
    place.git("", &["init", "-q"]);
    place.git("", &["add", "target/kept"]);
    assert_eq!(
        place.ask("target"),
        ExclusionVerdict::Search(Reason::Artifact("build output of cargo".into()))
    );
    assert_eq!(place.ask("target/kept/a"), ExclusionVerdict::TakeAnyway);
    assert_eq!(place.ask("target/other"), artifact("build output of cargo"));
}

#[test]
fn nothing_in_gits_own_folder_is_an_artifact() {
    let place = place(&[".git/refs/heads/x.pyc", ".git/package.json", ".git/node_modules/x"]);
    for path in [".git", ".git/refs/heads/x.pyc", ".git/node_modules/x"] {
        assert_eq!(place.ask(path), ExclusionVerdict::Take, "{path}");
    }
}

/// The decision is kept with the snapshot, in both directions, when the evidence disappears or appears.
#[test]
fn frozen_decisions_outlive_their_evidence() {
    let place = place(&["target/.rustc_info.json", "target/x", "lib/target/x"]);
    let rules = place.rules();
    let before = ["target", "lib/target"].map(|path| ask(&rules, &place.root(), path));
    let frozen = Rules::frozen(&rules.freeze()).unwrap();
    fs::remove_file(place.root().join("target/.rustc_info.json")).unwrap();
    place.write("lib/target/.rustc_info.json", "");
    assert_eq!(["target", "lib/target"].map(|path| ask(&frozen, &place.root(), path)), before);
    assert_eq!(before, [artifact("build output of cargo"), ExclusionVerdict::Take]);
}

/// The verdict on a file must not depend on other names: it is cached while the rules stay the same.
#[test]
fn files_need_no_evidence() {
    let place = place(&[]);
    let rules = place.rules();
    let root = rules.root(File::open(place.root()).unwrap().as_fd());
    for name in [&b"x.pyc"[..], b"x.pyo", b"a.tmp.1.2", b"target", b"node_modules"] {
        root.judge(name, name, false, &|_: &[u8]| panic!("asked for evidence"));
    }
}

#[test]
fn every_line_of_the_table_is_well_formed() {
    assert_eq!(artifacts::broken_lines(), Vec::<&str>::new());
}
