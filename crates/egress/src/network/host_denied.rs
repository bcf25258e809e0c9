//! A host that the proxy refused, and what would open it.

use std::net::{IpAddr, SocketAddr};

use nono_policy::addresses::class_of;
use nono_policy::host_rule::{Host, HostRule, Hosts};
use nono_policy::text::{escape, quote_all, times};
use nono_proxy::Category;
use serde::Serialize;

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
                format!("it resolves to {address}, a {class} address, which needs a rule of its own")
            }
            (Some(Category::AddressDenied), None) => "it resolves to a closed address".to_owned(),
            (Some(Category::SniMismatch), _) => "the TLS ClientHello names another host".to_owned(),
            (Some(Category::AuthenticationFailed), _) => "the client sent no valid proxy token".to_owned(),
            (Some(Category::MalformedRequest), _) => "the request was malformed".to_owned(),
            (Some(Category::TooManyConnections), _) => "too many connections at once".to_owned(),
            _ => self.reason.as_deref().map_or_else(|| "refused by the proxy".to_owned(), escape),
        }
    }

    /// Lines of the footer: the attempt and its reason, and the flags that open it.
    pub fn lines(&self) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use nono_proxy::ProxyEvent;

    use super::super::{NetworkReport, wire};
    use super::*;

    fn event(host: &str, port: u16, category: Category, address: Option<&str>) -> ProxyEvent {
        ProxyEvent {
            port,
            status: Some(403),
            reason: Some("because\x1b[2J".to_owned()),
            category: Some(category),
            address: address.map(str::to_owned),
            ..wire::tests::event(host, false)
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
                    "  connect to in.example.org:443: it resolves to 10.1.2.3, a private address, which needs a rule of its own",
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
}
