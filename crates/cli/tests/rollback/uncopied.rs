//! What nothing else keeps a copy of: ignored files, git's own history. It comes back; and what does not is never called
//! fine.

use std::path::Path;

use super::kit::Kit;
use nono_testkit::oracle::same;

const GIT: &str = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
GIT_COMMITTER_EMAIL=a@b;";

fn ignored() -> Kit {
    let kit = Kit::new();
    kit.bare(
        "printf '.env\\ndata/\\n' > .gitignore; git init -q -b main .; echo KEY=1 > .env; mkdir -p data/deep
         echo rows > data/deep/table.csv; echo code > main.c",
    );
    kit
}

#[test]
fn ignored_files_come_back() {
    let kit = ignored();
    let before = kit.look();
    let said = kit.run("rm -rf .env data; echo other > main.c").ok();
    assert!(said.err.contains("-2"), "{said:?}");
    kit.nono(&["undo", "--yes"]).ok();
    same(&before, &kit.look());
}

/// The way of before, which is said each time.
#[test]
fn what_is_left_out_is_named_when_it_is_gone() {
    let kit = ignored();
    kit.world.file("state/config.toml", "[rollback]\nignored = \"leave-out\"\n", 0o600);
    kit.bare("echo kept > data/kept; echo same > .env.local; echo .env.local >> .gitignore");
    let run = ["run", "-s", "--rollback", "--allow", ".", "--", "bash", "-c", "rm -rf .env data"];
    let said = kit.nono(&run).ok();
    assert!(said.err.contains("files ignored by git are not covered"), "{said:?}");
    for gone in ["/.env (", "/data/ ("] {
        let line = said.err.lines().find(|line| line.contains(gone)).unwrap_or_else(|| panic!("{said:?}"));
        assert!(line.contains("gone, cannot be restored"), "{line}");
    }
    assert!(!said.err.contains(".env.local"), "{said:?}");
    let show = kit.nono(&["rollback", "show", "last"]).ok();
    assert!(show.out.contains("gone, cannot be restored") && show.out.contains("/.env"), "{show:?}");
    let undo = kit.nono(&["undo", "--yes"]).code(1);
    assert!(undo.err.contains("gone, cannot be restored: .env") && undo.err.contains("data/"), "{undo:?}");
    let json = kit.nono(&["undo", "--to", "last", "--yes", "--json"]).code(1).json();
    assert_eq!(json["lost"].as_array().map(Vec::len), Some(2), "{json}");
}

#[test]
fn changes_of_what_is_left_out_are_named() {
    let kit = Kit::new();
    kit.bare("echo 1 > big.log; echo 1 > other.log; echo x > file");
    let run = ["run", "--rollback", "--rollback-exclude", "*.log", "--allow", ".", "--", "bash", "-c"];
    let said = kit.nono(&[&run[..], &["echo 2 >> big.log; echo y > file"]].concat()).ok();
    assert!(said.err.contains("changed, cannot be restored"), "{said:?}");
    assert!(said.err.contains("big.log") && !said.err.contains("other.log (ex"), "{said:?}");
    let undo = kit.nono(&["undo", "--yes"]).code(1);
    assert!(undo.err.contains("changed, cannot be restored: big.log"), "{undo:?}");
    assert_eq!((kit.read("file"), kit.read("big.log")), ("x\n".to_owned(), "1\n2\n".to_owned()));
}

/// Output is recognised by evidence, never by its name: what only looks like it comes back.
#[test]
fn output_is_known_by_evidence() {
    let kit = Kit::new();
    kit.bare(
        "touch Cargo.toml package.json
         mkdir -p target/data node_modules/own __pycache__ venv .cache build
         for dir in target/data node_modules/own __pycache__ venv .cache build; do echo mine > $dir/file; done
         mkdir -p real/node_modules/x real/target real/tagged; echo x > real/node_modules/x/x
         echo '{}' | tee real/package-lock.json > real/target/.rustc_info.json
         echo 'Signature: 8a477f597d28d172789f06886806bc55' > real/tagged/CACHEDIR.TAG",
    );
    let before = kit.look();
    let said = kit.run("rm -rf target node_modules __pycache__ venv .cache build").ok();
    assert!(!said.err.contains("cannot be restored"), "{said:?}");
    kit.nono(&["undo", "--yes"]).ok();
    same(&before, &kit.look());
    let said = kit.run("rm -rf real/node_modules real/target real/tagged").ok();
    for name in ["node_modules", "target", "tagged"] {
        let named = |line: &str| line.contains("gone, cannot be restored") && line.contains(name);
        assert!(said.err.lines().any(named), "{name}: {said:?}");
    }
    kit.nono(&["undo", "--yes"]).code(1);
}

