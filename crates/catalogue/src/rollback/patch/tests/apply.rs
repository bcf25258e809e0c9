//! Single cases of patches.

use std::os::unix::fs::PermissionsExt;
use std::{fs, io};

use super::oracle::{GIT, GIT_BACK, PATCH, applied, git, leads, patch_of};
use crate::rollback::changes::testing::{Sample, TestNode, TestTree, file, link, path, program, tree};
use crate::rollback::patch::{binary, names};

fn all(old: &[(&str, TestNode)], new: &[(&str, TestNode)]) {
    leads(&tree(old), &tree(new), &[GIT, GIT_BACK, PATCH]);
}

fn git_only(old: &[(&str, TestNode)], new: &[(&str, TestNode)]) {
    leads(&tree(old), &tree(new), &[GIT, GIT_BACK]);
}

fn numbered(lines: usize) -> Vec<String> {
    (1..=lines).map(|number| format!("this is line {number}\n")).collect()
}

#[test]
fn edited_created_and_deleted() {
    let mut lines = numbered(40);
    let before = lines.concat();
    lines[3] = "changed\n".to_owned();
    lines.remove(20);
    lines.insert(30, "added\n".to_owned());
    all(
        &[("a", file(before)), ("gone/deep/b", file("1\n2\n")), ("keep", file("x\n"))],
        &[("a", file(lines.concat())), ("new/deep/c", file("3\n4\n")), ("keep", file("x\n"))],
    );
}

#[test]
fn ends_of_lines() {
    for (old, new) in [
        ("a\nb\n", "a\nb"),
        ("a\nb", "a\nb\n"),
        ("a\nb", "a\nc"),
        ("a", ""),
        ("", "a"),
        ("", "\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n"),
        ("a\r\nb\n", "a\nb\r\n"),
        ("a\rb\rc\n", "a\rB\rc\n"),
        ("\n\n\n", "\n\n"),
        ("a\u{c}b\n\u{b}\n", "a\u{c}c\n\u{b}\n"),
        ("caf\u{e9}\n", "cafe\n"),
    ] {
        all(&[("f", file(old)), ("other", file("x\n"))], &[("f", file(new)), ("other", file("x\n"))]);
    }
}

#[test]
fn lines_that_look_like_a_patch() {
    let old = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-- a\n++ b\n\\ No newline at end of file\ndiff --git a/x b/x\n# comment\n";
    let new = old.replace("-- a", "-- b").replace("# comment", "GIT binary patch");
    all(&[("f", file(old)), ("g", file("1\n"))], &[("f", file(new)), ("g", file("2\n"))]);
}

#[test]
fn bytes_that_are_no_text() {
    let old: Vec<u8> = (1..=255).chain([b'\n']).cycle().take(2000).collect();
    let mut new = old.clone();
    new[700] = b'x';
    all(&[("f", file(&old))], &[("f", file(&new))]);
}

#[test]
fn empty_files() {
    all(&[("went", file("")), ("keep", file("x"))], &[("came", program("")), ("keep", file("x"))]);
}

#[test]
fn permissions() {
    all(
        &[("a", file("1\n")), ("b", program("2\n")), ("c", file("3\n"))],
        &[("a", program("1\n")), ("b", file("2\n")), ("c", program("4\n"))],
    );
    all(&[("keep", file("x"))], &[("keep", file("x")), ("new", program("#!/bin/sh\n"))]);
}

#[test]
fn links() {
    all(
        &[("a", link("one")), ("gone", link("x")), ("keep", file("x"))],
        &[("a", link("two")), ("came", link("../y z\nw")), ("keep", file("x"))],
    );
    // A file that became a link, and back.
    git_only(&[("a", file("text\n")), ("b", link("t"))], &[("a", link("text\n")), ("b", file("t"))]);
}

