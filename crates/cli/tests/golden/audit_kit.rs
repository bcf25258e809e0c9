//! Recorded sessions, written as a run writes them, at moments that never change: so do their digests.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use nono::audit::event::{
    BackendError, CapabilityDecision, Decision, DenialKey, Network, SessionEnded, SessionStarted, Snapshot,
    UrlOpen, Warning,
};
use nono::audit::log::Options;
use nono::audit::{AuditEvent, AuditLog, Digest, SigningKey};
use snapbox::IntoData;

use super::world::{World, uid};

/// 2024-07-03T09:46:40Z.
pub(crate) const START: u64 = 1_720_000_000_000;

/// A world with logs. What is written by the tester is given to the world's user.
pub(crate) struct Logs {
    pub(crate) world: World,
}

impl Logs {
    pub(crate) fn new() -> Logs {
        Logs { world: World::new() }
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.world.path("state/audit")
    }

    /// A log that has begun, so many seconds after [`START`].
    pub(crate) fn begin(&self, id: &str, after: u64, command: &[&str], options: Options) -> AuditLog {
        let started = SessionStarted {
            time_ms: START + after * 1000,
            session_id: id.to_owned(),
            name: (id == "20240703-094640-7").then(|| "build".to_owned()),
            version: "0.1.0".to_owned(),
            pid: 7,
            command: command.iter().map(ToString::to_string).collect(),
            workdir: "/home/me/project".into(),
            executable: None,
            policy_digest: Digest::ZERO,
            tracked_paths: vec!["/home/me/project".into()],
            network: "filtered: example.org".to_owned(),
            project_profiles: Vec::new(),
            ledger_head: nono::audit::Ledger::of(&self.dir()).head().unwrap(),
        };
        AuditLog::create(&self.dir(), started, options).unwrap()
    }

    pub(crate) fn end(&self, log: &AuditLog, after: u64, exit_code: i32) {
        let ended = SessionEnded {
            time_ms: START + after * 1000,
            exit_code,
            signal: None,
            limit: None,
            stopped: false,
            interrupted: false,
        };
        let finished = log.finish(ended, None).unwrap();
        assert!(finished.ledger.is_none());
        self.give();
    }

    /// A whole session with nothing in it.
    pub(crate) fn small(&self, id: &str, after: u64, command: &[&str]) {
        let log = self.begin(id, after, command, sealed());
        self.end(&log, after + 1, 0);
    }

    /// A session in which everything happens, by a command with a hostile mind.
    pub(crate) fn large(&self, key: Option<SigningKey>) {
        let log = self.begin("20240703-094640-7", 0, &["make", "it so"], Options { integrity: true, key });
        for event in events() {
            log.note(&event).unwrap();
        }
        for number in 0..1234 {
            log.denied(START + 5000 + number, denial("/etc/shadow"), 43).unwrap();
        }
        log.denied(START + 9000, denial("/tmp/\u{1b}[31mred\n[nono] all is well"), 43).unwrap();
        log.network(network("api.example.org", Decision::Allowed)).unwrap();
        log.network(network("evil.test", Decision::Denied)).unwrap();
        self.end(&log, 86_500, 3);
    }

    /// Makes the world's user the owner of the state.
    pub(crate) fn give(&self) {
        give(&self.world.path("state"));
    }

    /// One byte more or less, in a file below the audit folder.
    pub(crate) fn edit(&self, below: &str, from: &str, to: &str) {
        let path = self.dir().join(below);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
    }

    #[track_caller]
    pub(crate) fn golden(&self, lines: &[&str], expected: impl IntoData) {
        self.world.golden(lines, expected);
    }

    #[track_caller]
    pub(crate) fn json(&self, line: &str, code: i32) -> serde_json::Value {
        let outcome = self.world.sh(line);
        assert_eq!(outcome.code(), Some(code), "{line}: {outcome:?}");
        serde_json::from_str(&outcome.out()).unwrap_or_else(|error| panic!("{line}: {error}: {outcome:?}"))
    }
}

fn give(path: &Path) {
    chown(path, Some(uid()), Some(uid())).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}

pub(crate) fn sealed() -> Options {
    Options { integrity: true, key: None }
}

pub(crate) fn unsealed() -> Options {
    Options { integrity: false, key: None }
}

pub(crate) fn decision(path: &str, decision: Decision) -> AuditEvent {
    AuditEvent::CapabilityDecision(CapabilityDecision {
        time_ms: START + 1500,
        path: path.into(),
        access: "read".to_owned(),
        program: "/usr/bin/cat".into(),
        pid: 42,
        decision,
        by: "terminal".to_owned(),
        scope: Some("session".to_owned()),
        reason: Some("the \u{202e}task".to_owned()),
    })
}

fn events() -> Vec<AuditEvent> {
    vec![
        AuditEvent::Snapshot(Snapshot {
            time_ms: START + 1000,
            number: 0,
            merkle_root: "ab".repeat(32),
            state_root: "cd".repeat(32),
        }),
        decision("/home/me/notes.txt", Decision::Allowed),
        decision("/home/me/.ssh/id_ed25519", Decision::Denied),
        AuditEvent::UrlOpen(UrlOpen {
            time_ms: START + 2000,
            url: "https://login.example.org/?code=[redacted:0123456789abcdef]".to_owned(),
            program: "/usr/bin/xdg-open".into(),
            pid: 44,
            decision: Decision::Allowed,
            by: "terminal".to_owned(),
            error: None,
        }),
        AuditEvent::BackendError(BackendError {
            time_ms: START + 3000,
            backend: "webhook".to_owned(),
            why: "no answer".to_owned(),
        }),
        AuditEvent::Warning(Warning { time_ms: START + 4000, message: "the disk is nearly full".to_owned() }),
    ]
}

fn denial(path: &str) -> DenialKey {
    DenialKey {
        kind: "open".to_owned(),
        path: Some(path.into()),
        access: "read".to_owned(),
        reason: "not granted".to_owned(),
        program: "/usr/bin/cat".into(),
    }
}

fn network(host: &str, decision: Decision) -> Network {
    let denied = decision == Decision::Denied;
    Network {
        time_ms: START + 86_400_000,
        mode: "connect".to_owned(),
        decision,
        host: host.to_owned(),
        port: 443,
        method: Some("CONNECT".to_owned()),
        path: None,
        status: Some(if denied { 403 } else { 200 }),
        reason: denied.then(|| "no rule allows it".to_owned()),
        category: denied.then(|| "host_denied".to_owned()),
        address: None,
        credential: (!denied).then(|| "example".to_owned()),
        bytes_sent: if denied { 0 } else { 1200 },
        bytes_received: if denied { 0 } else { 3_400_000 },
        duration_ms: 250,
        phase: None,
        count: 1,
    }
}
