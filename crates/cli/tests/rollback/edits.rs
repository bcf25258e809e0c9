//! What the person does after a session is theirs: kept as conflicts, stored when forced, brought back by undo.

use super::kit::{Kit, end};
use nono_testkit::oracle::same;

/// A session that changed some files, and then the person did.
fn edited() -> (Kit, nono_testkit::oracle::Oracle, nono_testkit::oracle::Oracle) {
    let kit = Kit::with_tree();
    let before = kit.look();
    kit.run("echo agent >> src/main.rs; echo agent >> docs/plain; rm closed; echo agent > agents").ok();
    kit.bare("echo mine >> src/main.rs; echo mine > my-own; echo mine > closed");
    let after = kit.look();
    (kit, before, after)
}

#[test]
fn edits_survive_a_restore() {
    let (kit, _, _) = edited();
    let said = kit.nono(&["rollback", "restore", "last", "--yes"]).code(1);
    for kept in ["src/main.rs", "closed", "my-own"] {
        assert!(said.err.contains(kept) || said.out.contains(kept), "{kept} is not listed: {said:?}");
    }
    assert_eq!(kit.read("src/main.rs"), "fn main() {}\nagent\nmine\n");
    assert_eq!((kit.read("closed"), kit.read("my-own")), ("mine\n".to_owned(), "mine\n".to_owned()));
    assert_eq!(kit.read("docs/plain"), "no newline");
    assert!(!kit.tree().join("agents").exists());
}

#[test]
fn forced_edits_come_back_by_undo() {
    let (kit, before, after) = edited();
    kit.nono(&["rollback", "restore", "last", "--yes", "--force"]).ok();
    same(&before, &kit.look());
    let said = kit.nono(&["rollback", "undo", "--yes"]).ok();
    same(&after, &kit.look());
    // And the undo of the undo.
    let id = said.err.split("nono rollback undo ").nth(1).and_then(|rest| rest.split_whitespace().next());
    kit.nono(&["rollback", "undo", id.expect("an id that undoes it"), "--yes"]).ok();
    same(&before, &kit.look());
}

#[test]
fn undo_and_redo_are_short() {
    let kit = Kit::with_tree();
    let before = kit.look();
    kit.run("rm -rf src; echo new > new").ok();
    let after = kit.look();
    kit.nono(&["undo", "--yes"]).ok();
    same(&before, &kit.look());
    kit.nono(&["redo", "--yes"]).ok();
    same(&after, &kit.look());
}

#[test]
fn a_dry_run_does_nothing() {
    let (kit, _, after) = edited();
    let said = kit.nono(&["rollback", "restore", "last", "--dry-run", "--force"]);
    assert!(said.out.contains("agents") || said.err.contains("agents"), "{said:?}");
    same(&after, &kit.look());
}

#[test]
fn without_a_terminal_to_ask_nothing_is_done() {
    let (kit, _, after) = edited();
    let said = kit.nono(&["rollback", "restore", "last"]).code(1);
    assert!(said.err.contains("--yes"), "{said:?}");
    same(&after, &kit.look());
}

