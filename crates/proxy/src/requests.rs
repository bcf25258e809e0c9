//! Requests of one client, served one after the other, each checked anew.

use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::access;
use crate::buffered::Buffered;
use crate::client::{conclude, read, say};
use crate::config::RequestTarget;
use crate::credential::intercept;
use crate::credential::service_query::{Inside, ServiceQuery};
use crate::event::{Category, Mode};
use crate::forward::{After, Forward, KeptConnection};
use crate::head::{RequestHead, TargetForm};
use crate::pending_event::PendingEvent;
use crate::refusal::Refusal;
use crate::shared::{ListenerShared, Stream};
use crate::tunnel;

/// Maximum number of bytes that a refused client may still send, and the time for it.
const MAX_LINGER: u64 = 1 << 20;
const LINGER: Duration = Duration::from_secs(2);

/// Serves a client until one side ends.
pub(crate) async fn serve<C: Stream>(client: C, shared: &ListenerShared) {
    serve_all(client, None, shared).await;
}

/// Serves a client inside an intercepted tunnel. Boxed, because `serve` calls it recursively.
pub(crate) fn serve_inside<'a>(
    client: &'a mut dyn Stream,
    inside: Inside<'a>,
    shared: &'a ListenerShared,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(serve_all(client, Some(inside), shared))
}

async fn serve_all<C: Stream>(client: C, inside: Option<Inside<'_>>, shared: &ListenerShared) {
    let mut client = Buffered::new(client);
    let mut kept = KeptConnection::default();
    let mut wait = shared.config.limits.head_time;
    loop {
        let after = match read(&mut client, shared, wait).await {
            Ok(Some((request, _held))) => handle(&mut client, &request, inside, &mut kept, shared).await,
            Ok(None) => After::Close,
            Err(refusal) => {
                let mut record = match inside {
                    Some(inside) => PendingEvent::new(shared, Mode::ConnectIntercept).target(inside.target),
                    None => PendingEvent::new(shared, Mode::Forward),
                };
                record.refuse(&refusal);
                say(&mut client, &refusal, None, shared).await
            }
        };
        match after {
            After::Next => {}
            After::Linger => return linger(&mut client).await,
            After::Close => return close(&mut client).await,
        }
        wait = shared.config.limits.idle;
    }
}

enum RequestKind<'a> {
    Tunnel(&'a RequestTarget),
    Forward(&'a RequestTarget, &'a str),
    Service(ServiceQuery<'a>),
}

fn sort<'a>(
    request: &'a RequestHead,
    inside: Option<Inside<'a>>,
    shared: &'a ListenerShared,
) -> Result<RequestKind<'a>, Refusal> {
    if let Some(inside) = inside {
        return ServiceQuery::inside(inside, request).map(RequestKind::Service);
    }
    match &request.form {
        TargetForm::Tunnel(target) => Ok(RequestKind::Tunnel(target)),
        // A program may use the proxy to reach a route's prefix on the proxy itself.
        form @ TargetForm::Absolute { https: false, target, path } if shared.is_own(target) => {
            by_prefix(path, form, shared)
        }
        TargetForm::Absolute { https: false, target, path } => {
            let asked = ServiceQuery::forward(target, path, shared);
            Ok(asked.map_or(RequestKind::Forward(target, path), RequestKind::Service))
        }
        form @ TargetForm::Origin { path } => by_prefix(path, form, shared),
        form => Err(not_for_us(form)),
    }
}

/// Kind of a request to the proxy itself, by a route's prefix.
fn by_prefix<'a>(
    path: &str,
    form: &TargetForm,
    shared: &'a ListenerShared,
) -> Result<RequestKind<'a>, Refusal> {
    if let Some((prefix, why)) = shared.routes.broken(path) {
        let advice = format!("the route {prefix} cannot be used: {why}");
        return Err(Refusal::upstream(Category::UpstreamConnectFailed, advice));
    }
    ServiceQuery::reverse(path, shared).map(RequestKind::Service).ok_or_else(|| not_for_us(form))
}

