//! What each kind of run leaves, and when there is no run without a log.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::kit::{Kit, Said, read_json};
use nono_testkit::look::eventually;

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[test]
fn a_plain_run() {
    let kit = Kit::new();
    kit.run(&["--name", "plain"], "exit 3").code(3);
    let id = kit.ids().pop_first().unwrap();
    let (events, record) = (kit.events(&id), kit.record(&id));
    assert_eq!(kinds(&events), ["session_started", "session_ended"]);
    assert_eq!((&events[0]["session_id"], &events[0]["name"]), (&id.clone().into(), &"plain".into()));
    assert_eq!(events[1]["exit_code"], 3);
    for (key, value) in [
        ("session_id", Value::from(id.as_str())),
        ("command", serde_json::json!(["bash", "-c", "exit 3"])),
        ("exit_code", 3.into()),
        ("audit_event_count", 2.into()),
        ("sealed", false.into()),
        ("tracked_paths", serde_json::json!([])),
        ("network_events", serde_json::json!([])),
    ] {
        assert_eq!(record[key], value, "{key}");
    }
    let program = record["executable_identity"]["resolved_path"].as_str().unwrap();
    let sum = kit.sh(&format!("sha256sum < {program}")).ok().out;
    assert_eq!(sum.split(' ').next(), record["executable_identity"]["sha256"].as_str());
    assert!(kit.ledger().is_empty(), "nothing asked for a seal");
    let found = kit.good();
    assert_eq!(found["sessions"][0]["state"], "closed");
    // What is there is its owner's alone.
    for path in ["", &id, &format!("{id}/events.ndjson"), &format!("{id}/session.json"), "redaction.key"] {
        let mode = fs::metadata(kit.audit().join(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path}");
    }
}

#[test]
fn a_run_with_snapshots_is_sealed_with_its_tree() {
    let kit = Kit::new();
    kit.world.file("work/file", "before\n", 0o644);
    let id = kit.session(&["--rollback"], "echo after > file");
    let (events, record) = (kit.events(&id), kit.record(&id));
    let rollback = read_json(kit.world.path(&format!("state/rollbacks/{id}/session.json")));
    assert_eq!(
        kinds(&events),
        ["session_started", "snapshot", "snapshot", "session_ended", "seal"],
        "{events:#?}"
    );
    let roots: Vec<&Value> = events.iter().filter(|event| event["type"] == "snapshot").collect();
    for (number, event) in roots.iter().enumerate() {
        assert_eq!(event["number"], number);
        assert_eq!(event["merkle_root"], rollback["merkle_roots"][number]);
    }
    let (seal, last) = (&events[4], rollback["merkle_roots"].as_array().unwrap().last().unwrap());
    assert_eq!(&seal["tree"]["merkle_root"], last);
    assert_eq!(seal["tree"]["snapshot"], 1);
    assert_eq!(seal["event_count"], 4);
    assert_eq!(rollback["audit_event_count"], 5);
    assert!(rollback["audit_integrity"].is_object());
    for key in ["audit_integrity", "audit_event_count", "merkle_roots", "tracked_paths", "command"] {
        assert_eq!(rollback[key], record[key], "{key}");
    }
    let lines: Vec<Value> = kit.lines(&id).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(record["audit_integrity"]["chain_head"], lines[4]["chain_hash"]);
    assert_eq!(kit.ledger().len(), 1);
    assert_eq!(kit.ledger()[0]["session_id"], id.as_str());
    assert_eq!(record["ledger_sequence"], 0);
    kit.nono(&["rollback", "verify"]).ok();
    assert_eq!(kit.good()["sessions"][0]["state"], "sealed");
}

#[test]
fn a_seal_without_snapshots_and_snapshots_without_a_log() {
    let kit = Kit::new();
    let sealed = kit.session(&["--audit-integrity"], "true");
    assert_eq!(kinds(&kit.events(&sealed)), ["session_started", "session_ended", "seal"]);
    assert_eq!(kit.events(&sealed)[2]["tree"], Value::Null);
    let next = kit.session(&["--audit-integrity"], "true");
    // What links sessions: the ledger's lines, and the head that each one began with.
    let ledger = kit.ledger();
    assert_eq!(ledger.len(), 2);
    assert_eq!(ledger[1]["prev_chain"], ledger[0]["chain_hash"]);
    assert_eq!(kit.events(&next)[0]["ledger_head"], ledger[0]["chain_hash"]);
    let before = kit.ids();
    kit.run(&["--no-audit"], "true").ok();
    kit.run(&["--no-audit", "--rollback"], "echo > new").ok();
    assert_eq!(kit.ids(), before);
    assert_eq!(kit.ledger(), ledger);
    assert!(kit.world.path("work/new").exists());
    assert_eq!(kit.nono(&["rollback", "list", "--all", "--json"]).ok().json().as_array().unwrap().len(), 1);
    kit.good();
}

#[test]
fn without_a_supervisor_nothing_is_recorded() {
    let kit = Kit::new();
    for flag in [&["--no-audit"][..], &["--audit-integrity"], &["--audit-sign-key", "/nowhere"]] {
        for kind in [&["wrap"][..], &["run", "--monitor"], &["run", "--exec"]] {
            let words = [kind, flag, &["--allow-cwd", "--", "touch", "ran"]].concat();
            let said = kit.nono(&words).code(2);
            assert!(said.err.contains(flag[0]) && said.err.contains("needs a supervisor"), "{said:?}");
        }
    }
    kit.nono(&["run", "--no-audit", "--audit-integrity", "--", "touch", "ran"]).code(2);
    assert!(!kit.world.path("work/ran").exists());
    kit.nono(&["wrap", "--allow-cwd", "--", "touch", "ran"]).ok();
    assert!(kit.world.path("work/ran").exists() && kit.ids().is_empty());
}

#[track_caller]
fn refused(kit: &Kit, said: &Said, why: &str) {
    assert_eq!(said.code, Some(125), "{said:?}");
    assert!(said.err.contains("so nothing was run") && said.err.contains(why), "{said:?}");
    assert!(said.err.contains("[nono] hint: ") && said.err.contains("--no-audit"), "{said:?}");
    assert!(!kit.world.path("work/ran").exists());
    assert!(kit.ids().is_empty());
}

#[test]
fn what_cannot_be_recorded_is_not_run() {
    for closed in ["$NONO_HOME", "$NONO_HOME/audit"] {
        let kit = Kit::new();
        kit.sh(&format!("mkdir -p {closed}; chmod 500 {closed}")).ok();
        refused(&kit, &kit.run(&[], "touch ran"), "Permission denied");
        kit.run(&["--no-audit"], "touch ran").ok();
        assert!(kit.world.path("work/ran").exists());
    }
}

#[test]
fn a_refusal_is_recorded_while_the_command_runs() {
    let kit = Kit::new();
    kit.world.file("other/elsewhere", "text\n", 0o644);
    let path = kit.world.path("other/elsewhere").display().to_string();
    let mut talk = kit.talk(&[]);
    assert!(talk.reads(&kit.note("a")));
    assert!(!talk.reads(&path), "no rule matches, and there is no other approver");
    let id = kit.ids().pop_first().unwrap();
    let text = || kit.lines(&id).join("\n");
    eventually(text, || text().contains(&path).then_some(()));
    talk.end().ok();
    let last = kit.events(&id);
    let told = last.iter().filter(|event| event.to_string().contains(&path)).collect::<Vec<_>>();
    assert!(told.iter().all(|event| event["decision"] != "allowed"), "{told:?}");
    kit.good();
}

#[test]
fn sessions_that_run_at_once_are_one_chain() {
    const AT_ONCE: usize = 6;
    let kit = Kit::new();
    let flags = ["run", "--silent", "--allow-cwd", "--audit-integrity", "--", "true"];
    let children: Vec<_> = (0..AT_ONCE).map(|_| kit.command(&flags).spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let ledger = kit.ledger();
    assert_eq!((kit.ids().len(), ledger.len()), (AT_ONCE, AT_ONCE));
    for (at, line) in ledger.iter().enumerate() {
        assert_eq!(line["sequence"], at);
        let before = at.checked_sub(1).map_or(Value::Null, |before| ledger[before]["chain_hash"].clone());
        assert_eq!(line["prev_chain"], before);
    }
    kit.good();
}
