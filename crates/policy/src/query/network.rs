//! Queries for one connection.

use serde::{Deserialize, Serialize};

use super::Suggestion;
use crate::addresses::{AddressClass, class_of_host, opens_class};
use crate::host_rule::{Host, HostRule, Hosts};
use crate::resolved::{HostGrant, NetworkPolicy, ResolvedPolicy};

/// The answer for a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkQuery {
    pub allowed: bool,
    pub reason: NetworkReason,
    #[serde(default)]
    pub rule: Option<HostGrant>,
    /// The nearest rule, where none opens the host.
    #[serde(default)]
    pub closest: Option<HostGrant>,
    /// Class of the address, if it is known to be a closed one.
    #[serde(default)]
    pub class: Option<AddressClass>,
    /// Address classes that are refused even when an open name resolves to them.
    #[serde(default)]
    pub still_refused: Vec<AddressClass>,
    pub suggestion: Option<Suggestion>,
}

/// Reason why a connection is allowed or denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkReason {
    NetworkAllowed,
    NetworkBlocked,
    PortAllowed,
    PortNotAllowed,
    HostAllowed,
    HostNotAllowed,
    /// The host is open, on other ports.
    HostPortNotAllowed,
    /// The host is of a closed class ([`NetworkQuery::class`]); only a rule naming the address opens it.
    AddressDenied,
    /// The text names no host.
    NotAHost,
}

impl NetworkQuery {
    fn allowed(reason: NetworkReason) -> NetworkQuery {
        NetworkQuery {
            allowed: true,
            reason,
            rule: None,
            closest: None,
            class: None,
            still_refused: Vec::new(),
            suggestion: None,
        }
    }

    fn denied(reason: NetworkReason, flags: Option<Vec<String>>) -> NetworkQuery {
        let suggestion = flags.map(|flags| Suggestion { flags });
        NetworkQuery { allowed: false, suggestion, ..NetworkQuery::allowed(reason) }
    }
}

/// Answers for a connection. Where only ports are open the host is ignored.
pub fn query_network(policy: &ResolvedPolicy, host: Option<&str>, port: Option<u16>) -> NetworkQuery {
    let whole = || Some(vec!["--allow-net".to_owned()]);
    match (&policy.network, port) {
        (NetworkPolicy::Allowed, _) => NetworkQuery::allowed(NetworkReason::NetworkAllowed),
        (NetworkPolicy::Blocked, _) => {
            let host = host.and_then(|host| host.parse().ok());
            let flags = host.map_or_else(whole, |host| Some(flags(&host, port)));
            NetworkQuery::denied(NetworkReason::NetworkBlocked, flags)
        }
        (NetworkPolicy::Ports { connect, .. }, Some(port)) if connect.contains(&port) => {
            NetworkQuery::allowed(NetworkReason::PortAllowed)
        }
        (NetworkPolicy::Ports { .. }, Some(port)) => {
            let flags = vec!["--allow-connect-port".to_owned(), port.to_string()];
            NetworkQuery::denied(NetworkReason::PortNotAllowed, Some(flags))
        }
        (NetworkPolicy::Ports { .. }, None) => NetworkQuery::denied(NetworkReason::PortNotAllowed, whole()),
        (NetworkPolicy::Filtered { connect, .. }, _) => match host.map(str::parse::<Host>) {
            None => NetworkQuery::denied(NetworkReason::HostNotAllowed, whole()),
            Some(Err(_)) => NetworkQuery::denied(NetworkReason::NotAHost, None),
            Some(Ok(host)) => query_host(policy, connect, &host, port),
        },
    }
}

