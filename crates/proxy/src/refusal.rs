//! What is said instead of an answer.

use std::net::IpAddr;

use crate::config::{Config, Target};
use crate::event::Category;
use crate::head::Malformed;

/// Why a request is not served, and what the client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) category: Category,
    /// One line: it stands in the status line and in the event.
    pub(crate) reason: &'static str,
    /// What to do about it.
    pub(crate) advice: String,
    /// Where the name led to, if that is why.
    pub(crate) address: Option<IpAddr>,
}

/// How to open a target.
pub(crate) fn remedy(config: &Config, target: &Target) -> String {
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

    pub(crate) fn host(config: &Config, target: &Target) -> Refusal {
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
        Refusal::new(408, Category::Timeout, "Request Timeout", "the request's head took too long")
    }

    pub(crate) fn full() -> Refusal {
        Refusal::new(
            503,
            Category::TooManyConnections,
            "Too Many Connections",
            "every connection that the proxy allows is in use; close some, or try again",
        )
    }

    pub(crate) fn crowded() -> Refusal {
        Refusal::new(
            503,
            Category::TooManyConnections,
            "Too Many Large Requests",
            "the heads of all open requests together are too large; end some, or try again",
        )
    }

    /// A route's secret is not there.
    pub(crate) fn no_secret(route: &str, why: &str) -> Refusal {
        Refusal::new(
            503,
            Category::CredentialUnavailable,
            "Credential Unavailable",
            format!("the credential of {route} is not to be had: {why}"),
        )
    }

    /// The server, or the way to it, failed.
    pub(crate) fn upstream(category: Category, advice: impl Into<String>) -> Refusal {
        let (status, reason) = match category {
            Category::Timeout => (504, "Gateway Timeout"),
            Category::AddressDenied => (403, "Address not allowed"),
            _ => (502, "Bad Gateway"),
        };
        Refusal::new(status, category, reason, advice)
    }

    /// The client was not allowed, as opposed to: it could not be done.
    pub(crate) fn is_denial(&self) -> bool {
        !matches!(self.status, 502 | 504)
    }

    /// The bytes of the answer.
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
