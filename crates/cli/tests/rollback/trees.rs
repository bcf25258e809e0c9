//! Trees as people have them.

use std::fs;

use super::kit::Kit;
use super::world::is_root;
use nono_testkit::oracle::same;
use nono_testkit::skip;

#[test]
fn a_rust_workspace_with_its_target() {
    let kit = Kit::new();
    kit.bare(
        "mkdir -p src target/debug/deps; echo '[package]' > Cargo.toml; echo 'fn main() {}' > src/main.rs
         echo 'Signature: 8a477f597d28d172789f06886806bc55' > target/CACHEDIR.TAG; head -c 5000 /dev/zero > target/debug/deps/x.o
         echo /target > .gitignore; git init -q .; git add -A; git -c user.name=n -c user.email=e@x commit -qm one",
    );
    let said = kit.run("echo broken > src/main.rs; rm -rf target/debug; echo built > target/new").ok();
    assert!(said.err.contains("not covered") && said.err.contains("target"), "{said:?}");
    assert!(said.err.contains("--rollback-all"), "{said:?}");
    kit.nono(&["rollback", "restore", "last", "--yes"]).ok();
    assert_eq!(kit.read("src/main.rs"), "fn main() {}\n");
    assert_eq!(kit.read("target/new"), "built\n", "what was not covered is not touched");
    let coverage = kit.nono(&["rollback", "show", "last", "--coverage"]).ok();
    assert!(coverage.out.contains("target"), "{coverage:?}");
}

#[test]
fn what_is_made_and_not_covered_is_said() {
    let kit = Kit::new();
    kit.bare("echo '{\"name\":\"x\"}' > package-lock.json; echo 1 > index.js");
    let said =
        kit.run("mkdir -p node_modules/evil; echo '{}' > node_modules/evil/package.json; rm index.js").ok();
    assert!(said.err.contains("created but not covered") && said.err.contains("node_modules"), "{said:?}");
    let shown = kit.nono(&["rollback", "show", "last", "--json"]).ok().json();
    assert_eq!(shown["made_uncovered"].as_array().unwrap().len(), 1, "{shown}");
    kit.nono(&["rollback", "restore", "last", "--yes"]).ok();
    assert_eq!(kit.read("index.js"), "1\n");
    assert!(kit.tree().join("node_modules/evil").exists(), "what is not stored is not removed");
}

#[test]
fn everything_with_rollback_all() {
    let kit = Kit::new();
    kit.bare(
        "mkdir -p node_modules/left-pad src; echo '{\"name\":\"x\"}' > package.json; echo '{}' > node_modules/left-pad/package.json
         echo node_modules > .gitignore; echo SECRET=1 > .env; echo .env >> .gitignore; git init -q .",
    );
    let before = kit.look();
    let all = ["run", "--rollback", "--rollback-all", "--allow", ".", "--", "bash", "-c"];
    let said =
        kit.nono(&[all.as_slice(), &["rm -rf node_modules .env src; echo '*' > .gitignore"]].concat()).ok();
    assert!(!said.err.contains("not covered"), "{said:?}");
    kit.restored(&before);
}

#[test]
fn included_and_excluded_by_hand() {
    let kit = Kit::new();
    kit.bare("echo .env > .gitignore; echo keep > .env; mkdir big; echo x > big/x; echo y > y.tmp; echo z > z; git init -q .");
    let flags = ["--rollback-include", ".env", "--rollback-exclude", "big", "--rollback-exclude", "*.tmp"];
    let command = ["--", "bash", "-c", "for f in .env big/x y.tmp z; do echo changed > $f; done"];
    kit.nono(&[["run", "--rollback", "--allow", "."].as_slice(), &flags, &command].concat()).ok();
    let said = kit.nono(&["rollback", "restore", "last", "--yes"]).code(1);
    assert!(said.err.contains("changed, cannot be restored: y.tmp"), "{said:?}");
    assert_eq!((kit.read(".env"), kit.read("z")), ("keep\n".to_owned(), "z\n".to_owned()));
    assert_eq!((kit.read("big/x"), kit.read("y.tmp")), ("changed\n".to_owned(), "changed\n".to_owned()));
}

