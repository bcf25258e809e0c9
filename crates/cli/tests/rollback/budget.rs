//! The budget of the store: a run that does not fit is refused by name, the newest run wins over old sessions, and runs
//! at the same time stay within the limit together.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::kit::{Kit, end};

const MB: u64 = 1 << 20;

fn kit(max_storage_gb: &str) -> Kit {
    let kit = Kit::with_tree();
    let config = format!("[rollback]\nmax_storage_gb = {max_storage_gb}\n");
    kit.world.file("state/config.toml", &config, 0o600);
    kit
}

/// As if the session had ended long ago.
fn age(session: &Path) {
    let file = session.join("session.json");
    let mut value: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    value["started"] = "2020-01-01T00:00:00Z".into();
    value["ended"] = "2020-01-01T00:00:01Z".into();
    fs::write(&file, serde_json::to_vec_pretty(&value).unwrap()).unwrap();
}

/// Bytes taken at one moment, as `du` counts. Files come, go and are renamed while a walk goes on, so only those count
/// that a second look still finds: all of them existed when the walk ended.
pub(crate) fn taken(state: &Path) -> u64 {
    let mut found = Vec::new();
    for name in ["store", "rollbacks", "projects"] {
        entries(&state.join(name), &mut found);
    }
    let still = |path: &Path, inode| path.symlink_metadata().ok().filter(|meta| meta.ino() == inode);
    found
        .iter()
        .filter_map(|(path, inode, bytes)| Some((still(path, *inode)?.blocks() * 512).min(*bytes)))
        .sum()
}

#[test]
fn what_does_not_fit_is_refused_by_name_and_nothing_runs() {
    let kit = kit("0.02");
    kit.bare("head -c 60000000 /dev/urandom > huge");
    let said = kit.run("touch ran").code(125);
    assert!(said.err.contains("not started") && said.err.contains("huge"), "{said:?}");
    assert!(said.err.contains("--rollback=best-effort") && said.err.contains("cleanup"), "{said:?}");
    assert!(!kit.tree().join("ran").exists() && kit.sessions().is_empty());
}

#[test]
fn gaps_that_are_accepted_are_named_and_undo_does_not_call_them_fine() {
    let kit = kit("0.02");
    kit.bare("head -c 60000000 /dev/urandom > huge");
    let run = ["run", "--rollback=best-effort", "-s", "--allow", ".", "--", "bash", "-c"];
    let said = kit.nono(&[run.as_slice(), &["rm huge; rm src/main.rs"]].concat()).ok();
    assert!(said.err.contains("not protected") && said.err.contains("huge"), "{said:?}");
    let said = kit.nono(&["undo", "--yes"]).code(1);
    assert!(said.err.contains("huge") && said.err.contains("cannot be restored"), "{said:?}");
    assert_eq!(kit.read("src/main.rs"), "fn main() {}\n");
}

#[test]
fn the_newest_run_wins_over_old_sessions() {
    let kit = kit("0.03");
    kit.bare("head -c 12000000 /dev/urandom > data");
    kit.run("true").ok();
    let old = kit.sessions()[0].clone();
    // One of the last minutes stays, and nothing goes for a run that does not fit beside it.
    kit.bare("head -c 20000000 /dev/urandom > data");
    let said = kit.run("touch ran").code(125);
    assert!(said.err.contains("data"), "{said:?}");
    assert_eq!(kit.sessions(), std::slice::from_ref(&old));
    age(&old);
    kit.nono(&["rollback", "pin", "last"]).ok();
    kit.run("touch ran").code(125);
    kit.nono(&["rollback", "unpin", "last"]).ok();
    // Nothing is removed where all of it would not be enough.
    kit.bare("head -c 60000000 /dev/urandom > more");
    kit.run("touch ran").code(125);
    assert!(old.exists());
    kit.bare("rm more");
    let before = kit.look();
    let said = kit.run("rm data").ok();
    assert!(said.err.contains("removed the oldest session"), "{said:?}");
    assert!(!old.exists() && kit.sessions().len() == 1);
    kit.restored(&before);
}

#[test]
fn runs_at_once_stay_within_the_limit_together() {
    let kit = kit("0.02");
    let limit = 20 * MB + MB / 2;
    let trees: Vec<PathBuf> = (0..6).map(|number| kit.world.path(&format!("work/tree{number}"))).collect();
    for (number, _) in trees.iter().enumerate() {
        kit.bare(&format!("mkdir tree{number}; for n in 1 2 3 4 5 6; do head -c 1500000 /dev/urandom > tree{number}/$n; done"));
    }
    let (done, peak) = (AtomicBool::new(false), AtomicU64::new(0));
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                peak.fetch_max(taken(&kit.world.path("state")), Ordering::SeqCst);
                std::thread::yield_now();
            }
        });
        let children: Vec<_> = (0..trees.len())
            .map(|number| {
                let mut command = kit.command(&["run", "--rollback", "--no-audit", "--allow", "."]);
                command.args(["--", "bash", "-c", "rm 1; echo 2 > 2"]).current_dir(&trees[number]);
                command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        let said: Vec<_> = children.into_iter().map(end).collect();
        done.store(true, Ordering::SeqCst);
        said
    });
    let peak = peak.load(Ordering::SeqCst);
    assert!(peak <= limit, "{peak} bytes at the peak, {limit} allowed");
    let mut ran = 0;
    for (said, tree) in said.iter().zip(&trees) {
        match said.code {
            Some(0) => {
                ran += 1;
                assert!(!tree.join("1").exists() && !said.err.contains("not protected"), "{said:?}");
                let mut undo = kit.command(&["undo", "--yes"]);
                undo.current_dir(tree).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
                end(undo.spawn().unwrap()).ok();
                assert_eq!(fs::metadata(tree.join("2")).unwrap().len(), 1_500_000);
            }
            Some(125) => assert!(tree.join("1").exists() && said.err.contains("not started"), "{said:?}"),
            _ => panic!("{said:?}"),
        }
    }
    assert!(ran >= 1, "one of them fits");
}

/// A path and everything below it, each with its inode and the bytes it takes.
fn entries(path: &Path, found: &mut Vec<(PathBuf, u64, u64)>) {
    let Ok(meta) = path.symlink_metadata() else { return };
    found.push((path.to_owned(), meta.ino(), meta.blocks() * 512));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        entries(&entry.path(), found);
    }
}
