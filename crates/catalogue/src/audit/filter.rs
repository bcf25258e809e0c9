//! Filter for recorded sessions and events.

use std::path::{Path, PathBuf};

use nono_audit::AuditEvent;
use nono_audit::event::Decision;
use nono_audit::export::facts;
use nono_audit::reader::Reader;
use nono_sys::time::seconds;

use super::catalogue::AuditEntry;
use super::error::AuditError;

/// Conditions that all have to match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Milliseconds since 1970.
    pub since: Option<u64>,
    pub until: Option<u64>,
    /// Text contained in the command, ignoring case.
    pub command: Option<String>,
    /// Path that is touched, itself or something below it.
    pub path: Option<PathBuf>,
    pub decision: Option<Decision>,
    /// Host, or a domain suffix of it.
    pub host: Option<String>,
}

impl Filter {
    /// Whether the filter is about single events.
    fn asks_for_events(&self) -> bool {
        self.path.is_some() || self.decision.is_some() || self.host.is_some()
    }

    /// Whether something of this session matches. A damaged log is searched as far as it can be read.
    pub fn wants_session(&self, entry: &AuditEntry) -> Result<bool, AuditError> {
        if !self.fits_session(entry) {
            return Ok(false);
        }
        if !self.asks_for_events() {
            return Ok(true);
        }
        // An invalid record ends the log: `verify` reports what is wrong with it.
        Ok(Reader::open(&entry.dir)?.map_while(Result::ok).any(|record| self.wants(&record.event)))
    }

    /// Match the session's record.
    fn fits_session(&self, entry: &AuditEntry) -> bool {
        let record = &entry.record;
        let moment = |text: &str| seconds(text).map(|seconds| seconds * 1000);
        let begun = moment(&record.started).unwrap_or(0);
        // The end of a killed session is unknown: its start is used.
        let over = record.ended.as_deref().and_then(moment).unwrap_or(begun);
        // The record's times are whole seconds.
        let in_time = self.since.is_none_or(|since| over.saturating_add(999) >= since || entry.is_running())
            && self.until.is_none_or(|until| begun <= until);
        in_time && self.command.as_deref().is_none_or(|text| says(&record.command, text))
    }

    /// Whether this event matches. An event without a path, decision or host does not match a condition on it.
    pub fn wants(&self, event: &AuditEvent) -> bool {
        let facts = facts(event);
        self.since.is_none_or(|since| facts.time_ms >= since)
            && self.until.is_none_or(|until| facts.time_ms <= until)
            && self.decision.is_none_or(|decision| facts.decision == Some(decision))
            && self.path.as_deref().is_none_or(|path| touches(event, path))
            && self.host.as_deref().is_none_or(|host| reaches(event, host))
    }
}

fn says(command: &[String], text: &str) -> bool {
    command.join(" ").to_lowercase().contains(&text.to_lowercase())
}

fn touches(event: &AuditEvent, below: &Path) -> bool {
    match event {
        AuditEvent::CapabilityDecision(it) => it.path.starts_with(below),
        AuditEvent::Denial(it) => it.what.path.as_deref().is_some_and(|path| path.starts_with(below)),
        AuditEvent::Checkpoint(it) => it.project.starts_with(below),
        AuditEvent::Restore(it) => it.paths.iter().any(|path| path.starts_with(below)),
        _ => false,
    }
}

fn reaches(event: &AuditEvent, host: &str) -> bool {
    let fits = |found: &str| {
        let (found, host) = (found.to_lowercase(), host.trim_start_matches("*.").to_lowercase());
        found == host || found.strip_suffix(&host).is_some_and(|before| before.ends_with('.'))
    };
    match event {
        AuditEvent::Network(it) => fits(&it.host),
        AuditEvent::UrlOpen(it) => fits(host_of(&it.url)),
        _ => false,
    }
}

fn host_of(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(host, |(host, _)| host)
}
