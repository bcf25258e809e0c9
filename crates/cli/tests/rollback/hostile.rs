//! Whatever the command did to its tree, a restore brings back, to the byte, and nothing outside is touched.

use std::fs;

use super::kit::Kit;
use nono_testkit::oracle::{look, same};

/// Run it on a tree of many things; it changed something; then back.
#[track_caller]
fn undone(script: &str) -> Kit {
    let kit = Kit::with_tree();
    undo(&kit, script);
    kit
}

#[track_caller]
fn undo(kit: &Kit, script: &str) {
    kit.world.file("other/precious", "not yours", 0o644);
    let (before, outside) = (kit.look(), look(&kit.world.path("other")));
    let said = kit.run(script);
    assert_ne!(said.code, Some(125), "{said:?}");
    assert!(!said.err.contains('\x1b'), "escape codes in {said:?}");
    assert!(before != kit.look(), "the script changed nothing: {said:?}");
    kit.restored(&before);
    same(&outside, &look(&kit.world.path("other")));
}

#[test]
fn everything_removed() {
    undone("cd .. && rm -rf work; ls -A work | wc -l");
}

#[test]
fn the_tree_itself_removed() {
    // The folder around it is granted too, and tracked: so is its whole content.
    let kit = Kit::with_tree();
    let before = look(&kit.tree());
    let around = kit.world.path("").display().to_string();
    let keep = ["--rollback-exclude", "state", "--rollback-exclude", "tmp"];
    let mut args = vec!["run", "--rollback", "--allow-cwd", "--allow", &around];
    args.extend(keep);
    args.extend(["--", "rm", "-rf", "../work"]);
    kit.nono(&args);
    assert!(!kit.tree().exists() || fs::read_dir(kit.tree()).unwrap().count() == 0);
    let mut command = kit.world.command("nono");
    command.args(["rollback", "restore", "last", "--yes"]).current_dir("/");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    same(&before, &look(&kit.tree()));
}

#[test]
fn everything_closed() {
    undone("chmod -R 000 .");
}

#[test]
fn everything_opened() {
    undone("chmod -R 777 .");
}

#[test]
fn directories_swapped_for_links() {
    undone("mv src /tmp/x 2>/dev/null; rm -rf src docs; ln -s ../other src; ln -s / docs");
}

#[test]
fn files_replaced_by_directories_and_back() {
    undone(
        "rm closed link run.sh; mkdir closed link run.sh; touch closed/in; rm -rf src; echo file > src; rm -rf empty; mkfifo empty",
    );
}

#[test]
fn names_of_any_bytes() {
    undone(
        "touch \"$(printf 'a\\nb')\" \"$(printf '\\033]0;title\\007')\" \"$(printf '\\377\\376')\" '--force' ' ' \"$(printf '\\r')\"
         rm \"$(printf 'new\\nline')\"; mkdir \"$(printf 'dir\\033[2J')\"; touch \"$(printf 'dir\\033[2J')/x\"",
    );
}

#[test]
fn a_sparse_file_of_three_gigabytes() {
    let kit = Kit::with_tree();
    undo(&kit, "truncate -s 3G sparse; echo end >> sparse; truncate -s 3G binary");
}

#[test]
fn background_writers() {
    let kit = Kit::with_tree();
    undo(
        &kit,
        "for i in 1 2 3; do (setsid nohup bash -c 'while :; do echo $RANDOM >> src/main.rs; date > spam.$$; done' \
         > /dev/null 2>&1 &) ; done; until ls spam.* > /dev/null 2>&1; do :; done; echo done",
    );
    // No process writes any more.
    let after = kit.look();
    same(&after, &kit.look());
}

#[test]
fn ignore_rules_that_hide() {
    undone("echo '*' > .gitignore; rm -rf src docs; echo gone > binary; echo '*' > .hidden/.gitignore");
}

