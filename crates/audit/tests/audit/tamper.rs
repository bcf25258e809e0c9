//! Whatever is changed afterwards is found, and named.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use super::common::{self, Lab, check, decision, ended, integrity, records, started, warning};
use nono_audit::event::AuditEvent;
use nono_audit::log::Options;
use nono_audit::verify::{LogCondition, ProblemKind, Verification};
use nono_audit::{AuditLog, EventProof, Ledger, SessionRecord};

fn kinds(found: &Verification) -> Vec<ProblemKind> {
    found.problems.iter().map(|problem| problem.kind).collect()
}

fn bad(found: &Verification) -> Option<u64> {
    assert!(!found.ok);
    found.first_bad.as_ref().map(|bad| bad.record)
}

#[test]
fn a_sealed_session_is_whole() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new();
    let finished = lab.sealed("one");
    let found = lab.verify("one");
    assert!(found.ok, "{found:?}");
    assert_eq!((found.state, found.torn, found.ledger_sequence), (LogCondition::Sealed, false, Some(0)));
    let record = SessionRecord::read(&lab.session("one")).unwrap();
    assert_eq!(record, finished.record);
    let integrity = record.audit_integrity.clone().unwrap();
    assert_eq!(Some(integrity.chain_head), found.chain_head);
    assert_eq!(Some(integrity.merkle_root), found.merkle_root);
    assert_eq!(integrity.event_count, found.event_count);
    assert_eq!(record.audit_event_count, records(&lab.session("one")).len() as u64);
    assert_eq!((record.ended.as_deref(), record.exit_code), (Some("2026-04-21T20:00:01Z"), Some(0)));
    assert_eq!((record.counts.decisions.denied, record.counts.denials), (1, 12));
    assert_eq!((record.counts.network.allowed, record.counts.network.denied), (1, 1));
    assert_eq!(record.network_events.len(), 2);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&lab.audit), mode(&lab.session("one"))), (0o700, 0o700));
    for file in [lab.events("one"), lab.record("one"), lab.ledger()] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let mut names: Vec<_> =
        lab.session("one").read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["events.ndjson", "session.json"]);
}

#[test]
fn the_record_of_a_session_keeps_its_order_of_keys() {
    let lab = Lab::new();
    lab.sealed("one");
    let text = std::fs::read_to_string(lab.record("one")).unwrap();
    let keys = [
        "session_id",
        "started",
        "ended",
        "command",
        "executable_identity",
        "tracked_paths",
        "snapshot_count",
        "exit_code",
        "merkle_roots",
        "network_events",
        "audit_event_count",
        "audit_integrity",
        "audit_attestation",
    ];
    let at: Vec<usize> = keys.iter().map(|key| text.find(&format!("\n  \"{key}\": ")).unwrap()).collect();
    assert!(at.is_sorted(), "{text}");
    assert!(
        text.contains("\"decision\": \"allow\",\n      \"target\": \"example.org\",\n      \"port\": 443,"),
        "{text}"
    );
    assert!(
        text.contains("\"denial_category\": \"host_denied\",\n      \"target\": \"example.net\""),
        "{text}"
    );
}

#[test]
fn edits_are_named() {
    let lab = Lab::new();
    lab.sealed("one");
    let lines = lab.lines("one");
    for number in 0..lines.len() {
        let mut changed = lines.clone();
        changed[number] = changed[number].replacen("time_ms", "time_mz", 2);
        lab.put_lines("one", &changed);
        assert_eq!(bad(&lab.verify("one")), Some(number as u64));
    }
}