#[test]
fn renames() {
    let mut lines = numbered(30);
    let before = lines.concat();
    lines[5] = "changed\n".to_owned();
    all(
        &[("a", file(&before)), ("x/b", file("same\n")), ("m", file("mode\n"))],
        &[("c", file(lines.concat())), ("y/b", file("same\n")), ("n", program("mode\n"))],
    );
    let patch = patch_of(&Sample::new(&tree(&[("a", file(&before))]), &tree(&[("b", file(lines.concat()))])));
    let text = String::from_utf8(patch).unwrap();
    assert!(text.contains("\nrename from a\nrename to b\n"), "{text}");
    assert!(text.contains("similarity index 96%"), "{text}");
}

#[test]
fn files_and_directories_that_change_places() {
    // `patch` removes files at its end only, and finds the directory still there.
    git_only(&[("a/b", file("1\n")), ("a/c", file("2\n"))], &[("a", file("3\n"))]);
    git_only(&[("a", file("3\n"))], &[("a/b", file("1\n")), ("a/c", file("2\n"))]);
    git_only(&[("a", file("same\n"))], &[("a/b", file("same\n"))]);
    git_only(&[("d/in", file("1\n")), ("e/in", file("2\n"))], &[("d", link("e")), ("e/in", file("2\n"))]);
}

#[test]
fn binary_files() {
    let noise = |size: usize, seed: u32| -> Vec<u8> {
        let mut state = seed;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        (0..size).map(next).chain([0]).collect()
    };
    for (old, new) in [(0, 1), (1, 52), (51, 53), (100, 65_534), (65_534, 65_535), (70_000, 200_000)] {
        let (old, new) = (noise(old, 1), noise(new, 2));
        git_only(&[("f", file(&old)), ("gone", file(&old))], &[("f", program(&new)), ("came", file(&new))]);
    }
    git_only(&[("f", file("text\n"))], &[("f", file([0, 1, 2]))]);
    git_only(&[("f", file([0, 1, 2]))], &[("f", file(""))]);
}

#[test]
fn any_name() {
    let odd: [&[u8]; 14] = [
        b"a b",
        b" lead",
        b"trail ",
        b"new\nline",
        b"tab\there",
        b"quote\"d",
        b"back\\slash",
        b"\xff\xfe",
        "\u{fc}nicode".as_bytes(),
        b"\x1b[31mred",
        b"-dash",
        b"a => b",
        b"{x}",
        b"\x7f\x01\x07\x08\x0b\x0c\r",
    ];
    let at = |content: &str| -> TestTree { odd.iter().map(|name| (name.to_vec(), file(content))).collect() };
    for tools in [GIT, GIT_BACK, PATCH] {
        leads(&at("1\n2\n"), &at("1\n3\n"), &[tools]);
    }
    // Renamed, created, deleted, binary, empty, mode only.
    for name in odd {
        let one = |prefix: &str, node: TestNode| -> TestTree {
            [([prefix.as_bytes(), b"/", name].concat(), node), (b"keep".to_vec(), file("x"))].into()
        };
        let long = numbered(9).concat();
        leads(&one("a", file(&long)), &one("b", file(long.clone() + "more\n")), &[GIT, GIT_BACK]);
        leads(&one("a", file("x\0")), &one("a", file("y\0")), &[GIT, GIT_BACK]);
        leads(&one("a", file("")), &one("b", file("")), &[GIT, GIT_BACK, PATCH]);
        leads(&one("a", file("x")), &one("b", program("x")), &[GIT, GIT_BACK, PATCH]);
        leads(&one("a", file("x")), &one("a", program("x")), &[GIT, GIT_BACK, PATCH]);
        leads(&one("a", link("x")), &one("a", file("y")), &[GIT, GIT_BACK]);
    }
}

