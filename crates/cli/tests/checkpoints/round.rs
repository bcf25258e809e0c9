//! There and back: what was there at a checkpoint is there again, to the byte, and what was there before that too.

use super::kit::Kit;
use super::project::split;
use nono_testkit::oracle::same;

/// Everything that can be done to a tree.
const DAMAGE: &str =
    "rm -r src/deep docs/plain link; echo changed > src/main.rs; chmod 640 run.sh; mkdir -p new/dir
    echo new > new/dir/file; rmdir empty; rm closed; mkdir closed; ln -sf elsewhere dangling; : > .gitignore";

#[test]
fn a_project_comes_back_and_goes_again() {
    let kit = Kit::project();
    let before = kit.look();
    let id = kit.take();
    kit.bare(DAMAGE);
    let damaged = kit.look();
    let said = kit.restore(&[&id]).ok();
    same(&before, &kit.look());
    let note = said.json();
    assert_eq!(note["checkpoint"], id.as_str());
    assert_eq!(note["turns_undone"], serde_json::json!([]));
    assert_eq!((&note["kept"], &note["failed"]), (&serde_json::json!([]), &serde_json::json!([])));
    let files: Vec<&str> =
        note["changes"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    let at = |name: &str| kit.tree().join(name).to_str().unwrap().to_owned();
    for name in ["src/main.rs", "docs/plain", "link", "new/dir/file", "run.sh"] {
        assert!(files.contains(&at(name).as_str()), "{name}: {files:?}");
    }
    assert!(said.err.contains("undo this with: nono checkpoints undo"), "{}", said.err);
    kit.checkpoints(&["undo", "--yes"]).ok();
    same(&damaged, &kit.look());
    // And once more: an undo is no end.
    kit.restore(&["1"]).ok();
    same(&before, &kit.look());
    kit.checkpoints(&["verify"]).ok();
}

#[test]
fn each_checkpoint_is_a_state_of_its_own() {
    let kit = Kit::project();
    let mut states = vec![(kit.take(), kit.look())];
    for round in 0..4 {
        kit.bare(&format!(
            "echo {round} >> src/main.rs; echo {round} > file{round}; rm -f file{}",
            round - 1
        ));
        states.push((kit.take(), kit.look()));
    }
    kit.bare("rm -r src");
    for (id, state) in states.iter().chain(states.iter().rev()) {
        kit.restore(&[&id[..6]]).ok();
        same(state, &kit.look());
    }
    let listed: Vec<String> = kit.list().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    let taken: Vec<String> = states.into_iter().rev().map(|(id, _)| id).collect();
    assert_eq!(listed, taken, "restores take no checkpoints, and ids stay");
}

#[test]
fn nothing_new_is_no_new_checkpoint() {
    let kit = Kit::project();
    let id = kit.take();
    let again = kit.checkpoints(&["create", "--json"]).ok().json();
    assert_eq!(again["result"], "skipped");
    assert_eq!(again["why"]["unchanged"], id.as_str());
    assert_eq!(kit.list().len(), 1);
    let said = kit.restore(&["1"]).ok();
    assert!(said.err.contains("nothing to restore"), "{}", said.err);
    assert!(said.json()["undo"].is_null(), "{}", said.out);
}

#[test]
fn one_file_and_one_folder() {
    let kit = Kit::project();
    // A file with another name that is not chosen would be one no more.
    kit.bare("rm hard");
    kit.take();
    let before = kit.look();
    kit.bare(DAMAGE);
    let damaged = kit.look();
    kit.restore(&["1", "src/main.rs"]).ok();
    assert_eq!(kit.read("src/main.rs"), "fn main() {}\n");
    // Its folder has another time, and nothing else changed.
    let main = ["src/main.rs", "src"];
    same(&split(&damaged, &main).1, &split(&kit.look(), &main).1);
    kit.restore(&["1", "docs", "src"]).ok();
    let (chosen, now) = (["docs", "src"], kit.look());
    same(&split(&damaged, &chosen).1, &split(&now, &chosen).1);
    same(&split(&before, &chosen).0, &split(&now, &chosen).0);
    // From a folder below, relative to it.
    kit.bare("rm -r src/deep");
    let mut command = kit.command(&["checkpoints", "restore", "1", "deep/er/../er/file", "--yes"]);
    let output = command.current_dir(kit.tree().join("src")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(kit.read("src/deep/er/file"), "deep\n");
}

#[test]
fn paths_are_no_patterns_unless_that_is_said() {
    let kit = Kit::project();
    kit.bare("echo a > 'a[1].c'; echo b > a1.c; echo c > b.c");
    kit.take();
    kit.bare("rm 'a[1].c' a1.c b.c");
    kit.restore(&["1", "a[1].c"]).ok();
    assert!(kit.tree().join("a[1].c").exists() && !kit.tree().join("a1.c").exists());
    let said = kit.restore(&["1", "*.c"]).code(125);
    assert!(said.err.contains("*.c in the project or in the checkpoint"), "{}", said.err);
    kit.bare("rm 'a[1].c'");
    kit.restore(&["1", "--glob", "a[1].c"]).ok();
    assert!(kit.tree().join("a1.c").exists() && !kit.tree().join("a[1].c").exists());
    kit.restore(&["1", "--glob", "*.c"]).ok();
    assert!(kit.tree().join("a[1].c").exists() && kit.tree().join("b.c").exists());
}

#[test]
fn nothing_is_done_unasked() {
    let kit = Kit::project();
    kit.take();
    kit.bare(DAMAGE);
    let damaged = kit.look();
    kit.checkpoints(&["restore", "1"]).code(1);
    let plan = kit.checkpoints(&["restore", "1", "--dry-run", "--json"]).ok().json();
    assert_eq!(plan["dry_run"], true);
    assert!(plan["changes"].as_array().unwrap().len() > 5, "{plan}");
    kit.checkpoints(&["undo", "--yes"]).code(1);
    same(&damaged, &kit.look());
}

#[test]
fn two_projects_have_nothing_in_common() {
    let kit = Kit::project();
    let id = kit.take();
    kit.bare("mkdir ../other/b; cd ../other/b; echo all: > Makefile; echo b > file");
    let nono = |args: &[&str]| {
        let mut command = kit.command(&[&["checkpoints"], args].concat());
        super::said::Said::of(&command.current_dir(kit.world.path("other/b")).output().unwrap())
    };
    let other = nono(&["create", "--json"]).ok().json();
    let theirs = other["checkpoint"]["id"].as_str().unwrap();
    let (tree, theirs_tree) = (kit.look(), nono_testkit::oracle::look(&kit.world.path("other")));
    let said = nono(&["restore", &id, "--yes"]).code(1);
    assert!(said.err.contains(&format!("checkpoint {id} belongs to")), "{}", said.err);
    kit.restore(&[theirs]).code(1);
    nono(&["diff", &id]).code(1);
    nono(&["restore", "1", kit.tree().join("closed").to_str().unwrap(), "--yes"]).code(125);
    same(&tree, &kit.look());
    same(&theirs_tree, &nono_testkit::oracle::look(&kit.world.path("other")));
    // From anywhere, by a path of it.
    kit.bare("rm ../other/b/file");
    let file = kit.world.path("other/b");
    kit.checkpoints(&["restore", "1", "--yes", "--path", file.to_str().unwrap()]).ok();
    same(&theirs_tree, &nono_testkit::oracle::look(&kit.world.path("other")));
    let all = kit.checkpoints(&["list", "--all", "--json"]).ok().json();
    assert_eq!(all.as_array().unwrap().len(), 2, "{all}");
}

#[test]
fn a_project_that_was_deleted_comes_back() {
    let kit = Kit::project();
    kit.bare("mkdir -p ../other/p; cd ../other/p; echo all: > Makefile; mkdir d; echo x > d/x");
    let project = kit.world.path("other/p");
    let path = project.to_str().unwrap();
    kit.checkpoints(&["create", path]).ok();
    let before = nono_testkit::oracle::look(&project);
    kit.bare("rm -r ../other/p");
    kit.checkpoints(&["restore", "1", "--path", path, "--yes"]).ok();
    same(&before, &nono_testkit::oracle::look(&project));
}

#[test]
fn names_and_pins_stay() {
    let kit = Kit::project();
    let id = kit.take();
    kit.checkpoints(&["name", "1", "works"]).ok();
    kit.checkpoints(&["pin", &id]).ok();
    kit.bare("echo more >> src/main.rs");
    kit.take();
    let list = kit.list();
    assert_eq!((&list[1]["name"], &list[1]["pinned"]), (&"works".into(), &true.into()));
    kit.restore(&["works"]).ok();
    assert_eq!(kit.read("src/main.rs"), "fn main() {}\n");
    kit.checkpoints(&["unpin", "works"]).ok();
    kit.checkpoints(&["name", "works", ""]).ok();
    let list = kit.list();
    assert_eq!((&list[1]["name"], &list[1]["pinned"]), (&serde_json::Value::Null, &false.into()));
    kit.restore(&["works"]).code(125);
}
