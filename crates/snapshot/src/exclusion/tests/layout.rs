//! Places of ignore files and repositories.

use std::os::unix::fs::symlink;

use super::*;
use crate::exclusion::ExclusionNote;

#[test]
fn ignore_files_count_without_a_repository() {
    let place = Place::with(&["a.o", "d/b.o", "d/c.x"]);
    place.write(".gitignore", "*.o\n");
    place.write("d/.gitignore", "!b.o\nc.*\n");
    assert_eq!(place.ask("a.o"), ignored("*.o", ".gitignore"));
    assert_eq!(place.ask("d/b.o"), ExclusionVerdict::Take);
    assert_eq!(place.ask("d/c.x"), ignored("c.*", "d/.gitignore"));
    // No ignore file above the root is used when there is no repository.
    fs::write(place.temp.path().join(".gitignore"), "*\n").unwrap();
    assert_eq!(place.ask("d/b.o"), ExclusionVerdict::Take);
}

#[test]
fn the_repository_above_the_root_counts() {
    let place = Place::with(&["sub/root/a.o", "sub/root/b.log", "sub/root/x/c.tmp", "sub/root/t.o"]);
    place.git("", &["init", "-q"]);
    place.write(".gitignore", "*.o\n/sub/root/x/*.tmp\n");
    place.write("sub/.gitignore", "root/*.log\n");
    place.write(".git/info/exclude", "e\n");
    place.write("sub/root/e", "");
    place.git("", &["add", "-f", "sub/root/t.o"]);
    assert_eq!(place.ask_below("sub/root", "a.o"), ignored("*.o", "../../.gitignore"));
    assert_eq!(place.ask_below("sub/root", "b.log"), ignored("root/*.log", "../.gitignore"));
    assert_eq!(place.ask_below("sub/root", "x/c.tmp"), ignored("/sub/root/x/*.tmp", "../../.gitignore"));
    assert_eq!(place.ask_below("sub/root", "e"), ignored("e", "../../.git/info/exclude"));
    assert_eq!(place.ask_below("sub/root", "t.o"), ExclusionVerdict::TakeAnyway);
    // Through a symbolic link it is the same folder.
    symlink(place.root().join("sub/root"), place.temp.path().join("link")).unwrap();
    assert_eq!(place.ask_below("../link", "a.o"), ignored("*.o", "../../.gitignore"));
}

#[test]
fn a_root_that_is_ignored_is_taken() {
    let place = Place::with(&["out/root/a", "out/root/b.o"]);
    place.git("", &["init", "-q"]);
    place.write(".gitignore", "out/\n");
    place.write("out/root/.gitignore", "*.o\n");
    let root = place.root().join("out/root");
    let rules = Rules::live(&place.config, &root).unwrap();
    assert_eq!(ask(&rules, &root, "a"), ExclusionVerdict::Take);
    assert_eq!(ask(&rules, &root, "b.o"), ignored("*.o", ".gitignore"));
    assert_eq!(
        rules.notes(),
        [ExclusionNote::RootIgnored { rule: "out/".into(), file: "../../.gitignore".into() }]
    );
}

#[test]
fn a_worktree_has_its_own_index_and_shares_the_rest() {
    let place = Place::with(&["main/a"]);
    place.git("main", &["init", "-q"]);
    place.git("main", &["add", "."]);
    place.git("main", &["commit", "-qm", "a"]);
    place.git("main", &["worktree", "add", "-q", "../work"]);
    place.write("main/.git/info/exclude", "*.o\n");
    place.write("work/x.o", "");
    place.write("work/y.o", "");
    place.git("work", &["add", "-f", "y.o"]);
    for (root, path) in [("work", ""), ("", "work/")] {
        let file = format!("{path}.git/info/exclude");
        assert_eq!(place.ask_below(root, &format!("{path}x.o")), ignored("*.o", &file));
        assert_eq!(place.ask_below(root, &format!("{path}y.o")), ExclusionVerdict::TakeAnyway);
    }
}

#[test]
fn a_submodule_in_an_ignored_directory_is_taken() {
    let place = Place::with(&["lib/a", "lib/b.o", "top/deps/other"]);
    place.git("lib", &["init", "-q"]);
    place.write("lib/.gitignore", "*.o\n");
    place.git("lib", &["add", "."]);
    place.git("lib", &["commit", "-qm", "a"]);
    place.git("top", &["init", "-q"]);
    let url = place.root().join("lib");
    place.git("top", &["submodule", "--quiet", "add", url.to_str().unwrap(), "deps/lib"]);
    place.write("top/.gitignore", "deps/\na\n");
    place.write("top/deps/lib/b.o", "");
    assert!(matches!(place.ask_below("top", "deps"), ExclusionVerdict::Search(_)));
    assert_eq!(place.ask_below("top", "deps/other"), ignored("deps/", ".gitignore"));
    assert_eq!(place.ask_below("top", "deps/lib"), ExclusionVerdict::TakeAnyway);
    // Inside, only its own rules count.
    assert_eq!(place.ask_below("top", "deps/lib/a"), ExclusionVerdict::Take);
    assert_eq!(place.ask_below("top", "deps/lib/b.o"), ignored("*.o", "deps/lib/.gitignore"));
}

