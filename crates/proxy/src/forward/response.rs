//! Forwarding of a server's response to the client.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::write;
use crate::budget::{self, Budget, FIRST, Held};
use crate::buffered::{Buffered, NoHead};
use crate::config::Limits;
use crate::credential::rewrite::ServiceRewrite;
use crate::event::Category;
use crate::head::{Framing, RequestHead, ResponseHead, Version, parse_response};
use crate::refusal::Refusal;
use crate::transfer::{Cut, TransferPlan, send, transfer};

/// Maximum number of interim responses (`100 Continue`, `103 Early Hints`).
const MAX_INTERIM: usize = 16;

#[derive(Debug)]
pub(super) enum Answered {
    Whole {
        /// Whether the server received the whole request.
        heard: bool,
        client_stays: bool,
        server_stays: bool,
    },
    /// The connection was upgraded to a WebSocket.
    Upgraded,
}

impl Answered {
    pub(super) fn if_heard(self, heard: bool) -> Answered {
        match self {
            Answered::Whole { client_stays, server_stays, .. } => {
                Answered::Whole { heard, client_stays, server_stays }
            }
            Answered::Upgraded => Answered::Upgraded,
        }
    }
}

#[derive(Debug)]
pub(super) enum ForwardFailure {
    /// The client's side failed.
    Client(Cut),
    /// The client left before the response.
    Left,
    /// The server closed the connection without a byte.
    Unheard,
    /// The response is refused; nothing has been sent to the client.
    Refused(Refusal),
    /// The response broke off in the middle.
    Cut(Cut),
}

pub(super) struct ResponseRelay<'a> {
    pub(super) request: &'a RequestHead,
    pub(super) limits: &'a Limits,
    pub(super) places: &'a Budget,
    /// Whether the response comes from an upstream proxy.
    pub(super) proxied: bool,
    /// Credential handling, if the server has a credential that the client must not see.
    pub(super) via: Option<ServiceRewrite<'a>>,
}

impl<'a> ResponseRelay<'a> {
    pub(super) async fn relay<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &self,
        server: &mut Buffered<R>,
        mut client: W,
        status: &mut Option<u16>,
        moved: &mut u64,
    ) -> Result<Answered, ForwardFailure> {
        for _ in 0..MAX_INTERIM {
            let (head, _held) = self.head(server).await?;
            let from = head.framing(&self.request.method);
            let head = match self.via {
                Some(via) => via.incoming(head, &self.request.method).map_err(ForwardFailure::Refused)?,
                None => head,
            };
            if head.status == 101 {
                self.check_upgrade(&head)?;
            } else if head.status >= 200 {
                self.check_proxy(&head)?;
                *status = Some(head.status);
                return self.last(head, from, server, &mut client, moved).await;
            }
            if self.request.version == Version::Http11 {
                let bytes = write::response(&head, self.request, true);
                send(&bytes, &mut client, self.limits.idle)
                    .await
                    .map_err(|broken| ForwardFailure::Cut(broken.into()))?;
                *moved += bytes.len() as u64;
            }
            if head.status == 101 {
                *status = Some(101);
                return Ok(Answered::Upgraded);
            }
        }
        Err(failed("too many interim responses"))
    }

    async fn head<R: AsyncRead + Unpin>(
        &self,
        server: &mut Buffered<R>,
    ) -> Result<(ResponseHead, Held<'a>), ForwardFailure> {
        match timeout(self.limits.idle, self.read(server)).await {
            Ok(Ok(head)) => Ok(head),
            Ok(Err(NoHead::Broken(_) | NoHead::Ended)) if server.is_empty() => Err(ForwardFailure::Unheard),
            Ok(Err(why)) => Err(failed(&why.to_string())),
            Err(_) => {
                let why = "the server did not answer in time";
                Err(ForwardFailure::Refused(Refusal::upstream(Category::Timeout, why)))
            }
        }
    }

    async fn read<R: AsyncRead + Unpin>(
        &self,
        server: &mut Buffered<R>,
    ) -> Result<(ResponseHead, Held<'a>), NoHead> {
        if server.is_empty() && server.fill_some(FIRST).await? == 0 {
            return Err(NoHead::Ended);
        }
        let mut held = self.places.place().await.ok_or(NoHead::Ended)?;
        let head = server.head(self.limits, parse_response).await?;
        held.shrink(budget::of_fields(&head.fields) + server.bytes().len());
        Ok((head, held))
    }

    fn check_upgrade(&self, head: &ResponseHead) -> Result<(), ForwardFailure> {
        let agreed =
            head.fields.only("upgrade").is_some_and(|value| value.eq_ignore_ascii_case(b"websocket"));
        if self.request.wants_websocket() && agreed {
            Ok(())
        } else {
            Err(failed("it switches to a protocol that was not requested"))
        }
    }

    /// Refuses an authentication error of the upstream proxy, which is not for the client.
    fn check_proxy(&self, head: &ResponseHead) -> Result<(), ForwardFailure> {
        if self.proxied && head.status == 407 {
            let why = "the upstream proxy rejected the configured user name and password";
            return Err(ForwardFailure::Refused(Refusal::upstream(Category::UpstreamProxyRejected, why)));
        }
        Ok(())
    }

    /// Forwards the final response.
    async fn last<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &self,
        head: ResponseHead,
        from: Framing,
        server: &mut Buffered<R>,
        client: &mut W,
        moved: &mut u64,
    ) -> Result<Answered, ForwardFailure> {
        let to = write::client_framing(&head, self.request);
        let client_stays = to != Framing::UntilClose && self.request.stays();
        let bytes = write::response(&head, self.request, client_stays);
        let server_stays = from != Framing::UntilClose && head.stays();
        // The body may take long.
        drop(head);
        let plan = TransferPlan { from, chunked: to == Framing::Chunked, idle: self.limits.idle };
        let (before, scanner) = (*moved, self.via.and_then(|via| via.scanner()));
        transfer(bytes, plan, scanner, server, client, moved).await.map_err(|cut| match cut {
            // The body is malformed from its first byte: not even the head has been sent.
            Cut::Bad(bad) if *moved == before => failed(&bad.to_string()),
            cut => ForwardFailure::Cut(cut),
        })?;
        Ok(Answered::Whole { heard: false, client_stays, server_stays })
    }
}

fn failed(why: &str) -> ForwardFailure {
    ForwardFailure::Refused(Refusal::upstream(
        Category::UpstreamFailed,
        format!("bad response from the server: {why}"),
    ))
}