#[test]
fn records_put_in_taken_out_or_moved_are_named() {
    let lab = Lab::new();
    lab.sealed("one");
    let lines = lab.lines("one");
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut changed = lines.clone();
        change(&mut changed);
        lab.put_lines("one", &changed);
        bad(&lab.verify("one"))
    };
    assert_eq!(with(&|lines| lines.insert(2, lines[1].clone())), Some(2));
    assert_eq!(with(&|lines| lines.insert(2, "{}\n".into())), Some(2));
    assert_eq!(with(&|lines| lines.insert(2, "\n".into())), Some(2));
    assert_eq!(with(&|lines| drop(lines.remove(1))), Some(1));
    assert_eq!(with(&|lines| drop(lines.remove(0))), Some(0));
    assert_eq!(with(&|lines| lines.swap(2, 3)), Some(2));
    let count = lines.len() as u64;
    assert_eq!(with(&|lines| lines.push(lines[1].clone())), Some(count));
}

/// A chain that was made anew from a changed event is right in itself; the record of the session and the ledger are not.
#[test]
fn a_log_that_was_written_again_is_not_the_one_in_the_ledger() {
    let lab = Lab::new();
    lab.sealed("one");
    let other = Lab::new();
    let log = other.create("one");
    log.note(&warning("something else")).unwrap();
    log.finish(ended(), None).unwrap();
    assert!(other.verify("one").ok);
    std::fs::copy(other.events("one"), lab.events("one")).unwrap();
    assert!(!lab.verify("one").ok);
    std::fs::copy(other.record("one"), lab.record("one")).unwrap();
    assert_eq!(kinds(&lab.verify("one")), [ProblemKind::Ledger]);
    assert_eq!(lab.verify_ledger().changed, ["one"]);
}

#[test]
fn a_cut_tail_is_found() {
    let lab = Lab::new();
    lab.sealed("one");
    let lines = lab.lines("one");
    for keep in 0..lines.len() {
        lab.put_lines("one", &lines[..keep]);
        let found = lab.verify("one");
        assert!(!found.ok && kinds(&found).contains(&ProblemKind::Truncated), "{keep}: {found:?}");
    }
    let mut torn = lines.clone();
    torn.last_mut().unwrap().pop();
    lab.put_lines("one", &torn);
    assert!(kinds(&lab.verify("one")).contains(&ProblemKind::Truncated));
}

#[test]
fn without_a_seal_a_cut_tail_is_found_too() {
    let lab = Lab::new();
    lab.finished("one", Options::default());
    let found = lab.verify("one");
    assert!(found.ok && found.state == LogCondition::Closed, "{found:?}");
    assert!(!lab.ledger().exists());
    let lines = lab.lines("one");
    lab.put_lines("one", &lines[..lines.len() - 1]);
    assert!(kinds(&lab.verify("one")).contains(&ProblemKind::Truncated));
}

/// A session that was never closed is a valid prefix; but not one that the ledger knows.
#[test]
fn an_unfinished_session_is_valid_unless_the_ledger_knows_its_end() {
    let lab = Lab::new();
    let log = lab.create("one");
    let opening = std::fs::read(lab.record("one")).unwrap();
    log.decide(&decision("/a")).unwrap();
    let found = lab.verify("one");
    assert!(found.ok && found.state == LogCondition::Unfinished && found.event_count == 2, "{found:?}");
    assert!(SessionRecord::read(&lab.session("one")).unwrap().ended.is_none());
    let before = std::fs::read(lab.events("one")).unwrap();
    std::fs::write(lab.events("one"), [&before[..], b"{\"sequence\":2,\"pre"].concat()).unwrap();
    let found = lab.verify("one");
    assert!(found.ok && found.torn && found.event_count == 2, "{found:?}");
    std::fs::write(lab.events("one"), &before).unwrap();
    log.finish(ended(), None).unwrap();
    assert_eq!(lab.verify("one").state, LogCondition::Sealed);
    // Killed between the ledger and the record: the log still says everything.
    std::fs::write(lab.record("one"), &opening).unwrap();
    let found = lab.verify("one");
    assert!(
        found.ok && found.state == LogCondition::Unfinished && found.ledger_sequence == Some(0),
        "{found:?}"
    );
    assert!(lab.verify_ledger().ok);
    // Made to look as if it had been killed.
    std::fs::write(lab.events("one"), &before).unwrap();
    assert_eq!(kinds(&lab.verify("one")), [ProblemKind::Ledger]);
    assert_eq!(lab.verify_ledger().changed, ["one"]);
}

