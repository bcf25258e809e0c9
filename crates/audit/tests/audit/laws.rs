//! What holds for all logs.

#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::common::{self, Lab, ended, integrity, records, started};
use nono_audit::event::{
    AgentCall, AgentPrompt, AuditEvent, BackendError, CapabilityDecision, CheckpointEvent, Decision, Network,
    Restore, SessionStarted, Snapshot, UrlOpen, Warning,
};
use nono_audit::{AuditLog, Digest, SessionRecord};
use proptest::prelude::*;

fn path() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(any::<u8>(), 0..60).prop_map(|bytes| OsString::from_vec(bytes).into())
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..30).prop_map(|letters| letters.into_iter().collect())
}

fn answer() -> impl Strategy<Value = Decision> {
    prop_oneof![Just(Decision::Allowed), Just(Decision::Denied)]
}

fn event() -> impl Strategy<Value = AuditEvent> {
    let time = any::<u64>();
    prop_oneof![
        (time, path(), path(), text(), answer(), prop::option::of(text())).prop_map(
            |(time_ms, path, program, by, decision, reason)| {
                let (access, pid, scope) = ("read".into(), 1, reason.clone());
                AuditEvent::CapabilityDecision(CapabilityDecision {
                    time_ms,
                    path,
                    access,
                    program,
                    pid,
                    decision,
                    by,
                    scope,
                    reason,
                })
            }
        ),
        (time, text(), path(), answer()).prop_map(|(time_ms, url, program, decision)| AuditEvent::UrlOpen(
            UrlOpen { time_ms, url, program, pid: 3, decision, by: "x".into(), error: None }
        )),
        (time, prop::collection::vec(path(), 0..5), text()).prop_map(|(time_ms, paths, outcome)| {
            let (session_id, snapshot) = (outcome.clone(), "1".into());
            AuditEvent::Restore(Restore {
                time_ms,
                session_id,
                snapshot,
                paths,
                restored: 1,
                kept: 2,
                failed: 3,
                outcome,
            })
        }),
        (time, text(), any::<u32>()).prop_map(|(time_ms, merkle_root, number)| {
            AuditEvent::Snapshot(Snapshot { time_ms, number, state_root: merkle_root.clone(), merkle_root })
        }),
        (time, path(), text(), prop::option::of(text())).prop_map(|(time_ms, project, reason, error)| {
            let checkpoint = error.is_none().then(|| "a1b2c3d4e5f6".to_owned());
            AuditEvent::Checkpoint(CheckpointEvent { time_ms, project, checkpoint, reason, error })
        }),
        (time, text(), prop::option::of(text()), any::<[u8; 32]>()).prop_map(
            |(time_ms, agent, turn, bytes)| {
                let sha256 = Digest::from_bytes(bytes);
                AuditEvent::AgentPrompt(AgentPrompt {
                    time_ms,
                    agent: Some(agent),
                    conversation: None,
                    turn,
                    sha256,
                })
            }
        ),
        (time, text(), prop::option::of(text())).prop_map(|(time_ms, tool, command)| {
            let (agent, conversation, turn) = (None, Some("c".to_owned()), None);
            AuditEvent::AgentCall(AgentCall { time_ms, agent, conversation, turn, tool: Some(tool), command })
        }),
        (time, text(), text()).prop_map(|(time_ms, backend, why)| AuditEvent::BackendError(BackendError {
            time_ms,
            backend,
            why
        })),
        (time, text()).prop_map(|(time_ms, message)| AuditEvent::Warning(Warning { time_ms, message })),
    ]
}

fn request() -> impl Strategy<Value = Network> {
    (text(), any::<u16>(), answer(), prop::option::of(text()), any::<u64>()).prop_map(
        |(host, port, decision, path, bytes_sent)| Network {
            host,
            port,
            path,
            bytes_sent,
            ..common::network("", decision)
        },
    )
}

