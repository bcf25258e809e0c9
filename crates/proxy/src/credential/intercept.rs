//! A tunnel to a service that the proxy ends itself, to put the credential in.
//!
//! The client speaks TLS with an identity for exactly the host it asked for, or plainly where the service does. What it
//! says inside is judged like any request, and goes to that host and port only; anything but requests is refused, since
//! nothing else could be kept from carrying the secret back.

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::Service;
use super::asked::Inside;
use crate::buffered::Buffered;
use crate::config::Target;
use crate::event::Category;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::requests;
use crate::shared::{Shared, Stream};
use crate::transfer::send;
use crate::tunnel::ESTABLISHED;

/// Answer, shake hands, and serve what is asked inside. An error is said to the client by the caller: no byte of the
/// tunnel has been sent then.
pub(crate) async fn run<C: Stream>(
    client: &mut Buffered<C>,
    service: &Service,
    target: &Target,
    shared: &Shared,
    record: &mut Record<'_>,
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
        let why = format!("there is no certificate to speak as {target} with");
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
    // So that the client sees an end and no break; it may be gone already.
    let _closed = timeout(limits.connect_time, stream.shutdown()).await;
    record.end();
    Ok(())
}

/// Say that the tunnel is there; whether anybody heard it.
async fn established<C: Stream>(client: &mut Buffered<C>, shared: &Shared, record: &mut Record<'_>) -> bool {
    record.event.status = Some(200);
    record.open();
    let heard = send(ESTABLISHED, &mut client.stream, shared.config.limits.idle).await.is_ok();
    if !heard {
        // The client is gone: nobody is left to hear of it.
        record.end();
    }
    heard
}

fn handshake(target: &Target, why: &str) -> Refusal {
    Refusal::upstream(
        Category::InterceptHandshakeFailed,
        format!(
            "TLS with the program for {target}: {why}; it has to trust the session's certificates (SSL_CERT_FILE) and to speak HTTP/1.1"
        ),
    )
}