#[test]
fn an_edited_session_record_is_found() {
    let lab = Lab::new();
    lab.sealed("one");
    let text = std::fs::read_to_string(lab.record("one")).unwrap();
    for (from, to) in [
        ("\"exit_code\": 0", "\"exit_code\": 1"),
        ("\"sh\"", "\"ls\""),
        ("\"name\": \"a name\"", "\"name\": \"another\""),
        ("\"workdir\": \"/work\"", "\"workdir\": \"/home\""),
        ("\"denials\": 12", "\"denials\": 2"),
        ("\"ledger_sequence\": 0", "\"ledger_sequence\": null"),
        ("\"ledger_sequence\": 0", "\"ledger_sequence\": 1"),
        ("\"sealed\": true", "\"sealed\": false"),
        ("\"ended\": \"2026", "\"ended\": \"2027"),
        ("{\n", "{\n  \"more\": 1,\n"),
        ("{\n", "{\n\n"),
        ("\"target\": \"example.net\"", "\"target\": \"example.com\""),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        std::fs::write(lab.record("one"), changed).unwrap();
        assert!(!lab.verify("one").ok, "{from}");
    }
    std::fs::remove_file(lab.record("one")).unwrap();
    assert_eq!(kinds(&lab.verify("one"))[0], ProblemKind::Unreadable);
}

#[test]
fn a_session_taken_away_is_missed() {
    let lab = Lab::new();
    for id in ["one", "two", "three"] {
        lab.sealed(id);
    }
    let found = lab.verify_ledger();
    assert!(found.ok && found.entry_count == 3, "{found:?}");
    std::fs::remove_dir_all(lab.session("two")).unwrap();
    let found = lab.verify_ledger();
    assert!(!found.ok);
    assert_eq!(found.missing, ["two"]);
    // A cleanup says so, and only of what the ledger knows.
    assert_eq!(Ledger::of(&lab.audit).removed(&["two", "unknown"], 1_776_801_700_000).unwrap(), 1);
    assert_eq!(Ledger::of(&lab.audit).removed(&["two"], 1_776_801_700_000).unwrap(), 0);
    let found = lab.verify_ledger();
    assert!(found.ok && found.entry_count == 4, "{found:?}");
    assert_eq!(found.removed, ["two"]);
    lab.sealed("four");
    assert!(lab.verify_ledger().ok && lab.verify("one").ok && lab.verify("four").ok);
}

