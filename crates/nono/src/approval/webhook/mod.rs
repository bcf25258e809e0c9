//! Answers from a service: each question is posted to it as JSON, signed, and its answer has to be signed too.
//!
//! The supervisor itself has no network. A helper process that can reach nothing else posts for it ([`serve`]). What it
//! brings back is believed only if it is signed with the secret, which the helper never sees, and carries the id and the
//! nonce of the question. Whatever goes wrong, and whatever takes too long, is a denial.

mod helper;
mod message;
mod process;
mod wire;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use thiserror::Error;
use ureq::http::Uri;

use super::{Answer, ApprovalBackend, ApprovalError, Question, Waiting};
use crate::helper::{Trouble, random_hex};
pub use helper::{HelperError, serve};
pub use message::Secret;
use message::{Asked, understand};
use process::Helper;
use wire::{FilePath, Post, Reply, Said, Setup};

/// How long a service has for an answer, all attempts together.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// How often one question is sent at most, where the service was not there or says that it is busy.
const ATTEMPTS: u32 = 4;
/// Before the second attempt; then twice as long each time.
const PAUSE: Duration = Duration::from_millis(200);
/// How often it is looked whether anybody still waits for the answer.
const LOOK: Duration = Duration::from_millis(50);

/// Why a service cannot be asked.
#[derive(Debug, Error)]
pub enum WebhookError {
    #[error("{url:?} is not the address of a service: {why}")]
    Address { url: String, why: &'static str },
    #[error("{url} is not on this machine, and http:// is open to everybody on the way")]
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

/// Which service, and how it is reached.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    pub url: String,
    pub secret: Secret,
    /// The command that calls [`serve`].
    pub helper: Vec<OsString>,
    /// [`TIMEOUT`], unless there is a reason.
    pub timeout: Duration,
    /// A file of certificates to believe, instead of the system's.
    pub certificates: Option<PathBuf>,
}

/// A service that answers.
#[derive(Debug)]
pub struct Webhook {
    options: WebhookOptions,
    /// Without what may be secret in the address.
    shown: String,
    session: OnceLock<String>,
    helper: Mutex<Option<Helper>>,
}

impl Webhook {
    /// Check the address, and start the helper, so that what cannot work is known before the command starts.
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

    /// The helper's process, while there is one.
    pub fn helper_pid(&self) -> Option<u32> {
        self.helper().as_ref().map(Helper::pid)
    }

    fn helper(&self) -> MutexGuard<'_, Option<Helper>> {
        self.helper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_helper(&self) -> Result<Helper, Trouble> {
        let WebhookOptions { url, helper, certificates, .. } = &self.options;
        Helper::start(helper, &Setup { url: url.clone(), certificates: certificates.clone().map(FilePath) })
    }

    fn failed(&self, why: impl Into<String>) -> ApprovalError {
        ApprovalError::Failed { backend: self.name(), why: why.into() }
    }

    /// What the service replies, after as many attempts as there is time for.
    fn ask(&self, body: &str, deadline: Instant, wanted: &dyn Fn() -> bool) -> Result<Reply, Trouble> {
        let mut pause = PAUSE;
        for attempt in 1.. {
            let said = self.post(body, deadline, wanted)?;
            let why = match said {
                Said::Reply { reply, .. } if attempt == ATTEMPTS || !is_busy(&reply) => return Ok(reply),
                Said::Reply { .. } => String::new(),
                Said::Nothing { connected, why, .. } if connected || attempt == ATTEMPTS => {
                    return Err(Trouble::Unable(why));
                }
                Said::Nothing { why, .. } => why,
                Said::Ready | Said::Unable { .. } => return Err(Trouble::OutOfTurn),
            };
            if !rest(pause, deadline, wanted)? {
                return Err(if why.is_empty() { Trouble::Late } else { Trouble::Unable(why) });
            }
            pause *= 2;
        }
        Err(Trouble::Late)
    }

    /// One attempt. A helper that failed once is not used again.
    fn post(&self, body: &str, deadline: Instant, wanted: &dyn Fn() -> bool) -> Result<Said, Trouble> {
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
        // Said once; a second session would need a service of its own.
        let _ = self.session.set(session.to_owned());
    }

    fn decide(&self, question: &Question, waiting: &dyn Waiting) -> Result<Answer, ApprovalError> {
        let deadline = Instant::now() + self.options.timeout;
        let nonce = random_hex::<16>().map_err(|error| self.failed(format!("no random number: {error}")))?;
        let session = self.session.get().map_or("", String::as_str);
        let time = nono_snapshot::time::now_iso();
        let body = serde_json::to_string(&Asked::new(question, session, &nonce, &time))
            .map_err(|error| self.failed(error.to_string()))?;
        let reply =
            self.ask(&body, deadline, &|| waiting.still_wanted()).map_err(|trouble| match trouble {
                Trouble::Unwanted => ApprovalError::Withdrawn,
                Trouble::Unable(why) => self.failed(why),
                trouble => self.failed(trouble.to_string()),
            })?;
        let (verdict, by) =
            understand(&reply, &self.options.secret, question.id, &nonce).map_err(|why| self.failed(why))?;
        if Instant::now() > deadline {
            return Err(self.failed(Trouble::Late.to_string()));
        }
        let by = by.map_or_else(|| self.name(), |by| format!("{} ({by})", self.name()));
        Ok(Answer::new(verdict, by))
    }
}

/// The service, or what stands before it, is there but cannot take the question now.
fn is_busy(reply: &Reply) -> bool {
    matches!(reply.status, 502..=504)
}

/// Wait before the next attempt; false when the time is over.
fn rest(pause: Duration, deadline: Instant, wanted: &dyn Fn() -> bool) -> Result<bool, Trouble> {
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
            return Err(Trouble::Unwanted);
        }
        std::thread::sleep(left.min(LOOK));
    }
}

fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs())
}

/// The address as it may be shown: without what stands behind a question mark.
fn check_address(url: &str) -> Result<String, WebhookError> {
    let wrong = |why| WebhookError::Address { url: without_query(url), why };
    let uri: Uri = url.parse().map_err(|_| wrong("it cannot be read"))?;
    let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
    if authority.as_str().contains('@') {
        return Err(wrong("a name or password has no place in it"));
    }
    let shown = without_query(url);
    match uri.scheme_str() {
        Some("https") => Ok(shown),
        Some("http") if is_here(authority.host()) => Ok(shown),
        Some("http") => Err(WebhookError::Plain { url: shown }),
        _ => Err(wrong("it begins neither with https:// nor with http://")),
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
