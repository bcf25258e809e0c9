//! Filtered network in the diagnostic: hosts that the proxy refused, and programs that bypassed it.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use nono_policy::addresses::class_of;
use nono_policy::hosts::{Host, HostRule, Hosts};
use nono_proxy::Category;
use nono_supervisor::report::{DeniedAttempt, Port};
use serde::Serialize;

use super::text::{escape, quote_all, shown};
use super::{Denial, Seen};

/// A host that the proxy refused, with a count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostDenied {
    pub host: String,
    pub port: u16,
    pub category: Option<Category>,
    /// The proxy's reason for the first refusal.
    pub reason: Option<String>,
    /// Address that the name resolved to, if it was resolved.
    pub address: Option<String>,
    pub count: u64,
}

impl HostDenied {
    /// Flags that open exactly this, if any.
    pub fn flags(&self) -> Vec<String> {
        let Ok(host) = self.host.parse::<Host>() else { return Vec::new() };
        let host = match (self.category, self.led_to()) {
            (Some(Category::HostDenied), _) => host,
            // The name is allowed; its address needs a rule of its own.
            (Some(Category::AddressDenied), Some(address)) => Host::Address(address),
            _ => return Vec::new(),
        };
        let port = Some(self.port).filter(|port| *port != 0);
        vec!["--allow-domain".to_owned(), HostRule { hosts: Hosts::One(host), port }.to_string()]
    }

    /// The address, parsed with or without a port.
    fn led_to(&self) -> Option<IpAddr> {
        let text = self.address.as_ref()?;
        text.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|at| at.ip()))
    }

    fn why(&self) -> String {
        match (self.category, self.led_to()) {
            (Some(Category::HostDenied), _) => "the host is not allowed".to_owned(),
            (Some(Category::AddressDenied), Some(address)) => {
                let class = class_of(address).map_or("closed", nono_policy::AddressClass::word);
                format!("it leads to {address}, a {class} address, which only a rule that names it opens")
            }
            (Some(Category::AddressDenied), None) => "it leads to a closed address".to_owned(),
            (Some(Category::SniMismatch), _) => "the TLS ClientHello names another host".to_owned(),
            (Some(Category::AuthenticationFailed), _) => "the client sent no valid proxy token".to_owned(),
            (Some(Category::MalformedRequest), _) => "the request was malformed".to_owned(),
            (Some(Category::TooManyConnections), _) => "too many connections at once".to_owned(),
            _ => self.reason.as_deref().map_or_else(|| "refused by the proxy".to_owned(), escape),
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let place = if self.host.is_empty() { "the proxy".to_owned() } else { self.place() };
        let mut lines = vec![format!("  connect to {place}{}: {}", times(self.count), self.why())];
        let flags = self.flags();
        if !flags.is_empty() {
            lines.push(format!("    open it with: {}", quote_all(&flags)));
        }
        lines
    }

    fn place(&self) -> String {
        let host = escape(&self.host);
        if self.port == 0 { host } else { format!("{host}:{}", self.port) }
    }
}

fn times(count: u64) -> String {
    if count > 1 { format!(" ({count} times)") } else { String::new() }
}

/// Port of name servers.
const DNS: u16 = 53;

/// Address that a program tried to reach without the proxy.
pub(super) fn direct(denial: &Denial) -> Option<SocketAddr> {
    match &denial.attempt {
        DeniedAttempt::Network { port: Some(Port::Direct(at)), .. } => Some(*at),
        _ => None,
    }
}

