//! Upstream proxy: `host:port`, or `http://user:password@host:port`.

use std::str::FromStr;

use nono_policy::host_rule::{HostRule, Hosts};
use thiserror::Error;

use crate::config::{Secret, Upstream};
use crate::credential::endpoint::percent_decoded;

/// Error in an address. It never repeats the address: there may be a password in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UpstreamError {
    #[error("only http:// proxies are supported")]
    Scheme,
    #[error("the proxy's address is not HOST:PORT: {0}")]
    Address(&'static str),
    #[error("invalid user name or password before the @: percent-encode special characters")]
    Login,
}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Upstream, UpstreamError> {
        let rest = match text.split_once("://") {
            None => text,
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err(UpstreamError::Scheme),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (login, address) = match rest.rsplit_once('@') {
            Some((login, address)) => (Some(login), address),
            None => (None, rest),
        };
        let rule = address.parse::<HostRule>().map_err(|error| UpstreamError::Address(error.why))?;
        let (Hosts::One(host), Some(port)) = (rule.hosts, rule.port) else {
            return Err(UpstreamError::Address("it has no port, or means more than one host"));
        };
        let authorization = login.map(authorization).transpose()?;
        Ok(Upstream { host: host.to_string(), port, authorization, bypass: Vec::new() })
    }
}

fn authorization(login: &str) -> Result<Secret, UpstreamError> {
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let user = decode(user).ok_or(UpstreamError::Login)?;
    if user.contains(':') {
        return Err(UpstreamError::Login);
    }
    Ok(Secret::basic(&user, &decode(password).ok_or(UpstreamError::Login)?))
}

/// Percent-decode a user name or password. Control characters are refused.
fn decode(text: &str) -> Option<String> {
    let text = String::from_utf8(percent_decoded(text, b"")?).ok()?;
    Some(text).filter(|text| !text.chars().any(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Upstream {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_are_read() {
        for text in
            ["Proxy.example.org:3128", "http://proxy.example.org:3128", "HTTP://proxy.example.org.:3128/"]
        {
            let proxy = read(text);
            assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.example.org", 3128), "{text}");
            assert_eq!(proxy.authorization, None);
        }
        assert_eq!(read("[::1]:8080").host, "[::1]");
    }

    #[test]
    fn a_login_becomes_a_header() {
        let header = |text: &str| read(text).authorization.unwrap().reveal().to_owned();
        // The example of RFC 7617.
        assert_eq!(header("http://Aladdin:open%20sesame@p:1"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(header("Aladdin:open sesame@p:1"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(header("http://u%40x:p%3a@p:1"), Secret::basic("u@x", "p:").reveal());
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for wrong in [
            "",
            "proxy",
            "proxy:0",
            "proxy:99999",
            "https://proxy:1",
            "socks5://user:hunter2@proxy:1",
            "*.proxy:1",
            "http://user:hunter2@proxy",
            "user:hunter2%zz@proxy:1",
            "user:hunter2%0a@proxy:1",
            "us%3aer:hunter2@proxy:1",
            "user:hunter2%4",
            "http://proxy:1/path",
            "hunter2://proxy:1@x:1://",
        ] {
            let said = wrong.parse::<Upstream>().unwrap_err().to_string();
            assert!(!said.contains("hunter2"), "{wrong}: {said}");
        }
    }
}
