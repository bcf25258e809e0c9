//! Summary of the network use of a run.

use std::collections::HashMap;

use nono_proxy::{Category, Phase, ProxyEvent};

use super::host_denied::HostDenied;
use super::wire::UnsentCounts;

/// Maximum number of hosts listed.
const MOST_HOSTS: usize = 200;

/// Counts of what the proxy allowed and refused, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkReport {
    pub allowed: u64,
    pub refused: u64,
    /// Refused hosts in order; [`NetworkReport::not_listed`] counts those beyond the limit.
    pub hosts: Vec<HostDenied>,
    pub not_listed: u64,
    /// Events known to be lost, because the proxy ended unexpectedly: a lower bound.
    pub untold: UnsentCounts,
    /// Reason, if the proxy ended unexpectedly.
    pub lost: Option<String>,
    index: HashMap<(String, u16, Option<Category>), usize>,
}

impl NetworkReport {
    /// Report of a proxy of which only the failure is known.
    pub(super) fn without_a_word(why: &str) -> NetworkReport {
        NetworkReport { lost: Some(why.to_owned()), ..NetworkReport::default() }
    }

    /// Message about lost events, if any.
    pub fn missing(&self) -> Option<String> {
        let UnsentCounts { allowed, refused } = self.untold;
        let all = allowed.saturating_add(refused);
        let events = if all == 1 { "network event was" } else { "network events were" };
        (all > 0).then(|| format!("at least {all} {events} lost: {allowed} allowed, {refused} refused"))
    }

    pub(crate) fn note(&mut self, event: &ProxyEvent) {
        // A tunnel counts when it opens, and not if it is refused after all.
        let counted = event.phase == Some(Phase::Ended);
        if event.allowed {
            self.allowed += if counted { 0 } else { event.count };
            self.forget_challenge(event);
            return;
        }
        if counted {
            self.allowed = self.allowed.saturating_sub(event.count);
        }
        self.refused += event.count;
        let key = (event.host.clone(), event.port, event.category);
        if let Some(host) = self.index.get(&key).and_then(|index| self.hosts.get_mut(*index)) {
            host.count += event.count;
        } else if self.hosts.len() < MOST_HOSTS {
            self.index.insert(key, self.hosts.len());
            self.hosts.push(HostDenied {
                host: event.host.clone(),
                port: event.port,
                category: event.category,
                reason: event.reason.clone(),
                address: event.address.clone(),
                count: event.count,
            });
        } else {
            self.not_listed += event.count;
        }
    }

    /// Drops an authentication refusal: some programs send the token only when challenged, so no host was denied.
    fn forget_challenge(&mut self, event: &ProxyEvent) {
        let key = (event.host.clone(), event.port, Some(Category::AuthenticationFailed));
        let Some(place) = self.index.remove(&key) else { return };
        self.hosts.remove(place);
        for index in self.index.values_mut().filter(|index| **index > place) {
            *index -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::tests::event;
    use super::*;

    #[test]
    fn a_tunnel_counts_once() {
        let mut report = NetworkReport::default();
        let told = |allowed, phase| ProxyEvent { phase: Some(phase), ..event("h", allowed) };
        report.note(&told(true, Phase::Opened));
        assert_eq!((report.allowed, report.refused), (1, 0));
        report.note(&told(true, Phase::Ended));
        assert_eq!((report.allowed, report.refused), (1, 0));
        report.note(&told(true, Phase::Opened));
        report.note(&told(false, Phase::Ended));
        assert_eq!((report.allowed, report.refused), (1, 1));
        report.note(&ProxyEvent { count: 10, ..event("h", false) });
        assert_eq!((report.refused, report.hosts[0].count), (11, 11));
    }

    #[test]
    fn a_token_that_was_asked_for_and_shown_is_no_refusal() {
        let asked =
            |host| ProxyEvent { category: Some(Category::AuthenticationFailed), ..event(host, false) };
        let mut report = NetworkReport::default();
        for refused in [asked("late.org"), asked("never.org"), event("closed.org", false)] {
            report.note(&refused);
        }
        report.note(&event("late.org", true));
        report.note(&event("closed.org", false));
        let listed: Vec<_> = report.hosts.iter().map(|host| (host.host.as_str(), host.count)).collect();
        assert_eq!(listed, [("never.org", 1), ("closed.org", 2)]);
        assert_eq!((report.allowed, report.refused), (1, 4));
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut report = NetworkReport::default();
        assert_eq!(report.missing(), None);
        report.untold = UnsentCounts { allowed: 1, refused: 2 };
        assert_eq!(report.missing().unwrap(), "at least 3 network events were lost: 1 allowed, 2 refused");
    }

    #[test]
    fn refusals_are_counted_by_host_within_a_bound() {
        let mut report = NetworkReport::default();
        report.note(&event("fine.org", true));
        for index in 0..MOST_HOSTS + 5 {
            report.note(&event(&format!("h{index}"), false));
            report.note(&event("h0", false));
        }
        assert_eq!((report.allowed, report.refused), (1, 2 * (MOST_HOSTS as u64 + 5)));
        assert_eq!((report.hosts.len(), report.not_listed), (MOST_HOSTS, 5));
        assert_eq!((report.hosts[0].host.as_str(), report.hosts[0].count), ("h0", MOST_HOSTS as u64 + 6));
    }
}
