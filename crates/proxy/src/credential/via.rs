//! A request to a service: what changes on its way there, and what on the answer's way back.

use std::borrow::Cow;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::answer::{clean, readable, relocated};
use super::inject::{self, Change, Injection};
use super::scan::Scanner;
use super::{Line, Service};
use crate::config::Route;
use crate::dial::{self, Reached};
use crate::event::Category;
use crate::forward::Server;
use crate::head::{Framing, Request, Response};
use crate::refusal::Refusal;
use crate::shared::{Shared, Stream};
use crate::tls::server_name;

/// One request's way through a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Via<'a> {
    pub(crate) service: &'a Service,
    /// It came by this route's prefix.
    pub(crate) reverse: Option<&'a Route>,
    tls: Option<&'a Arc<ClientConfig>>,
}

/// The request as the server gets it. It holds the secret: it goes there and nowhere else.
pub(crate) struct Outgoing<'a> {
    pub(crate) request: Request,
    pub(crate) path: Cow<'a, str>,
    /// Whose secret went in.
    pub(crate) credential: Option<&'a str>,
}

impl<'a> Via<'a> {
    pub(crate) fn new(shared: &'a Shared, service: &'a Service, reverse: Option<&'a Route>) -> Via<'a> {
        let tls = shared.routes.client().filter(|_| service.https);
        Via { service, reverse, tls }
    }

    pub(crate) fn https(&self) -> bool {
        self.service.https
    }

    /// What goes to the server for this request.
    pub(crate) fn outgoing<'p>(&self, request: &Request, path: &'p str) -> Result<Outgoing<'p>, Refusal>
    where
        'a: 'p,
    {
        if request.method.eq_ignore_ascii_case("TRACE") {
            return Err(Refusal::new(
                405,
                Category::MalformedRequest,
                "Method Not Allowed",
                "TRACE would show the credential",
            ));
        }
        let lines: Vec<Line<'_>> =
            request.fields.end_to_end().map(|field| (&*field.name, &*field.value)).collect();
        let injection = match self.reverse {
            Some(route) => Some(inject::injection(route, path, &lines).ok_or_else(|| no_dummy(route))?),
            None => self.service.injection(path, &lines),
        };
        let mut outgoing = Outgoing { request: request.clone(), path: path.into(), credential: None };
        for name in inject::LEFT_OUT {
            outgoing.request.fields.remove(name);
        }
        outgoing.request.fields.push(inject::ADDED.0, inject::ADDED.1);
        if let Some(Injection { credential, change }) = injection {
            outgoing.credential = Some(credential);
            outgoing.put(change);
        }
        Ok(outgoing)
    }

    /// A connection that leads to the service, secured where it has to be.
    pub(crate) async fn reach(&self, shared: &Shared, target: &crate::Target) -> Result<Server, Refusal> {
        let Some(tls) = self.tls else {
            return Ok(Server::new(dial::reach(shared, target).await?, target.clone()));
        };
        let Reached { stream, address } = dial::reach_tunnel(shared, target).await?;
        let failed = |why: String| {
            Refusal::upstream(Category::UpstreamConnectFailed, format!("TLS with {target}: {why}"))
        };
        let name = server_name(&target.host).map_err(|error| failed(error.to_string()))?;
        let connecting = TlsConnector::from(tls.clone()).connect(name, stream);
        let stream = timeout(shared.config.limits.connect_time, connecting)
            .await
            .map_err(|_| Refusal::upstream(Category::Timeout, format!("{target} did not answer in time")))?
            .map_err(|error| failed(error.to_string()))?;
        Ok(Server::secured(Box::new(stream) as Box<dyn Stream>, address, target.clone()))
    }

    /// The answer's head as the client may see it.
    pub(crate) fn incoming(&self, mut head: Response, method: &str) -> Result<Response, Refusal> {
        let lines: Vec<Line<'_>> = head.fields.iter().map(|field| (&*field.name, &*field.value)).collect();
        let empty = head.framing(method) == Framing::Empty;
        readable(head.status, empty, &lines)
            .map_err(|why| Refusal::upstream(Category::UpstreamFailed, why.to_string()))?;
        let forms = self.service.forms();
        head.reason = forms.scrub(&head.reason);
        head.fields.change(|field| {
            let value = clean(forms, (&*field.name, &*field.value))?;
            let moved = self
                .reverse
                .filter(|_| field.is("location"))
                .and_then(|route| relocated(route, std::str::from_utf8(&value).ok()?));
            Some(moved.map_or(value, String::into_bytes))
        });
        if !empty {
            head.forget_length();
        }
        Ok(head)
    }

    pub(crate) fn scanner(&self) -> Scanner {
        Scanner::new(self.service.forms().clone())
    }
}

impl Outgoing<'_> {
    fn put(&mut self, change: Change) {
        match change {
            Change::Header { name, value } => {
                self.request.fields.remove(&name);
                self.request.fields.push(name, value.reveal());
            }
            Change::Target(path) => self.path = Cow::Owned(path.reveal().to_owned()),
        }
    }
}

fn no_dummy(route: &Route) -> Refusal {
    Refusal::new(
        401,
        Category::AuthenticationFailed,
        "Unauthorized",
        format!("this needs the key that this session was given for {}", route.name),
    )
}
