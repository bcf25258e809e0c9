//! Captured and excluded entries, by `ExclusionConfig` and git.

use std::path::PathBuf;

use nono_snapshot::{ExclusionConfig, Manifest, Protection};

use crate::common::{World, clean, git};
use nono_testkit::oracle::{look, same};

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.into()).collect()
}

fn captured(world: &World, manifest: &Manifest) -> Vec<String> {
    let files = manifest.files().unwrap();
    let name = |path: &PathBuf| path.strip_prefix(&world.tree).unwrap().to_string_lossy().into_owned();
    files.keys().map(name).collect()
}

#[test]
fn a_plain_config_leaves_out_ignored_files_only() {
    let world = World::new();
    for path in [
        "node_modules/a/index.js",
        "target/debug/x",
        "__pycache__/x.pyc",
        ".venv/bin/python",
        "x.tmp.12.34",
        ".next/x",
        "build/x",
    ] {
        world.write(path, "x");
    }
    world.write("package.json", "{}");
    world.write("Cargo.toml", "[package]");
    let baseline = world.manager().create_baseline().unwrap();
    assert_eq!((baseline.coverage.files, baseline.coverage.entries_left_out()), (9, 0));
}

#[test]
fn artifacts_need_evidence() {
    let world = World::new();
    world.write("app/package-lock.json", "{}");
    world.write("app/node_modules/a/index.js", "x");
    world.write("lib/src/build/builder.rs", "fn build() {}");
    world.write("src/target/aim.rs", "fn aim() {}");
    let config = ExclusionConfig { artifacts: true, ..Default::default() };
    let baseline = world.manager_with(config).create_baseline().unwrap();
    assert_eq!(
        captured(&world, &baseline),
        ["app/package-lock.json", "lib/src/build/builder.rs", "src/target/aim.rs"]
    );
}

#[test]
fn gitignore_can_be_switched_off() {
    let world = World::new();
    world.write(".gitignore", "*.log\n");
    world.write("a.log", "x");
    let config = ExclusionConfig { use_gitignore: false, ..Default::default() };
    let baseline = world.manager_with(config).create_baseline().unwrap();
    assert_eq!(baseline.coverage.files, 2);
}

#[test]
fn patterns_are_components_or_parts_of_the_path() {
    let world = World::new();
    for path in ["data/x", "sub/data/x", "mydata/x", "data2/x", "a/b/x", "xa/by/x", "a/c/b/x", "f/data"] {
        world.write(path, "x");
    }
    let config = ExclusionConfig { exclude_patterns: list(&["data", "a/b"]), ..Default::default() };
    let baseline = world.manager_with(config).create_baseline().unwrap();
    assert_eq!(captured(&world, &baseline), ["a/c/b/x", "data2/x", "mydata/x"]);
}

#[test]
fn globs_match_names() {
    let world = World::new();
    for path in ["a.tmp", "sub/b.tmp", "c.tmpx", "d1", "d2", "dx"] {
        world.write(path, "x");
    }
    let config = ExclusionConfig { exclude_globs: list(&["*.tmp", "d[0-9]"]), ..Default::default() };
    let baseline = world.manager_with(config).create_baseline().unwrap();
    assert_eq!(captured(&world, &baseline), ["c.tmpx", "dx"]);
}

#[test]
fn a_glob_that_is_none_is_an_error() {
    let world = World::new();
    world.write("file", "x");
    let config = ExclusionConfig { exclude_globs: list(&["[a"]), ..Default::default() };
    let made = nono_snapshot::SnapshotManager::new(
        &world.session,
        [&world.tree],
        config,
        nono_snapshot::Limits::default(),
    );
    assert!(made.is_err());
}

