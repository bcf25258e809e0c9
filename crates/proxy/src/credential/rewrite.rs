//! Changes to a request to a service, and to its response.

use std::borrow::Cow;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::answer::{clean, readable, relocated};
use super::inject::{self, HeaderInjection, Injection};
use super::scan::Scanner;
use super::{CredentialService, HeaderLine, permits};
use crate::config::{Route, RouteKey};
use crate::dial::{self, Reached};
use crate::event::Category;
use crate::forward::server::Server;
use crate::head::{Framing, RequestHead, ResponseHead};
use crate::refusal::Refusal;
use crate::shared::{ListenerShared, Stream};
use crate::tls::server_name;

/// Handling of one request to a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceRewrite<'a> {
    pub(crate) service: &'a CredentialService,
    /// Route whose prefix the request used, if any.
    pub(crate) reverse: Option<&'a Route>,
    tls: Option<&'a Arc<ClientConfig>>,
}

/// Request as sent to the server. It holds the secret, so it must go to that server only.
pub(crate) struct Outgoing<'a> {
    pub(crate) request: RequestHead,
    pub(crate) path: Cow<'a, str>,
    /// Name of the route whose secret was inserted.
    pub(crate) credential: Option<&'a str>,
}

impl<'a> ServiceRewrite<'a> {
    pub(crate) fn new(service: &'a CredentialService, reverse: Option<&'a Route>) -> ServiceRewrite<'a> {
        ServiceRewrite { service, reverse, tls: service.client() }
    }

    pub(crate) fn https(&self) -> bool {
        self.service.https
    }

    /// Builds the request for the server. By a prefix, an `authenticated` client needs no placeholder if the route has
    /// no secret.
    pub(crate) fn outgoing<'p>(
        &self,
        request: &RequestHead,
        path: &'p str,
        authenticated: bool,
    ) -> Result<Outgoing<'p>, Refusal>
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
        let lines: Vec<HeaderLine<'_>> =
            request.fields.end_to_end().map(|field| (&*field.name, &*field.value)).collect();
        let injection = match self.reverse {
            Some(route) => reverse(route, &request.method, path, &lines, authenticated)?,
            None => inside(self.service, &request.method, path, &lines)?,
        };
        let mut outgoing = Outgoing { request: request.clone(), path: path.into(), credential: None };
        if let Some(route) = self.reverse {
            let fields = &mut outgoing.request.fields;
            fields
                .change(|field| (!inject::is_placeholder(route, &field.value)).then(|| field.value.clone()));
        }
        if self.service.forms().is_some() {
            for name in inject::LEFT_OUT {
                outgoing.request.fields.remove(name);
            }
            outgoing.request.fields.push(inject::ADDED.0, inject::ADDED.1);
        }
        if let Some(Injection { credential, change }) = injection {
            outgoing.credential = Some(credential);
            outgoing.put(change);
        }
        Ok(outgoing)
    }

    /// Connects to the service, with TLS if it uses that.
    pub(crate) async fn reach(
        &self,
        shared: &ListenerShared,
        target: &crate::RequestTarget,
    ) -> Result<Server, Refusal> {
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

    /// Head of the response without the secret.
    pub(crate) fn incoming(&self, mut head: ResponseHead, method: &str) -> Result<ResponseHead, Refusal> {
        if let Some(forms) = self.service.forms() {
            let lines: Vec<HeaderLine<'_>> =
                head.fields.iter().map(|field| (&*field.name, &*field.value)).collect();
            let empty = head.framing(method) == Framing::Empty;
            readable(head.status, empty, &lines)
                .map_err(|why| Refusal::upstream(Category::UpstreamFailed, why.to_string()))?;
            head.reason = forms.scrub(&head.reason);
            head.fields.change(|field| clean(forms, (&*field.name, &*field.value)));
            if !empty {
                head.forget_length();
            }
        }
        if let Some(route) = self.reverse {
            head.fields.change(|field| {
                let text = std::str::from_utf8(&field.value).ok().filter(|_| field.is("location"));
                let moved = text.and_then(|text| relocated(route, text));
                Some(moved.map_or_else(|| field.value.clone(), String::into_bytes))
            });
        }
        Ok(head)
    }

    /// Scanner for the response; `None` if there is no secret.
    pub(crate) fn scanner(&self) -> Option<Scanner> {
        self.service.forms().map(|forms| Scanner::new(forms.clone()))
    }
}

impl Outgoing<'_> {
    fn put(&mut self, change: HeaderInjection) {
        match change {
            HeaderInjection::Header { name, value } => {
                self.request.fields.remove(&name);
                self.request.fields.push(name, value.reveal());
            }
            HeaderInjection::Target(path) => self.path = Cow::Owned(path.reveal().to_owned()),
        }
    }
}

/// Credential for a request by a prefix.
fn reverse<'a>(
    route: &'a Route,
    method: &str,
    path: &str,
    lines: &[HeaderLine<'_>],
    authenticated: bool,
) -> Result<Option<Injection<'a>>, Refusal> {
    if !permits(route, method, path) {
        return Err(not_permitted(&route.name));
    }
    let shown = inject::shows(route, path, lines);
    match &route.secret {
        RouteKey::Missing(why) => Err(Refusal::no_secret(&route.name, why)),
        RouteKey::Secret(_) if shown => Ok(inject::injection(route, path, lines)),
        RouteKey::None
            if shown
                || authenticated
                || lines.iter().any(|(_, value)| inject::is_placeholder(route, value)) =>
        {
            Ok(None)
        }
        RouteKey::Secret(_) | RouteKey::None => Err(no_placeholder(route)),
    }
}

/// Credential for any other request to a service.
fn inside<'a>(
    service: &'a CredentialService,
    method: &str,
    path: &str,
    lines: &[HeaderLine<'_>],
) -> Result<Option<Injection<'a>>, Refusal> {
    let mut routes = service.routes().iter().filter(|route| permits(route, method, path)).peekable();
    if routes.peek().is_none() {
        return Err(not_permitted(&service.to_string()));
    }
    for route in routes {
        match &route.secret {
            RouteKey::Missing(why) if inject::shows(route, path, lines) => {
                return Err(Refusal::no_secret(&route.name, why));
            }
            _ => {
                if let Some(injection) = inject::injection(route, path, lines) {
                    return Ok(Some(injection));
                }
            }
        }
    }
    Ok(None)
}

fn not_permitted(place: &str) -> Refusal {
    Refusal::new(
        403,
        Category::EndpointPolicy,
        "Endpoint not allowed",
        format!("no rule for {place} permits this method and path"),
    )
}

fn no_placeholder(route: &Route) -> Refusal {
    Refusal::new(
        401,
        Category::AuthenticationFailed,
        "Unauthorized",
        format!("present the placeholder that this session has for {}", route.name),
    )
}