fn query_host(policy: &ResolvedPolicy, connect: &[u16], host: &Host, port: Option<u16>) -> NetworkQuery {
    let class = class_of_host(host);
    // Reached directly on the host's loopback, not through the proxy.
    if class == Some(AddressClass::Loopback) && port.is_some_and(|port| connect.contains(&port)) {
        return NetworkQuery::allowed(NetworkReason::PortAllowed);
    }
    let opens = |grant: &&HostGrant| {
        // Without a port the question is whether the host can be reached at all.
        let port = port.or(grant.rule.port).unwrap_or(443);
        grant.rule.matches(host, port) && class.is_none_or(|class| opens_class(&grant.rule, host, class))
    };
    if let Some(grant) = policy.hosts.iter().find(opens) {
        let still_refused = match host {
            Host::Name(_) if class.is_none() => AddressClass::ALL.to_vec(),
            _ => Vec::new(),
        };
        let answer = NetworkQuery::allowed(NetworkReason::HostAllowed);
        return NetworkQuery { rule: Some(grant.clone()), class, still_refused, ..answer };
    }
    let closest = closest(&policy.hosts, host);
    let other_port = |grant: &HostGrant| grant.rule.port.is_some_and(|only| grant.rule.matches(host, only));
    let reason = match class {
        Some(_) => NetworkReason::AddressDenied,
        None if closest.is_some_and(other_port) => NetworkReason::HostPortNotAllowed,
        None => NetworkReason::HostNotAllowed,
    };
    let flags = openable(host, class).then(|| flags(host, port));
    NetworkQuery { closest: closest.cloned(), class, ..NetworkQuery::denied(reason, flags) }
}

/// Whether a rule for this host can open it: a metadata service is opened by its address, never by a name.
fn openable(host: &Host, class: Option<AddressClass>) -> bool {
    !(class == Some(AddressClass::Metadata) && matches!(host, Host::Name(_)))
}

/// The flags that open exactly this.
fn flags(host: &Host, port: Option<u16>) -> Vec<String> {
    let rule = HostRule { hosts: Hosts::One(host.clone()), port };
    vec!["--allow-domain".to_owned(), rule.to_string()]
}

