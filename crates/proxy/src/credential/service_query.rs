//! Requests to a service: by a prefix, inside an intercepted tunnel, or plain.

use std::borrow::Cow;

use super::CredentialService;
use super::rewrite::ServiceRewrite;
use crate::access;
use crate::buffered::Buffered;
use crate::config::RequestTarget;
use crate::event::{Category, Mode};
use crate::forward::{After, Forward, KeptConnection};
use crate::head::{RequestHead, TargetForm};
use crate::pending_event::PendingEvent;
use crate::refusal::Refusal;
use crate::shared::{ListenerShared, Stream};

/// An intercepted tunnel, and the service that all requests in it go to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inside<'a> {
    pub(crate) service: &'a CredentialService,
    pub(crate) target: &'a RequestTarget,
}

#[derive(Debug)]
pub(crate) struct ServiceQuery<'a> {
    via: ServiceRewrite<'a>,
    pub(crate) mode: Mode,
    pub(crate) target: RequestTarget,
    pub(crate) path: Cow<'a, str>,
}

impl<'a> ServiceQuery<'a> {
    /// Request by a prefix. The placeholder is its token (see `outgoing`).
    pub(crate) fn reverse(path: &str, shared: &'a ListenerShared) -> Option<ServiceQuery<'a>> {
        let reverse = shared.routes.reverse(path)?;
        Some(ServiceQuery {
            via: ServiceRewrite::new(reverse.service, Some(reverse.route)),
            mode: Mode::Reverse,
            target: RequestTarget { host: reverse.service.host.clone(), port: reverse.service.port },
            path: reverse.target.into(),
        })
    }

    /// Plain `http://` request to a host that has a credential.
    pub(crate) fn forward(
        target: &RequestTarget,
        path: &'a str,
        shared: &'a ListenerShared,
    ) -> Option<ServiceQuery<'a>> {
        let service = shared.routes.service(&target.host, target.port, false)?;
        let via = ServiceRewrite::new(service, None);
        Some(ServiceQuery { via, mode: Mode::Forward, target: target.clone(), path: path.into() })
    }

    /// Request inside an intercepted tunnel. It can only go to the tunnel's host.
    pub(crate) fn inside(inside: Inside<'a>, request: &'a RequestHead) -> Result<ServiceQuery<'a>, Refusal> {
        let path = match &request.form {
            TargetForm::Origin { path } => path.as_str(),
            TargetForm::Absolute { https, target, path }
                if *https == inside.service.https && target == inside.target =>
            {
                path
            }
            TargetForm::Asterisk => "*",
            TargetForm::Tunnel(_) | TargetForm::Absolute { .. } => return Err(misdirected(inside.target)),
        };
        // A missing port is the scheme's default, or the tunnel's where the scheme is unknown.
        let usual = if inside.service.https { 443 } else { inside.target.port };
        let host = request.host(usual).map_err(Refusal::malformed)?;
        if host.is_some_and(|host| host != *inside.target) {
            return Err(misdirected(inside.target));
        }
        let via = ServiceRewrite::new(inside.service, None);
        Ok(ServiceQuery {
            via,
            mode: Mode::ConnectIntercept,
            target: inside.target.clone(),
            path: path.into(),
        })
    }

    /// Name of the route whose prefix was used.
    pub(crate) fn route(&self) -> Option<&'a str> {
        self.via.reverse.map(|route| route.name.as_str())
    }

    /// Path for events, with the placeholder masked.
    pub(crate) fn shown_path(&self) -> Cow<'_, str> {
        let placeholders = self.via.service.routes().iter().map(|route| route.placeholder.as_str());
        placeholders.fold(Cow::Borrowed(&*self.path), |path, placeholder| {
            if path.contains(placeholder) { Cow::Owned(path.replace(placeholder, "***")) } else { path }
        })
    }

    /// Serves the request. On an error no byte of a response has been sent, and the caller answers the client.
    pub(crate) async fn run<C: Stream>(
        &self,
        request: &RequestHead,
        client: &mut Buffered<C>,
        kept: &mut KeptConnection,
        shared: &ListenerShared,
        record: &mut PendingEvent<'_>,
    ) -> Result<After, Refusal> {
        match self.mode {
            Mode::Forward => access::admit(&shared.config, &self.target, &request.fields)?,
            // The placeholder is the token of a prefix; a tunnel was authenticated when it was opened.
            Mode::Reverse | Mode::Connect | Mode::ConnectIntercept => {
                access::listed(&shared.config, &self.target)?;
            }
        }
        let authenticated =
            shared.config.token.is_some() && access::authenticated(&shared.config, &request.fields);
        let outgoing = self.via.outgoing(request, &self.path, authenticated)?;
        record.event.credential = outgoing.credential.map(str::to_owned);
        let (request, path) = (&outgoing.request, &*outgoing.path);
        let forward = Forward { request, target: &self.target, path, via: Some(self.via), tunnelled: false };
        forward.run(client, kept, shared, record).await
    }
}

fn misdirected(target: &RequestTarget) -> Refusal {
    Refusal::new(
        421,
        Category::MalformedRequest,
        "Misdirected Request",
        format!("requests in this tunnel can only go to {target}"),
    )
}