#[test]
fn paths_directories_and_globs() {
    let kit = Kit::with_tree();
    kit.run("echo a >> src/main.rs; echo b >> docs/plain; echo c > docs/new.md; echo d > top.md; rm closed")
        .ok();
    kit.nono(&["rollback", "restore", "last", "closed", "--yes"]).ok();
    assert_eq!(kit.read("closed"), "secret\n");
    kit.nono(&["rollback", "restore", "last", "docs", "--yes"]).ok();
    assert_eq!(kit.read("docs/plain"), "no newline");
    assert!(!kit.tree().join("docs/new.md").exists() && kit.tree().join("top.md").exists());
    kit.nono(&["rollback", "restore", "last", "*.md", "--yes"]).ok();
    assert!(!kit.tree().join("top.md").exists());
    assert_eq!(kit.read("src/main.rs"), "fn main() {}\na\n");
    let said = kit.nono(&["rollback", "restore", "last", "no-such-file", "--yes"]);
    assert_ne!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_repository_is_kept_whole() {
    let kit = Kit::with_tree();
    let commit = "git -c user.name=n -c user.email=e@x commit -qam";
    kit.bare(&format!("git init -q .; git add -A; {commit} one"));
    kit.run(&format!("echo agent >> docs/plain; {commit} agent")).ok();
    kit.bare(&format!("echo mine > mine; git add mine; {commit} mine"));
    let head = |kit: &Kit| {
        let output = kit.world.command("git").args(["rev-parse", "HEAD"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let mine = head(&kit);
    let said = kit.nono(&["rollback", "restore", "last", "--yes"]).code(1);
    assert!(said.err.contains(".git") || said.out.contains(".git"), "{said:?}");
    assert_eq!(head(&kit), mine, "the repository is as the person left it");
    kit.bare("git fsck --strict");
    assert_eq!(kit.read("docs/plain"), "no newline", "what is not in it is restored");
}

/// A session that planted a hook in a repository.
fn planted() -> (Kit, nono_testkit::oracle::Oracle) {
    let kit = Kit::with_tree();
    kit.bare("git init -q .; git add -A; git -c user.name=n -c user.email=e@x commit -qm one");
    let before = kit.look();
    kit.run("echo evil > .git/hooks/pre-commit; touch notes.txt; rm src/main.rs").ok();
    (kit, before)
}

#[test]
fn a_look_at_a_repository_does_not_keep_what_was_planted_in_it() {
    let (kit, before) = planted();
    let index = || std::fs::read(kit.tree().join(".git/index")).unwrap();
    // The same files in other places on the disk: git writes down where it saw them.
    // It goes by inodes and whole seconds, so a copy that happens to get the number it knew looks unchanged.
    let look = || {
        let seen = index();
        let written = (0..50).any(|_| {
            kit.bare("cp -p run.sh again; mv again run.sh; git status");
            seen != index()
        });
        assert!(written, "git did not write its index");
    };
    look();
    kit.nono(&["undo", "--yes"]).ok();
    same(&before, &kit.look());
    kit.bare("git fsck --strict; test -z \"$(git status --porcelain)\"");
    look();
    kit.nono(&["redo", "--yes"]).ok();
    assert_eq!(kit.read(".git/hooks/pre-commit"), "evil\n");
    assert!(kit.tree().join("notes.txt").exists() && !kit.tree().join("src/main.rs").exists());
    look();
    kit.nono(&["undo", "--yes"]).ok();
    same(&before, &kit.look());
}

#[test]
fn what_is_kept_and_will_run_is_said() {
    let (kit, before) = planted();
    kit.bare("git add notes.txt");
    let warning = "warning: kept a file that will run later: .git/hooks/pre-commit (git hook: ";
    let plan = kit.nono(&["undo", "--dry-run"]).ok();
    assert!(plan.out.contains(warning) && plan.out.contains("--force"), "{plan:?}");
    for args in [&["undo", "--dry-run", "--json"][..], &["undo", "--yes", "--json"]] {
        let said = kit.nono(args).json();
        let still = said["still_executes"].as_array().unwrap();
        assert_eq!(still.len(), 1, "{said}");
        assert!(still[0]["path"].as_str().unwrap().ends_with(".git/hooks/pre-commit"), "{said}");
        assert_eq!(still[0]["executes_later"]["what"], "git hook", "{said}");
    }
    let said = kit.nono(&["undo", "--to", "last", "--yes"]).code(1);
    assert!(said.err.contains(&format!("[nono] {warning}")), "{said:?}");
    let hints: Vec<&str> = said.err.lines().filter(|line| line.starts_with("[nono] hint: ")).collect();
    assert!(
        matches!(hints.as_slice(), [hint] if hint.contains("--force") && hint.contains("--merge") && hint.contains("nono rollback undo")),
        "{said:?}"
    );
    let said = kit.nono(&["undo", "--yes", "--force"]).ok();
    assert!(!said.err.contains("will run") && !said.err.contains("hint: "), "{said:?}");
    same(&before, &kit.look());
}

#[test]
fn merging() {
    let kit = Kit::new();
    kit.bare("seq 1 40 > list; seq 1 40 > clash");
    kit.run("sed -i 's/^5$/five/' list; sed -i 's/^5$/five/' clash").ok();
    kit.bare("sed -i 's/^35$/thirty-five/' list; sed -i 's/^five$/FIVE/' clash");
    let said = kit.nono(&["rollback", "restore", "last", "--merge", "--yes"]).code(1);
    let list = kit.read("list");
    assert!(list.contains("\n5\n") && list.contains("thirty-five"), "{list}");
    assert!(kit.read("clash").contains("FIVE") && !kit.read("clash").contains("<<<<"), "{said:?}");
}

/// Each undo goes one session further back, here and nowhere else; redo comes forward again.
#[test]
fn undo_goes_further_back_each_time_and_redo_comes_back() {
    let kit = Kit::new();
    kit.bare("mkdir here there; echo 0 > here/file; echo 0 > there/file; echo 0 > here/other");
    let run = |dir: &str, script: &str| {
        kit.nono(&["run", "--rollback", "--allow", dir, "--", "bash", "-c", script]).ok();
    };
    run("here", "echo 1 > here/file");
    run("here", "echo 2 > here/file; echo 2 > here/other");
    run("here", "true");
    run("there", "echo 3 > there/file");
    let inside = |dir: &str, args: &[&str]| {
        let mut command = kit.command(args);
        end(command.current_dir(kit.tree().join(dir)).stderr(std::process::Stdio::piped()).spawn().unwrap())
    };
    let files = || ["here/file", "here/other", "there/file"].map(|name| kit.read(name).trim().to_owned());
    let said = inside("here", &["undo", "--yes"]).ok();
    assert!(
        said.err.contains("/here") && said.err.contains("~ file") && said.err.contains("session"),
        "{said:?}"
    );
    assert_eq!(files(), ["1", "0", "3"]);
    inside("here", &["undo", "--yes"]).ok();
    assert_eq!(files(), ["0", "0", "3"]);
    let said = inside("here", &["undo", "--yes"]).code(1);
    assert!(said.err.contains("nothing left to undo"), "{said:?}");
    inside("there", &["undo", "--yes"]).ok();
    assert_eq!(files(), ["0", "0", "0"]);
    // The last undo of all was elsewhere: only those here come back.
    inside("here", &["redo", "--yes"]).ok();
    assert_eq!(files(), ["1", "0", "0"]);
    inside("here", &["redo", "--yes"]).ok();
    assert_eq!(files(), ["2", "2", "0"]);
    inside("here", &["redo", "--yes"]).code(1);
    // By path: only that file, and only sessions that changed it.
    inside("here", &["undo", "other", "--yes"]).ok();
    assert_eq!(files(), ["2", "0", "0"]);
    let said = inside("here", &["undo", "other", "--yes"]).code(1);
    assert!(said.err.contains("nothing left to undo"), "{said:?}");
    inside("here", &["undo", "file", "--yes"]).ok();
    inside("here", &["undo", "file", "--yes"]).ok();
    assert_eq!(files(), ["0", "0", "0"]);
    // Changes reverted by hand do not stop an undo.
    run("here", "echo 4 > here/file");
    run("here", "echo 5 > here/other");
    kit.bare("echo 0 > here/other");
    inside("here", &["undo", "--yes"]).ok();
    assert_eq!(files(), ["0", "0", "0"]);
}