#[test]
fn lines_taken_from_the_ledger_are_missed() {
    let lab = Lab::new();
    for id in ["one", "two", "three"] {
        lab.sealed(id);
    }
    let text = std::fs::read_to_string(lab.ledger()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (left, line) in [([0, 2], 2), ([1, 2], 1), ([1, 0], 1)] {
        std::fs::write(lab.ledger(), [lines[left[0]], lines[left[1]]].concat()).unwrap();
        let found = lab.verify_ledger();
        assert_eq!(found.first_bad.map(|bad| bad.line), Some(line));
        assert_eq!(kinds(&lab.verify("three")), [ProblemKind::Ledger]);
    }
    let edited = text.replacen("\"two\"", "\"2wo\"", 1);
    std::fs::write(lab.ledger(), edited).unwrap();
    assert_eq!(lab.verify_ledger().first_bad.map(|bad| bad.line), Some(2));
    // From the end: the chain is right, but a sealed session is not in it, and later ones remember its head.
    std::fs::write(lab.ledger(), lines[0]).unwrap();
    let found = lab.verify_ledger();
    assert_eq!((found.unlisted, found.orphaned), (vec!["three".into(), "two".into()], vec!["three".into()]));
    assert_eq!(kinds(&lab.verify("two")), [ProblemKind::Ledger]);
    std::fs::remove_dir_all(lab.session("two")).unwrap();
    assert!(!lab.verify_ledger().ok);
    std::fs::remove_file(lab.ledger()).unwrap();
    assert!(!lab.verify("one").ok && !lab.verify_ledger().ok);
}

#[test]
fn half_a_line_in_the_ledger_is_cut_off_by_the_next_writer() {
    let lab = Lab::new();
    lab.sealed("one");
    let whole = std::fs::read_to_string(lab.ledger()).unwrap();
    std::fs::write(lab.ledger(), format!("{whole}{}", &whole[..whole.len() / 2])).unwrap();
    let found = lab.verify_ledger();
    assert!(found.ok && found.torn, "{found:?}");
    lab.sealed("two");
    let found = lab.verify_ledger();
    assert!(found.ok && !found.torn && found.entry_count == 2, "{found:?}");
    assert!(std::fs::read_to_string(lab.ledger()).unwrap().starts_with(&whole));
}

#[test]
fn a_damaged_ledger_does_not_stop_a_session_but_is_told() {
    let lab = Lab::new();
    lab.sealed("one");
    std::fs::write(lab.ledger(), "nonsense\n").unwrap();
    let log = lab.create("two");
    assert_eq!(log.remarks().len(), 1, "{:?}", log.remarks());
    let finished = log.finish(ended(), None).unwrap();
    assert!(finished.ledger.is_some());
    assert_eq!(finished.record.ledger_sequence, None);
    assert!(!lab.verify("two").ok);
    assert_eq!(std::fs::read_to_string(lab.ledger()).unwrap(), "nonsense\n");
}

#[test]
fn ids_and_folders_are_taken_once() {
    let lab = Lab::new();
    for id in ["", ".", "..", "a/b", "a b", "\u{e9}", &"x".repeat(65)] {
        assert!(AuditLog::create(&lab.audit, started(id), integrity()).is_err(), "{id}");
    }
    assert!(!lab.audit.exists());
    lab.sealed("one");
    assert!(AuditLog::create(&lab.audit, started("one"), integrity()).is_err());
    assert!(lab.verify("one").ok);
}

#[test]
fn nothing_is_written_after_the_end() {
    let lab = Lab::new();
    let log = lab.create("one");
    log.finish(ended(), None).unwrap();
    assert!(log.note(&warning("late")).is_err() && log.decide(&decision("/a")).is_err());
    assert!(log.denied(1, common::denial("/a"), 1).is_err() && log.finish(ended(), None).is_err());
    assert!(lab.verify("one").ok);
}

#[test]
fn links_are_not_followed() {
    let lab = Lab::new();
    lab.sealed("one");
    std::fs::rename(lab.events("one"), lab.path("moved")).unwrap();
    std::os::unix::fs::symlink(lab.path("moved"), lab.events("one")).unwrap();
    assert!(kinds(&lab.verify("one")).contains(&ProblemKind::Unreadable));
}

#[test]
fn every_event_can_be_proven() {
    let lab = Lab::new();
    lab.sealed("one");
    let (dir, all) = (lab.session("one"), records(&lab.session("one")));
    for record in &all {
        let proof = EventProof::build(&dir, "one", record.link.sequence).unwrap();
        assert_eq!(proof.event_json, record.event_json);
        assert_eq!(proof.seal.is_some(), !matches!(record.event, AuditEvent::Seal(_)));
        proof.check(None).unwrap();
        let text = serde_json::to_string(&proof).unwrap();
        let read: EventProof = serde_json::from_str(&text).unwrap();
        assert_eq!(read, proof);
        let other =
            EventProof { event_json: proof.event_json.replacen("time_ms", "time", 1), ..proof.clone() };
        assert!(other.check(None).is_err());
        let mut moved = proof.clone();
        moved.proof.leaf_index ^= 1;
        assert!(moved.check(None).is_err());
    }
    assert!(EventProof::build(&dir, "one", all.len() as u64).is_err());
    let found = check(&lab.audit, "one");
    let last = EventProof::build(&dir, "one", all.len() as u64 - 1).unwrap();
    last.proof.check_against(&found.merkle_root.unwrap(), found.event_count).unwrap();
}
