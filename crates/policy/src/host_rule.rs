//! Hosts by name or address, and the rules that open them.
//!
//! A name is kept in one spelling: lower case, ASCII (IDNA), without a trailing dot. Whatever could mean one host here
//! and another one elsewhere (octal and hexadecimal addresses, user names, NULs, spaces) is no host at all.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Host name in canonical spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

impl HostName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is a name below `other`, not `other` itself.
    pub fn is_below(&self, other: &HostName) -> bool {
        self.0.strip_suffix(other.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Host of a request or rule: a name or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    Name(HostName),
    Address(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => name.fmt(f),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Host::Address(address) => address.fmt(f),
        }
    }
}

/// Reason why a text names no host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a host: {why}")]
pub struct HostError {
    pub text: String,
    pub why: &'static str,
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Host, HostError> {
        let wrong = |why| HostError { text: text.to_owned(), why };
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or_else(|| wrong("a bracket is missing"))?;
            let address = inner.parse().map_err(|_| wrong("the brackets hold no IPv6 address"))?;
            return Ok(Host::Address(IpAddr::V6(address)));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Host::Address(address));
        }
        // Checked before and after: IDNA turns some letters into these.
        let odd = |byte: u8| byte <= b' ' || byte == 0x7f || b"@/\\:?#%[]<>^`{|}\"*".contains(&byte);
        if text.bytes().any(odd) {
            return Err(wrong("it has characters that no host name has"));
        }
        let name = idna::domain_to_ascii(text).map_err(|_| wrong("it is not a valid name"))?;
        if name.bytes().any(odd) {
            return Err(wrong("it has characters that no host name has"));
        }
        let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
        if name.is_empty()
            || name.len() > 253
            || name.split('.').any(|label| label.is_empty() || label.len() > 63)
        {
            return Err(wrong("it is empty, too long, or has an empty part"));
        }
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Ok(Host::Address(address.into()));
        }
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err(wrong("an address is written as four decimal numbers"));
        }
        Ok(Host::Name(HostName(name)))
    }
}

/// Whether some resolver takes the label for a part of an address, in any base.
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x");
    hex.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        || (!label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()))
}

/// One `--allow-domain`: `host`, `*.host`, an address, each perhaps with `:port`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct HostRule {
    pub hosts: Hosts,
    /// Port to open; every port, if none.
    pub port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Hosts {
    One(Host),
    /// Every name below this one, not the name itself.
    Below(HostName),
}

impl HostRule {
    pub fn matches(&self, host: &Host, port: u16) -> bool {
        let same = match (&self.hosts, host) {
            (Hosts::One(one), host) => one == host,
            (Hosts::Below(suffix), Host::Name(name)) => name.is_below(suffix),
            (Hosts::Below(_), Host::Address(_)) => false,
        };
        same && self.port.is_none_or(|only| only == port)
    }
}

impl FromStr for HostRule {
    type Err = HostError;

    fn from_str(text: &str) -> Result<HostRule, HostError> {
        let wrong = |why| HostError { text: text.to_owned(), why };
        let bare_v6 = text.parse::<std::net::Ipv6Addr>().is_ok();
        let (host, port) = match text.rsplit_once(':').filter(|_| !bare_v6 && !text.ends_with(']')) {
            Some((host, port)) => {
                let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
                let port = port.parse::<u16>().ok().filter(|port| digits && *port > 0);
                (host, Some(port.ok_or_else(|| wrong("a port is a number from 1 to 65535"))?))
            }
            None => (text, None),
        };
        let hosts = match host.strip_prefix("*.") {
            Some(suffix) => match suffix.parse()? {
                Host::Name(name) => Hosts::Below(name),
                Host::Address(_) => return Err(wrong("an address has no subdomains")),
            },
            None => Hosts::One(host.parse()?),
        };
        Ok(HostRule { hosts, port })
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::One(host) => host.fmt(f)?,
            Hosts::Below(suffix) => write!(f, "*.{suffix}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl From<HostRule> for String {
    fn from(rule: HostRule) -> String {
        rule.to_string()
    }
}

impl TryFrom<String> for HostRule {
    type Error = HostError;

    fn try_from(text: String) -> Result<HostRule, HostError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling() {
        for (text, host) in [
            ("Example.COM", "example.com"),
            ("example.com.", "example.com"),
            ("b\u{fc}cher.test", "xn--bcher-kva.test"),
            ("B\u{dc}CHER.test\u{3002}", "xn--bcher-kva.test"),
            ("a\u{3002}test", "a.test"),
            ("a_b.test", "a_b.test"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("\u{ff11}27.0.0.1", "127.0.0.1"),
            ("::1", "[::1]"),
            ("[::ffff:1.2.3.4]", "[::ffff:1.2.3.4]"),
        ] {
            assert_eq!(text.parse::<Host>().map(|host| host.to_string()).as_deref(), Ok(host), "{text:?}");
        }
    }

    #[test]
    fn what_could_mean_another_host_is_none() {
        for text in [
            "",
            ".",
            "..",
            "a..b",
            "a.test..",
            ".a.test",
            "a b",
            "a\0.test",
            "user@a.test",
            "a.test/",
            "a\\b",
            "a%2e",
            "*",
            "a:80",
            "[::1",
            "::1]",
            "[127.0.0.1]",
            "[fe80::1%eth0]",
            "127.1",
            "0177.0.0.1",
            "0x7f.0.0.1",
            "0x7f000001",
            "2130706433",
            "1.2.3.4.5",
            "256.1.1.1",
            "a.0x",
            "a\u{ff0f}b.test",
            "a\u{ff20}b.test",
            "a\u{ff1a}80",
            "a\u{ff05}2e",
            "xn--a.test\u{80}",
        ] {
            assert!(text.parse::<Host>().is_err(), "{text:?}: {:?}", text.parse::<Host>());
        }
        let long = "a.".repeat(126) + "aa";
        assert!(long.parse::<Host>().is_err());
        assert!(format!("{}.test", "a".repeat(64)).parse::<Host>().is_err());
    }

    #[test]
    fn rules() {
        let matches = |rule: &str, host: &str, port| {
            rule.parse::<HostRule>().unwrap().matches(&host.parse().unwrap(), port)
        };
        for (rule, host, port, expected) in [
            ("a.test", "A.test.", 443, true),
            ("a.test", "b.a.test", 443, false),
            ("a.test:443", "a.test", 443, true),
            ("a.test:443", "a.test", 80, false),
            ("*.a.test", "b.a.test", 1, true),
            ("*.a.test", "c.b.a.test", 1, true),
            ("*.a.test", "a.test", 1, false),
            ("*.a.test", "ba.test", 1, false),
            ("10.0.0.1", "10.0.0.1", 1, true),
            ("10.0.0.1", "[::ffff:10.0.0.1]", 1, false),
            ("[::1]:80", "[::1]", 80, true),
            ("::1", "[::1]", 80, true),
        ] {
            assert_eq!(matches(rule, host, port), expected, "{rule} {host}:{port}");
        }
        for wrong in [
            "a.test:0",
            "a.test:65536",
            "a.test:",
            "a.test:x",
            "*.127.0.0.1",
            "*",
            "*.*",
            "a.*",
            "https://a.test",
        ] {
            assert!(wrong.parse::<HostRule>().is_err(), "{wrong}");
        }
        for text in ["a.test", "*.a.test:80", "[::1]:8080", "10.0.0.1"] {
            assert_eq!(text.parse::<HostRule>().unwrap().to_string(), text);
        }
    }
}
