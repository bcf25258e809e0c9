//! Decisions and denials, for the audit log.
//!
//! An approval is on disk before it takes effect; if it cannot be written, it counts as a denial. Denials need not
//! wait: nothing became visible to the command. They are counted by kind, so that a flood stays small.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nono_audit::event::{
    AuditEvent, BackendError, CapabilityDecision, Decision, DenialKey, Restore, UrlOpen,
};
use nono_audit::{AuditLog, WriteError};
use nono_policy::AccessMode;
use nono_sys::time::now_ms;

use crate::approval::{ApprovalAnswer, Asker, Scope, Verdict};
use crate::report::{DeniedAttempt, RefusalReason};
use crate::urls::Redact;

/// The audit log, where there is one.
#[derive(Debug, Default)]
pub(super) struct Journal {
    log: Option<Arc<AuditLog>>,
    /// Redaction of addresses in it.
    redact: Option<Redact>,
    /// Number of addresses refused without asking.
    refused_urls: AtomicU64,
    /// Answers of rules, which are given anew each time and written once.
    known: Mutex<HashSet<(std::path::PathBuf, AccessMode, String)>>,
}

/// Number of rule answers remembered; beyond it each one is written each time.
const KNOWN: usize = 10_000;
/// Number of refused addresses listed; beyond it they are only counted.
const REFUSED_URLS: u64 = 200;
/// Maximum length of a listed address, in bytes.
const REFUSED_URL: usize = 2048;

impl Journal {
    pub(super) fn new(log: Option<Arc<AuditLog>>, redact: Option<Redact>) -> Journal {
        Journal { log, redact, ..Journal::default() }
    }

    fn redacted(&self, url: &str) -> String {
        self.redact.as_ref().map_or_else(String::new, |redact| redact.apply(url))
    }

    /// Records an approver's answer to a request about a path.
    pub(super) fn answered(&self, asked: &AskedAbout<'_>, answer: &ApprovalAnswer) -> Result<(), WriteError> {
        let Some(log) = &self.log else { return Ok(()) };
        let event = AuditEvent::CapabilityDecision(asked.decision(answer));
        log.decide(&event)
    }

    /// Records a rule's answer. Denials are counted elsewhere.
    pub(super) fn answered_by_rule(
        &self,
        asked: &AskedAbout<'_>,
        answer: &ApprovalAnswer,
    ) -> Result<(), WriteError> {
        if self.log.is_none() || !matches!(answer.verdict, Verdict::Allow(_)) {
            return Ok(());
        }
        let key = (asked.path.to_owned(), asked.access, answer.by.clone());
        // Held over the write: no other thread may act on an answer that is still being written.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&key) {
            return Ok(());
        }
        self.answered(asked, answer)?;
        if known.len() < KNOWN {
            known.insert(key);
        }
        Ok(())
    }

    /// Records a denial; `pid` is known for the first of its kind.
    pub(super) fn refused(&self, attempt: &DeniedAttempt, because: &RefusalReason, program: &Path, pid: u32) {
        let Some(log) = &self.log else { return };
        // A log that cannot be written any more reports that itself, and refuses every decision from then on.
        let _ = log.denied(now_ms(), denial(attempt, because, program), pid);
    }

    /// Records an address that was asked about, or could not be opened although it was allowed.
    pub(super) fn url(
        &self,
        asker: &Asker,
        url: &str,
        answer: &ApprovalAnswer,
        error: Option<String>,
    ) -> Result<(), WriteError> {
        let Some(log) = &self.log else { return Ok(()) };
        let allowed = matches!(answer.verdict, Verdict::Allow(_));
        let decision = if allowed { Decision::Allowed } else { Decision::Denied };
        let event = url_open(asker, self.redacted(url), decision, &answer.by, error);
        log.decide(&event)
    }

    /// Records an address that was refused without asking or without an answer. A flood of them stays small.
    pub(super) fn url_refused(&self, asker: &Asker, url: &str, why: &str) {
        let Some(log) = &self.log else { return };
        // As above.
        let _ = if self.refused_urls.fetch_add(1, Ordering::Relaxed) < REFUSED_URLS {
            let mut url = self.redacted(url);
            if url.len() > REFUSED_URL {
                url.truncate((0..=REFUSED_URL).rev().find(|end| url.is_char_boundary(*end)).unwrap_or(0));
                url.push('…');
            }
            log.note(&url_open(asker, url, Decision::Denied, "policy", Some(why.to_owned())))
        } else {
            let what = DenialKey {
                kind: "url".to_owned(),
                path: None,
                access: "open".to_owned(),
                reason: why.to_owned(),
                program: asker.program.clone(),
            };
            log.denied(now_ms(), what, asker.pid)
        };
    }

    pub(super) fn backend_failed(&self, backend: &str, why: &str) {
        let Some(log) = &self.log else { return };
        let event = BackendError { time_ms: now_ms(), backend: backend.to_owned(), why: why.to_owned() };
        // As above.
        let _ = log.note(&AuditEvent::BackendError(event));
    }

    pub(super) fn restored(&self, restore: Restore) {
        let Some(log) = &self.log else { return };
        // As above.
        let _ = log.note(&AuditEvent::Restore(restore));
    }
}

fn url_open(asker: &Asker, url: String, decision: Decision, by: &str, error: Option<String>) -> AuditEvent {
    AuditEvent::UrlOpen(UrlOpen {
        time_ms: now_ms(),
        url,
        program: asker.program.clone(),
        pid: asker.pid,
        decision,
        by: by.to_owned(),
        error,
    })
}

