//! Files that nono writes where a person says: not where a link leads that a command left in that place.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::*;

#[test]
fn what_nono_writes_goes_through_no_planted_link() {
    let world = world();
    first_run(
        &world,
        "ln -s ~/diary audit.csv; ln -s ~/diary proof.json; mkdir pages; ln -s ~/diary pages/nono.1; ln -s ~ keys; \
         mkfifo pipe",
    );
    for args in [
        vec!["audit", "export", "-o", "audit.csv"],
        vec!["audit", "prove", "last", "0", "-o", "proof.json"],
        vec!["man", "--dir", "pages"],
        vec!["audit", "keygen", "-o", "keys/audit.key"],
    ] {
        let said = nono(&world, &args).code(1);
        assert!(
            said.err.contains("is a link") || said.err.contains("through the link"),
            "{args:?}: {said:?}"
        );
        assert!(said.err.contains(&path(&world, "home")), "{args:?}: {said:?}");
        assert_eq!(text(&world, "home/diary"), "dear diary\n", "{args:?}");
        assert!(!world.path("home/audit.key").exists());
    }
    let said =
        world.command("timeout").args(["60", "nono", "audit", "export", "-o", "pipe"]).output().unwrap();
    assert!(![Some(0), Some(124)].contains(&said.status.code()), "{said:?}");
}

#[test]
fn outputs_without_a_planted_link_are_written() {
    let world = world();
    first_run(&world, "mkdir out; ln -s out inner; echo old, and longer than anything > out/audit.csv");
    nono(&world, &["audit", "export", "--format", "csv", "-o", "inner/audit.csv"]).ok();
    assert!(
        text(&world, "work/out/audit.csv").starts_with("session"),
        "{}",
        text(&world, "work/out/audit.csv")
    );
    nono(&world, &["audit", "export", "-o", "new.jsonl"]).ok();
    assert_eq!(fs::metadata(world.path("work/new.jsonl")).unwrap().mode() & 0o777, 0o600);
    nono(&world, &["audit", "export", "-o", "/dev/null"]).ok();
    nono(&world, &["man", "--dir", "pages"]).ok();
    assert!(
        world.path("work/pages/nono-run.1").is_file()
            && world.path("work/pages/nono-audit-export.1").is_file()
    );
}