/// Forced entries are captured and restored, also inside excluded directories; their excluded siblings are never
/// touched.
#[test]
fn force_include_wins_inside_pruned_directories() {
    let world = World::new();
    world.write(".gitignore", "node_modules/\nsecret.env\n");
    world.write("file", "f");
    world.write("node_modules/a/b/keep.me", "kept");
    world.write("node_modules/a/b/other", "other");
    world.write("node_modules/c/other", "other");
    world.write("cache/deep/keep.me", "kept");
    world.write("cache/deep/other", "other");
    world.write("x.tmp", "x");
    world.write("secret.env", "s");
    let config = ExclusionConfig {
        exclude_patterns: list(&["cache"]),
        exclude_globs: list(&["*.tmp"]),
        force_include: list(&["keep.me", "x.tmp", "secret.env"]),
        ..Default::default()
    };
    let mut manager = world.manager_with(config);
    let baseline = manager.create_baseline().unwrap();
    let all = [".gitignore", "cache/deep/keep.me", "file", "node_modules/a/b/keep.me", "secret.env", "x.tmp"];
    assert_eq!(captured(&world, &baseline), all);
    let protection = |path: &str| baseline.protection(&world.path(path)).unwrap();
    assert_eq!(protection("node_modules/a/b/keep.me"), Protection::Captured);
    assert!(matches!(protection("node_modules/a/b/other"), Protection::LeftOut { .. }));
    assert!(matches!(protection("node_modules/c/other"), Protection::LeftOut { .. }));
    // Changed beside, and the forced ones.
    world.sh("for f in node_modules/a/b/* node_modules/c/other cache/deep/* x.tmp secret.env; do echo changed > $f; done; echo new > node_modules/a/b/new; mkdir node_modules/d; echo new > node_modules/d/new");
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    for path in ["node_modules/a/b/keep.me", "cache/deep/keep.me"] {
        assert_eq!(world.read(path), "kept", "{path}");
    }
    for path in ["node_modules/a/b/other", "node_modules/c/other", "cache/deep/other"] {
        assert_eq!(world.read(path), "changed\n", "{path}");
    }
    assert!(world.exists("node_modules/a/b/new") && world.exists("node_modules/d/new"));
    // Removed with everything around them.
    world.sh("rm -rf node_modules cache");
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("node_modules/a/b/keep.me"), "kept");
    assert!(!world.exists("node_modules/c"));
}

#[test]
fn what_git_tracks_is_captured() {
    let world = World::new();
    git(&world.tree, &["init", "-q"]);
    world.write("dist/bundle.js", "tracked");
    world.write("dist/other.js", "ignored");
    world.write("a.log", "tracked");
    world.write("b.log", "ignored");
    world.write("main", "m");
    git(&world.tree, &["add", "."]);
    git(&world.tree, &["rm", "-q", "--cached", "dist/other.js", "b.log"]);
    world.write(".gitignore", "dist/\n*.log\n");
    git(&world.tree, &["add", ".gitignore"]);
    git(&world.tree, &["commit", "-qm", "x"]);
    let before = look(&world.tree);
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    let protection = |path: &str| baseline.protection(&world.path(path)).unwrap();
    for path in ["dist/bundle.js", "a.log", ".git/HEAD", ".git/index"] {
        assert_eq!(protection(path), Protection::Captured, "{path}");
    }
    for path in ["dist/other.js", "b.log"] {
        assert!(matches!(protection(path), Protection::LeftOut { .. }), "{path}");
    }
    // The agent takes them out of the index and edits them: the rules are frozen, the index too.
    git(&world.tree, &["rm", "-q", "--cached", "dist/bundle.js", "a.log"]);
    world.sh("echo changed > dist/bundle.js; rm a.log; echo new > dist/new.js; echo x > b.log");
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    assert_eq!((world.read("dist/bundle.js"), world.read("a.log")), ("tracked".into(), "tracked".into()));
    assert_eq!(world.read("b.log"), "x\n");
    assert!(world.exists("dist/new.js"));
    world.sh("rm dist/new.js; printf ignored > b.log");
    let mine = ["dist", "b.log", ""];
    same(&before.without(&mine), &look(&world.tree).without(&mine));
    git(&world.tree, &["fsck", "--strict"]);
    git(&world.tree, &["diff", "--exit-code", "HEAD"]);
}

