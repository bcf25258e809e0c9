//! Error responses of the proxy itself.

use std::net::IpAddr;

use crate::config::{Config, RequestTarget};
use crate::event::Category;
use crate::head::Malformed;

/// Reason why a request is not served, with the response for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) category: Category,
    /// Short reason for the status line and the event.
    pub(crate) reason: &'static str,
    /// Explanation and next step, in the body.
    pub(crate) advice: String,
    /// Address that the name resolved to, if that is the reason.
    pub(crate) address: Option<IpAddr>,
}

/// Command that opens a target.
pub(crate) fn remedy(config: &Config, target: &RequestTarget) -> String {
    config.remedy.replacen("{}", &target.to_string(), 1)
}

impl Refusal {
    pub(crate) fn new(
        status: u16,
        category: Category,
        reason: &'static str,
        advice: impl Into<String>,
    ) -> Refusal {
        Refusal { status, category, reason, advice: advice.into(), address: None }
    }

    pub(crate) fn host(config: &Config, target: &RequestTarget) -> Refusal {
        Refusal::new(
            403,
            Category::HostDenied,
            "Host not in the allowlist",
            format!("{target} is not in the allowlist; to open it: {}", remedy(config, target)),
        )
    }

    pub(crate) fn token() -> Refusal {
        Refusal::new(
            407,
            Category::AuthenticationFailed,
            "Proxy Authentication Required",
            "use the user name and password in HTTP_PROXY",
        )
    }

    pub(crate) fn malformed(why: Malformed) -> Refusal {
        let (status, reason) = match why {
            Malformed::TooLarge | Malformed::TooManyFields => (431, "Request Header Fields Too Large"),
            _ => (400, "Bad Request"),
        };
        Refusal::new(status, Category::MalformedRequest, reason, why.to_string())
    }

    pub(crate) fn bad(advice: impl Into<String>) -> Refusal {
        Refusal::new(400, Category::MalformedRequest, "Bad Request", advice)
    }

    pub(crate) fn slow() -> Refusal {
        Refusal::new(408, Category::Timeout, "Request Timeout", "the head of the request took too long")
    }

    pub(crate) fn full() -> Refusal {
        Refusal::new(
            503,
            Category::TooManyConnections,
            "Too Many Connections",
            "all connections of the proxy are in use; close some, or try again",
        )
    }

    pub(crate) fn crowded() -> Refusal {
        Refusal::new(
            503,
            Category::TooManyConnections,
            "Too Many Large Requests",
            "the heads of all open requests exceed the limit; end some, or try again",
        )
    }

    /// Refusal because a route's secret is missing.
    pub(crate) fn no_secret(route: &str, why: &str) -> Refusal {
        Refusal::new(
            503,
            Category::CredentialUnavailable,
            "Credential Unavailable",
            format!("no credential for {route}: {why}"),
        )
    }

    /// Refusal because the server, or the connection to it, failed.
    pub(crate) fn upstream(category: Category, advice: impl Into<String>) -> Refusal {
        let (status, reason) = match category {
            Category::Timeout => (504, "Gateway Timeout"),
            Category::AddressDenied => (403, "Address not allowed"),
            _ => (502, "Bad Gateway"),
        };
        Refusal::new(status, category, reason, advice)
    }

    /// Whether the policy denies the request, as opposed to a failure.
    pub(crate) fn is_denial(&self) -> bool {
        !matches!(self.status, 502 | 504)
    }

    /// Bytes of the response.
    pub(crate) fn answer(&self, stays: bool, bodiless: bool) -> Vec<u8> {
        let body = format!("nono: {}\n", self.advice);
        let mut answer = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n",
            self.status,
            self.reason,
            body.len()
        );
        if self.status == 407 {
            answer.push_str("Proxy-Authenticate: Basic realm=\"nono\"\r\n");
        }
        if !stays {
            answer.push_str("Connection: close\r\n");
        }
        answer.push_str("\r\n");
        if !bodiless {
            answer.push_str(&body);
        }
        answer.into_bytes()
    }
}
