//! `CONNECT`: a tunnel to one host.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use tokio::time::{Instant, sleep_until};

use crate::budget::FIRST;
use crate::buffered::Buffered;
use crate::config::RequestTarget;
use crate::dial;
use crate::first_bytes::{self, GreetingVerdict, judge};
use crate::forward::{After, finish};
use crate::other_protocols::Opaque;
use crate::pending_event::PendingEvent;
use crate::pump::{Broken, Idle, Pump, join};
use crate::refusal::Refusal;
use crate::shared::{ListenerShared, Stream};
use crate::transfer::send;
use crate::tunnelled_requests;

pub(crate) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Connects, answers the client, and forwards bytes once the first of them were checked. On an error no byte of the
/// tunnel has been sent, and the caller answers the client.
pub(crate) async fn run<C: Stream>(
    client: &mut Buffered<C>,
    target: &RequestTarget,
    shared: &ListenerShared,
    record: &mut PendingEvent<'_>,
) -> Result<After, Refusal> {
    let mut reached = dial::reach_tunnel(shared, target).await?;
    record.event.address = Some(reached.address.ip().to_string());
    record.event.status = Some(200);
    record.open();
    let idle = shared.config.limits.idle;
    if send(ESTABLISHED, &mut client.stream, idle).await.is_err() {
        // The client is gone.
        record.end();
        return Ok(After::Close);
    }
    match greet(client, &mut reached.stream, target, shared, record).await {
        Ok(_) if first_bytes::is_request(client.bytes()) => {
            record.end();
            return Ok(tunnelled_requests::run(client, reached, target, shared).await);
        }
        Ok(down) => {
            let first = client.take();
            let up = if first_bytes::is_tls(&first) {
                Ok(Pump::new(u64::MAX, first))
            } else {
                Pump::reading_along(Opaque::new(target), first)
            };
            let counts = (&mut record.event.bytes_sent, &mut record.event.bytes_received);
            let ended = match up {
                Ok(up) => join((&mut client.stream, up), (&mut reached.stream, down), idle, counts).await,
                Err(broken) => Err(broken),
            };
            finish(record, ended);
        }
        Err(Greeted::Refused(refusal)) => record.refuse(&refusal),
        Err(Greeted::Broken(broken)) => finish(record, Err(broken)),
    }
    Ok(After::Close)
}

enum Greeted {
    Refused(Refusal),
    Broken(Broken),
}

/// Waits for the client's first message, while the server may already send. The bytes read stay in `client`.
async fn greet<C: Stream, S: Stream>(
    client: &mut Buffered<C>,
    server: &mut S,
    target: &RequestTarget,
    shared: &ListenerShared,
    record: &mut PendingEvent<'_>,
) -> Result<Pump, Greeted> {
    let limits = &shared.config.limits;
    let received = &mut record.event.bytes_received;
    let mut down = Pump::new(u64::MAX, Vec::new());
    let mut server_done = false;
    let mut idle = Idle::new(limits.idle);
    // Runs from the first byte on: a client may wait for the server as long as it likes.
    let mut begun = None;
    let mut ended = false;
    let mut held = None;
    poll_fn(|cx| {
        loop {
            match judge(client.bytes(), target, ended) {
                GreetingVerdict::Pass => return Poll::Ready(Ok(())),
                GreetingVerdict::Refuse(refusal) => return Poll::Ready(Err(Greeted::Refused(refusal))),
                GreetingVerdict::Wait => {}
            }
            if client.bytes().len() >= FIRST && held.is_none() {
                held = shared.heads.requests.place_now();
                if held.is_none() {
                    return Poll::Ready(Err(Greeted::Refused(Refusal::crowded())));
                }
            }
            match client.poll_fill_some(cx, FIRST) {
                Poll::Ready(Ok(count)) => ended = count == 0,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Greeted::Broken(Broken::Read(error)))),
                Poll::Pending => break,
            }
        }
        if !server_done {
            match down.poll(cx, server, &mut client.stream, received) {
                // The server may still read, so the client's bytes are checked all the same.
                Poll::Ready(Ok(())) => {
                    server_done = Pin::new(&mut client.stream).poll_shutdown(cx).is_ready();
                }
                Poll::Ready(Err(broken)) => return Poll::Ready(Err(Greeted::Broken(broken))),
                Poll::Pending => {}
            }
        }
        if !client.is_empty() {
            let deadline =
                begun.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + limits.head_time)));
            if deadline.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(Greeted::Refused(Refusal::slow())));
            }
        }
        idle.poll(cx, *received).map(|()| Err(Greeted::Broken(Broken::Idle)))
    })
    .await?;
    Ok(down)
}