/// Lines for connections that bypassed the proxy: one per program, and one for all name lookups.
pub(super) fn past_the_proxy(denials: &[Denial]) -> Vec<String> {
    let found = || denials.iter().filter_map(|denial| Some((direct(denial)?, denial.seen.as_ref()?)));
    let mut lines = Vec::new();
    let mut programs: Vec<(&PathBuf, Vec<SocketAddr>)> = Vec::new();
    for (at, Seen { program, .. }) in found().filter(|(at, _)| at.port() != DNS) {
        match programs.iter_mut().find(|(known, _)| *known == program) {
            Some((_, places)) => places.push(at),
            None => programs.push((program, vec![at])),
        }
    }
    for (program, places) in &programs {
        let more = match places.len() {
            0 | 1 => String::new(),
            2 => " and one more address".to_owned(),
            n => format!(" and {} more addresses", n - 1),
        };
        let first = places.first().map(ToString::to_string).unwrap_or_default();
        lines.push(format!("  the network is filtered: {} tried {first}{more} directly", name(program)));
    }
    let lookups: u64 = found().filter(|(at, _)| at.port() == DNS).map(|(_, seen)| seen.count).sum();
    if let Some((_, first)) = found().find(|(at, _)| at.port() == DNS) {
        let by = name(&first.program);
        let times = times(lookups);
        lines.push(format!("  the network is filtered: {by} tried to look up names itself{times}"));
    }
    if !lines.is_empty() {
        lines.push(
            "    only programs that use HTTP_PROXY and HTTPS_PROXY reach the open hosts; for others: --allow-net"
                .to_owned(),
        );
    }
    lines
}

fn name(program: &Path) -> String {
    shown(program.file_name().map_or(program, Path::new))
}

#[cfg(test)]
mod tests {
    use nono_policy::{CapabilitySet, DeniedReason, NetworkPolicy, ResolvedPolicy};
    use nono_proxy::{Mode, ProxyEvent};
    use nono_supervisor::report::RefusalReason;

    use super::super::{DiagnosticFormatter, Findings};
    use super::*;
    use crate::network::NetworkReport;

    fn event(host: &str, port: u16, category: Category, address: Option<&str>) -> ProxyEvent {
        ProxyEvent {
            time_ms: 0,
            mode: Mode::Connect,
            allowed: false,
            host: host.to_owned(),
            port,
            method: None,
            path: None,
            status: Some(403),
            reason: Some("because\x1b[2J".to_owned()),
            category: Some(category),
            address: address.map(str::to_owned),
            credential: None,
            route: None,
            bytes_sent: 0,
            bytes_received: 0,
            duration_ms: 0,
            phase: None,
            count: 1,
        }
    }

    fn lines(events: &[ProxyEvent]) -> Vec<String> {
        let mut report = NetworkReport::default();
        for event in events {
            report.note(event);
        }
        report.hosts.iter().flat_map(HostDenied::lines).collect()
    }

    #[test]
    fn refused_hosts_are_counted_and_come_with_their_flag() {
        let denied = event("example.com", 443, Category::HostDenied, None);
        let allowed = ProxyEvent { allowed: true, host: "open.org".into(), ..denied.clone() };
        assert_eq!(
            lines(&[denied.clone(), allowed, denied.clone(), denied]),
            [
                "  connect to example.com:443 (3 times): the host is not allowed",
                "    open it with: --allow-domain example.com:443",
            ]
        );
        for address in ["10.1.2.3", "10.1.2.3:443"] {
            assert_eq!(
                lines(&[event("in.example.org", 443, Category::AddressDenied, Some(address))]),
                [
                    "  connect to in.example.org:443: it leads to 10.1.2.3, a private address, which only a rule that names it opens",
                    "    open it with: --allow-domain 10.1.2.3:443",
                ]
            );
        }
    }

    #[test]
    fn what_came_from_the_command_is_harmless() {
        let odd = event("a\x1b[2J", 443, Category::HostDenied, None);
        let failed = event("x.org", 443, Category::Timeout, None);
        let text = lines(&[odd, failed]);
        assert!(text.iter().all(|line| !line.contains('\x1b')), "{text:?}");
        assert!(text.iter().all(|line| !line.contains("open it with")), "no flag opens these: {text:?}");
    }

