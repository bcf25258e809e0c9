//! A command that is refused a million times, in whatever ways, does not fill the disk with it.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::common::{self, Lab, denial, ended, network, records};
use nono_audit::event::{AuditEvent, Decision, DenialKey, Network, Phase};
use nono_audit::verify::LogCondition;
use nono_audit::{AuditLog, SessionRecord};

const MILLION: u64 = 1_000_000;

fn small_and_valid(lab: &Lab, log: &AuditLog, denials: u64, network: u64) -> SessionRecord {
    log.finish(ended(), None).unwrap();
    let size = std::fs::metadata(lab.events("one")).unwrap().len();
    assert!(size < 10_000_000, "{size} bytes");
    let found = lab.verify("one");
    assert!(found.ok && found.state == LogCondition::Sealed, "{found:?}");
    let record = SessionRecord::read(&lab.session("one")).unwrap();
    assert_eq!((record.counts.denials, record.counts.network.denied), (denials, network));
    record
}

#[test]
fn a_million_of_one_kind() {
    let lab = Lab::new();
    let log = lab.create("one");
    for time in 0..MILLION {
        log.denied(time, denial("/etc/passwd"), 1).unwrap();
    }
    small_and_valid(&lab, &log, MILLION, 0);
    let counts: Vec<u64> = records(&lab.session("one"))
        .into_iter()
        .filter_map(
            |record| if let AuditEvent::Denial(denial) = record.event { Some(denial.count) } else { None },
        )
        .collect();
    assert_eq!(counts, [1, 10, 100, 1000, 10_000, 100_000, MILLION]);
}

/// Each kind as expensive as it can be made: long names of bytes that are no text.
#[test]
fn kinds_that_take_much_room() {
    let lab = Lab::new();
    let log = lab.create("one");
    let long = |number: u8| {
        let mut name = vec![b'/'];
        name.extend((0..4000).map(|at| 0x80 | (number >> (at % 8))));
        std::path::PathBuf::from(OsString::from_vec(name))
    };
    let keys: Vec<DenialKey> =
        (0..100).map(|number| DenialKey { program: long(number + 7), ..denial(long(number)) }).collect();
    let mut told = 0;
    while told < 11_000 {
        for key in &keys {
            log.denied(told, key.clone(), 1).unwrap();
            told += 1;
        }
    }
    small_and_valid(&lab, &log, told, 0);
}

#[test]
fn a_million_of_a_mix_of_kinds() {
    let lab = Lab::new();
    let log = lab.create("one");
    // Some kinds often, as many kinds as possible once, and the proxy at the same time.
    for time in 0..MILLION / 2 {
        let path = if time % 2 == 0 { format!("/often/{}", time % 997) } else { format!("/once/{time}") };
        log.denied(time, denial(path), 1).unwrap();
        let host = if time % 2 == 0 { format!("h{}.example", time % 997) } else { format!("{time}.example") };
        log.network(network(&host, Decision::Denied)).unwrap();
    }
    small_and_valid(&lab, &log, MILLION / 2, MILLION / 2);
    let kinds = records(&lab.session("one"));
    let more = kinds.iter().filter(|record| record.event_json.contains("\"other kinds\"")).count();
    assert!(more > 2, "{more}");
}

#[test]
fn requests_are_told_one_by_one_until_there_are_too_many() {
    let lab = Lab::new();
    let log = lab.create("one");
    for number in 0..12_345 {
        log.network(network(&format!("h{}.example", number % 3), Decision::Allowed)).unwrap();
    }
    log.finish(ended(), None).unwrap();
    assert!(lab.verify("one").ok);
    let (mut records_of, mut count, mut sent) = (0, 0, 0);
    for record in records(&lab.session("one")) {
        if let AuditEvent::Network(event) = record.event {
            (records_of, count, sent) = (records_of + 1, count + event.count, sent + event.bytes_sent);
        }
    }
    assert_eq!((count, sent), (12_345, 123_450));
    assert!((10_000..10_020).contains(&records_of), "{records_of}");
    let record = SessionRecord::read(&lab.session("one")).unwrap();
    assert_eq!(record.counts.network.allowed, 12_345);
    assert!((500..=1000).contains(&record.network_events.len()), "{}", record.network_events.len());
}

#[test]
fn a_tunnel_counts_once_however_many_there_are() {
    let lab = Lab::new();
    let log = lab.create("one");
    for number in 0..6000_u32 {
        let opened = Network { phase: Some(Phase::Opened), bytes_sent: 0, ..network("h", Decision::Allowed) };
        log.network(opened).unwrap();
        // Every tenth is refused by what is said in it.
        let decision = if number % 10 == 0 { Decision::Denied } else { Decision::Allowed };
        log.network(Network { phase: Some(Phase::Ended), ..network("h", decision) }).unwrap();
    }
    log.network(Network { count: 7, ..network("h", Decision::Denied) }).unwrap();
    log.finish(ended(), None).unwrap();
    assert!(lab.verify("one").ok);
    let record = SessionRecord::read(&lab.session("one")).unwrap();
    assert_eq!((record.counts.network.allowed, record.counts.network.denied), (5400, 607));
    let moved: u64 = records(&lab.session("one"))
        .into_iter()
        .map(|record| if let AuditEvent::Network(event) = record.event { event.bytes_sent } else { 0 })
        .sum();
    assert_eq!(moved, 60_010);
}

/// Nothing a command says is longer in the log than the log allows.
#[test]
fn endless_strings_are_cut() {
    let lab = Lab::new();
    let log = lab.create("one");
    let mut event = network(&"x".repeat(1 << 20), Decision::Allowed);
    event.path = Some("\"".repeat(1 << 20));
    event.reason = Some("\u{1}".repeat(1 << 20));
    log.network(event).unwrap();
    let huge = "y".repeat(1 << 20);
    log.denied(
        0,
        DenialKey { reason: huge.clone(), access: huge.clone(), kind: huge.clone(), ..denial(&huge) },
        1,
    )
    .unwrap();
    log.decide(&common::decision(&huge)).unwrap();
    log.note(&common::warning(&huge)).unwrap();
    log.finish(ended(), None).unwrap();
    assert!(std::fs::metadata(lab.events("one")).unwrap().len() < 128 << 10);
    assert!(lab.verify("one").ok);
}

/// Many threads, one chain.
#[test]
fn threads_share_a_log() {
    let lab = Lab::new();
    let log = lab.create("one");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let log = &log;
            scope.spawn(move || {
                for number in 0..200 {
                    log.denied(0, denial(format!("/{}", number % 20)), thread).unwrap();
                    log.note(&common::warning(&format!("{thread} {number}"))).unwrap();
                    if number % 50 == 0 {
                        log.decide(&common::decision("/x")).unwrap();
                    }
                }
            });
        }
    });
    small_and_valid(&lab, &log, 1600, 0);
}