/// The rule with the most in common: the host itself on another port, or names with the same end.
fn closest<'a>(grants: &'a [HostGrant], host: &Host) -> Option<&'a HostGrant> {
    let nearness = |grant: &HostGrant| match (&grant.rule.hosts, host) {
        (Hosts::One(one), host) if one == host => usize::MAX,
        (Hosts::One(Host::Name(one)) | Hosts::Below(one), Host::Name(name)) => {
            let (mut one, mut name) = (one.as_str().rsplit('.'), name.as_str().rsplit('.'));
            std::iter::from_fn(|| Some(one.next()? == name.next()?)).take_while(|same| *same).count()
        }
        _ => 0,
    };
    // The last label alone is no resemblance.
    let near = grants.iter().map(|grant| (nearness(grant), grant)).filter(|(near, _)| *near > 1);
    near.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, grant)| grant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::CapabilitySource;
    use crate::request::RunRequest;
    use crate::testing::resolved;

    fn filtered(rules: &[&str]) -> ResolvedPolicy {
        let grant = |rule: &&str| HostGrant { rule: rule.parse().unwrap(), source: CapabilitySource::User };
        resolved(&RunRequest { hosts: rules.iter().map(grant).collect(), ..RunRequest::default() })
    }

    fn ask(policy: &ResolvedPolicy, host: &str, port: Option<u16>) -> (bool, NetworkReason, Vec<String>) {
        let answer = query_network(policy, Some(host), port);
        (answer.allowed, answer.reason, answer.suggestion.map_or_else(Vec::new, |it| it.flags))
    }

    #[test]
    fn the_network_answers_by_port() {
        let mut policy = resolved(&RunRequest::default());
        let blocked = query_network(&policy, Some("example.org"), Some(443));
        assert_eq!((blocked.allowed, blocked.reason), (false, NetworkReason::NetworkBlocked));
        assert_eq!(blocked.suggestion.unwrap().flags, ["--allow-domain", "example.org:443"]);
        let any = query_network(&policy, None, None);
        assert_eq!(any.suggestion.unwrap().flags, ["--allow-net"]);
        policy.network = NetworkPolicy::Ports { connect: vec![443], listen: vec![] };
        assert!(query_network(&policy, None, Some(443)).allowed);
        let other = query_network(&policy, None, Some(80));
        assert_eq!(other.suggestion.unwrap().flags, ["--allow-connect-port", "80"]);
        policy.network = NetworkPolicy::Allowed;
        assert!(query_network(&policy, None, None).allowed);
    }

    #[test]
    fn a_host_is_open_by_its_rule_and_on_its_port() {
        use NetworkReason::{HostAllowed, HostNotAllowed, HostPortNotAllowed, NotAHost};
        let policy = filtered(&["example.org:443", "*.example.com"]);
        for (host, port) in [("EXAMPLE.org.", Some(443)), ("example.org", None), ("a.b.example.com", Some(1))]
        {
            assert_eq!(ask(&policy, host, port), (true, HostAllowed, vec![]), "{host}");
        }
        let flag = |rule: &str| vec!["--allow-domain".to_owned(), rule.to_owned()];
        let denied = |host, port| ask(&policy, host, port);
        let port = (false, HostPortNotAllowed, flag("example.org:80"));
        assert_eq!(denied("example.org", Some(80)), port);
        assert_eq!(denied("example.com", None), (false, HostNotAllowed, flag("example.com")));
        assert_eq!(denied("other.net", Some(443)), (false, HostNotAllowed, flag("other.net:443")));
        assert_eq!(denied("0x7f.1", Some(443)), (false, NotAHost, vec![]));
        let closest =
            |host| query_network(&policy, Some(host), Some(80)).closest.map(|it| it.rule.to_string());
        assert_eq!(closest("example.org").as_deref(), Some("example.org:443"));
        assert_eq!(closest("example.com").as_deref(), Some("*.example.com"));
        assert_eq!(closest("www.example.org").as_deref(), Some("example.org:443"));
        assert_eq!(closest("other.org"), None, "the last label alone is no resemblance");
        let open = query_network(&policy, Some("a.example.com"), None);
        assert_eq!(open.still_refused, AddressClass::ALL);
        assert_eq!(open.rule.unwrap().source, CapabilitySource::User);
    }

    #[test]
    fn closed_addresses_are_opened_by_their_own_rule_alone() {
        use AddressClass::{Loopback, Metadata, Private};
        let denied = |class, flag: &str| {
            let flags = (!flag.is_empty()).then(|| vec!["--allow-domain".to_owned(), flag.to_owned()]);
            (Some(class), (false, NetworkReason::AddressDenied, flags.unwrap_or_default()))
        };
        let policy = filtered(&["*.internal", "metadata.google.internal"]);
        for (host, class, flag) in [
            ("localhost", Loopback, "localhost:80"),
            ("a.localhost", Loopback, "a.localhost:80"),
            ("127.0.0.1", Loopback, "127.0.0.1:80"),
            ("10.1.2.3", Private, "10.1.2.3:80"),
            ("[::ffff:10.1.2.3]", Private, "[::ffff:10.1.2.3]:80"),
            ("169.254.169.254", Metadata, "169.254.169.254:80"),
            ("metadata.google.internal", Metadata, ""),
        ] {
            let found = query_network(&policy, Some(host), Some(80)).class;
            assert_eq!((found, ask(&policy, host, Some(80))), denied(class, flag), "{host}");
        }
        let named = filtered(&["localhost:80", "*.localhost", "10.1.2.3", "169.254.169.254:80"]);
        for host in ["localhost", "a.localhost", "10.1.2.3", "169.254.169.254"] {
            let answer = query_network(&named, Some(host), Some(80));
            assert!(answer.allowed && answer.still_refused.is_empty(), "{host}");
        }
    }

    #[test]
    fn a_port_of_this_machine_needs_no_proxy() {
        let mut policy = filtered(&["example.org"]);
        let NetworkPolicy::Filtered { connect, .. } = &mut policy.network else { panic!("not filtered") };
        connect.push(5432);
        for host in ["localhost", "127.0.0.1", "::1"] {
            assert_eq!(ask(&policy, host, Some(5432)), (true, NetworkReason::PortAllowed, vec![]));
        }
        assert!(!ask(&policy, "10.0.0.1", Some(5432)).0);
        let json = serde_json::to_string(&query_network(&policy, Some("10.0.0.1"), None)).unwrap();
        assert!(json.contains(r#""reason":"address_denied""#), "{json}");
        let back: NetworkQuery = serde_json::from_str(&json).unwrap();
        assert_eq!(back, query_network(&policy, Some("10.0.0.1"), None));
    }
}
