//! kill -9 at any moment leaves a valid prefix, with every decision that was reported.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use super::common::{Lab, check, decision, denial, ended, integrity, started, warning};
use nono_audit::event::SessionEnded;
use nono_audit::log::ResumeError;
use nono_audit::verify::LogCondition;
use nono_audit::{AuditEvent, AuditLog, Reader};

const PLACE: &str = "NONO_AUDIT_KILLED";
const LAST: u64 = 60;

/// Not a test of its own: what is killed by the other one.
#[test]
fn writer() {
    let Some(audit) = std::env::var_os(PLACE) else { return };
    let log = AuditLog::create(Path::new(&audit), started("one"), integrity()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..2000 {
                log.denied(0, denial(format!("/{}", number % 700)), 1).unwrap();
                log.note(&warning("beside")).unwrap();
            }
        });
        for number in 0..LAST {
            log.decide(&decision(format!("/decided/{number}"))).unwrap();
            println!("decided {number}");
        }
    });
    println!("finishing {LAST}");
    log.finish(ended(), None).unwrap();
    println!("finished {LAST}");
}

/// Kill a writer as soon as it says `word` with this number; gives the last decision it told.
fn killed_at(audit: &Path, word: &str, number: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::writer", "--nocapture"])
        .env(PLACE, audit)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = 0;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in &mut lines {
        let line = line.unwrap();
        let Some((found, count)) = line.rsplit_once(' ') else { continue };
        let (Some(found), Ok(count)) = (found.split_whitespace().last(), count.parse::<u64>()) else {
            continue;
        };
        told = if found == "decided" { count } else { LAST - 1 };
        if found == word && count >= number {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it told in the meantime counts as well.
    for line in lines {
        if let Some(count) = line.unwrap().strip_prefix("decided ") {
            told = count.parse().unwrap();
        }
    }
    told
}

fn decisions(dir: &Path) -> u64 {
    let records = Reader::open(dir).unwrap().map_while(Result::ok);
    records.filter(|record| matches!(record.event, AuditEvent::CapabilityDecision(_))).count() as u64
}

#[test]
fn a_killed_writer_leaves_a_valid_prefix() {
    let mut unfinished = 0;
    for round in 0..16 {
        let lab = Lab::new();
        // A different moment each time, between two decisions or in the middle of one.
        let told = killed_at(&lab.audit, "decided", round * 37 % 50);
        let found = check(&lab.audit, "one");
        assert!(found.ok, "{round}: {found:?}");
        assert!(decisions(&lab.session("one")) > told, "{round}: a decision that was told is missing");
        unfinished += u64::from(found.state == LogCondition::Unfinished);
        // The next session is not disturbed by what is left.
        lab.sealed("two");
        assert!(lab.verify("two").ok && lab.verify_ledger().ok, "{round}");
    }
    assert!(unfinished > 0, "none was killed in time");
}

#[test]
fn a_writer_killed_while_closing_leaves_a_valid_log() {
    for round in 0..8 {
        let lab = Lab::new();
        let word = if round % 4 == 3 { "finished" } else { "finishing" };
        killed_at(&lab.audit, word, LAST);
        let found = check(&lab.audit, "one");
        assert!(found.ok, "{round}: {found:?}");
        assert_eq!(decisions(&lab.session("one")), LAST);
        assert!(lab.verify_ledger().ok, "{:?}", lab.verify_ledger());
        if word == "finished" {
            assert_eq!(found.state, LogCondition::Sealed);
        }
        lab.sealed("two");
        assert!(lab.verify("two").ok && lab.verify_ledger().ok, "{round}");
    }
}

/// Whenever the writer was killed, a later process closes the log: whole, sealed, in the ledger once, and said to be
/// interrupted where no record says how it ended.
#[test]
fn a_killed_log_is_closed_later() {
    for round in 0..20 {
        let lab = Lab::new();
        let (word, number) = match round {
            0..14 => ("decided", round * 4),
            14..18 => ("finishing", LAST),
            _ => ("finished", LAST),
        };
        let audit = lab.audit.clone();
        let told = killed_at(&audit, word, number);
        let before = check(&audit, "one");
        let log = AuditLog::resume(&audit, "one", integrity()).unwrap();
        assert_eq!(log.is_none(), before.state == LogCondition::Sealed, "round {round}");
        if let Some(log) = log {
            // Refused where the end is written already.
            drop(log.note(&warning("closed later")));
            let finished = log.finish(SessionEnded::interrupted(1_776_801_700_000), None).unwrap();
            assert!(finished.ledger.is_none(), "round {round}: {:?}", finished.ledger);
        }
        let after = check(&audit, "one");
        assert!(after.ok && after.state == LogCondition::Sealed && !after.torn, "round {round}: {after:?}");
        assert!(decisions(&lab.session("one")) > told, "round {round}");
        assert!(
            lab.verify_ledger().ok && std::fs::read_to_string(lab.ledger()).unwrap().lines().count() == 1
        );
        assert!(AuditLog::resume(&audit, "one", integrity()).unwrap().is_none(), "it is closed");
        assert!(!lab.session("one").join("reserve").exists());
    }
}

#[test]
fn a_log_in_use_or_changed_is_left_alone() {
    let lab = Lab::new();
    let log = lab.create("one");
    log.note(&warning("first")).unwrap();
    assert!(AuditLog::resume(&lab.audit, "one", integrity()).unwrap().is_none(), "it is being written");
    drop(log);
    let text = std::fs::read_to_string(lab.events("one")).unwrap();
    std::fs::write(lab.events("one"), text.replace("first", "other")).unwrap();
    let before = std::fs::read(lab.events("one")).unwrap();
    assert!(matches!(AuditLog::resume(&lab.audit, "one", integrity()), Err(ResumeError::Read(_))));
    assert_eq!(std::fs::read(lab.events("one")).unwrap(), before);
}