fn record<'a>(
    kind: &Result<RequestKind<'_>, Refusal>,
    request: &RequestHead,
    inside: Option<Inside<'_>>,
    shared: &'a ListenerShared,
) -> PendingEvent<'a> {
    let method = &request.method;
    match (kind, inside) {
        (Ok(RequestKind::Tunnel(target)), _) => {
            PendingEvent::new(shared, Mode::Connect).target(target).request(method, None)
        }
        (Ok(RequestKind::Forward(target, path)), _) => {
            PendingEvent::new(shared, Mode::Forward).target(target).request(method, Some(path))
        }
        (Ok(RequestKind::Service(asked)), _) => {
            let path = asked.shown_path();
            let mut record =
                PendingEvent::new(shared, asked.mode).target(&asked.target).request(method, Some(&path));
            record.event.route = asked.route().map(str::to_owned);
            record
        }
        (Err(_), Some(inside)) => PendingEvent::new(shared, Mode::ConnectIntercept)
            .target(inside.target)
            .request(method, path(&request.form)),
        (Err(_), None) => PendingEvent::new(shared, Mode::Reverse).request(method, path(&request.form)),
    }
}

async fn handle<C: Stream>(
    client: &mut Buffered<C>,
    request: &RequestHead,
    inside: Option<Inside<'_>>,
    kept: &mut KeptConnection,
    shared: &ListenerShared,
) -> After {
    let kind = sort(request, inside, shared);
    let mut record = record(&kind, request, inside, shared);
    let done = match kind {
        Ok(RequestKind::Tunnel(target)) => tunnel(client, request, target, shared, &mut record).await,
        Ok(RequestKind::Forward(target, path)) => {
            match access::admit(&shared.config, target, &request.fields) {
                Ok(()) => {
                    let forward = Forward { request, target, path, via: None, tunnelled: false };
                    forward.run(client, kept, shared, &mut record).await
                }
                Err(refusal) => Err(refusal),
            }
        }
        Ok(RequestKind::Service(asked)) => asked.run(request, client, kept, shared, &mut record).await,
        Err(refusal) => Err(refusal),
    };
    conclude(done, client, request, record, shared).await
}

async fn tunnel<C: Stream>(
    client: &mut Buffered<C>,
    request: &RequestHead,
    target: &RequestTarget,
    shared: &ListenerShared,
    record: &mut PendingEvent<'_>,
) -> Result<After, Refusal> {
    let service = shared.routes.tunnelled(&target.host, target.port);
    if service.is_some() {
        record.event.mode = Mode::ConnectIntercept;
    }
    access::admit(&shared.config, target, &request.fields)?;
    if shared.is_own(target) {
        return Err(Refusal::bad("this is the proxy itself: send the request without a tunnel"));
    }
    match service {
        Some(service) if service.https && shared.routes.ca().is_none() => {
            record.event.mode = Mode::Connect;
            if service.is_guarded() {
                return Err(Refusal::new(
                    403,
                    Category::ConnectBypassesRoute,
                    "Tunnel not allowed",
                    format!("a tunnel to {target} would bypass its route: use the route's prefix"),
                ));
            }
            tunnel::run(client, target, shared, record).await
        }
        Some(service) => intercept::run(client, service, target, shared, record).await.map(|()| After::Close),
        None => tunnel::run(client, target, shared, record).await,
    }
}

fn path(form: &TargetForm) -> Option<&str> {
    match form {
        TargetForm::Absolute { path, .. } | TargetForm::Origin { path } => Some(path),
        TargetForm::Tunnel(_) | TargetForm::Asterisk => None,
    }
}

fn not_for_us(form: &TargetForm) -> Refusal {
    Refusal::bad(match form {
        TargetForm::Absolute { .. } => "https goes through a tunnel: use CONNECT host:port",
        _ => "this is a proxy: ask for http://host/path, or CONNECT host:port",
    })
}

/// Reads on for a moment before closing: a close with unread bytes would reset the connection and lose the response.
async fn linger<C: Stream>(client: &mut Buffered<C>) {
    close(client).await;
    let mut rest = (&mut client.stream).take(MAX_LINGER);
    // Whatever happens here, the connection is closed.
    let _ended = timeout(LINGER, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}

/// Shuts down the sending side.
async fn close<C: Stream>(client: &mut Buffered<C>) {
    // An error means that the client is gone.
    let _told = timeout(LINGER, client.stream.shutdown()).await;
}