#[test]
fn rules_that_hide_everything_are_set_aside() {
    let kit = Kit::new();
    kit.bare(
        "mkdir src; for i in $(seq 1 60); do echo $i > src/$i.c; done; echo '/*' > .gitignore; git init -q .",
    );
    kit.world.file("state/config.toml", "[rollback]\nignored = \"leave-out\"\n", 0o600);
    let before = kit.look();
    let said = kit.run("rm -rf src").ok();
    assert!(said.err.contains("set aside"), "{said:?}");
    kit.restored(&before);
}

#[test]
fn submodules_and_worktrees() {
    let kit = Kit::new();
    kit.bare(
        "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e@x GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e@x
         git init -q lib; (cd lib; echo lib > lib.c; git add -A; git commit -qm lib)
         git init -q app; cd app; echo app > app.c; git add -A; git commit -qm app
         git -c protocol.file.allow=always submodule --quiet add ../lib vendor/lib; git commit -qm sub
         git worktree add -q ../tree -b tree",
    );
    let before = kit.look();
    kit.run(
        "cd app; rm -rf vendor .git/modules; echo x > app.c; cd ../tree; git reset -q --hard; rm -f .git app.c; rm -rf ../lib/.git/objects",
    );
    kit.restored(&before);
    kit.bare(
        "cd app; git fsck --strict; git submodule status; git -C ../tree status --porcelain | (! grep .)",
    );
}

#[test]
fn a_python_environment() {
    let kit = Kit::new();
    let made = kit.world.command("python3").args(["-m", "venv", "--without-pip", "venv"]).status();
    if !made.is_ok_and(|status| status.success()) {
        return skip("python3 -m venv is missing");
    }
    kit.bare("echo 'print(1)' > app.py; mkdir -p __pycache__; echo x > __pycache__/app.pyc");
    let before = kit.look();
    let all = ["run", "--rollback", "--rollback-all", "--allow", ".", "--", "bash", "-c"];
    kit.nono(&[all.as_slice(), &["rm -rf venv __pycache__; echo 'print(2)' > app.py"]].concat()).ok();
    kit.nono(&["rollback", "restore", "last", "--yes"]).ok();
    same(&before, &kit.look());
}

/// A group that the user is not in cannot be given back. That is said once, and stands in the way of nothing: neither of
/// taking the undo back, nor of going further back.
#[test]
fn a_group_that_cannot_be_given_back() {
    if !is_root() {
        return skip("files of another group need root");
    }
    let kit = Kit::new();
    kit.bare("git init -q .; echo one > file; echo env > .env; git add -A; git -c user.name=n -c user.email=e@x commit -qm one");
    let chgrp = std::process::Command::new("chgrp").args(["-R", "0"]).arg(kit.tree()).status().unwrap();
    assert!(chgrp.success());
    kit.run("echo older > older").ok();
    kit.run("rm -rf .git .env; echo two > file").ok();
    let said = kit.nono(&["undo", "--yes"]).code(1);
    assert!(said.err.contains(".env: cannot change its owner"), "{said:?}");
    kit.bare("git fsck --strict; test \"$(cat file .env)\" = \"$(printf 'one\\nenv')\"");
    assert!(said.err.contains("+ .git: "), "a repository that comes is one line: {said:?}");
    let said = kit.nono(&["redo", "--yes"]).code(1);
    assert!(!said.err.contains("changed later"), "{said:?}");
    assert!(!kit.tree().join(".env").exists() && !kit.tree().join(".git").exists(), "{said:?}");
    kit.nono(&["undo", "--yes"]).code(1);
    assert_eq!(kit.read("file"), "one\n");
    let said = kit.nono(&["undo", "--yes"]).ok();
    assert!(!kit.tree().join("older").exists(), "{said:?}");
    assert!(fs::read_to_string(kit.tree().join(".env")).is_ok());
}