/// Subject of an answer.
pub(super) struct AskedAbout<'a> {
    pub(super) path: &'a Path,
    pub(super) access: AccessMode,
    pub(super) asker: Asker,
    pub(super) reason: Option<String>,
    /// Action instead of the access, where it is about something else.
    pub(super) what: Option<&'static str>,
}

impl AskedAbout<'_> {
    fn decision(&self, answer: &ApprovalAnswer) -> CapabilityDecision {
        let (decision, scope) = match answer.verdict {
            Verdict::Allow(scope) => (Decision::Allowed, Some(scope_word(scope))),
            Verdict::Deny => (Decision::Denied, None),
            Verdict::Never => (Decision::Denied, Some("never")),
        };
        CapabilityDecision {
            time_ms: now_ms(),
            path: self.path.to_owned(),
            access: self.what.map_or_else(|| access_word(self.access), str::to_owned),
            program: self.asker.program.clone(),
            pid: self.asker.pid,
            decision,
            by: answer.by.clone(),
            scope: scope.map(str::to_owned),
            reason: self.reason.clone(),
        }
    }
}

fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Once => "once",
        Scope::Session => "session",
        Scope::Directory => "directory",
        Scope::Saved => "saved",
    }
}

fn access_word(access: AccessMode) -> String {
    match access {
        AccessMode::Read => "read",
        AccessMode::Write => "write",
        AccessMode::ReadWrite => "readwrite",
    }
    .to_owned()
}

fn denial(attempt: &DeniedAttempt, because: &RefusalReason, program: &Path) -> DenialKey {
    let (kind, path, operation) = attempt.parts();
    let access = match attempt {
        DeniedAttempt::Open { access, .. } => access_word(*access),
        _ => operation,
    };
    DenialKey {
        kind: kind.to_owned(),
        path: path.map(Path::to_owned),
        access,
        reason: because.words(),
        program: program.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use nono_audit::event::SessionStarted;
    use nono_audit::log::Options;

    use super::*;

    fn journal() -> (tempfile::TempDir, Journal) {
        let dir = tempfile::tempdir().unwrap();
        let started = SessionStarted {
            time_ms: 0,
            session_id: "1".to_owned(),
            name: None,
            version: String::new(),
            pid: 1,
            command: vec![],
            workdir: "/".into(),
            executable: None,
            policy_digest: nono_audit::Digest::ZERO,
            tracked_paths: vec![],
            network: String::new(),
            project_profiles: Vec::new(),
            ledger_head: None,
        };
        let log = AuditLog::create(dir.path(), started, Options::default()).unwrap();
        (dir, Journal::new(Some(Arc::new(log)), Some(Redact::new(|url| url.replace("secret", "*")))))
    }

    fn lines(dir: &tempfile::TempDir) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(dir.path().join("1").join(nono_audit::log::EVENTS)).unwrap();
        let event = |line| serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].clone();
        text.lines().skip(1).map(event).collect()
    }

    #[test]
    fn a_rules_answer_is_written_once_and_a_persons_each_time() {
        let (dir, journal) = journal();
        let asked = |path: &'static str| AskedAbout {
            path: Path::new(path),
            access: AccessMode::Read,
            asker: Asker { program: "/bin/cat".into(), pid: 7 },
            reason: None,
            what: None,
        };
        let yes = ApprovalAnswer::new(Verdict::Allow(Scope::Session), "rule 1");
        for path in ["/a", "/a", "/b"] {
            journal.answered_by_rule(&asked(path), &yes).unwrap();
        }
        journal.answered_by_rule(&asked("/c"), &ApprovalAnswer::new(Verdict::Deny, "rule 2")).unwrap();
        for _ in 0..2 {
            journal.answered(&asked("/d"), &ApprovalAnswer::new(Verdict::Never, "you")).unwrap();
        }
        let paths: Vec<_> =
            lines(&dir).iter().map(|event| event["path"].as_str().unwrap().to_owned()).collect();
        assert_eq!(paths, ["/a", "/b", "/d", "/d"]);
        let last = &lines(&dir)[3];
        assert_eq!((last["decision"].as_str(), last["scope"].as_str()), (Some("denied"), Some("never")));
    }

    #[test]
    fn refused_addresses_are_named_and_a_flood_of_them_is_counted() {
        let (dir, journal) = journal();
        let asker = Asker { program: "/bin/sh".into(), pid: 7 };
        journal.url_refused(&asker, "file:///secret", "only http:// and https:// addresses are opened");
        let first = &lines(&dir)[0];
        assert_eq!(first["url"], "file:///*");
        assert_eq!((first["decision"].as_str(), first["by"].as_str()), (Some("denied"), Some("policy")));
        assert_eq!(first["error"], "only http:// and https:// addresses are opened");
        for _ in 0..REFUSED_URLS * 5 {
            journal.url_refused(&asker, &"é".repeat(REFUSED_URL), "the address is too long to be shown");
        }
        let lines = lines(&dir);
        assert!(lines[1]["url"].as_str().unwrap().len() <= REFUSED_URL + '…'.len_utf8());
        let named = |event: &&serde_json::Value| event.get("url").is_some();
        assert_eq!(lines.iter().filter(named).count() as u64, REFUSED_URLS);
        let counted = lines.last().unwrap();
        assert_eq!(
            (counted["what"]["kind"].as_str(), counted["what"]["access"].as_str()),
            (Some("url"), Some("open"))
        );
        assert!(lines.len() as u64 <= REFUSED_URLS + 5, "{}", lines.len());
    }
}
