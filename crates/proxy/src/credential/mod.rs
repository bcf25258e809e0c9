//! Credentials that the command never has: it holds a placeholder, and the proxy inserts the secret, for one host only.
//!
//! A route's host is reached in three ways: by the route's prefix on the proxy's own port, by a plain `http://`
//! request, or by a tunnel that the proxy terminates itself (`intercept`). In all of them one rule decides:
//!
//! - The placeholder is where the route expects its credential: the secret is inserted there, in the route's own form,
//!   and everything else the request had there is removed.
//! - Something else is there, or nothing: the request is forwarded unchanged, without the secret. It may carry another
//!   key of the user's own. By the prefix such a request is refused instead.
//!
//! Nothing leaks back: every response of such a host, whether the secret was inserted or not, passes through `scan`,
//! its head too. The server is asked for uncompressed, whole responses so that they can be scanned; a compressed or
//! partial one is refused. After an upgrade (a WebSocket) nothing can be replaced without breaking the frames: there
//! the connection ends when the secret appears. `TRACE` is refused.

use std::fmt;
use std::sync::Arc;

use nono_policy::host_rule::{Host, HostError};
use rustls::ClientConfig;
use thiserror::Error;

use crate::config::{Config, Inject, Route, RouteKey, Secret};
use crate::tls::{self, SessionCa, TlsError};

pub mod answer;
pub mod endpoint;
pub mod inject;
pub(crate) mod intercept;
pub(crate) mod rewrite;
pub mod scan;
pub(crate) mod service_query;
pub(crate) mod upgraded_stream;

use scan::{Forms, Hidden};

/// Minimum length of a secret; a shorter one could not be recognised in the text of a response.
const MIN_SECRET: usize = 8;
const MAX_SECRET: usize = 8 << 10;
/// Headers that cannot carry a credential, because they change the meaning of the message.
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
    pub why: CredentialFault,
}

#[derive(Debug, Error)]
pub enum CredentialFault {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("its port is 0")]
    Port,
    #[error("{0:?} is not a header that can carry a credential")]
    Header(String),
    #[error("its format has to contain {{}} exactly once, and nothing but visible characters")]
    Format,
    #[error("the name of its query parameter is empty or has special characters")]
    Query,
    #[error("its user name has a colon or characters that cannot be sent")]
    User,
    #[error(
        "the secret is shorter than {MIN_SECRET} bytes: it could not be recognised in the text of a response"
    )]
    Short,
    #[error("the secret is longer than {MAX_SECRET} bytes")]
    Long,
    #[error("the secret has characters other than visible ASCII, which cannot be sent")]
    Unsendable,
    #[error("the placeholder must be a plain word that has nothing in common with the secret")]
    Placeholder,
    #[error(
        "its pattern and replacement for paths have to contain {{}} exactly once, and nothing but plain characters"
    )]
    Path,
    #[error("another route to the same server has different TLS settings")]
    OtherTls,
    #[error("its prefix {0:?} is not a plain word, or another credential has it")]
    Prefix(String),
    #[error("its base path {0:?} does not start with / or is not plain")]
    Base(String),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Checked routes of a proxy, with the TLS settings to act as their hosts and as their clients.
#[derive(Debug, Default)]
pub struct Routes {
    services: Vec<Arc<CredentialService>>,
    ca: Option<SessionCa>,
    broken: Vec<(String, String)>,
}

/// A server, and the credentials for it.
#[derive(Debug)]
pub struct CredentialService {
    pub host: Host,
    pub port: u16,
    pub https: bool,
    routes: Vec<Route>,
    /// Forms of the secrets to hide; `None` if no route has a secret.
    forms: Option<Arc<Forms>>,
    client: Option<Arc<ClientConfig>>,
}

/// A request by a prefix: the route whose placeholder it has to present, and its target.
#[derive(Debug)]
pub struct Reverse<'a> {
    pub service: &'a Arc<CredentialService>,
    pub route: &'a Route,
    /// Path and query at the server.
    pub target: String,
}

