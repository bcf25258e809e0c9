//! Credentials that the command never has: it holds a dummy, and the secret goes in here, for one host only.
//!
//! A route's host is reached in three ways: by the route's prefix on the proxy's own port, by a plain `http://` request, or
//! by a tunnel that the proxy ends itself (`intercept`). In all of them one rule decides:
//!
//! - The dummy stands where the route expects its credential: the secret is put there, in the route's own form, and
//!   whatever else the request had there is removed.
//! - Something else stands there, or nothing: the request goes on as it is, without the secret. It may be another key of
//!   the user's own. By the prefix such a request is refused instead: nothing else is to be had there.
//!
//! Nothing leaks back: every answer of such a host, whether the secret went in or not, passes through `scan`, its head too.
//! So that it can be read, the server is asked for plain, whole answers; one that is compressed or a part all the same is
//! refused. After an upgrade (a WebSocket) nothing can be replaced without breaking the frames: there the connection ends
//! when the secret comes. `TRACE` is refused.

use std::fmt;
use std::sync::Arc;

use nono_policy::hosts::{Host, HostError};
use rustls::ClientConfig;
use thiserror::Error;

use crate::config::{Config, Inject, Route};
use crate::tls::{self, SessionCa, TlsError};

pub mod answer;
pub(crate) mod asked;
pub(crate) mod guard;
pub mod inject;
pub(crate) mod intercept;
pub mod scan;
pub(crate) mod via;

use scan::{Forms, Hidden};

/// Shorter ones could not be told from ordinary text in an answer.
const MIN_SECRET: usize = 8;
const MAX_SECRET: usize = 8 << 10;
/// A credential in one of these would change what the message is.
const NOT_FOR_CREDENTIALS: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "accept-encoding",
    "range",
];

#[derive(Debug, Error)]
#[error("credential {name}: {why}")]
pub struct RouteError {
    pub name: String,
    pub why: Why,
}

#[derive(Debug, Error)]
pub enum Why {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("its port is 0")]
    Port,
    #[error("{0:?} is not a header that can carry a credential")]
    Header(String),
    #[error("its format has to contain {{}} exactly once, and nothing but visible characters")]
    Format,
    #[error("the name of its query parameter is empty or not plain")]
    Query,
    #[error("its user name has a colon or characters that cannot be sent")]
    User,
    #[error(
        "the secret is shorter than {MIN_SECRET} bytes: it could not be told from ordinary text in an answer"
    )]
    Short,
    #[error("the secret is longer than {MAX_SECRET} bytes")]
    Long,
    #[error("the secret has characters that cannot be sent: only visible ASCII can")]
    Unsendable,
    #[error("the dummy has to be a plain word that has nothing in common with the secret")]
    Dummy,
    #[error("its prefix {0:?} is not a plain word, or another credential has it")]
    Prefix(String),
    #[error("its base path {0:?} does not start with / or is not plain")]
    Base(String),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// All routes of a proxy, checked, with what is needed to speak as their hosts and to them.
#[derive(Debug, Default)]
pub struct Routes {
    services: Vec<Arc<Service>>,
    ca: Option<SessionCa>,
    client: Option<Arc<ClientConfig>>,
}

/// One server, and the credentials that are for it.
#[derive(Debug)]
pub struct Service {
    pub host: Host,
    pub port: u16,
    pub https: bool,
    routes: Vec<Route>,
    forms: Arc<Forms>,
}

/// A request by a prefix: which credential it has to show the dummy of, and where it goes.
#[derive(Debug)]
pub struct Reverse<'a> {
    pub service: &'a Arc<Service>,
    pub route: &'a Route,
    /// Path and query at the server.
    pub target: String,
}

impl Routes {
    pub fn new(config: &Config) -> Result<Routes, RouteError> {
        let mut sorted: Vec<(Host, Vec<Route>)> = Vec::new();
        for (index, route) in config.routes.iter().enumerate() {
            let wrong = |why| RouteError { name: route.name.clone(), why };
            let host = check(route).map_err(wrong)?;
            if config.routes[..index].iter().any(|other| other.prefix == route.prefix) {
                return Err(wrong(Why::Prefix(route.prefix.clone())));
            }
            let same = |(other, routes): &&mut (Host, Vec<Route>)| {
                *other == host && routes[0].port == route.port && routes[0].https == route.https
            };
            match sorted.iter_mut().find(same) {
                Some((_, routes)) => routes.push(route.clone()),
                None => sorted.push((host, vec![route.clone()])),
            }
        }
        let services: Vec<_> =
            sorted.into_iter().map(|(host, routes)| Arc::new(Service::new(host, routes))).collect();
        let (ca, client) = secured(&services, &config.certificates)?;
        Ok(Routes { services, ca, client })
    }

