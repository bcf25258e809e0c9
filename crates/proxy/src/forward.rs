//! Forwarding of one plain request to a server, and of its response.
//!
//! Both heads are written anew from their parsed values. Request body and response are forwarded at the same time: a
//! server may answer before it has received everything.

mod client;
mod response;
pub(crate) mod server;
mod write;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::io::split;

use crate::buffered::Buffered;
use crate::config::{RequestTarget, Upstream};
use crate::credential::rewrite::ServiceRewrite;
use crate::credential::upgraded_stream::{UpgradedStream, is_leak};
use crate::dial;
use crate::event::{Category, ProxyEvent};
use crate::first_bytes;
use crate::head::{Framing, RequestHead};
use crate::pending_event::PendingEvent;
use crate::pump::{Broken, Pump, join};
use crate::refusal::Refusal;
use crate::shared::{ListenerShared, Stream};
use crate::transfer::{Cut, TransferPlan, transfer};
use client::left;
use response::{Answered, ForwardFailure, ResponseRelay};
pub(crate) use server::{KeptConnection, Server};

/// Next step for the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Next,
    Close,
    /// Read on for a moment before closing: the client may still be sending, and a reset would discard the answer.
    Linger,
}

/// A request to forward. It may hold a secret.
pub(crate) struct Forward<'a> {
    pub(crate) request: &'a RequestHead,
    pub(crate) target: &'a RequestTarget,
    pub(crate) path: &'a str,
    /// Credential handling, if there is a credential for the server.
    pub(crate) via: Option<ServiceRewrite<'a>>,
    /// Whether the request came through a tunnel; it then also goes through a tunnel of the upstream proxy, if any.
    pub(crate) tunnelled: bool,
}