#[test]
fn an_outer_rule_ends_at_an_inner_repository() {
    let place = Place::with(&["in/a.o", "not/a.o"]);
    place.git("", &["init", "-q"]);
    place.git("in", &["init", "-q"]);
    place.write("not/.git/HEAD", "nonsense");
    place.write(".gitignore", "*.o\n");
    assert_eq!(place.ask("in/a.o"), ExclusionVerdict::Take);
    // An empty or broken `.git` makes no repository.
    assert_eq!(place.ask("not/a.o"), ignored("*.o", ".gitignore"));
}

#[test]
fn a_linked_git_folder_is_a_repository() {
    let place = Place::with(&["a.o", "b.o"]);
    place.git("", &["init", "-q"]);
    place.write(".gitignore", "*.o\n");
    place.git("", &["add", "-f", "a.o"]);
    fs::rename(place.root().join(".git"), place.temp.path().join("elsewhere")).unwrap();
    symlink("../elsewhere", place.root().join(".git")).unwrap();
    assert_eq!(place.ask("a.o"), ExclusionVerdict::TakeAnyway);
    assert_eq!(place.ask("b.o"), ignored("*.o", ".gitignore"));
}

#[test]
fn git_itself_is_never_ignored() {
    let place = Place::new();
    place.git("", &["init", "-q"]);
    place.write(".gitignore", "*\n.git\nHEAD\n");
    place.write(".git/.gitignore", "*\n");
    for path in [".git", ".git/HEAD", ".git/refs/heads", ".git/.gitignore"] {
        assert_eq!(place.ask(path), ExclusionVerdict::Take, "{path}");
    }
    assert_eq!(place.ask_below(".git", "HEAD"), ExclusionVerdict::Take);
}

#[test]
fn case_follows_the_repositorys_setting() {
    let place = Place::with(&["A.O", "Dir/x", "t/B.o"]);
    place.git("", &["init", "-q"]);
    place.write(".gitignore", "*.o\n/dir/\n");
    assert_eq!(place.ask("A.O"), ExclusionVerdict::Take);
    place.git("", &["config", "core.ignoreCase", "yes"]);
    place.git("", &["add", "-f", "t/B.o"]);
    assert_eq!(place.ask("A.O"), ignored("*.o", ".gitignore"));
    assert_eq!(place.ask("Dir"), ignored("/dir/", ".gitignore"));
    assert_eq!(place.ask("t/B.o"), ExclusionVerdict::TakeAnyway);
}

#[test]
fn settings_are_read_as_git_writes_them() {
    use crate::exclusion::git_config::{is_true, settings};
    let value = |text: &str| {
        let mut found = None;
        settings(text.as_bytes(), |section, key, value| {
            if (section, key) == (b"core", b"ignorecase") {
                found = Some(is_true(value));
            }
        });
        found
    };
    for text in [
        "[core]\n\tignorecase = true",
        "[CORE] IgnoreCase",
        "[core]\nignorecase=\"tr\"ue # c",
        "[core]\r\nignorecase = 1\r\n",
        "[core \"sub]\"]\nignorecase = false\n[core]ignorecase=on",
        "; x\n[core]\nx = a\\\n b\nignorecase = YES ;",
    ] {
        assert_eq!(value(text), Some(true), "{text}");
    }
    for text in
        ["[core]\nignorecase = false", "[core]\nignorecase = true\nignorecase = 0", "[core]\nignorecase ="]
    {
        assert_eq!(value(text), Some(false), "{text}");
    }
    for text in [
        "",
        "[core",
        "[core \"a\"]\nignorecase = 1",
        "ignorecase = 1",
        "[other]\nignorecase=1",
        "[core]\nx = \\",
    ] {
        assert_eq!(value(text), None, "{text}");
    }
}

/// Every one of these would have excluded `a`.
#[test]
fn only_regular_ignore_files_are_read() {
    let place = Place::with(&["a"]);
    fs::write(place.temp.path().join("rules"), "*\n").unwrap();
    let file = place.root().join(".gitignore");
    symlink("../rules", &file).unwrap();
    assert_eq!(place.ask("a"), ExclusionVerdict::Take);
    fs::remove_file(&file).unwrap();
    // No process writes to it: opening it must not block.
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert_eq!(place.ask("a"), ExclusionVerdict::Take);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(place.ask("a"), ExclusionVerdict::Take);
    assert_eq!(place.rules().notes(), []);
}

#[test]
fn an_ignore_file_too_large_to_read_is_noted() {
    let place = Place::with(&["a"]);
    place.write(".gitignore", "*\n".repeat(3 << 20));
    let rules = place.rules();
    assert_eq!(ask(&rules, &place.root(), "a"), ExclusionVerdict::Take);
    assert!(
        matches!(&rules.notes()[..], [ExclusionNote::IgnoreFileNotRead { file, .. }] if file == ".gitignore")
    );
}
