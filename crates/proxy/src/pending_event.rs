//! Recording of one event, from its start to its end.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::config::RequestTarget;
use crate::event::{Mode, Phase, ProxyEvent};
use crate::refusal::Refusal;
use crate::shared::ListenerShared;

/// Maximum length of a path in an event, since the client chooses it.
const MAX_PATH: usize = 1024;

/// Event under construction. It is sent on drop, also when the proxy ends in the middle of the request.
pub(crate) struct PendingEvent<'a> {
    pub(crate) event: ProxyEvent,
    started: Instant,
    shared: &'a ListenerShared,
    told: bool,
}

impl<'a> PendingEvent<'a> {
    pub(crate) fn new(shared: &'a ListenerShared, mode: Mode) -> PendingEvent<'a> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let event = ProxyEvent {
            time_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            mode,
            allowed: true,
            count: 1,
            ..ProxyEvent::default()
        };
        PendingEvent { event, started: Instant::now(), shared, told: false }
    }

    pub(crate) fn target(mut self, target: &RequestTarget) -> PendingEvent<'a> {
        self.event.host = target.host.to_string();
        self.event.port = target.port;
        self
    }

    /// Sets method and path. The query is left out, since it may hold secrets.
    pub(crate) fn request(mut self, method: &str, path: Option<&str>) -> PendingEvent<'a> {
        self.event.method = Some(method.to_owned());
        self.event.path = path.map(|path| {
            let path = path.split('?').next().unwrap_or_default();
            path.chars().take(MAX_PATH).collect()
        });
        self
    }

    /// Reports that a tunnel is open. Its end is reported too; should that get lost, the opening is still on record.
    pub(crate) fn open(&mut self) {
        self.shared.events.event(ProxyEvent {
            phase: Some(Phase::Opened),
            bytes_sent: 0,
            bytes_received: 0,
            ..self.event.clone()
        });
        self.event.phase = Some(Phase::Ended);
    }

    /// Marks the request as refused.
    pub(crate) fn refuse(&mut self, refusal: &Refusal) {
        self.fail(refusal);
        self.event.allowed = !refusal.is_denial();
        self.event.status = Some(refusal.status);
    }

    /// Marks the request as failed after it had started.
    pub(crate) fn fail(&mut self, refusal: &Refusal) {
        self.event.category = Some(refusal.category);
        self.event.reason = Some(format!("{}: {}", refusal.reason, refusal.advice));
        if let Some(address) = refusal.address {
            self.event.address = Some(address.to_string());
        }
        self.told = true;
    }

    /// Marks the request as complete.
    pub(crate) fn end(&mut self) {
        self.told = true;
    }
}

impl Drop for PendingEvent<'_> {
    fn drop(&mut self) {
        if !self.told {
            self.event.reason = Some("the proxy ended while it was open".to_owned());
        }
        self.event.duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.shared.events.event(self.event.clone());
    }
}