fn log_of(lab: &Lab, workdir: PathBuf, events: &[AuditEvent], requests: Vec<Network>, seal: bool) {
    let tracked = vec![workdir.clone(), "/x".into()];
    let started = SessionStarted { workdir, tracked_paths: tracked, ..started("one") };
    let options = if seal { integrity() } else { nono_audit::log::Options::default() };
    let log = AuditLog::create(&lab.audit, started, options).unwrap();
    for event in events {
        log.note(event).unwrap();
    }
    for request in requests {
        log.network(request).unwrap();
    }
    log.finish(ended(), None).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_events_come_back(
        workdir in path(),
        events in prop::collection::vec(event(), 0..20),
        requests in prop::collection::vec(request(), 0..10),
        seal in any::<bool>(),
    ) {
        let lab = Lab::new();
        log_of(&lab, workdir.clone(), &events, requests, seal);
        let found = lab.verify("one");
        prop_assert!(found.ok, "{:?}", found);
        let back: Vec<AuditEvent> = records(&lab.session("one")).into_iter().map(|record| record.event).collect();
        prop_assert_eq!(&back[1..=events.len()], &events[..]);
        prop_assert_eq!(SessionRecord::read(&lab.session("one")).unwrap().workdir, workdir);
    }

    #[test]
    fn any_changed_byte_is_found(
        events in prop::collection::vec(event(), 0..4),
        seal in any::<bool>(),
        places in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 12),
    ) {
        let lab = Lab::new();
        log_of(&lab, "/work".into(), &events, Vec::new(), seal);
        let bytes = std::fs::read(lab.events("one")).unwrap();
        for (place, difference) in places {
            let at = place.index(bytes.len());
            let mut changed = bytes.clone();
            changed[at] ^= difference;
            std::fs::write(lab.events("one"), &changed).unwrap();
            prop_assert!(!lab.verify("one").ok, "byte {} of {}", at, bytes.len());
            // Bytes put in and taken out.
            changed.remove(at);
            std::fs::write(lab.events("one"), &changed).unwrap();
            prop_assert!(!lab.verify("one").ok, "without byte {}", at);
            let more = [&bytes[..at], &[difference], &bytes[at..]].concat();
            std::fs::write(lab.events("one"), &more).unwrap();
            prop_assert!(!lab.verify("one").ok, "one more at {}", at);
        }
    }

    /// Also of the record beside it.
    #[test]
    fn any_changed_byte_of_the_record_is_found(
        places in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 12),
    ) {
        let lab = Lab::new();
        lab.sealed("one");
        let bytes = std::fs::read(lab.record("one")).unwrap();
        for (place, difference) in places {
            let mut changed = bytes.clone();
            changed[place.index(bytes.len())] ^= difference;
            std::fs::write(lab.record("one"), &changed).unwrap();
            prop_assert!(!lab.verify("one").ok, "byte {}", place.index(bytes.len()));
        }
    }

    #[test]
    fn nothing_that_is_read_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let lab = Lab::new();
        lab.sealed("one");
        for file in [lab.events("one"), lab.record("one"), lab.ledger()] {
            let whole = std::fs::read(&file).unwrap();
            std::fs::write(&file, &bytes).unwrap();
            prop_assert!(!lab.verify("one").ok);
            lab.verify_ledger();
            std::fs::write(&file, whole).unwrap();
        }
    }
}

/// Every byte of one log, one after another.
#[test]
fn every_single_byte_counts() {
    let lab = Lab::new();
    let log = lab.create("one");
    log.note(&common::warning("w")).unwrap();
    log.finish(ended(), None).unwrap();
    let bytes = std::fs::read(lab.events("one")).unwrap();
    for at in 0..bytes.len() {
        for difference in [1, 0x20] {
            let mut changed = bytes.clone();
            changed[at] ^= difference;
            std::fs::write(lab.events("one"), changed).unwrap();
            assert!(!lab.verify("one").ok, "byte {at} of {}", bytes.len());
        }
    }
    std::fs::write(lab.events("one"), bytes).unwrap();
    assert!(lab.verify("one").ok);
}
