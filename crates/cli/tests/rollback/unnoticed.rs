//! Cases in which something was lost, or left over, and nothing said so.

use std::fs::OpenOptions;

use super::kit::{Kit, wait_for};

const GIT: &str = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
GIT_COMMITTER_EMAIL=a@b;";

#[test]
fn output_that_is_emptied_is_named() {
    let kit = Kit::new();
    for emptied in ["rm -rf node_modules/*", "rm -rf node_modules; mkdir node_modules"] {
        kit.bare(
            "mkdir -p node_modules/a; echo m > node_modules/a/m; echo '{}' > package-lock.json; echo s > s",
        );
        let said = kit.run(&format!("{emptied}; echo x >> s")).ok();
        let named = "changed, cannot be restored: ";
        assert!(said.err.contains(named) && said.err.contains("node_modules/ ("), "{emptied}: {said:?}");
        let said = kit.nono(&["undo", "--yes"]).code(1);
        assert!(said.err.contains("changed, cannot be restored: node_modules/ ("), "{emptied}: {said:?}");
        assert_eq!(kit.read("s"), "s\n");
        kit.bare("rm -rf node_modules");
    }
}

#[test]
fn an_empty_file_is_no_evidence() {
    let kit = Kit::new();
    kit.bare(
        "mkdir target node_modules; : > target/CACHEDIR.TAG; : > package-lock.json; echo thesis > target/thesis.tex
         echo mine > node_modules/mine",
    );
    let said = kit.run("rm -r target node_modules").ok();
    assert!(!said.err.contains("not covered"), "{said:?}");
    kit.nono(&["undo", "--yes"]).ok();
    assert_eq!(
        (kit.read("target/thesis.tex"), kit.read("node_modules/mine")),
        ("thesis\n".into(), "mine\n".into())
    );
}

#[test]
fn a_directory_that_could_not_be_read_is_named_when_it_changed() {
    let kit = Kit::new();
    kit.bare("mkdir -p data/sub; echo 1 > data/sub/x; echo q > top; chmod 100 data/sub");
    let said = kit.run("chmod 700 data/sub; rm data/sub/x; echo r > top").ok();
    assert!(
        said.err.contains("changed, cannot be restored: ") && said.err.contains("data/sub/ ("),
        "{said:?}"
    );
    kit.nono(&["undo", "--yes"]).code(1);
    assert_eq!(kit.read("top"), "q\n");
    kit.bare("chmod -R 700 .");
}

/// Closed to its owner, it is opened up for the last snapshot, and that is no change of the repository.
#[test]
fn a_repository_with_a_closed_directory_comes_back() {
    let kit = Kit::new();
    kit.bare(&format!("{GIT} git init -q .; echo 1 > a; git add a; git commit -qm one; git branch br"));
    for closed in ["chmod 000 .git/refs", "chmod 000 .git/HEAD", "mkdir .git/x; chmod 000 .git/x"] {
        let said = kit.run(&format!("rm -rf .git/objects; {closed}")).ok();
        assert!(!said.err.contains("nothing changed"), "{closed}: {said:?}");
        kit.nono(&["undo", "--yes"]).ok();
        kit.bare(&format!("{GIT} git fsck --strict && git rev-parse br && test ! -e .git/x"));
    }
}

#[test]
fn objects_that_are_gone_are_not_called_packed() {
    let kit = Kit::new();
    kit.bare(&format!("{GIT} git init -q .; echo 1 > a; git add a; git commit -qm one"));
    let said = kit.run("rm -rf .git/objects").ok();
    assert!(said.err.contains("+0 ~1 -0"), "{said:?}");
    let said = kit.nono(&["rollback", "show"]).ok();
    assert!(said.out.contains("object files removed, none added"), "{said:?}");
    kit.nono(&["undo", "--yes"]).ok();
    kit.bare(&format!("{GIT} git fsck --strict"));
}

