//! A disk that another process filled: what happened is still recorded, what cannot be recorded does not happen, and the log can
//! be closed.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::common::{
    Lab, check, decision, denial, ended, fill, integrity, network, records, started, warning,
};
use nono_audit::event::{AuditEvent, Decision};
use nono_audit::verify::LogCondition;
use nono_audit::{AuditLog, SessionRecord, WriteError};

/// A file system of its own, unmounted when it goes.
struct Disk {
    at: PathBuf,
    _lab: Lab,
}

impl Drop for Disk {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(&self.at).status();
        if !done.is_ok_and(|status| status.success()) {
            let _ = Command::new("umount").arg("-l").arg(&self.at).status();
        }
    }
}

impl Disk {
    fn mounted(lab: Lab, at: PathBuf, mount: &mut Command) -> Option<Disk> {
        let done = mount.arg(&at).output().unwrap();
        if !done.status.success() {
            let why = String::from_utf8_lossy(&done.stderr).into_owned();
            nono_testkit::skip(&why);
            return None;
        }
        Some(Disk { at, _lab: lab })
    }

    fn tmpfs() -> Option<Disk> {
        let (lab, at) = Disk::place();
        Disk::mounted(lab, at, Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "none"]))
    }

    fn ext4() -> Option<Disk> {
        let (lab, at) = Disk::place();
        let image = lab.path("image");
        std::fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
        let made = Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Disk::mounted(lab, at, Command::new("mount").args(["-o", "loop", "-t", "ext4"]).arg(&image))
    }

    fn place() -> (Lab, PathBuf) {
        let lab = Lab::new();
        let at = lab.path("disk");
        std::fs::create_dir(&at).unwrap();
        (lab, at)
    }

    fn audit(&self) -> PathBuf {
        self.at.join("audit")
    }

    fn create(&self, id: &str) -> AuditLog {
        AuditLog::create(&self.audit(), started(id), integrity()).unwrap()
    }

    /// Fills the disk to the last byte.
    fn fill(&self) {
        let mut file = std::fs::File::options().create(true).append(true).open(self.at.join("hog")).unwrap();
        for size in [64 << 10, 4096, 512] {
            while file.write_all(&vec![0x5a; size]).is_ok() {}
            // That it is full is what is wanted here.
            let _ = file.sync_data();
        }
        let full = std::fs::write(self.at.join("probe"), [1; 8192])
            .and_then(|()| std::fs::File::open(self.at.join("probe"))?.sync_all());
        assert!(full.is_err(), "the disk is not full");
        std::fs::remove_file(self.at.join("probe")).unwrap();
    }

    fn drain(&self) {
        std::fs::remove_file(self.at.join("hog")).unwrap();
    }
}

fn verified(disk: &Disk, id: &str) -> SessionRecord {
    let found = check(&disk.audit(), id);
    assert!(found.ok && found.state == LogCondition::Sealed, "{found:?}");
    SessionRecord::read(&disk.audit().join(id)).unwrap()
}

fn filled_while_running(disk: &Disk) {
    let log = disk.create("one");
    assert!(log.remarks().is_empty(), "{:?}", log.remarks());
    for number in 0..300 {
        log.denied(0, denial(format!("/before/{number}")), 1).unwrap();
    }
    disk.fill();
    // There is still room for a while, and it is durable.
    for number in 0..20 {
        log.decide(&decision(format!("/allowed/{number}"))).unwrap();
    }
    // Then there is none; but what can be counted is counted.
    let mut written = 20;
    let refused = loop {
        match log.decide(&decision(format!("/more/{written}"))) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100_000);
    };
    assert!(matches!(refused, WriteError::Full { .. }), "{refused}");
    assert_eq!(log.trouble(), None);
    for number in 0..3000 {
        log.denied(0, denial(format!("/before/{}", number % 300)), 1).unwrap();
        log.denied(0, denial(format!("/after/{number}")), 1).unwrap();
        log.network(network("example.org", Decision::Allowed)).unwrap();
        log.network(network(&format!("{number}.example"), Decision::Denied)).unwrap();
    }
    let finished = log.finish(ended(), None).unwrap();
    assert!(finished.ledger.is_none(), "{:?}", finished.ledger);
    let record = verified(disk, "one");
    assert_eq!(record.counts.decisions.denied, written);
    assert_eq!(record.counts.denials, 6300);
    assert_eq!((record.counts.network.allowed, record.counts.network.denied), (3000, 3000));
    let told = records(&disk.audit().join("one"));
    let told = told.iter().any(|record| record.event_json.contains("1 decisions refused"));
    assert!(told, "the log does not say what it could not say");
}

#[test]
fn tmpfs_filled_while_running() {
    if let Some(disk) = Disk::tmpfs() {
        filled_while_running(&disk);
    }
}

#[test]
fn ext4_filled_while_running() {
    if let Some(disk) = Disk::ext4() {
        filled_while_running(&disk);
    }
}

#[test]
fn a_log_is_closed_on_a_full_disk_with_the_largest_record() {
    for disk in [Disk::tmpfs(), Disk::ext4()].into_iter().flatten() {
        let long: Vec<String> = (0..40).map(|_| "\"".repeat(3000)).collect();
        let started = nono_audit::event::SessionStarted { command: long, ..started("one") };
        let log = AuditLog::create(&disk.audit(), started, integrity()).unwrap();
        for number in 0..1500 {
            let mut event = network(&format!("{number}.example.org"), Decision::Allowed);
            event.path = Some("/".repeat(number % 700));
            log.network(event).unwrap();
        }
        disk.fill();
        log.finish(ended(), None).unwrap();
        let record = verified(&disk, "one");
        assert_eq!(record.counts.network.allowed, 1500);
    }
}

#[test]
fn decisions_go_on_when_there_is_room_again() {
    let Some(disk) = Disk::tmpfs() else { return };
    let log = disk.create("one");
    disk.fill();
    while log.decide(&decision("/x")).is_ok() {}
    assert!(log.decide(&decision("/x")).is_err());
    disk.drain();
    log.decide(&decision("/again")).unwrap();
    log.finish(ended(), None).unwrap();
    verified(&disk, "one");
}

/// A record that is lost is not forgotten: nothing is decided any more, and the log says so at its end.
#[test]
fn a_lost_record_stops_all_decisions() {
    let Some(disk) = Disk::tmpfs() else { return };
    let log = disk.create("one");
    disk.fill();
    while log.note(&warning("much to say")).is_ok() {}
    assert!(log.trouble().is_some());
    disk.drain();
    assert!(matches!(log.decide(&decision("/x")), Err(WriteError::Broken { .. })));
    log.note(&warning("later")).unwrap();
    log.finish(ended(), None).unwrap();
    verified(&disk, "one");
    let lost = |event: &AuditEvent| matches!(event, AuditEvent::Warning(warning) if warning.message.starts_with("1 records were lost and 1 decisions"));
    assert_eq!(records(&disk.audit().join("one")).iter().filter(|record| lost(&record.event)).count(), 1);
}

#[test]
fn without_room_nothing_begins() {
    for disk in [Disk::tmpfs(), Disk::ext4()].into_iter().flatten() {
        let log = disk.create("one");
        fill(&log);
        log.finish(ended(), None).unwrap();
        disk.fill();
        assert!(AuditLog::create(&disk.audit(), started("two"), integrity()).is_err());
        assert!(!Path::new(&disk.audit().join("two")).exists());
        verified(&disk, "one");
    }
}
