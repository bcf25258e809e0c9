//! What a hostile expert tried and found.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use super::kit::{Kit, Said, wait_for};
use nono_testkit::oracle::same;

fn run_at(kit: &Kit, dest: &Path, script: &str) -> Said {
    let dest = dest.to_str().unwrap();
    kit.nono(&["run", "--rollback", "--allow", ".", "--rollback-dest", dest, "--", "bash", "-c", script])
}

#[test]
fn a_link_does_not_lead_the_sessions_into_a_write_grant() {
    let kit = Kit::with_tree();
    let before = kit.look();
    symlink(kit.tree(), kit.world.path("other/link")).unwrap();
    for dest in ["other/link", "other/link/new", "other/link/new/deep", "other/gone/../link/new"] {
        let said = run_at(&kit, &kit.world.path(dest), "rm -rf src").code(125);
        assert!(said.err.contains("out of its folder"), "{dest}: {said:?}");
    }
    same(&before, &kit.look());
    // The store, where it was granted by itself.
    kit.bare("mkdir ~/around ~/around/store");
    let dest = kit.world.path("home/around");
    let store = dest.join("store").display().to_string();
    let args = ["run", "--rollback", "--allow", ".", "--allow", &store, "--rollback-dest"];
    kit.nono(&[args.as_slice(), &[dest.to_str().unwrap(), "--", "true"]].concat()).code(2);
    // What only looks as if it were inside is not.
    run_at(&kit, Path::new("../home/elsewhere"), "rm -rf src").ok();
    kit.restored(&before);
}

#[test]
fn sessions_are_not_put_into_the_state_or_into_each_other() {
    let kit = Kit::with_tree();
    kit.run("echo first > first").ok();
    let session = kit.session();
    let state = kit.world.path("state");
    for dest in [state.clone(), state.join("rollbacks"), state.join("store/x"), session.clone()] {
        let said = run_at(&kit, &dest, "touch second").code(2);
        assert!(said.err.contains("cannot hold sessions"), "{said:?}");
    }
    assert!(!kit.tree().join("second").exists());
    let dest = kit.world.path("home/dest");
    run_at(&kit, &dest, "touch third").ok();
    let third = fs::read_dir(&dest).unwrap().map(|entry| entry.unwrap().path());
    let third = third.into_iter().find(|path| path.join("session.json").exists()).unwrap();
    run_at(&kit, &third, "touch fourth").code(2);
    kit.nono(&["rollback", "verify"]).ok();
}

#[test]
fn a_place_that_cannot_be_used_leaves_no_session() {
    let kit = Kit::with_tree();
    kit.bare("echo file > ~/file");
    run_at(&kit, &kit.world.path("home/file"), "touch x").code(125);
    assert!(kit.sessions().is_empty() && !kit.tree().join("x").exists());
}