#[test]
fn what_a_run_that_was_killed_changed_is_not_called_nothing() {
    let kit = Kit::new();
    kit.bare("echo 0 > f");
    let mut child = kit.start(&[], "rm f; touch started; sleep 60");
    wait_for("the command", || kit.tree().join("started").exists().then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the end of the sandbox", || {
        kit.nono(&["status"]).ok().out.contains("Running:\n  nothing").then_some(())
    });
    let said = kit.nono(&["diff", "--exit-code"]).code(1);
    assert!(said.out.contains("--- a/f") && !said.err.contains("nothing changed"), "{said:?}");
    kit.nono(&["undo", "--yes"]).ok();
    assert_eq!(kit.read("f"), "0\n");
}

#[test]
fn a_run_that_changes_nothing_displaces_no_session() {
    let kit = Kit::new();
    kit.world.file("state/config.toml", "[rollback]\nmax_sessions = 1\n", 0o600);
    kit.bare("echo 0 > f");
    kit.run("echo 1 > f").ok();
    let said = kit.run("true").ok();
    assert!(!said.err.contains("removed"), "{said:?}");
    kit.nono(&["undo", "--yes"]).ok();
    assert_eq!(kit.read("f"), "0\n");
}

#[test]
fn what_was_in_use_is_undone_the_next_time() {
    let kit = Kit::new();
    kit.bare("echo 0 > log; echo 0 > f");
    kit.run("echo older > older").ok();
    kit.run("echo 1 > log; echo 1 > f").ok();
    let open = OpenOptions::new().append(true).open(kit.tree().join("log")).unwrap();
    let said = kit.nono(&["undo", "--yes"]).code(1);
    assert!(said.err.contains("has it open for writing"), "{said:?}");
    drop(open);
    kit.nono(&["undo", "--yes"]).ok();
    assert_eq!((kit.read("log"), kit.tree().join("older").exists()), ("0\n".into(), true));
    kit.nono(&["undo", "--yes"]).ok();
    assert!(!kit.tree().join("older").exists());
}

#[test]
fn a_conflict_that_was_kept_does_not_stand_in_the_way_of_older_sessions() {
    let kit = Kit::new();
    kit.bare("echo 0 > f; echo 0 > g");
    kit.run("echo older > older").ok();
    kit.run("echo 1 > f; echo 1 > g").ok();
    kit.bare("echo mine > g");
    kit.nono(&["undo", "--yes"]).code(1);
    assert_eq!((kit.read("f"), kit.read("g")), ("0\n".into(), "mine\n".into()));
    kit.nono(&["undo", "--yes"]).code(1);
    assert!(!kit.tree().join("older").exists());
    assert_eq!(kit.read("g"), "mine\n");
}

#[test]
fn a_checkpoint_by_hand_is_named_where_nothing_else_is_left() {
    let kit = Kit::new();
    kit.bare("touch Makefile; echo precious > f; mkdir other; touch other/Makefile");
    kit.nono(&["checkpoints", "create", "-m", "safe"]).ok();
    kit.bare("rm f");
    let said = kit.nono(&["undo", "--yes"]).code(1);
    let id = said.err.split("nono undo --to ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    kit.nono(&["undo", "--yes", "--to", &id]).ok();
    assert_eq!(kit.read("f"), "precious\n");
}

#[test]
fn a_path_that_is_nowhere_is_a_mistake() {
    let kit = Kit::new();
    kit.bare(&format!("{GIT} git init -q .; echo 0 > f; git add f; git commit -qm one"));
    kit.run("echo 1 > f").ok();
    let said = kit.nono(&["undo", "--yes", "nosuchfile"]).code(125);
    assert!(said.err.contains("nosuchfile"), "{said:?}");
    let said = kit.nono(&["undo", "--yes", ".git/HEAD"]).code(1);
    assert!(said.err.contains("restore all of it"), "{said:?}");
    assert_eq!(kit.read("f"), "1\n");
}
