//! The helper process that talks to the web service, so that the supervisor needs no network.
//!
//! It confines itself before the first question ([`confine`]). The shared secret is never sent to it. It reads frames
//! from its input, posts their bodies, and returns the responses without interpreting them. It ends when its input
//! ends, also in the middle of a request, so it never outlives the supervisor.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::message::{SIGNATURE, TIMESTAMP};
use super::wire::{FRAMES, MAX_ANSWER, Post, Setup, WebhookHelperMessage, WebhookResponse};
use crate::helper::{Bundle, CertificatesError, ConfineError, confine};

const MAX_HEADERS: usize = 16 << 10;

#[derive(Debug, Error)]
pub enum HelperError {
    #[error("cannot use the helper's pipe: {0}")]
    Pipe(#[from] io::Error),
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    #[error(transparent)]
    Confine(#[from] ConfineError),
    #[error("a question arrived before the previous one was answered")]
    OutOfTurn,
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

/// Confine this process, then post each question. Call it from a process without other threads. Returns at the end of
/// the input; the caller then ends the process, and with it any pending request.
pub fn serve(mut input: impl Read, output: impl Write + Send + 'static) -> Result<(), HelperError> {
    let output = Arc::new(Mutex::new(output));
    let Some(setup) = FRAMES.read::<Setup>(&mut input)? else { return Ok(()) };
    match prepare(&setup) {
        Ok(client) => {
            say(&output, &WebhookHelperMessage::Ready)?;
            answer(input, &output, &Arc::new(client))
        }
        Err(error) => {
            say(&output, &WebhookHelperMessage::Unable { why: error.to_string() })?;
            Err(error)
        }
    }
}

fn prepare(setup: &Setup) -> Result<Client, HelperError> {
    let roots = if setup.url.starts_with("https:") {
        certificates(setup.certificates.as_deref())?
    } else {
        Vec::new()
    };
    confine()?;
    let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&roots)).build();
    Ok(Client { url: setup.url.clone(), tls })
}

fn certificates(named: Option<&Path>) -> Result<Vec<Certificate<'static>>, HelperError> {
    let bundle = Bundle::read(named)?;
    let mut found = Vec::new();
    for item in parse_pem(&bundle.pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| bundle.unusable(error.to_string()))? {
            found.push(certificate);
        }
    }
    if found.is_empty() { Err(bundle.unusable("it contains no certificate").into()) } else { Ok(found) }
}

type Output<W> = Arc<Mutex<W>>;

fn say<W: Write>(output: &Output<W>, said: &WebhookHelperMessage) -> io::Result<()> {
    FRAMES.write(&mut *output.lock().unwrap_or_else(PoisonError::into_inner), said)
}

/// Post one question at a time in its own thread, while this thread waits for the end of the input.
fn answer<W: Write + Send + 'static>(
    mut input: impl Read,
    output: &Output<W>,
    client: &Arc<Client>,
) -> Result<(), HelperError> {
    let busy = Arc::new(AtomicBool::new(false));
    while let Some(post) = FRAMES.read::<Post>(&mut input)? {
        if busy.swap(true, Ordering::AcqRel) {
            return Err(HelperError::OutOfTurn);
        }
        let (output, client, busy) = (output.clone(), client.clone(), busy.clone());
        let work = move || {
            let said = client.post(&post);
            busy.store(false, Ordering::Release);
            // The supervisor may have closed the pipe.
            let _ = say(&output, &said);
        };
        std::thread::Builder::new().spawn(work).map_err(HelperError::Thread)?;
    }
    Ok(())
}

struct Client {
    url: String,
    tls: TlsConfig,
}

impl Client {
    fn post(&self, post: &Post) -> WebhookHelperMessage {
        let sequence = post.sequence;
        match self.exchange(post) {
            Ok(reply) => WebhookHelperMessage::Reply { sequence, reply },
            Err(error) => {
                let why = match &error {
                    ureq::Error::Timeout(_) => "there was no answer in time".to_owned(),
                    error => error.to_string(),
                };
                WebhookHelperMessage::Nothing { sequence, connected: was_connected(&error), why }
            }
        }
    }

    /// Post on a new connection, so that leftover data of one exchange never counts for the next.
    fn exchange(&self, post: &Post) -> Result<WebhookResponse, ureq::Error> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .max_idle_connections(0)
            .max_response_header_size(MAX_HEADERS)
            .timeout_global(Some(Duration::from_millis(post.timeout_ms)))
            .user_agent(concat!("nono/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .tls_config(self.tls.clone())
            .build();
        let mut response = Agent::new_with_config(config)
            .post(&self.url)
            .header("Content-Type", "application/json")
            .header(TIMESTAMP, &post.timestamp)
            .header(SIGNATURE, &post.signature)
            .send(post.body.as_bytes())?;
        let header = |name| {
            let mut values = response.headers().get_all(name).iter();
            // With two values it is undecided which one counts.
            let only = values.next().filter(|_| values.next().is_none());
            only.and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let (content_type, timestamp, signature) =
            (header("content-type"), header(TIMESTAMP), header(SIGNATURE));
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MAX_ANSWER as u64).read_to_vec()?;
        let body = String::from_utf8(body)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the answer is not UTF-8 text"))?;
        Ok(WebhookResponse { status, content_type, timestamp, signature, body })
    }
}

/// Whether the service may have seen the question: then it is not sent again.
fn was_connected(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => false,
        ureq::Error::Io(error) => !matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
        ),
        _ => true,
    }
}
