//! Web addresses that the command asks to open in the user's browser.
//!
//! The browser runs outside the sandbox, as the user, so the user decides about each address, each time. Only web
//! addresses, and only such as can be shown in full.

use std::fmt;
use std::sync::Arc;

use crate::approval::ApprovalBackend;
use crate::error::ServiceError;

/// Longest address that a person can be shown.
const LONGEST: usize = 2048;

/// Opens an address once it is allowed.
pub trait UrlOpener: fmt::Debug + Send + Sync {
    fn open(&self, url: &str) -> Result<(), ServiceError>;
}

/// Redaction of addresses in the log.
#[derive(Clone)]
pub struct Redact(Arc<dyn Fn(&str) -> String + Send + Sync>);

impl Redact {
    pub fn new(redact: impl Fn(&str) -> String + Send + Sync + 'static) -> Redact {
        Redact(Arc::new(redact))
    }

    pub(crate) fn apply(&self, url: &str) -> String {
        (self.0)(url)
    }
}

impl fmt::Debug for Redact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redact")
    }
}

/// Opener and approver of addresses.
#[derive(Clone, Debug)]
pub struct Urls {
    pub opener: Arc<dyn UrlOpener>,
    pub backend: Arc<dyn ApprovalBackend>,
}

/// Checks an address; an error is the reason it is not even asked about.
pub(crate) fn check(url: &str) -> Result<(), &'static str> {
    if url.len() > LONGEST {
        return Err("the address is too long to be shown");
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("an address must have only printable ASCII characters");
    }
    let lower = url.to_ascii_lowercase();
    let rest = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"));
    let rest = rest.ok_or("only http:// and https:// addresses are opened")?;
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("an address must not have a user name or password before the host");
    }
    let host = authority.rsplit_once(':').map_or(authority, |(host, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { host } else { authority }
    });
    match host.parse::<nono_policy::host_rule::Host>() {
        Ok(_) if !rest.contains('\\') => Ok(()),
        _ => Err("the address names no host"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_web_addresses_are_asked_about() {
        for fine in ["https://example.org/a?b=c#d", "HTTP://Example.org:8080", "http://[::1]:80/x"] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        let long = format!("https://example.org/{}", "a".repeat(LONGEST));
        for wrong in [
            "",
            "example.org",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "--help",
            "https://user@example.org/",
            "https://good.org\\@evil.org/",
            "https:///path",
            "https://a b/",
            "https://example.org/\u{202e}",
            "https://example.org/\x1b[2J",
            &long,
        ] {
            assert!(check(wrong).is_err(), "{wrong:?}");
        }
    }
}
