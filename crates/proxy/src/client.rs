//! One request of a client, read and answered: what serving a client and serving a tunnel have in common.

use std::time::Duration;

use tokio::time::timeout;

use crate::budget::{self, FIRST, Held};
use crate::buffered::{Buffered, NoHead};
use crate::forward::After;
use crate::head::{Framing, RequestHead, parse_request};
use crate::pending_event::PendingEvent;
use crate::refusal::Refusal;
use crate::shared::{ListenerShared, Stream};
use crate::transfer::send;

/// Reads the next head with its reservation; `None` if the client has no more. `wait` is the time for its first byte.
/// Returns when the receiver has room for the request's events.
pub(crate) async fn read<'s, C: Stream>(
    client: &mut Buffered<C>,
    shared: &'s ListenerShared,
    wait: Duration,
) -> Result<Option<(RequestHead, Held<'s>)>, Refusal> {
    if client.is_empty() {
        client.rest();
        match timeout(wait, client.fill_some(FIRST)).await {
            Ok(Ok(1..)) => {}
            // The client left, or sent nothing: there is nothing to answer.
            _ => return Ok(None),
        }
    }
    let read = head(client, shared).await;
    if !matches!(read, Ok(None)) {
        shared.events.room().await;
    }
    read
}

async fn head<'s, C: Stream>(
    client: &mut Buffered<C>,
    shared: &'s ListenerShared,
) -> Result<Option<(RequestHead, Held<'s>)>, Refusal> {
    let limits = &shared.config.limits;
    let Ok(Some(mut held)) = timeout(limits.head_time, shared.heads.requests.place()).await else {
        return Err(Refusal::crowded());
    };
    let refusal = match timeout(limits.head_time, client.head(limits, parse_request)).await {
        Ok(Ok(request)) => {
            held.shrink(budget::of_request(&request) + client.bytes().len());
            return Ok(Some((request, held)));
        }
        Ok(Err(NoHead::Broken(_) | NoHead::Ended)) => return Ok(None),
        Ok(Err(NoHead::Malformed(why))) => Refusal::malformed(why),
        Err(_) => Refusal::slow(),
    };
    // The reservation is released, so the bytes have to go too: the connection can take a while to end.
    drop(client.take());
    Err(refusal)
}

/// Ends a request: where it was refused, records that and answers the client.
pub(crate) async fn conclude<C: Stream>(
    done: Result<After, Refusal>,
    client: &mut Buffered<C>,
    request: &RequestHead,
    mut record: PendingEvent<'_>,
    shared: &ListenerShared,
) -> After {
    match done {
        Ok(after) => after,
        Err(refusal) => {
            record.refuse(&refusal);
            drop(record);
            say(client, &refusal, Some(request), shared).await
        }
    }
}

/// Sends an error response. Another request may follow only if this one was read completely.
pub(crate) async fn say<C: Stream>(
    client: &mut Buffered<C>,
    refusal: &Refusal,
    request: Option<&RequestHead>,
    shared: &ListenerShared,
) -> After {
    let stays = request.is_some_and(|request| {
        request.stays()
            && matches!(request.framing, Framing::Empty | Framing::Length(0))
            && refusal.status != 400
    });
    let bodiless = request.is_some_and(|request| request.method == "HEAD");
    let answer = refusal.answer(stays, bodiless);
    match send(&answer, &mut client.stream, shared.config.limits.idle).await {
        Ok(()) if stays => After::Next,
        Ok(()) => After::Linger,
        // The client is gone; the event has the reason.
        Err(_) => After::Close,
    }
}