impl Routes {
    pub fn new(config: &Config) -> Result<Routes, RouteError> {
        let mut sorted: Vec<(Host, Vec<Route>)> = Vec::new();
        for (index, route) in config.routes.iter().enumerate() {
            let wrong = |why| RouteError { name: route.name.clone(), why };
            let host = check(route, config.short_secrets).map_err(wrong)?;
            let broken = config.broken.iter().map(|(prefix, _)| prefix);
            let before = config.routes[..index].iter().map(|other| &other.prefix);
            if before.chain(broken).any(|other| *other == route.prefix) {
                return Err(wrong(CredentialFault::Prefix(route.prefix.clone())));
            }
            let same = |(other, routes): &&mut (Host, Vec<Route>)| {
                *other == host && routes[0].port == route.port && routes[0].https == route.https
            };
            match sorted.iter_mut().find(same) {
                Some((_, routes)) if routes[0].tls != route.tls => {
                    return Err(wrong(CredentialFault::OtherTls));
                }
                Some((_, routes)) => routes.push(route.clone()),
                None => sorted.push((host, vec![route.clone()])),
            }
        }
        let mut services = Vec::new();
        for (host, routes) in sorted {
            services.push(Arc::new(CredentialService::new(host, routes, &config.certificates)?));
        }
        let ca = if config.intercept { authority(&services)? } else { None };
        Ok(Routes { services, ca, broken: config.broken.clone() })
    }

    /// Reason why the route with this prefix cannot be used.
    pub(crate) fn broken(&self, target: &str) -> Option<&(String, String)> {
        let (prefix, _) = split_prefix(target)?;
        self.broken.iter().find(|(broken, _)| broken == prefix)
    }

    /// Certificate of the authority that the command has to trust; `None` if no route uses TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca.as_ref().map(SessionCa::pem)
    }

    pub fn ca(&self) -> Option<&SessionCa> {
        self.ca.as_ref()
    }

    /// Service whose credentials a request to this host and port may get.
    pub fn service(&self, host: &Host, port: u16, https: bool) -> Option<&Arc<CredentialService>> {
        let same = |service: &&Arc<CredentialService>| {
            service.host == *host && service.port == port && service.https == https
        };
        self.services.iter().find(same)
    }

    /// Service for a tunnel to this host and port, with TLS inside or not.
    pub fn tunnelled(&self, host: &Host, port: u16) -> Option<&Arc<CredentialService>> {
        self.service(host, port, true).or_else(|| self.service(host, port, false))
    }

    /// Route and target of a request for `/<prefix>/…`.
    pub fn reverse(&self, target: &str) -> Option<Reverse<'_>> {
        let (prefix, rest) = split_prefix(target)?;
        let all =
            self.services.iter().flat_map(|service| service.routes.iter().map(move |route| (service, route)));
        let (service, route) = all.into_iter().find(|(_, route)| route.prefix == prefix)?;
        let base = route.base.trim_end_matches('/');
        let root = if base.is_empty() && !rest.starts_with('/') { "/" } else { "" };
        Some(Reverse { service, route, target: format!("{base}{root}{rest}") })
    }
}

/// Prefix of a request's target, and what follows it: a path, a query, or both.
fn split_prefix(target: &str) -> Option<(&str, &str)> {
    let path = target.strip_prefix('/')?;
    Some(path.split_at(path.find(['/', '?']).unwrap_or(path.len())))
}

/// Authority that signs for the hosts with TLS, if there are any.
fn authority(services: &[Arc<CredentialService>]) -> Result<Option<SessionCa>, RouteError> {
    let secured = || services.iter().filter(|service| service.https);
    let Some(first) = secured().next() else { return Ok(None) };
    let mut hosts: Vec<Host> = secured().map(|service| service.host.clone()).collect();
    hosts.sort();
    hosts.dedup();
    let ca = SessionCa::new(&hosts);
    ca.map(Some).map_err(|source| RouteError { name: first.routes[0].name.clone(), why: source.into() })
}

impl CredentialService {
    fn new(host: Host, routes: Vec<Route>, certificates: &str) -> Result<CredentialService, RouteError> {
        let hidden: Vec<Hidden<'_>> = routes.iter().filter_map(hidden).collect();
        let forms = (!hidden.is_empty()).then(|| Arc::new(Forms::new(&hidden)));
        let (port, https) = (routes[0].port, routes[0].https);
        let wrong = |source: TlsError| RouteError { name: routes[0].name.clone(), why: source.into() };
        let client = if https {
            tls::server_name(&host).map_err(wrong)?;
            Some(Arc::new(tls::client_config(certificates, &routes[0].tls).map_err(wrong)?))
        } else {
            None
        };
        Ok(CredentialService { host, port, https, routes, forms, client })
    }

