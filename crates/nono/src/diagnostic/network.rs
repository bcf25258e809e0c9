//! Filtered network in the diagnostic: programs that bypassed the proxy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use nono_policy::text::{shown, times};
use nono_supervisor::report::{DeniedAttempt, Port};

use super::{Denial, DenialDetails};

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
    for (at, DenialDetails { program, .. }) in found().filter(|(at, _)| at.port() != DNS) {
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
    use nono_proxy::Category;
    use nono_supervisor::report::RefusalReason;

    use super::super::{DiagnosticFormatter, Findings};
    use super::*;
    use crate::network::{HostDenied, NetworkReport};

    fn went(program: &str, to: &str, count: u64) -> Denial {
        let port = Some(Port::Direct(to.parse().unwrap()));
        Denial {
            attempt: DeniedAttempt::Network { what: format!("connect to {to}"), port },
            because: RefusalReason::Policy { reason: DeniedReason::NotGranted },
            flags: vec!["--allow-net".to_owned()],
            seen: Some(DenialDetails { program: program.into(), pid: 7, count }),
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
        report.hosts.push(HostDenied {
            host: "example.com".to_owned(),
            port: 443,
            category: Some(Category::HostDenied),
            reason: Some("because\x1b[2J".to_owned()),
            address: None,
            count: 1,
        });
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
