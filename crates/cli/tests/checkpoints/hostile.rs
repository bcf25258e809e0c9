//! Names and words that try to be more than they are.

use std::path::PathBuf;

use super::kit::Kit;
use nono_testkit::oracle::same;

/// Nothing that a terminal would obey, and no line that only looks like ours.
#[track_caller]
fn harmless(text: &str) {
    let bad = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!text.contains(bad), "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("[nono] fake") || line.starts_with("fake")), "{text}");
}

#[test]
fn names_are_shown_escaped_and_restored_as_they_are() {
    let kit = Kit::project();
    kit.bare(
        "echo x > \"$(printf 'a\\n[nono] fake')\"; echo x > \"$(printf 'b\\033[2Jb')\"; echo x > \"$(printf '\\377')\"
         mkdir \"$(printf 'dir\\033]0;x\\007')\"; echo x > \"$(printf 'dir\\033]0;x\\007/file')\"",
    );
    kit.checkpoints(&["create", "-m", "why\u{1b}[2J\nfake line\u{202e}"]).ok();
    let before = kit.look();
    kit.bare("for f in a* b* d*33* \"$(printf '\\377')\" dir*; do rm -rf \"$f\"; done; echo y > \"$(printf 'c\\nfake')\"");
    for args in [
        &["list"][..],
        &["status"],
        &["diff", "1", "--stat"],
        &["diff", "1", "--side-by-side"],
        &["restore", "1", "--dry-run"],
    ] {
        let said = kit.checkpoints(args).ok();
        harmless(&said.out);
        harmless(&said.err);
    }
    let said = kit.restore(&["1"]).ok();
    harmless(&said.err);
    harmless(&said.out);
    same(&before, &kit.look());
}

#[test]
fn a_project_with_a_strange_name() {
    let kit = Kit::new();
    kit.bare("mkdir -p \"$(printf '../other/p\\033[31m\\nfake')\"; cd ../other/p*; echo all: > Makefile; echo 1 > file");
    let project: PathBuf = std::fs::read_dir(kit.world.path("other"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .next()
        .unwrap();
    let nono = |args: &[&str]| {
        let mut command = kit.command(&[&["checkpoints"], args].concat());
        super::said::Said::of(&command.current_dir(&project).output().unwrap())
    };
    nono(&["create"]).ok();
    kit.bare("cd ../other/p*; rm file");
    for args in [&["list"][..], &["status"], &["restore", "1", "--yes"], &["undo", "--yes"], &["verify"]] {
        let said = nono(args).ok();
        harmless(&said.out);
        harmless(&said.err);
    }
}
