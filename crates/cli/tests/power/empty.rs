//! Single files that are empty, as a loss of power left them before they were synced.

use std::fs::{self, File};

use super::find;
use super::said::Said;
use super::world::World;

fn nono(world: &World, args: &[&str]) -> Said {
    Said::of(&world.command("nono").args(args).output().unwrap())
}

#[track_caller]
fn empty(world: &World, name: &str) {
    let path = find(&world.path("state"), name).unwrap_or_else(|| panic!("no {name}"));
    File::options().write(true).open(path).unwrap().set_len(0).unwrap();
}

#[test]
fn the_redaction_key_is_replaced_and_said_once() {
    let world = World::new();
    let run = || nono(&world, &["run", "--allow", ".", "--", "true"]).ok();
    run();
    empty(&world, "redaction.key");
    let said = run();
    assert!(said.err.contains("redaction.key was damaged and has been replaced"), "{said:?}");
    let said = run();
    assert!(!said.err.contains("redaction.key"), "{said:?}");
}

#[test]
fn the_projects_description_is_made_again() {
    let world = World::new();
    world.file("work/Makefile", "all:\n", 0o644);
    nono(&world, &["checkpoints", "create"]).ok();
    empty(&world, "project.json");
    nono(&world, &["checkpoints", "list"]).ok();
    world.file("work/more", "more\n", 0o644);
    nono(&world, &["checkpoints", "create"]).ok();
    let path = find(&world.path("state"), "project.json").unwrap();
    assert!(fs::read_to_string(path).unwrap().contains("workdir"), "it is written down again");
}

/// The final snapshot cannot be read: the baseline restores, and it is said that conflicts cannot be told apart.
#[test]
fn the_baseline_restores_without_the_last_manifest() {
    for force in [false, true] {
        let world = World::new();
        world.file("work/kept", "before\n", 0o644);
        let script = "echo after > kept; echo new > new";
        nono(&world, &["run", "--rollback", "--allow", ".", "--", "bash", "-c", script]).ok();
        empty(&world, "001.json");
        let mut args = vec!["rollback", "restore", "last", "--yes", "--snapshot", "0"];
        args.extend(force.then_some("--force"));
        nono(&world, &args).ok();
        assert_eq!(fs::read_to_string(world.path("work/kept")).unwrap(), "before\n");
        assert!(!world.path("work/new").exists());
    }
}

#[test]
fn an_empty_signing_key_concerns_only_those_who_sign() {
    let world = World::new();
    nono(&world, &["audit", "keygen"]).ok();
    empty(&world, "signing.key");
    nono(&world, &["run", "--allow", ".", "--", "true"]).ok();
    let key = world.path("state/audit/signing.key");
    let said =
        nono(&world, &["run", "--audit-sign-key", key.to_str().unwrap(), "--allow", ".", "--", "true"]);
    assert_eq!(said.code, Some(125), "{said:?}");
    assert!(said.err.contains("nono audit keygen"), "the way out: {said:?}");
}

/// Ledgers that end in the middle of a line, or in zeros, go on.
#[test]
fn ledgers_with_a_torn_end_go_on() {
    let world = World::new();
    let run =
        || nono(&world, &["run", "--rollback", "--allow", ".", "--", "bash", "-c", "date +%N > n"]).ok();
    run();
    for torn in [&b"{\"sequence\": 1, \"ses"[..], &[0; 200]] {
        for name in ["ledger.ndjson", "seals.ndjson"] {
            let path = find(&world.path("state"), name).unwrap_or_else(|| panic!("no {name}"));
            let mut bytes = fs::read(&path).unwrap();
            bytes.extend_from_slice(torn);
            fs::write(&path, bytes).unwrap();
        }
        run();
        nono(&world, &["audit", "verify"]).ok();
        nono(&world, &["rollback", "verify"]).ok();
    }
    empty(&world, "executables.json");
    run();
}
