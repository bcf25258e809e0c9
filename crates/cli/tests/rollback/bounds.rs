//! Where sessions live, how many, and how large.

use std::fs;

use super::kit::Kit;
use super::settled::settled;
use nono_testkit::oracle::same;

#[test]
fn only_so_many_sessions_stay() {
    let kit = Kit::with_tree();
    kit.world.file("state/config.toml", "[rollback]\nmax_sessions = 3\n", 0o600);
    for number in 0..6 {
        let said = kit.run(&format!("echo {number} > number")).ok();
        // Three and the pinned one; what goes beyond that is said.
        assert_eq!(said.err.contains("removed the oldest session"), number > 3, "{number}: {said:?}");
        if number == 0 {
            kit.nono(&["rollback", "pin", "last"]).ok();
        }
    }
    let listed = kit.nono(&["rollback", "list", "--json"]).ok().json();
    assert!(kit.sessions().len() <= 4, "{listed}");
    // The pinned one is still there, and whole.
    let pinned = kit.sessions()[0].file_name().unwrap().to_str().unwrap().to_owned();
    kit.nono(&["rollback", "verify", &pinned]).ok();
    kit.nono(&["rollback", "restore", &pinned, "--yes", "--force"]).ok();
    assert!(!kit.tree().join("number").exists());
}

#[test]
fn old_sessions_go_where_the_settings_say_so() {
    let kit = Kit::with_tree();
    kit.run("echo 1 > number").ok();
    let old = kit.sessions()[0].clone();
    let record = fs::read_to_string(old.join("session.json")).unwrap();
    let mut session: serde_json::Value = serde_json::from_str(&record).unwrap();
    let ended = session["ended"].as_str().unwrap().replacen("202", "200", 1);
    session["ended"] = ended.as_str().into();
    fs::write(old.join("session.json"), session.to_string()).unwrap();
    // Without a limit age is no reason.
    kit.run("echo 2 > number").ok();
    assert!(old.exists());
    kit.world.file("state/config.toml", "[rollback]\nmax_age_days = 30\n", 0o600);
    // A clock that is ahead: it was not old when sessions were last removed by age.
    let swept = |kit: &Kit, at: &str| kit.world.file("state/rollbacks/.last_prune", at, 0o600);
    swept(&kit, &format!("{ended}\n"));
    let said = kit.run("echo 2 > number").ok();
    assert!(old.exists() && !said.err.contains("removed the oldest session"), "{said:?}");
    // Nor does it count again on the same day.
    kit.run("echo 2 > number").ok();
    assert!(old.exists());
    swept(&kit, "2026-01-01T00:00:00Z\n");
    let said = kit.run("echo 3 > number").ok();
    assert!(
        said.err.contains("removed the oldest session") && said.err.contains("older than 30 days"),
        "{said:?}"
    );
    assert!(!old.exists());
    assert_eq!(kit.sessions().len(), 4);
}