    fn went(program: &str, to: &str, count: u64) -> Denial {
        let port = Some(Port::Direct(to.parse().unwrap()));
        Denial {
            attempt: DeniedAttempt::Network { what: format!("connect to {to}"), port },
            because: RefusalReason::Policy { reason: DeniedReason::NotGranted },
            flags: vec!["--allow-net".to_owned()],
            seen: Some(Seen { program: program.into(), pid: 7, count }),
            probe: false,
        }
    }

    #[test]
    fn programs_that_go_past_the_proxy_are_told_of_once() {
        let denials = [
            went("/usr/bin/nc", "192.0.2.1:443", 2),
            went("/usr/bin/nc", "[2001:db8::1]:443", 1),
            went("/usr/bin/ssh", "192.0.2.9:22", 1),
            went("/usr/bin/ssh", "192.0.2.53:53", 2),
            went("/usr/bin/nc", "127.0.0.53:53", 3),
        ];
        assert_eq!(
            past_the_proxy(&denials),
            [
                "  the network is filtered: nc tried 192.0.2.1:443 and one more address directly",
                "  the network is filtered: ssh tried 192.0.2.9:22 directly",
                "  the network is filtered: ssh tried to look up names itself (5 times)",
                "    only programs that use HTTP_PROXY and HTTPS_PROXY reach the open hosts; for others: --allow-net",
            ]
        );
        assert!(past_the_proxy(&[]).is_empty());
    }

    fn findings() -> (ResolvedPolicy, Findings) {
        let mut policy = CapabilitySet::new().to_policy().unwrap();
        let hosts = vec!["example.org".parse().unwrap()];
        policy.network = NetworkPolicy::Filtered { hosts, connect: vec![], listen: vec![] };
        let mut report = NetworkReport::default();
        report.note(&event("example.com", 443, Category::HostDenied, None));
        let denials = vec![went("/usr/bin/nc", "192.0.2.1:443", 1)];
        let findings = Findings { denials, network: true, ..Findings::default() };
        (policy, findings.with_network(Some(&report)))
    }

    #[test]
    fn the_footer_of_a_filtered_run() {
        let (policy, findings) = findings();
        let formatter =
            DiagnosticFormatter { exit_code: 6, policy: &policy, findings: &findings, verbose: false };
        assert_eq!(
            formatter.lines(),
            [
                "The command exited with code 6. This may be due to sandbox restrictions.",
                "Denied:",
                "  connect to example.com:443: the host is not allowed",
                "    open it with: --allow-domain example.com:443",
                "  the network is filtered: nc tried 192.0.2.1:443 directly",
                "    only programs that use HTTP_PROXY and HTTPS_PROXY reach the open hosts; for others: --allow-net",
                "Sandbox policy:",
                "  no path was granted",
                "  network: only example.org",
                "To open more, run it again with:",
                "  --allow <path>   read and write a folder and everything in it",
                "  --read <path>    read it only",
                "  --write <path>   write it only",
                "  --allow-domain   reach one more host through the proxy",
                "  --allow-net      use the network",
            ]
        );
        let json = formatter.json();
        assert_eq!(
            json["hosts_denied"],
            serde_json::json!([{
                "host": "example.com",
                "port": 443,
                "category": "host_denied",
                "reason": "because\u{1b}[2J",
                "address": null,
                "count": 1,
                "flags": ["--allow-domain", "example.com:443"],
            }])
        );
        assert_eq!(json["denials"][0]["operation"], "connect to 192.0.2.1:443");
    }

    #[test]
    fn a_complaint_without_a_recorded_cause() {
        let (policy, mut findings) = findings();
        (findings.hosts, findings.denials) = (vec![], vec![]);
        let formatter =
            DiagnosticFormatter { exit_code: 6, policy: &policy, findings: &findings, verbose: false };
        let lines = formatter.lines();
        assert_eq!(
            lines[2..4],
            ["  network: it is only example.org", "    open it with: --allow-domain <host>"]
        );
    }
}
