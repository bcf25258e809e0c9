//! Intercepted tunnels: the proxy terminates a tunnel to a service itself, to insert the credential.
//!
//! The client speaks TLS with a certificate for exactly the host it asked for, or plain HTTP where the service does.
//! Requests inside are checked like any other, and go to that host and port only. Anything but HTTP requests is
//! refused, because it could not be kept from carrying the secret back.

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::CredentialService;
use super::service_query::Inside;
use crate::buffered::Buffered;
use crate::config::RequestTarget;
use crate::event::Category;
use crate::pending_event::PendingEvent;
use crate::refusal::Refusal;
use crate::requests;
use crate::shared::{ListenerShared, Stream};
use crate::transfer::send;
use crate::tunnel::ESTABLISHED;

/// Accepts the tunnel, does the TLS handshake, and serves the requests inside. On an error no byte of the tunnel has
/// been sent, and the caller answers the client.
pub(crate) async fn run<C: Stream>(
    client: &mut Buffered<C>,
    service: &CredentialService,
    target: &RequestTarget,
    shared: &ListenerShared,
    record: &mut PendingEvent<'_>,
) -> Result<(), Refusal> {
    let inside = Inside { service, target };
    if !service.https {
        if established(client, shared, record).await {
            requests::serve_inside(client, inside, shared).await;
            record.end();
        }
        return Ok(());
    }
    let Some(identity) = shared.routes.ca().and_then(|ca| ca.identity(&service.host)) else {
        let why = format!("no certificate for {target}");
        return Err(Refusal::upstream(Category::CredentialUnavailable, why));
    };
    if !established(client, shared, record).await {
        return Ok(());
    }
    let limits = &shared.config.limits;
    let mut stream = match timeout(limits.head_time, TlsAcceptor::from(identity).accept(client)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            record.fail(&handshake(target, &error.to_string()));
            return Ok(());
        }
        Err(_) => {
            record.fail(&handshake(target, "it took too long"));
            return Ok(());
        }
    };
    requests::serve_inside(&mut stream, inside, shared).await;
    // A clean end for the client, which may be gone already.
    let _closed = timeout(limits.connect_time, stream.shutdown()).await;
    record.end();
    Ok(())
}

/// Tells the client that the tunnel is open. Returns whether the client is still there.
async fn established<C: Stream>(
    client: &mut Buffered<C>,
    shared: &ListenerShared,
    record: &mut PendingEvent<'_>,
) -> bool {
    record.event.status = Some(200);
    record.open();
    let heard = send(ESTABLISHED, &mut client.stream, shared.config.limits.idle).await.is_ok();
    if !heard {
        // The client is gone.
        record.end();
    }
    heard
}

fn handshake(target: &RequestTarget, why: &str) -> Refusal {
    Refusal::upstream(
        Category::InterceptHandshakeFailed,
        format!(
            "TLS with the client for {target}: {why}; it must trust the session's certificates (SSL_CERT_FILE) \
             and speak HTTP/1.1"
        ),
    )
}