impl Forward<'_> {
    /// Forwards the request. On an error no byte of a response has been sent, and the caller answers the client.
    pub(crate) async fn run<C: Stream>(
        &self,
        client: &mut Buffered<C>,
        kept: &mut KeptConnection,
        shared: &ListenerShared,
        record: &mut PendingEvent<'_>,
    ) -> Result<After, Refusal> {
        if let Some(mut server) = kept.take_for(self.target, self.secure()).await {
            match self.exchange(client, &mut server, shared, record).await {
                // The server closed the connection just as the request came and may have seen it, so only a request
                // that is safe to repeat is sent again.
                Err(ForwardFailure::Unheard) if self.may_repeat() => {}
                done => return self.conclude(done, client, server, kept, shared, record).await,
            }
        }
        let mut server = match self.via {
            Some(via) => via.reach(shared, self.target).await?,
            None if self.tunnelled => {
                Server::new(dial::reach_tunnel(shared, self.target).await?, self.target.clone())
            }
            None => Server::new(dial::reach(shared, self.target).await?, self.target.clone()),
        };
        let done = self.exchange(client, &mut server, shared, record).await;
        self.conclude(done, client, server, kept, shared, record).await
    }

    /// Whether the connection to the server uses TLS.
    fn secure(&self) -> bool {
        self.via.is_some_and(|via| via.https())
    }

    /// Upstream proxy that the request itself is sent to, if any.
    fn upstream<'s>(&self, shared: &'s ListenerShared) -> Option<&'s Upstream> {
        dial::way(&shared.config, self.target).filter(|_| !self.secure() && !self.tunnelled)
    }

    fn may_repeat(&self) -> bool {
        self.request.framing == Framing::Empty
            && matches!(self.request.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE")
    }

    /// Sends the request and forwards the response.
    async fn exchange<C: Stream>(
        &self,
        client: &mut Buffered<C>,
        server: &mut Server,
        shared: &ListenerShared,
        record: &mut PendingEvent<'_>,
    ) -> Result<Answered, ForwardFailure> {
        record.event.address = Some(server.address.ip().to_string());
        let head = write::request(self, self.upstream(shared));
        let limits = &shared.config.limits;
        let plan = TransferPlan {
            from: self.request.framing,
            chunked: self.request.framing == Framing::Chunked,
            idle: limits.idle,
        };
        let (client_held, server_held) = (client.take(), server.stream.take());
        let (from_client, to_client) = split(&mut client.stream);
        let (from_server, mut to_server) = split(&mut server.stream.stream);
        let mut from_client = Buffered::with(from_client, client_held);
        let mut from_server = Buffered::with(from_server, server_held);
        let ProxyEvent { bytes_sent, bytes_received, status, .. } = &mut record.event;
        let answer = ResponseRelay {
            request: self.request,
            limits,
            places: &shared.heads.answers,
            proxied: self.upstream(shared).is_some(),
            via: self.via,
        };
        let done = {
            let heard = AtomicBool::new(false);
            let mut sending = pin!(async {
                transfer(head, plan, None, &mut from_client, &mut to_server, bytes_sent).await?;
                heard.store(true, Relaxed);
                left(&mut from_client).await;
                Ok(())
            });
            let mut receiving = pin!(answer.relay(&mut from_server, to_client, status, bytes_received));
            let mut sent = false;
            loop {
                tokio::select! {
                    biased;
                    done = &mut sending, if !sent => match done {
                        Ok(()) => break Err(ForwardFailure::Left),
                        // The server may have answered before it stopped reading.
                        Err(Cut::Broken(Broken::Write(_))) => sent = true,
                        Err(cut) => break Err(ForwardFailure::Client(cut)),
                    },
                    done = &mut receiving => break done.map(|answered| answered.if_heard(heard.load(Relaxed))),
                }
            }
        };
        let (client_held, server_held) = (from_client.take(), from_server.take());
        drop((from_client, from_server, to_server));
        client.put(client_held);
        server.stream.put(server_held);
        done
    }

    /// Server side of an upgraded connection.
    fn guarded(&self, server: Server) -> Box<dyn Stream> {
        match self.via.and_then(|via| via.scanner()) {
            Some(scanner) => {
                let (answers, sent) = split(server.stream);
                Box::new(tokio::io::join(UpgradedStream::new(answers, scanner), sent))
            }
            None => Box::new(server.stream),
        }
    }

    /// Decides what the result means for both connections and for the event.
    async fn conclude<C: Stream>(
        &self,
        done: Result<Answered, ForwardFailure>,
        client: &mut Buffered<C>,
        server: Server,
        kept: &mut KeptConnection,
        shared: &ListenerShared,
        record: &mut PendingEvent<'_>,
    ) -> Result<After, Refusal> {
        match done {
            Ok(Answered::Upgraded) => {
                record.open();
                let up = Pump::new(u64::MAX, client.take());
                let down = Pump::new(u64::MAX, Vec::new());
                let counts = (&mut record.event.bytes_sent, &mut record.event.bytes_received);
                let mut server = self.guarded(server);
                let ends = ((&mut client.stream, up), (&mut server, down));
                let ended = join(ends.0, ends.1, shared.config.limits.idle, counts).await;
                finish(record, ended);
                Ok(After::Close)
            }
            Ok(Answered::Whole { heard, client_stays, server_stays }) => {
                record.end();
                if heard && server_stays && server.stream.is_empty() {
                    kept.put(server);
                }
                Ok(match (heard, client_stays) {
                    // The start of the next request is unknown.
                    (false, _) => After::Linger,
                    (true, true) => After::Next,
                    (true, false) => After::Close,
                })
            }
            Err(ForwardFailure::Client(cut @ Cut::Bad(_))) if record.event.status.is_none() => {
                Err(Refusal::bad(cut.to_string()))
            }
            Err(ForwardFailure::Client(_)) => {
                record.fail(&Refusal::upstream(
                    Category::UpstreamFailed,
                    "the client did not send the whole request",
                ));
                Ok(After::Close)
            }
            Err(ForwardFailure::Refused(refusal)) => Err(refusal),
            Err(ForwardFailure::Unheard) => {
                let why = format!("{} closed the connection without an answer", self.target);
                Err(Refusal::upstream(Category::UpstreamFailed, why))
            }
            // The client left before it had received everything.
            Err(ForwardFailure::Left | ForwardFailure::Cut(Cut::Broken(Broken::Write(_)))) => {
                record.end();
                Ok(After::Close)
            }
            Err(ForwardFailure::Cut(cut)) => {
                record.fail(&Refusal::upstream(
                    Category::UpstreamFailed,
                    format!("the response broke off: {cut}"),
                ));
                Ok(After::Close)
            }
        }
    }
}

/// Records the end of a tunnel. A broken tunnel counts as ended, since it is unknown which side broke it; only idleness
/// and a credential sent back are recorded as failures.
pub(crate) fn finish(record: &mut PendingEvent<'_>, ended: Result<(), Broken>) {
    match ended {
        Err(broken @ Broken::Idle) => {
            record.fail(&Refusal::upstream(Category::Timeout, broken.to_string()));
        }
        Err(Broken::WrongHost) => record.refuse(&first_bytes::foreign_host()),
        Err(Broken::Read(error)) if is_leak(&error) => {
            record.fail(&Refusal::upstream(Category::UpstreamFailed, error.to_string()));
        }
        _ => record.end(),
    }
}