    /// The authority that the command has to trust; none where no route speaks TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca.as_ref().map(SessionCa::pem)
    }

    pub fn ca(&self) -> Option<&SessionCa> {
        self.ca.as_ref()
    }

    /// How to speak TLS to the services' servers.
    pub fn client(&self) -> Option<&Arc<ClientConfig>> {
        self.client.as_ref()
    }

    /// Whose credentials a request to this place may get.
    pub fn service(&self, host: &Host, port: u16, https: bool) -> Option<&Arc<Service>> {
        let same =
            |service: &&Arc<Service>| service.host == *host && service.port == port && service.https == https;
        self.services.iter().find(same)
    }

    /// The same for what comes through a tunnel, which may have TLS inside or not.
    pub fn tunnelled(&self, host: &Host, port: u16) -> Option<&Arc<Service>> {
        self.service(host, port, true).or_else(|| self.service(host, port, false))
    }

    /// Where `/<prefix>/…` leads.
    pub fn reverse(&self, target: &str) -> Option<Reverse<'_>> {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let path = path.strip_prefix('/')?;
        let (prefix, rest) = path.find('/').map_or((path, ""), |at| path.split_at(at));
        let all =
            self.services.iter().flat_map(|service| service.routes.iter().map(move |route| (service, route)));
        let (service, route) = all.into_iter().find(|(_, route)| route.prefix == prefix)?;
        let mut target = format!("{}{rest}", route.base.trim_end_matches('/'));
        if target.is_empty() {
            target.push('/');
        }
        if let Some(query) = query {
            target.push('?');
            target.push_str(query);
        }
        Some(Reverse { service, route, target })
    }
}

/// What TLS needs, where a route has it.
type Secured = (Option<SessionCa>, Option<Arc<ClientConfig>>);

fn secured(services: &[Arc<Service>], certificates: &str) -> Result<Secured, RouteError> {
    let secured = || services.iter().filter(|service| service.https);
    let Some(first) = secured().next() else { return Ok((None, None)) };
    let wrong = |source: TlsError| RouteError { name: first.routes[0].name.clone(), why: source.into() };
    let mut hosts: Vec<Host> = secured().map(|service| service.host.clone()).collect();
    hosts.sort();
    hosts.dedup();
    for host in &hosts {
        tls::server_name(host).map_err(wrong)?;
    }
    let ca = SessionCa::new(&hosts).map_err(wrong)?;
    let client = tls::client_config(certificates).map_err(wrong)?;
    Ok((Some(ca), Some(Arc::new(client))))
}

impl Service {
    fn new(host: Host, routes: Vec<Route>) -> Service {
        let hidden: Vec<Hidden<'_>> = routes.iter().map(hidden).collect();
        let forms = Arc::new(Forms::new(&hidden));
        let (port, https) = (routes[0].port, routes[0].https);
        Service { host, port, https, routes, forms }
    }

    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    pub fn forms(&self) -> &Arc<Forms> {
        &self.forms
    }
}

fn hidden(route: &Route) -> Hidden<'_> {
    let user = match &route.inject {
        Inject::Basic { user } => Some(user.as_str()),
        Inject::Header { .. } | Inject::Query { .. } => None,
    };
    Hidden { secret: route.secret.reveal(), dummy: &route.dummy, user }
}

/// Its host, when nothing is wrong with the route.
fn check(route: &Route) -> Result<Host, Why> {
    let visible = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    let host = route.host.parse::<Host>()?;
    if route.port == 0 {
        return Err(Why::Port);
    }
    match &route.inject {
        Inject::Header { name, .. } if !plain(name) || forbidden(name) => {
            return Err(Why::Header(name.clone()));
        }
        Inject::Header { format, .. } if format.matches("{}").count() != 1 || !visible(format) => {
            return Err(Why::Format);
        }
        Inject::Query { name } if !plain(name) => return Err(Why::Query),
        Inject::Basic { user } if !visible(user) || user.contains(':') => return Err(Why::User),
        Inject::Header { .. } | Inject::Query { .. } | Inject::Basic { .. } => {}
    }
    let secret = route.secret.reveal();
    if secret.len() < MIN_SECRET {
        return Err(Why::Short);
    }
    if secret.len() > MAX_SECRET {
        return Err(Why::Long);
    }
    if !visible(secret) || secret.trim() != secret {
        return Err(Why::Unsendable);
    }
    if !plain(&route.dummy) || secret.contains(&route.dummy) || route.dummy.contains(secret) {
        return Err(Why::Dummy);
    }
    if !plain(&route.prefix) || route.prefix.starts_with('.') {
        return Err(Why::Prefix(route.prefix.clone()));
    }
    let path = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/%@:+".contains(&byte);
    if !route.base.is_empty() && (!route.base.starts_with('/') || !route.base.bytes().all(path)) {
        return Err(Why::Base(route.base.clone()));
    }
    Ok(host)
}

fn forbidden(name: &str) -> bool {
    NOT_FOR_CREDENTIALS.iter().any(|other| other.eq_ignore_ascii_case(name))
        || name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("proxy-"))
}

/// One header, as it was written.
pub(crate) type Line<'a> = (&'a str, &'a [u8]);

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests;
