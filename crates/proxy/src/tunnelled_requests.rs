//! Plain requests inside a tunnel: each of them has to name the host that the tunnel was opened for.
//!
//! Some programs ask for a tunnel where a plain request would do. Their requests are served one by one, so that those
//! after the first are checked too.

use crate::buffered::Buffered;
use crate::client::{conclude, read, say};
use crate::config::RequestTarget;
use crate::dial::Reached;
use crate::event::Mode;
use crate::first_bytes;
use crate::forward::{After, Forward, KeptConnection, Server};
use crate::head::{RequestHead, TargetForm};
use crate::pending_event::PendingEvent;
use crate::shared::{ListenerShared, Stream};

pub(crate) async fn run<C: Stream>(
    client: &mut Buffered<C>,
    reached: Reached,
    target: &RequestTarget,
    shared: &ListenerShared,
) -> After {
    let mut kept = KeptConnection::default();
    kept.put(Server::new(reached, target.clone()));
    loop {
        let after = match read(client, shared, shared.config.limits.idle).await {
            Ok(Some((request, _held))) => one(client, &request, target, &mut kept, shared).await,
            Ok(None) => After::Close,
            Err(refusal) => {
                PendingEvent::new(shared, Mode::Forward).target(target).refuse(&refusal);
                say(client, &refusal, None, shared).await
            }
        };
        if after != After::Next {
            return after;
        }
    }
}

async fn one<C: Stream>(
    client: &mut Buffered<C>,
    request: &RequestHead,
    target: &RequestTarget,
    kept: &mut KeptConnection,
    shared: &ListenerShared,
) -> After {
    let path = match &request.form {
        TargetForm::Origin { path } | TargetForm::Absolute { path, .. } => path,
        TargetForm::Asterisk | TargetForm::Tunnel(_) => "*",
    };
    let record = PendingEvent::new(shared, Mode::Forward).target(target);
    let mut record = record.request(&request.method, Some(path));
    let forward = Forward { request, target, path, via: None, tunnelled: true };
    let done = match first_bytes::check(request, target) {
        Ok(()) => forward.run(client, kept, shared, &mut record).await,
        Err(refusal) => Err(refusal),
    };
    conclude(done, client, request, record, shared).await
}
