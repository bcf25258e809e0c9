//! Logs to try things on, each in a folder of its own.

// Not every test needs all of it.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use nono_audit::event::{
    AuditEvent, CapabilityDecision, Decision, DenialKey, Network, SessionEnded, SessionStarted, Warning,
};
use nono_audit::log::{Finished, Options};
use nono_audit::verify::{self, LedgerVerification, Verification};
use nono_audit::{AuditLog, Digest, Ledger, Reader, VerifiedRecord, verify_ledger};

pub(crate) struct Lab {
    dir: tempfile::TempDir,
    pub(crate) audit: PathBuf,
}

impl Lab {
    pub(crate) fn new() -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let audit = dir.path().join("audit");
        Lab { dir, audit }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn session(&self, id: &str) -> PathBuf {
        self.audit.join(id)
    }

    pub(crate) fn events(&self, id: &str) -> PathBuf {
        self.session(id).join("events.ndjson")
    }

    pub(crate) fn record(&self, id: &str) -> PathBuf {
        self.session(id).join("session.json")
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.audit.join("ledger.ndjson")
    }

    pub(crate) fn create(&self, id: &str) -> AuditLog {
        AuditLog::create(&self.audit, started(id), integrity()).unwrap()
    }

    /// A session of a few records, sealed.
    pub(crate) fn sealed(&self, id: &str) -> Finished {
        self.finished(id, integrity())
    }

    pub(crate) fn finished(&self, id: &str, options: Options) -> Finished {
        let log = AuditLog::create(&self.audit, started(id), options).unwrap();
        fill(&log);
        let finished = log.finish(ended(), Some(serde_json::json!({"/work": "root"}))).unwrap();
        assert!(finished.ledger.is_none(), "{:?}", finished.ledger);
        finished
    }

    pub(crate) fn verify(&self, id: &str) -> Verification {
        check(&self.audit, id)
    }

    pub(crate) fn verify_ledger(&self) -> LedgerVerification {
        verify_ledger(&self.audit)
    }

    pub(crate) fn lines(&self, id: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.events(id)).unwrap();
        text.split_inclusive('\n').map(str::to_owned).collect()
    }

    pub(crate) fn put_lines(&self, id: &str, lines: &[String]) {
        std::fs::write(self.events(id), lines.concat()).unwrap();
    }
}

pub(crate) fn check(audit: &Path, id: &str) -> Verification {
    verify::verify(&audit.join(id), &Ledger::of(audit), &verify::Options::default())
}

pub(crate) fn integrity() -> Options {
    Options { integrity: true, key: None }
}

pub(crate) fn records(dir: &Path) -> Vec<VerifiedRecord> {
    Reader::open(dir).unwrap().map(|record| record.unwrap()).collect()
}

pub(crate) fn fill(log: &AuditLog) {
    log.note(&warning("first")).unwrap();
    log.decide(&decision("/etc/shadow")).unwrap();
    for _ in 0..12 {
        log.denied(5, denial("/etc/passwd"), 10).unwrap();
    }
    log.network(network("example.org", Decision::Allowed)).unwrap();
    log.network(network("example.net", Decision::Denied)).unwrap();
}

pub(crate) fn started(id: &str) -> SessionStarted {
    SessionStarted {
        time_ms: 1_776_801_600_000,
        session_id: id.to_owned(),
        name: Some("a name".into()),
        version: "0.1.0".into(),
        pid: 7,
        command: vec!["sh".into(), "-c".into(), "true".into()],
        workdir: "/work".into(),
        executable: None,
        policy_digest: Digest::ZERO,
        tracked_paths: vec!["/work".into()],
        network: "blocked".into(),
        project_profiles: Vec::new(),
        ledger_head: None,
    }
}

pub(crate) fn ended() -> SessionEnded {
    SessionEnded {
        time_ms: 1_776_801_601_000,
        exit_code: 0,
        signal: None,
        limit: None,
        stopped: false,
        interrupted: false,
    }
}

pub(crate) fn warning(message: &str) -> AuditEvent {
    AuditEvent::Warning(Warning { time_ms: 3, message: message.to_owned() })
}

pub(crate) fn decision(path: impl Into<PathBuf>) -> AuditEvent {
    AuditEvent::CapabilityDecision(CapabilityDecision {
        time_ms: 4,
        path: path.into(),
        access: "read".into(),
        program: "/bin/cat".into(),
        pid: 9,
        decision: Decision::Denied,
        by: "person".into(),
        scope: None,
        reason: Some("please".into()),
    })
}

pub(crate) fn denial(path: impl Into<PathBuf>) -> DenialKey {
    DenialKey {
        kind: "open".into(),
        path: Some(path.into()),
        access: "read".into(),
        reason: "not granted".into(),
        program: "/bin/cat".into(),
    }
}

pub(crate) fn network(host: &str, decision: Decision) -> Network {
    Network {
        time_ms: 6,
        mode: "connect".into(),
        decision,
        host: host.into(),
        port: 443,
        method: Some("CONNECT".into()),
        path: None,
        status: Some(200),
        reason: None,
        category: (decision == Decision::Denied).then(|| "host_denied".into()),
        address: Some("192.0.2.1:443".into()),
        credential: None,
        bytes_sent: 10,
        bytes_received: 20,
        duration_ms: 3,
        phase: None,
        count: 1,
    }
}