/// git refuses a patch that names its own folder, so these changes are comments; everything else applies.
#[test]
fn changes_of_git_itself_do_not_spoil_the_patch() {
    let own = [".git/hooks/pre-commit", "sub/.GIT/config", "git~1/x", ".git. /y"];
    let mut new = tree(&[("a", file("2\n"))]);
    new.extend(own.iter().map(|name| (name.as_bytes().to_vec(), file("evil\n"))));
    new.insert(b".git/index".to_vec(), file("\0binary"));
    new.insert(b".gitmodules".to_vec(), link("x"));
    let old = tree(&[("a", file("1\n"))]);
    let patch = patch_of(&Sample::new(&old, &new));
    let expected = tree(&[("a", file("2\n"))]);
    assert_eq!(applied(GIT.0, GIT.1, &old, &patch), Ok(expected.clone()));
    assert_eq!(applied(PATCH.0, PATCH.1, &old, &patch), Ok(expected));
    let text = String::from_utf8(patch).unwrap();
    assert!(text.contains("# +++ b/.git/hooks/pre-commit\n# @@ -0,0 +1 @@\n# +evil\n"), "{text}");
    assert!(text.contains("# .git: index and objects\n"), "{text}");
}

#[test]
fn what_a_patch_cannot_say_is_a_comment() {
    let old = tree(&[("a", file("1\n")), ("b", file("1\n"))]);
    let sample = Sample::new(&old, &old);
    fs::set_permissions(sample.root.join("a"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(sample.root.join("empty\nfolder")).unwrap();
    fs::write(sample.root.join("b"), "2\n").unwrap();
    let mut sample = sample;
    sample.manager.create_incremental().unwrap();
    let set = crate::rollback::ChangeSet::between(&sample.manager, &0.into(), &2.into()).unwrap();
    let items: Vec<_> = set.items.iter().collect();
    let mut patch = Vec::new();
    super::super::git::write_patch(&sample.manager, &set, &items, &mut patch).unwrap();
    let text = String::from_utf8(patch.clone()).unwrap();
    assert!(text.starts_with("# a: permissions 0644, now 0600\ndiff --git a/b b/b\n"), "{text}");
    assert!(text.ends_with("# \"empty\\nfolder\": is an empty directory now\n"), "{text}");
    let expected = tree(&[("a", file("1\n")), ("b", file("2\n"))]);
    assert_eq!(applied(GIT.0, GIT.1, &old, &patch), Ok(expected.clone()));
    assert_eq!(applied(PATCH.0, PATCH.1, &old, &patch), Ok(expected));
}

/// The reader of the patch may close the pipe.
#[test]
fn a_closed_pipe_is_told() {
    struct Closed;
    impl io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let sample = Sample::new(&tree(&[("a", file("1\n"))]), &tree(&[("a", file("2\n"))]));
    let set = sample.changes();
    let items: Vec<_> = set.items.iter().collect();
    let error = super::super::git::write_patch(&sample.manager, &set, &items, &mut Closed).unwrap_err();
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    assert!(matches!(&error, crate::rollback::RollbackError::Io { source, .. } if broken(source)), "{error}");
}

#[test]
fn contents_have_the_names_that_git_gives_them() {
    let dir = tempfile::tempdir().unwrap();
    for size in [0, 1, 54, 55, 56, 63, 64, 65, 119, 120, 1000, 70_000] {
        let content: Vec<u8> = (0..size).map(|at: usize| at.to_le_bytes()[0]).collect();
        fs::write(dir.path().join("f"), &content).unwrap();
        let output = git(dir.path(), &["hash-object", "--no-filters", "f"]);
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), binary::git_name(&content), "{size}");
    }
}

/// Names are quoted as git quotes them.
#[test]
fn names_are_quoted_as_git_does() {
    let mut odd: Vec<Vec<u8>> =
        (1..=255u8).filter(|byte| *byte != b'/').map(|byte| vec![b'x', byte, b'y']).collect();
    odd.push(b"plain-name_1.txt".to_vec());
    let dir = tempfile::tempdir().unwrap();
    for name in &odd {
        fs::write(dir.path().join(path(name)), "").unwrap();
    }
    assert!(git(dir.path(), &["init", "-q"]).status.success());
    let listed = git(dir.path(), &["ls-files", "-o"]).stdout;
    for name in odd {
        let mut line = names::quoted("", &name);
        line.push(b'\n');
        assert!(listed.split_inclusive(|byte| *byte == b'\n').any(|known| known == line), "{name:?}");
    }
}
