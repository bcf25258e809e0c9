//! Approvals from a web service: each question is posted as signed JSON, and the answer has to be signed, too.
//!
//! The supervisor itself uses no network; a helper process that can reach nothing else posts for it ([`serve`]). An
//! answer counts only if it is signed with the secret, which the helper never sees, and repeats the question's id and
//! nonce. Every failure and every timeout is a denial.

mod helper;
mod message;
mod process;
mod wire;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nono_supervisor::approval::{ApprovalAnswer, ApprovalBackend, ApprovalError, Question, Waiting};
use thiserror::Error;
use ureq::http::Uri;

use crate::helper::HelperProcessError;
pub use helper::{HelperError, serve};
pub use message::Secret;
use message::{QuestionBody, understand};
use process::Helper;
use wire::{Post, Setup, WebhookHelperMessage, WebhookResponse};

/// Time limit for an answer, all attempts together.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of attempts per question, where the service is unreachable or busy.
const ATTEMPTS: u32 = 4;
/// Pause before the second attempt; doubled each time.
const PAUSE: Duration = Duration::from_millis(200);
/// Interval at which it is checked whether the answer is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// Reasons why a web service cannot be used.
#[derive(Debug, Error)]
pub enum WebhookError {
    #[error("{url:?} is not a valid webhook address: {why}")]
    Address { url: String, why: &'static str },
    #[error("{url} is not on this machine, and http:// is not encrypted")]
    Plain { url: String },
    #[error("webhook {url}: {why}")]
    Helper { url: String, why: String },
}

impl WebhookError {
    pub fn hint(&self) -> Option<String> {
        match self {
            WebhookError::Address { .. } => Some("write https://host/path".to_owned()),
            WebhookError::Plain { .. } => Some("use https://".to_owned()),
            WebhookError::Helper { .. } => None,
        }
    }
}

/// Address and settings of a web service.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    pub url: String,
    pub secret: Secret,
    /// Command line of a process that calls [`serve`].
    pub helper: Vec<OsString>,
    /// Time limit for an answer, usually [`TIMEOUT`].
    pub timeout: Duration,
    /// File of certificates to trust instead of the system's.
    pub certificates: Option<PathBuf>,
}

/// Approver that asks a web service.
#[derive(Debug)]
pub struct Webhook {
    options: WebhookOptions,
    /// The address without its query, which may hold secrets.
    shown: String,
    session: OnceLock<String>,
    helper: Mutex<Option<Helper>>,
}

impl Webhook {
    /// Check the address and start the helper, so that errors show before the command starts.
    pub fn start(options: WebhookOptions) -> Result<Webhook, WebhookError> {
        let shown = check_address(&options.url)?;
        let webhook = Webhook { options, shown, session: OnceLock::new(), helper: Mutex::new(None) };
        let helper = webhook.start_helper().map_err(|trouble| WebhookError::Helper {
            url: webhook.shown.clone(),
            why: trouble.to_string(),
        })?;
        *webhook.helper() = Some(helper);
        Ok(webhook)
    }

    /// The helper's process id, while it runs.
    pub fn helper_pid(&self) -> Option<u32> {
        self.helper().as_ref().map(Helper::pid)
    }

    fn helper(&self) -> MutexGuard<'_, Option<Helper>> {
        self.helper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_helper(&self) -> Result<Helper, HelperProcessError> {
        let WebhookOptions { url, helper, certificates, .. } = &self.options;
        Helper::start(helper, &Setup { url: url.clone(), certificates: certificates.clone() })
    }

    fn failed(&self, why: impl Into<String>) -> ApprovalError {
        ApprovalError::Failed { backend: self.name(), why: why.into() }
    }

    /// The service's reply, after as many attempts as there is time for.
    fn ask(
        &self,
        body: &str,
        deadline: Instant,
        wanted: &dyn Fn() -> bool,
    ) -> Result<WebhookResponse, HelperProcessError> {
        let mut pause = PAUSE;
        for attempt in 1.. {
            let said = self.post(body, deadline, wanted)?;
            let why = match said {
                WebhookHelperMessage::Reply { reply, .. } if attempt == ATTEMPTS || !is_busy(&reply) => {
                    return Ok(reply);
                }
                WebhookHelperMessage::Reply { .. } => None,
                WebhookHelperMessage::Nothing { connected, why, .. } if connected || attempt == ATTEMPTS => {
                    return Err(HelperProcessError::Unable(why));
                }
                WebhookHelperMessage::Nothing { why, .. } => Some(why),
                WebhookHelperMessage::Ready | WebhookHelperMessage::Unable { .. } => {
                    return Err(HelperProcessError::OutOfTurn);
                }
            };
            if !rest(pause, deadline, wanted)? {
                return Err(why.map_or(HelperProcessError::Late, HelperProcessError::Unable));
            }
            pause *= 2;
        }
        Err(HelperProcessError::Late)
    }

