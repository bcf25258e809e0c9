//! Messages between the supervisor and the proxy process, over one socket.

use nono_proxy::{Config, ProxyEvent};
use serde::{Deserialize, Serialize};

use crate::helper::Frames;

/// Frames to the helper: the whole configuration, with the certificates that this system trusts.
pub(super) const TOLD: Frames = Frames { most: 32 << 20 };
/// Frames from the helper, which is not trusted: an event, every byte of it escaped.
pub(super) const SAID: Frames = Frames { most: 64 << 10 };

/// Messages to the helper, in this order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub(super) enum HelperFrame {
    Setup {
        config: Box<Config>,
    },
    /// Comes with the socket to serve.
    Listener,
    /// Close all connections, send the remaining events, and end. The end of the stream means the same.
    End,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub(super) enum HelperMessage {
    /// Confined, and waiting for the socket. `authority`: PEM of the authority whose certificates it presents where it
    /// terminates TLS.
    Ready {
        authority: Option<String>,
    },
    /// The helper cannot start serving.
    Unable {
        why: String,
    },
    Serving,
    Event {
        event: Box<ProxyEvent>,
        /// Counts of the events queued behind it. If the helper never sends again, at least these are lost.
        untold: UnsentCounts,
    },
    /// Last frame: everything was sent.
    Done,
}

/// Counts of events that were not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsentCounts {
    pub allowed: u64,
    pub refused: u64,
}

impl UnsentCounts {
    pub(super) fn add(&mut self, event: &ProxyEvent) {
        let count = self.counter(event);
        *count = count.saturating_add(event.count);
    }

    pub(super) fn remove(&mut self, event: &ProxyEvent) {
        let count = self.counter(event);
        *count = count.saturating_sub(event.count);
    }

    fn counter(&mut self, event: &ProxyEvent) -> &mut u64 {
        if event.allowed { &mut self.allowed } else { &mut self.refused }
    }
}

const MOST_TEXT: usize = 1000;

/// Event with its texts cut to a useful length: they come from the command, and a frame is bounded.
pub(super) fn bounded(mut event: ProxyEvent) -> ProxyEvent {
    let texts = [
        &mut event.method,
        &mut event.path,
        &mut event.reason,
        &mut event.address,
        &mut event.credential,
        &mut event.route,
    ];
    for text in texts.into_iter().flatten().chain([&mut event.host]) {
        if text.len() > MOST_TEXT {
            let end = (0..=MOST_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
    }
    event
}

#[cfg(test)]
pub(super) mod tests {
    use nono_proxy::Category;

    use super::*;

    pub(in super::super) fn event(host: &str, allowed: bool) -> ProxyEvent {
        ProxyEvent {
            time_ms: 1,
            allowed,
            host: host.to_owned(),
            port: 443,
            category: (!allowed).then_some(Category::HostDenied),
            count: 1,
            ..ProxyEvent::default()
        }
    }

    #[test]
    fn the_longest_event_fits_into_a_frame() {
        let long = "\u{1}é".repeat(100_000);
        let text = || Some(long.clone());
        let event = ProxyEvent {
            host: long.clone(),
            method: text(),
            path: text(),
            reason: text(),
            address: text(),
            credential: text(),
            route: text(),
            ..event("", false)
        };
        let said = |event| HelperMessage::Event {
            event: Box::new(event),
            untold: UnsentCounts { allowed: u64::MAX, refused: u64::MAX },
        };
        assert!(SAID.encode(&said(event.clone())).is_err());
        assert!(SAID.encode(&said(bounded(event))).is_ok());
    }
}
