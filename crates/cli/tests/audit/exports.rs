//! What other programs get, read by other programs; what is looked for; what is removed.

use serde_json::Value;

use super::kit::Kit;

/// Three sessions: one that reads two files, one that is refused, one that does nothing.
fn past() -> (Kit, [String; 3]) {
    let kit = Kit::new();
    let read = kit.session(&["--audit-integrity"], &format!("cat {} {}", kit.note("a"), kit.note("b")));
    let before = kit.ids();
    kit.run(
        &["--ask", "--approve", "deny", "--audit-integrity", "--name", "refused"],
        &format!("cat {}", kit.note("a")),
    )
    .code(1);
    let refused = kit.new_id(&before);
    let idle = kit.session(&[], "true");
    (kit, [read, refused, idle])
}

#[test]
fn other_programs_read_every_record() {
    let (kit, ids) = past();
    let count: usize = ids.iter().map(|id| kit.lines(id).len()).sum();
    let mut keys: Vec<(String, u64)> = Vec::new();
    for id in &ids {
        keys.extend((0..kit.lines(id).len() as u64).map(|number| (id.clone(), number)));
    }
    keys.sort();
    for (format, program) in [
        (
            "csv",
            "import csv, json, sys
rows = list(csv.DictReader(sys.stdin))
assert all(None not in row and None not in row.values() for row in rows), rows
print(json.dumps([[row['session_id'], int(row['sequence'])] for row in rows]))",
        ),
        (
            "otlp-json",
            "import json, sys
logs = json.load(sys.stdin)
records = [log for resource in logs['resourceLogs'] for scope in resource['scopeLogs'] for log in scope['logRecords']]
value = lambda v: next(iter(v.values()))
found = []
for resource in logs['resourceLogs']:
    around = {a['key']: value(a['value']) for a in resource['resource']['attributes']}
    for scope in resource['scopeLogs']:
        for log in scope['logRecords']:
            own = dict(around, **{a['key']: value(a['value']) for a in log['attributes']})
            assert int(log['timeUnixNano']) > 10**18
            session = [v for k, v in own.items() if k == 'nono.session.id']
            number = [v for k, v in own.items() if k == 'nono.event.sequence']
            found.append([session[0], int(number[0])])
print(json.dumps(found))",
        ),
    ] {
        kit.world.file("home/reader.py", program, 0o644);
        let said = kit.sh(&format!("nono audit export --format {format} | python3 $HOME/reader.py")).ok();
        let found: Vec<(String, u64)> = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
        assert_eq!(found.len(), count, "{format}");
        let mut found = found;
        found.sort();
        assert_eq!(found, keys, "{format}");
    }
    // To a file, one session.
    kit.nono(&["audit", "export", &ids[0], "--format", "jsonl", "-o", "out"]).ok();
    let text = std::fs::read_to_string(kit.world.path("work/out")).unwrap();
    assert_eq!(text.lines().count(), kit.lines(&ids[0]).len());
}

#[test]
fn what_is_looked_for_is_found() {
    let (kit, [read, refused, idle]) = past();
    let note = kit.note("a");
    let listed = |flags: &[&str]| -> Vec<String> {
        let said = kit.nono(&[&["audit", "list", "--json"], flags].concat()).ok().json();
        let mut ids: Vec<String> = said
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["session_id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    };
    let sorted = |mut ids: Vec<&String>| -> Vec<String> {
        ids.sort();
        ids.into_iter().cloned().collect()
    };
    assert_eq!(listed(&[]), sorted(vec![&read, &refused, &idle]));
    assert_eq!(listed(&["--decision", "denied"]), sorted(vec![&refused]));
    assert_eq!(listed(&["--decision", "allowed"]), sorted(vec![&read]));
    assert_eq!(listed(&["--path", &note]), sorted(vec![&read, &refused]));
    assert_eq!(listed(&["--path", &kit.note("b")]), sorted(vec![&read]));
    assert_eq!(listed(&["--command", "cat"]), sorted(vec![&read, &refused]));
    assert_eq!(listed(&["--since", "1h"]).len(), 3);
    assert!(listed(&["--until", "1h"]).is_empty() && listed(&["--since", "2099-01-01"]).is_empty());
    let shown = |flags: &[&str]| -> Vec<Value> {
        let said = kit.nono(&[&["audit", "show", &read, "--json"], flags].concat()).ok().json();
        said["events"].as_array().unwrap().clone()
    };
    assert_eq!(shown(&[]).len(), kit.lines(&read).len());
    let events: Vec<Value> = shown(&[]).iter().map(|record| record["event"].clone()).collect();
    assert_eq!(events, kit.events(&read), "everything that was recorded");
    assert_eq!(shown(&["--path", &note]).len(), 1);
    assert_eq!(shown(&["--decision", "allowed"]).len(), 2);
    assert!(shown(&["--decision", "denied"]).is_empty());
}

#[test]
fn what_is_removed_is_known_to_be() {
    let (kit, [read, refused, idle]) = past();
    kit.nono(&["audit", "cleanup", "--all"]).code(1);
    kit.nono(&["audit", "cleanup", "--keep", "1", "--dry-run"]).ok();
    assert_eq!(kit.ids().len(), 3, "nothing yet");
    kit.nono(&["audit", "cleanup", "--keep", "1", "--yes"]).ok();
    assert_eq!(kit.ids().len(), 1);
    let found = kit.good();
    assert_eq!(found["ledger"]["missing"], serde_json::json!([]));
    let removed = found["ledger"]["removed"].as_array().unwrap().len();
    let left = kit.ids().pop_first().unwrap();
    let gone = [&read, &refused].iter().filter(|id| ***id != left).count();
    assert_eq!(removed, gone, "each sealed one has its line: {found:#}");
    let said = kit.nono(&["audit", "verify", if left == read { &refused } else { &read }]);
    assert!(said.code != Some(0) && said.err.contains("was removed by a cleanup"), "{said:?}");
    // It goes on from there.
    let next = kit.session(&["--audit-integrity"], "true");
    kit.good();
    kit.nono(&["audit", "cleanup", "--all", "--yes"]).ok();
    assert!(kit.ids().is_empty());
    kit.good();
    // A removal cannot be made up by taking a line away.
    let last = kit.session(&["--audit-integrity"], "true");
    std::fs::remove_dir_all(kit.audit().join(&last)).unwrap();
    let found = kit.nono(&["audit", "verify", "--json"]).code(1).json();
    assert_eq!(found["ledger"]["missing"], serde_json::json!([last]));
    assert!(next != last && idle != last);
}
