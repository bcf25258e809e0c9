//! A command that does what it may not, again and again.

use super::kit::Kit;

/// Each is a question that is answered with a no. A build without optimisation takes its time for them.
const OPENS: u64 = if cfg!(debug_assertions) { 10_000 } else { 1_000_000 };
const FILES: u64 = 50;

#[test]
fn a_flood_of_refusals_stays_small_and_is_counted() {
    let kit = Kit::new();
    for number in 0..FILES {
        kit.world.file(&format!("other/notes/{number}"), "", 0o644);
    }
    let program = format!(
        "import os
for number in range({OPENS}):
    try:
        os.open('{}/' + str(number % {FILES}), os.O_RDONLY)
        raise SystemExit(9)
    except PermissionError:
        pass
",
        kit.note("").trim_end_matches('/')
    );
    kit.world.file("work/flood.py", &program, 0o644);
    let mut command = kit.command(&["run", "--silent", "--allow-cwd", "--audit-integrity", "--ask"]);
    let output = command.args(["--approve", "deny", "--", "/usr/bin/python3", "flood.py"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let id = kit.ids().pop_first().unwrap();
    let record = kit.record(&id);
    assert_eq!(record["counts"]["denials"], OPENS);
    let size = std::fs::metadata(kit.audit().join(&id).join("events.ndjson")).unwrap().len();
    assert!(size < 10 << 20, "{size}");
    // One for each file, and one more with each power of ten.
    let denials = kit.events_of(&id, "denial");
    assert!(denials.len() as u64 <= FILES * 8, "{}", denials.len());
    let last =
        |path: &str| denials.iter().rfind(|denial| denial["what"]["path"] == path).unwrap()["count"].as_u64();
    for number in 0..FILES {
        assert_eq!(last(&kit.note(&number.to_string())), Some(OPENS / FILES), "{number}");
    }
    kit.good();
    let said = kit.nono(&["audit", "show", "last", "--decision", "denied"]).ok();
    assert_eq!(said.out.matches("  denied  ").count() as u64, FILES, "{}", said.out);
}
