//! Plain requests inside a tunnel: each of them has to name the host that the tunnel was opened for.
//!
//! Some programs ask for a tunnel where a plain request would do. Their requests are served one by one, so that those
//! after the first are checked too.

use crate::buffered::Buffered;
use crate::client::{read, say};
use crate::config::Target;
use crate::dial::Reached;
use crate::event::Mode;
use crate::forward::{After, Forward, Kept, Server};
use crate::greeting;
use crate::head::{Form, Request};
use crate::record::Record;
use crate::shared::{Shared, Stream};

pub(crate) async fn run<C: Stream>(
    client: &mut Buffered<C>,
    reached: Reached,
    target: &Target,
    shared: &Shared,
) -> After {
    let mut kept = Kept::default();
    kept.put(Server::new(reached, target.clone()));
    loop {
        let after = match read(client, shared, shared.config.limits.idle).await {
            Ok(Some((request, _held))) => one(client, &request, target, &mut kept, shared).await,
            Ok(None) => After::Close,
            Err(refusal) => {
                Record::new(shared, Mode::Forward).target(target).refuse(&refusal);
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
    request: &Request,
    target: &Target,
    kept: &mut Kept,
    shared: &Shared,
) -> After {
    let path = match &request.form {
        Form::Origin { path } | Form::Absolute { path, .. } => path,
        Form::Asterisk | Form::Tunnel(_) => "*",
    };
    let record = Record::new(shared, Mode::Forward).target(target);
    let mut record = record.request(&request.method, Some(path));
    let forward = Forward { request, target, path, via: None, tunnelled: true };
    let done = match greeting::check(request, target) {
        Ok(()) => forward.run(client, kept, shared, &mut record).await,
        Err(refusal) => Err(refusal),
    };
    match done {
        Ok(after) => after,
        Err(refusal) => {
            record.refuse(&refusal);
            drop(record);
            say(client, &refusal, Some(request), shared).await
        }
    }
}