/// One name in an ignore file leaves no doubt that the rules are good; the command wrote it all the same.
#[test]
fn one_file_hidden_by_an_ignore_rule() {
    undone(
        "echo evil > conftest.py; echo conftest.py >> .gitignore; echo evil >> binary; echo binary >> .gitignore",
    );
    undone("echo evil > src/conftest.py; echo '*' > src/.gitignore; echo evil >> src/main.rs");
    let repository = |kit: &Kit| {
        kit.bare("git init -q .; git add src; git -c user.name=n -c user.email=e@x commit -qm one");
    };
    for script in [
        "echo evil > conftest.py; echo conftest.py >> .git/info/exclude",
        "echo evil >> src/main.rs; git rm -q --cached src/main.rs; echo main.rs >> .gitignore",
        "git config core.excludesFile $PWD/docs/plain; echo conftest.py > docs/plain; echo evil > conftest.py",
    ] {
        let kit = Kit::with_tree();
        repository(&kit);
        undo(&kit, script);
    }
    // It is shown, and marked.
    let kit = Kit::with_tree();
    kit.run("echo evil > conftest.py; echo conftest.py >> .gitignore").ok();
    let shown = kit.nono(&["rollback", "show", "last", "--json"]).ok().json();
    let changes = shown["changes"].as_array().unwrap();
    let evil = changes.iter().find(|change| change["path"].as_str().unwrap().ends_with("conftest.py"));
    assert!(!evil.expect("it is listed")["executes_later"].is_null(), "{shown}");
}

#[test]
fn a_repository_reset_and_deleted() {
    let kit = Kit::with_tree();
    kit.bare(
        "git init -q .; git config user.name n; git config user.email e@x; git add -A; git commit -qm one
         echo two >> src/main.rs; git commit -qam two; echo uncommitted >> docs/plain; git branch other; git stash list",
    );
    undo(
        &kit,
        "git reset -q --hard HEAD~1; git branch -D other; git gc -q --prune=now; git reflog expire --expire=now --all",
    );
    let kit = Kit::with_tree();
    kit.bare("git init -q .; git add -A; git -c user.name=n -c user.email=e@x commit -qm one");
    undo(&kit, "rm -rf .git; git init -q .; echo '#!/bin/sh' > .git/hooks/pre-commit");
    kit.bare("git fsck --strict && git status --porcelain | (! grep .)");
}

#[test]
fn attributes_and_times() {
    undone(
        "setfattr -n user.note -v x src/main.rs docs; touch -d 1999-01-01 src/main.rs docs; chmod 4711 run.sh; \
         rm hard; cp src/main.rs hard",
    );
}

#[test]
fn single_files() {
    let kit = Kit::with_tree();
    let before = kit.look();
    let flags = ["run", "--rollback", "--allow-file", "closed", "--write-file", "run.sh"];
    let command = ["--", "bash", "-c", "echo changed > closed; echo >> run.sh; cat src/main.rs"];
    kit.nono(&[flags.as_slice(), &command].concat());
    assert_eq!(kit.read("closed"), "changed\n");
    kit.nono(&["rollback", "restore", "last", "--yes"]).ok();
    // The folder they stand in is not tracked: a file that is put back changes its time.
    same(&before.without(&[""]), &kit.look().without(&[""]));
}

#[test]
fn the_command_cannot_reach_its_snapshots() {
    let kit = Kit::with_tree();
    let around = kit.world.path("").display().to_string();
    let state = kit.world.path("state").display().to_string();
    let script = format!(
        "ls {state}/* ; find {state} -type f; rm -rf {state}/rollbacks {state}/store; echo x > {state}/y"
    );
    let excluded = ["--rollback-exclude", "bin"];
    let args =
        ["run", "--rollback", "--allow", &around, excluded[0], excluded[1], "--", "bash", "-c", &script];
    let said = kit.nono(&args);
    assert!(!said.out.contains("record.json"), "{said:?}");
    kit.nono(&["rollback", "verify", "last"]).ok();
    assert!(!kit.world.path("state/y").exists());
}