/// A tag that the command writes hides nothing.
#[test]
fn a_tag_that_came_later_hides_nothing() {
    let kit = Kit::new();
    kit.bare("mkdir src; echo code > src/main.c");
    let before = kit.look();
    kit.run("echo 'Signature: 8a477f597d28d172789f06886806bc55' > src/CACHEDIR.TAG; rm src/main.c").ok();
    kit.nono(&["undo", "--yes"]).ok();
    same(&before, &kit.look());
}

#[test]
fn a_large_ignored_folder_is_left_out_by_name() {
    let kit = ignored();
    kit.world.file("state/config.toml", "[rollback]\nmax_ignored_folder_gb = 0.001\n", 0o600);
    kit.bare("head -c 3000000 /dev/urandom > data/deep/large; echo x > data/deep/other");
    let said = kit.run("rm data/deep/other; rm .env").ok();
    assert!(said.err.contains("an ignored folder of more than"), "{said:?}");
    assert!(said.err.contains("changed, cannot be restored"), "{said:?}");
    kit.nono(&["undo", "--yes"]).code(1);
    assert_eq!(kit.read(".env"), "KEY=1\n");
    // With all of it asked for, it is taken.
    let run = ["run", "--rollback", "--rollback-all", "--allow", ".", "--", "rm", "-r", "data"];
    kit.nono(&run).ok();
    kit.nono(&["undo", "--yes"]).ok();
    assert!(kit.tree().join("data/deep/large").exists());
}

/// A repository with a pack that is larger than any limit on one file was.
fn repository() -> Kit {
    let kit = Kit::new();
    kit.bare(&format!(
        "{GIT} git init -q -b main .; head -c 70000000 /dev/urandom > big; echo one > file; git add -A
         git commit -qm first; git gc -q; rm big; git rm -q --cached big; git commit -qm second; echo stashed >> file
         git stash -q; echo index > file; git add file"
    ));
    kit
}

/// Everything of the history that people see.
fn history(kit: &Kit) -> String {
    let mut command = kit.world.command("bash");
    command.args([
        "-ec",
        "git fsck --full 2>&1; git log --all --oneline; git status --short; git stash list; git show-ref",
    ]);
    let said = super::said::Said::of(&command.output().unwrap()).ok();
    assert!(!said.out.contains("missing") && !said.out.contains("broken"), "{}", said.out);
    said.out
}

#[test]
fn a_repository_comes_back_whatever_was_done_to_it() {
    let kit = repository();
    let before = history(&kit);
    for attack in [
        "rm -rf .git",
        "git commit -qm third; git gc -q --prune=now",
        "git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now",
        "git checkout -q -b other; echo x > new; git add new; git commit -qm other; git branch -D main",
        "rm .git/objects/pack/*",
        "git stash drop -q; git gc -q --prune=now",
    ] {
        kit.run(&format!("{GIT} {attack}")).ok();
        let undo = kit.nono(&["undo", "--yes"]);
        assert_eq!(undo.code, Some(0), "{attack}: {undo:?}");
        assert_eq!(history(&kit), before, "{attack}");
    }
}