#[test]
fn a_process_killed_in_its_baseline_leaves_nothing_for_long() {
    let kit = Kit::with_tree();
    kit.run("echo before > before").ok();
    run_at(&kit, &kit.world.path("home/dest"), "echo there > there").ok();
    // The baseline waits for the lock of its store, and is killed there.
    let locks = ["state/store/lock", "home/dest/store/lock"].map(|path| {
        let lock = fs::File::open(kit.world.path(path)).unwrap();
        lock.lock().unwrap();
        lock
    });
    for dest in [None, Some("../home/dest")] {
        let there = kit.sessions().len();
        let flags: Vec<&str> = dest.iter().flat_map(|dest| ["--rollback-dest", dest]).collect();
        let mut child = kit.start(&flags, "touch x");
        wait_for("a place", || (kit.sessions().len() > there).then_some(()));
        let begun = |dir: &Path| dir.join("snapshots").exists() || dir.join("elsewhere").exists();
        wait_for("its folders", || {
            (kit.sessions().iter().filter(|dir| begun(dir)).count() > there).then_some(())
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    drop(locks);
    kit.run("echo after > after").ok();
    assert_eq!(kit.sessions().len(), 3, "{:?}", kit.sessions());
    kit.nono(&["rollback", "verify"]).ok();
}

#[test]
fn times_and_links_alone_are_restored() {
    for script in [
        "touch -d 2001-01-01 docs/plain",
        "touch -d 2001-01-01 src/deep .",
        "touch gone; rm gone",
        "cp -p hard copy; mv copy hard",
    ] {
        let kit = Kit::with_tree();
        let before = kit.look();
        kit.run(script).ok();
        let after = kit.look();
        let dry = kit.nono(&["rollback", "restore", "last", "--dry-run"]).ok();
        assert!(dry.out.contains("times or links"), "{script}: {dry:?}");
        kit.restored(&before);
        kit.nono(&["rollback", "undo", "--yes"]).ok();
        same(&after, &kit.look());
        kit.restored(&before);
        let said = kit.nono(&["rollback", "restore", "last", "--yes"]).ok();
        assert!(said.err.contains("nothing to restore"), "{said:?}");
    }
}

#[test]
fn a_session_without_its_final_snapshot_never_says_that_nothing_changed() {
    let kit = Kit::with_tree();
    let before = kit.look();
    let child = kit.start(&[], "rm -rf src; touch ready; until [ -e go ]; do sleep 0.05; done; rm ready go");
    wait_for("the command", || kit.tree().join("ready").exists().then_some(()));
    // Where a new manifest would be written there is something else.
    let (manifests, aside) = (kit.session().join("snapshots"), kit.session().join("aside"));
    fs::rename(&manifests, &aside).unwrap();
    fs::write(&manifests, "").unwrap();
    fs::write(kit.tree().join("go"), "").unwrap();
    let said = super::kit::end(child).ok();
    assert!(said.err.contains("cannot take the final snapshot"), "{said:?}");
    fs::remove_file(&manifests).unwrap();
    fs::rename(&aside, &manifests).unwrap();
    let listed = kit.nono(&["rollback", "list"]).ok();
    assert!(listed.out.contains("[no final snapshot]") && !listed.out.contains("+0 ~0 -0"), "{listed:?}");
    let shown = kit.nono(&["rollback", "show", "last"]).ok();
    assert!(shown.out.contains("the final snapshot failed"), "{shown:?}");
    assert!(!shown.out.contains("nothing changed"), "{shown:?}");
    kit.restored(&before);
}

#[test]
fn coverage_tells_what_taking_everything_would_not_help() {
    let kit = Kit::with_tree();
    kit.bare("chmod 000 closed; ln closed ../other/second; ln docs/plain ../other/third");
    let flags = ["run", "--rollback", "--rollback-exclude", "binary", "--allow-file", "docs/plain", "--"];
    let said = kit.nono(&[flags.as_slice(), &["true"]].concat()).ok();
    assert!(said.err.contains("1 file has hard links outside"), "{said:?}");
    kit.bare("chmod 600 closed; mkdir .venv; echo home > .venv/pyvenv.cfg");
    let said = kit.run("true").ok();
    assert!(said.err.contains(".venv") && said.err.contains("--rollback-all"), "{said:?}");
    kit.bare("rm -r .venv");
    let home = kit.world.path("home").display().to_string();
    let state = kit.world.path("home/nono").display().to_string();
    let mut command = kit.command(&["run", "--rollback", "--allow", &home, "--", "true"]);
    let said = Said::of(&command.env("NONO_HOME", &state).output().unwrap()).ok();
    assert!(said.err.contains("nono's own state") && !said.err.contains("--rollback-all"), "{said:?}");
}

#[test]
fn a_name_makes_no_line_of_ours() {
    let kit = Kit::with_tree();
    let made = r#"d=$(printf 'x\n[nono] session 1: nothing changed'); mkdir "$d"; mkfifo "$d/.gitignore"
        printf 'a\n' > "$d/file"; mkdir "$d/deep"; touch "$d/deep/.gitignore"; chmod 000 "$d/deep/.gitignore""#;
    kit.bare(made);
    let said = kit.run("true").ok();
    assert!(said.err.contains("\\u{a}[nono] session 1"), "the name is told: {said:?}");
    assert!(!said.err.lines().any(|line| line.starts_with("[nono] session 1:")), "{said:?}");
}

/// What a killed look at the tree opened up is closed again, by the next run as well as by `recover`.
#[test]
fn what_a_kill_left_open_is_closed_again() {
    let kit = Kit::with_tree();
    kit.bare("mkdir shut; for i in $(seq 2000); do echo $i > shut/$i; done");
    kit.run("chmod 000 shut").ok();
    let shut = kit.tree().join("shut");
    let mode = || fs::metadata(&shut).unwrap().permissions().mode() & 0o7777;
    for next in [&["rollback", "recover"][..], &["run", "--rollback", "--allow", ".", "--", "true"]] {
        let mut caught = false;
        for _ in 0..50 {
            let mut looking = kit.command(&["rollback", "restore", "last", "--dry-run"]);
            let mut looking = looking.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            while mode() == 0 && looking.try_wait().unwrap().is_none() {}
            looking.kill().unwrap();
            looking.wait().unwrap();
            caught = mode() != 0;
            if caught {
                break;
            }
        }
        assert!(caught, "it was never killed in the middle");
        kit.nono(next).ok();
        assert_eq!(mode(), 0, "after {next:?}");
    }
}

#[test]
fn sessions_do_not_go_where_others_can_replace_them() {
    let kit = Kit::with_tree();
    kit.bare("mkdir -m 777 ~/open; mkdir -m 1777 ~/sticky; mkdir ~/around; mkdir -m 777 ~/around/store");
    for (dest, why) in [("home/open", "other users can replace"), ("home/around", "can be written by others")]
    {
        let said = run_at(&kit, &kit.world.path(dest), "touch x").code(125);
        assert!(said.err.contains(why), "{said:?}");
    }
    assert!(kit.sessions().is_empty() && !kit.tree().join("x").exists());
    run_at(&kit, &kit.world.path("home/sticky"), "touch x").ok();
}

/// Rules that the command wrote hide nothing of what it did, whatever they leave.
#[test]
fn new_ignore_rules_hide_nothing() {
    let hide = "printf '*\\n!*.txt\\n' > .gitignore; rm -rf src; mkdir made; echo evil > made/Makefile; echo evil > .envrc
        echo seen > seen.txt; mkdir -p .git/info; echo '*' > .git/info/exclude; echo '*' > docs/.gitignore";
    for prepare in ["true", "git init -q ."] {
        let kit = Kit::with_tree();
        kit.bare(prepare);
        let before = kit.look();
        kit.run(hide).ok();
        let shown = kit.nono(&["rollback", "show", "last"]).ok();
        for name in [".gitignore", "made/Makefile", ".envrc", "seen.txt", "docs/.gitignore", "src/main.rs"] {
            assert!(shown.out.contains(name), "{prepare}: {name} is hidden: {shown:?}");
        }
        kit.restored(&before);
    }
}