    /// TLS settings of the client side, if the server uses TLS.
    pub fn client(&self) -> Option<&Arc<ClientConfig>> {
        self.client.as_ref()
    }

    /// Whether an opaque tunnel to the server would bypass a credential or a rule.
    pub(crate) fn is_guarded(&self) -> bool {
        let plain = |route: &Route| {
            route.secret == RouteKey::None && route.endpoints.is_empty() && route.tls.identity.is_none()
        };
        !self.routes.iter().all(plain)
    }

    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    pub fn forms(&self) -> Option<&Arc<Forms>> {
        self.forms.as_ref()
    }
}

/// Whether a route's rules permit a request to this path of its server, which may have a query.
pub(crate) fn permits(route: &Route, method: &str, target: &str) -> bool {
    if route.endpoints.is_empty() {
        return true;
    }
    let path = target.split('?').next().unwrap_or_default();
    let below = path.strip_prefix(route.base.trim_end_matches('/')).filter(|below| below.starts_with('/'));
    below.is_some_and(|below| route.endpoints.iter().any(|endpoint| endpoint.permits(method, below)))
}

fn hidden(route: &Route) -> Option<Hidden<'_>> {
    let user = match &route.inject {
        Inject::Basic { user } => Some(user.as_str()),
        Inject::Header { .. } | Inject::Query { .. } | Inject::Path { .. } => None,
    };
    Some(Hidden { secret: route.secret()?.reveal(), placeholder: &route.placeholder, user })
}

/// Checks the route and returns its host.
fn check(route: &Route, short: bool) -> Result<Host, CredentialFault> {
    let plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    let host = route.host.parse::<Host>()?;
    if route.port == 0 {
        return Err(CredentialFault::Port);
    }
    match &route.inject {
        Inject::Header { name, .. } if !plain(name) || forbidden(name) => {
            return Err(CredentialFault::Header(name.clone()));
        }
        Inject::Header { format, .. } if format.matches("{}").count() != 1 || !visible(format) => {
            return Err(CredentialFault::Format);
        }
        Inject::Query { name } if !plain(name) => return Err(CredentialFault::Query),
        Inject::Basic { user } if !visible(user) || user.contains(':') => return Err(CredentialFault::User),
        Inject::Path { pattern, replacement }
            if ![pattern, replacement].into_iter().all(|text| in_path(text)) =>
        {
            return Err(CredentialFault::Path);
        }
        Inject::Header { .. } | Inject::Query { .. } | Inject::Basic { .. } | Inject::Path { .. } => {}
    }
    if let Some(secret) = route.secret() {
        check_secret(secret.reveal(), short)?;
    }
    let common = |secret: &Secret| {
        let secret = secret.reveal();
        secret.contains(&route.placeholder)
            || (secret.len() >= MIN_SECRET && route.placeholder.contains(secret))
    };
    if !plain(&route.placeholder) || route.secret().is_some_and(common) {
        return Err(CredentialFault::Placeholder);
    }
    if !plain(&route.prefix) || route.prefix.starts_with('.') {
        return Err(CredentialFault::Prefix(route.prefix.clone()));
    }
    let path = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/%@:+".contains(&byte);
    if !route.base.is_empty() && (!route.base.starts_with('/') || !route.base.bytes().all(path)) {
        return Err(CredentialFault::Base(route.base.clone()));
    }
    Ok(host)
}

/// Checks that a secret can be sent, and hidden in responses.
pub fn check_secret(secret: &str, short: bool) -> Result<(), CredentialFault> {
    if secret.is_empty() || (secret.len() < MIN_SECRET && !short) {
        return Err(CredentialFault::Short);
    }
    if secret.len() > MAX_SECRET {
        return Err(CredentialFault::Long);
    }
    if !visible(secret) || secret.trim() != secret {
        return Err(CredentialFault::Unsendable);
    }
    Ok(())
}

fn visible(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Whether a text is a valid path pattern: `{}` once, and only characters of a path.
fn in_path(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,=:@/%".contains(&byte);
    text.matches("{}").count() == 1 && text.replacen("{}", "", 1).bytes().all(plain)
}

fn forbidden(name: &str) -> bool {
    NOT_FOR_CREDENTIALS.iter().any(|other| other.eq_ignore_ascii_case(name))
        || name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("proxy-"))
}

/// One header as received: name and value.
pub(crate) type HeaderLine<'a> = (&'a str, &'a [u8]);

impl fmt::Display for CredentialService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests;