#[test]
fn a_part_of_a_repository_is_not_restored_by_itself() {
    let kit = Kit::new();
    kit.bare(&format!("{GIT} git init -q -b main .; echo one > file; git add -A; git commit -qm first"));
    kit.run(&format!("{GIT} echo two > file; git commit -qam second; git gc -q; echo x > .git/hooks/own"))
        .ok();
    let after = history(&kit);
    for part in [".git/objects", ".git/refs/heads/main", ".git/index", ".git/HEAD"] {
        let said = kit.nono(&["rollback", "restore", "last", part, "--yes"]);
        assert!(said.code != Some(0), "{part}: {said:?}");
        assert!(said.err.contains("as a whole") && said.err.contains(".git"), "{part}: {said:?}");
    }
    assert_eq!(history(&kit), after);
    // What is no history can be.
    kit.nono(&["rollback", "restore", "last", ".git/hooks", "--yes"]).ok();
    assert!(!kit.tree().join(".git/hooks/own").exists());
    kit.nono(&["rollback", "restore", "last", ".git", "--yes"]).ok();
    assert!(!history(&kit).contains("second"));
}

#[test]
fn a_change_of_history_is_one_line() {
    let kit = Kit::new();
    kit.bare(&format!("{GIT} git init -q -b main .; echo one > file; git add -A; git commit -qm first"));
    let script = "for n in 1 2 3; do echo $n > file; git commit -qam $n; done; git checkout -q -b side";
    kit.run(&format!("{GIT} {script}")).ok();
    let json = kit.nono(&["rollback", "show", "last", "--json"]).ok().json();
    let git: Vec<&serde_json::Value> = json["changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|change| change["path"].as_str().is_some_and(|path| path.contains("/.git")))
        .collect();
    assert_eq!(git.len(), 1, "{json}");
    let lines = git[0]["history"].to_string();
    assert!(lines.contains("HEAD main -> side") && lines.contains(", 3 commits"), "{lines}");
    let show = kit.nono(&["rollback", "show", "last"]).ok();
    assert!(show.out.contains("main ") && show.out.contains("3 commits"), "{show:?}");
    // Going back is not more commits.
    kit.run(&format!("{GIT} git checkout -q main; git reset -q --hard HEAD~2")).ok();
    let show = kit.nono(&["rollback", "show", "last"]).ok();
    assert!(
        show.out.contains("main ") && !show.out.contains("commit,") && !show.out.contains("commits"),
        "{show:?}"
    );
}

#[test]
fn a_grant_that_is_hidden_is_refused_by_name() {
    let kit = Kit::new();
    let dir = Path::new("/dev/shm").join(format!("nono-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for flags in [&["--rollback"][..], &[]] {
        let mut args = vec!["run"];
        args.extend(flags);
        let said = kit.nono(&[&args[..], &["--allow", dir.to_str().unwrap(), "--", "true"]].concat());
        assert!(said.code == Some(125) || said.code == Some(1), "{said:?}");
        assert!(said.err.contains(dir.to_str().unwrap()) && said.err.contains("/dev/shm"), "{said:?}");
    }
    std::fs::remove_dir(&dir).unwrap();
}

/// Stand-ins of an agent's absent settings are in no history, and the agent's own state is no part of an undo.
#[test]
fn agents_state_and_stand_ins_are_not_undone() {
    let kit = Kit::new();
    kit.bare("mkdir ~/.claude .claude; echo 1 > ~/.claude/history.jsonl; echo code > main.c");
    let before = kit.look();
    let run = ["run", "-p", "claude-code", "--rollback", "--", "bash", "-c"];
    let script = "echo 2 >> ~/.claude/history.jsonl; echo other > main.c";
    let said = kit.nono(&[&run[..], &[script]].concat()).ok();
    assert!(said.err.contains("~1") && said.err.contains("-0"), "{said:?}");
    assert!(
        said.err.contains("undo does not change the state of tools: ") && said.err.contains("/.claude"),
        "{said:?}"
    );
    let all = kit.nono(&[&run[..4], &["--rollback-all", "--", "bash", "-c", "true"]].concat()).ok();
    assert!(!all.err.contains("undo does not change the state"), "{all:?}");
    let json = kit.nono(&["rollback", "show", "--json"]).ok().json();
    assert_eq!(json["changes"].as_array().map(Vec::len), Some(1), "{json}");
    assert!(json["session"]["tracked_paths"].as_array().is_none_or(|roots| roots.len() == 1), "{json}");
    kit.nono(&["undo", "--yes"]).ok();
    same(&before, &kit.look());
    let log = std::fs::read_to_string(kit.world.path("home/.claude/history.jsonl")).unwrap();
    assert_eq!(log, "1\n2\n");
}