#[test]
fn cleanup_frees_what_is_not_needed() {
    let kit = Kit::with_tree();
    kit.bare("head -c 20000000 /dev/urandom > large");
    kit.run("rm large").ok();
    // A session that is being settled is in use, and stays.
    settled(&kit.world.path("bin/nono"));
    let size = |kit: &Kit| {
        let output =
            kit.world.command("du").args(["-s", "-B1"]).arg(kit.world.path("state")).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let before = size(&kit);
    assert!(before > 15_000_000 || kit.world.path("state").exists(), "{before}");
    let said = kit.nono(&["rollback", "cleanup", "--all"]).code(1);
    assert!(said.err.contains("--yes"), "{said:?}");
    kit.nono(&["rollback", "cleanup", "--all", "--dry-run"]).ok();
    assert_eq!(kit.sessions().len(), 1);
    kit.nono(&["rollback", "cleanup", "--all", "--yes"]).ok();
    assert!(kit.sessions().is_empty());
    assert!(size(&kit) < 2_000_000, "{} of {before} bytes stay", size(&kit));
}

#[test]
fn another_place() {
    let kit = Kit::with_tree();
    let before = kit.look();
    let inside = ["run", "--rollback", "--allow", ".", "--rollback-dest", "snapshots", "--", "touch", "x"];
    let said = kit.nono(&inside).code(2);
    assert!(said.err.contains("writable inside the sandbox"), "{said:?}");
    let dest = kit.world.path("home/snapshots").display().to_string();
    let outside = ["run", "--rollback", "--allow", ".", "--rollback-dest", &dest, "--", "bash", "-c"];
    kit.nono(&[outside.as_slice(), &["rm -rf src; ls $0; true", &dest]].concat()).ok();
    assert!(fs::read_dir(&dest).unwrap().count() >= 2, "a session and its store");
    assert!(!kit.world.path("state/store").exists());
    kit.nono(&["rollback", "list"]).ok();
    kit.restored(&before);
}

#[test]
fn what_does_not_fit_is_named_and_never_touched() {
    let kit = Kit::with_tree();
    kit.world.file("state/config.toml", "[rollback]\nmax_storage_gb = 0.02\n", 0o600);
    kit.bare("head -c 60000000 /dev/urandom > huge");
    let run = ["run", "--rollback=best-effort", "--allow", ".", "--", "bash", "-c"];
    let said = kit.nono(&[run.as_slice(), &["echo small >> src/main.rs; echo more >> huge"]].concat()).ok();
    assert!(said.err.contains("not covered") && said.err.contains("huge"), "{said:?}");
    let huge = fs::metadata(kit.tree().join("huge")).unwrap().len();
    let restored = kit.nono(&["rollback", "restore", "last", "--yes"]);
    assert!(matches!(restored.code, Some(0 | 1)), "{restored:?}");
    assert_eq!(kit.read("src/main.rs"), "fn main() {}\n");
    assert_eq!(fs::metadata(kit.tree().join("huge")).unwrap().len(), huge, "it was never stored");
}

#[test]
fn a_profile_may_ask_for_it() {
    let kit = Kit::with_tree();
    let before = kit.look();
    let profile =
        r#"{"workdir": {"access": "readwrite"}, "rollback": {"enabled": true, "exclude_globs": ["*.tmp"]}}"#;
    kit.world.file("other/undo.json", profile, 0o644);
    let run = ["run", "-p", "../other/undo.json"];
    kit.nono(&[run.as_slice(), &["--no-rollback", "--", "true"]].concat()).ok();
    assert!(kit.sessions().is_empty());
    kit.nono(&[run.as_slice(), &["--", "bash", "-c", "rm -rf src; echo x > x.tmp"]].concat()).ok();
    kit.nono(&["rollback", "restore", "last", "--yes"]).ok();
    fs::remove_file(kit.tree().join("x.tmp")).expect("it is not covered, so it stayed");
    same(&before.without(&[""]), &kit.look().without(&[""]));
    let said = kit.nono(&["wrap", "-p", "../other/undo.json", "--", "touch", "y"]).code(2);
    assert!(said.err.contains("--no-rollback"), "{said:?}");
    assert!(!kit.tree().join("y").exists());
}

#[test]
fn nothing_writable_is_nothing_to_track() {
    let kit = Kit::with_tree();
    let said = kit.nono(&["run", "--rollback", "--read", ".", "--", "cat", "src/main.rs"]).ok();
    assert!(said.err.contains("nothing is granted for writing"), "{said:?}");
    assert!(kit.sessions().is_empty());
}

#[test]
fn always_is_a_setting() {
    for text in ["rollback = \"always\"\n", "[rollback]\nalways = true\n"] {
        let kit = Kit::with_tree();
        kit.world.file("state/config.toml", text, 0o600);
        let before = kit.look();
        for quiet in [
            &["run", "--read", ".", "--", "true"][..],
            &["run", "--no-rollback", "--allow", ".", "--", "true"],
            &["wrap", "--allow", ".", "--", "true"],
        ] {
            let said = kit.nono(quiet).ok();
            assert!(kit.sessions().is_empty() && !said.err.contains("snapshot"), "{said:?}");
        }
        kit.nono(&["run", "--allow", ".", "--", "rm", "-r", "src"]).ok();
        assert_eq!(kit.sessions().len(), 1);
        kit.nono(&["undo", "--yes"]).ok();
        same(&before, &kit.look());
    }
    let kit = Kit::with_tree();
    kit.world.file("state/config.toml", "rollback = true\n", 0o600);
    let said = kit.nono(&["run", "--allow", ".", "--", "true"]).code(125);
    assert!(said.err.contains("should be a table, or \"always\""), "{said:?}");
}

#[test]
fn a_bad_configuration_runs_nothing() {
    let kit = Kit::with_tree();
    kit.world.file("state/config.toml", "[rollback]\nmax_session = 3\n", 0o600);
    let said = kit.run("touch x").code(125);
    assert!(said.err.contains("max_session"), "{said:?}");
    assert!(!kit.tree().join("x").exists() && kit.sessions().is_empty());
}

#[test]
fn a_forged_session_is_found_out() {
    let kit = Kit::with_tree();
    kit.run("echo agent > agents").ok();
    kit.nono(&["rollback", "verify", "last"]).ok();
    let file = kit.session().join("session.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("agents", "nobody").replace("\"exit_code\": 0", "\"exit_code\": 1"))
        .unwrap();
    let said = kit.nono(&["rollback", "verify", "last"]).code(1);
    assert!(!said.out.is_empty() || !said.err.is_empty());
}

#[test]
fn a_folder_of_the_library_is_read_too() {
    let kit = Kit::with_tree();
    let before = kit.look();
    let folder = kit.world.path("home/library-session");
    let tree = kit.tree();
    {
        use nono::snapshot::{ExclusionConfig, Limits, SnapshotManager};
        let mut manager =
            SnapshotManager::new(&folder, [&tree], ExclusionConfig::default(), Limits::NONE).unwrap();
        manager.create_baseline().unwrap();
        kit.bare("rm -rf src; echo new > new");
        manager.create_incremental().unwrap();
        manager.settle().unwrap();
    }
    if super::world::is_root() {
        let owner = format!("{0}:{0}", super::world::ORDINARY);
        assert!(
            std::process::Command::new("chown").arg("-R").arg(owner).arg(&folder).status().unwrap().success()
        );
    }
    let folder = folder.to_str().unwrap();
    let shown = kit.nono(&["rollback", "show", folder]).ok();
    assert!(shown.out.contains("new"), "{shown:?}");
    kit.nono(&["rollback", "verify", folder]).ok();
    kit.nono(&["rollback", "restore", folder, "--yes"]).ok();
    same(&before, &kit.look());
}