/// An agent that breaks `.git` can be undone.
#[test]
fn a_broken_repository_comes_back() {
    let world = World::new();
    git(&world.tree, &["init", "-q"]);
    for n in 0..20 {
        world.write(format!("{n}"), format!("{n}"));
    }
    git(&world.tree, &["add", "."]);
    git(&world.tree, &["commit", "-qm", "one"]);
    world.write("0", "stashed");
    git(&world.tree, &["stash", "-q"]);
    git(&world.tree, &["gc", "-q"]);
    world.write(".git/info/exclude", "*.private\n");
    world.write("a.private", "p");
    world.write(".git/hooks/post-commit", "#!/bin/sh\n");
    let before = look(&world.tree);
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    assert!(matches!(baseline.protection(&world.path("a.private")).unwrap(), Protection::LeftOut { .. }));
    world.sh("rm -rf .git/objects .git/refs; echo garbage > .git/HEAD; rm .git/index .git/info/exclude; echo x > .git/hooks/evil; echo y > a.private");
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("a.private"), "y\n");
    world.sh("printf p > a.private");
    let mine = ["a.private"];
    same(&before.without(&mine), &look(&world.tree).without(&mine));
    git(&world.tree, &["fsck", "--strict"]);
    git(&world.tree, &["stash", "show"]);
}

#[test]
fn ignore_files_above_the_root_count_up_to_the_repository() {
    let world = World::new();
    std::fs::write(world.dir.path().join(".gitignore"), "*.outside\n").unwrap();
    git(&world.tree, &["init", "-q"]);
    world.write(".gitignore", "*.top\n");
    world.write("mid/.gitignore", "/root/anchored\n");
    for name in ["a.top", "a.outside", "anchored", "plain", "sub/b.top"] {
        world.write(format!("mid/root/{name}"), "x");
    }
    let root = world.path("mid/root");
    let baseline = world.manager_on(&[&root], ExclusionConfig::default()).create_baseline().unwrap();
    assert_eq!(captured(&world, &baseline), ["mid/root/a.outside", "mid/root/plain"]);
}

/// Git's own answers for rules that are easy to get wrong.
#[test]
fn git_check_ignore_agrees() {
    let world = World::new();
    git(&world.tree, &["init", "-q"]);
    world.write(
        ".gitignore",
        "# comment\n\\#hash\n\\!bang\ntrailing \nkept\\ \n/anchored\nmid/dle\n**/any\nends/**\na/**/z\n*.o\n!keep.o\ndir-only/\n[ab]x\nUPPER\n\\*star\nfoo*bar\nx/*\n!x/y\n",
    );
    world.write("nested/.gitignore", "!*.o\nlocal\n");
    let paths = [
        "#hash",
        "!bang",
        "trailing",
        "kept ",
        "kept",
        "anchored",
        "sub/anchored",
        "mid/dle",
        "sub/mid/dle",
        "any",
        "q/w/any",
        "ends/x/y",
        "a/z",
        "a/b/z",
        "a/b/c/z",
        "t.o",
        "keep.o",
        "nested/t.o",
        "nested/local",
        "local",
        "dir-only/f",
        "sub/dir-only",
        "ax",
        "cx",
        "upper",
        "*star",
        "xstar",
        "foo/bar",
        "fooXbar",
        "x/z",
        "x/y",
        "plain",
    ];
    for path in paths.iter().filter(|path| !world.path(path).exists()) {
        if !world.path(path).is_dir() {
            world.write(path, "x");
        }
    }
    let baseline = world.manager().create_baseline().unwrap();
    assert!(baseline.coverage.notes.is_empty(), "{:?}", baseline.coverage.notes);
    for path in paths {
        let status = std::process::Command::new("git")
            .args(["check-ignore", "-q", "--", path])
            .current_dir(&world.tree)
            .status()
            .unwrap();
        let ours = baseline.protection(&world.path(path)).unwrap();
        assert_eq!(matches!(ours, Protection::LeftOut { .. }), status.success(), "{path}: {ours:?}");
    }
}