    /// One attempt. A helper that failed is replaced.
    fn post(
        &self,
        body: &str,
        deadline: Instant,
        wanted: &dyn Fn() -> bool,
    ) -> Result<WebhookHelperMessage, HelperProcessError> {
        let mut slot = self.helper();
        let mut helper = match slot.take().and_then(|mut helper| helper.is_ready().then_some(helper)) {
            Some(helper) => helper,
            None => self.start_helper()?,
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let timestamp = unix_time().to_string();
        let post = Post {
            sequence: 0,
            timeout_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1),
            signature: self.options.secret.sign(&timestamp, body),
            timestamp,
            body: body.to_owned(),
        };
        let said = helper.post(post, deadline, wanted)?;
        *slot = Some(helper);
        Ok(said)
    }
}

impl ApprovalBackend for Webhook {
    fn name(&self) -> String {
        format!("webhook:{}", self.shown)
    }

    fn begin(&self, session: &str) {
        // Set once; another session needs a `Webhook` of its own.
        let _ = self.session.set(session.to_owned());
    }

    fn decide(&self, question: &Question, waiting: &dyn Waiting) -> Result<ApprovalAnswer, ApprovalError> {
        let deadline = Instant::now() + self.options.timeout;
        let nonce = nono_sys::random::id::<16>()
            .map_err(|error| self.failed(format!("cannot get random numbers: {error}")))?;
        let session = self.session.get().map_or("", String::as_str);
        let time = nono_sys::time::now_iso();
        let body = serde_json::to_string(&QuestionBody::new(question, session, &nonce, &time))
            .map_err(|error| self.failed(error.to_string()))?;
        let reply =
            self.ask(&body, deadline, &|| waiting.still_wanted()).map_err(|trouble| match trouble {
                HelperProcessError::Unwanted => ApprovalError::Withdrawn,
                HelperProcessError::Unable(why) => self.failed(why),
                trouble => self.failed(trouble.to_string()),
            })?;
        let (verdict, by) = understand(&reply, &self.options.secret, question.id, &nonce)
            .map_err(|why| self.failed(why.to_string()))?;
        if Instant::now() > deadline {
            return Err(self.failed(HelperProcessError::Late.to_string()));
        }
        let by = by.map_or_else(|| self.name(), |by| format!("{} ({by})", self.name()));
        Ok(ApprovalAnswer::new(verdict, by))
    }
}

/// Whether the service, or a gateway before it, cannot take the question now.
fn is_busy(reply: &WebhookResponse) -> bool {
    matches!(reply.status, 502..=504)
}

/// Wait before the next attempt; false if the time is over.
fn rest(pause: Duration, deadline: Instant, wanted: &dyn Fn() -> bool) -> Result<bool, HelperProcessError> {
    let until = Instant::now() + pause;
    if until >= deadline {
        return Ok(false);
    }
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(true);
        }
        if !wanted() {
            return Err(HelperProcessError::Unwanted);
        }
        std::thread::sleep(left.min(LOOK));
    }
}

fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs())
}

/// Check the address, and return it without its query.
fn check_address(url: &str) -> Result<String, WebhookError> {
    let wrong = |why| WebhookError::Address { url: without_query(url), why };
    let uri: Uri = url.parse().map_err(|_| wrong("it cannot be parsed"))?;
    let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
    if authority.as_str().contains('@') {
        return Err(wrong("it must not contain a name or password"));
    }
    let shown = without_query(url);
    match uri.scheme_str() {
        Some("https") => Ok(shown),
        Some("http") if is_here(authority.host()) => Ok(shown),
        Some("http") => Err(WebhookError::Plain { url: shown }),
        _ => Err(wrong("it must begin with https:// or http://")),
    }
}

fn without_query(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

fn is_here(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_safe_addresses_are_taken() {
        for fine in
            ["https://example.org/ask", "http://127.0.0.1:8080/", "http://[::1]:1/x", "http://localhost:8"]
        {
            assert!(check_address(fine).is_ok(), "{fine}");
        }
        assert_eq!(check_address("https://a.org/x?token=1").unwrap(), "https://a.org/x");
        for wrong in [
            "",
            "example.org",
            "ftp://example.org",
            "https://user:pass@example.org/",
            "http://example.org/",
            "http://127.0.0.1.example.org/",
            "http://10.0.0.1/",
            "http://localhost.example.org/",
            "https://",
        ] {
            assert!(check_address(wrong).is_err(), "{wrong}");
        }
    }
}
