//! Configuration of a proxy.

use std::fmt;
use std::time::Duration;

use nono_policy::host_rule::{Host, HostRule};
use serde::{Deserialize, Serialize};

use crate::credential::endpoint::Endpoint;

/// Configuration of a proxy. It crosses a pipe to the process that runs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    pub allowed: Vec<HostRule>,
    pub reach: HostOverrides,
    /// Token that clients must present, if any.
    pub token: Option<Token>,
    pub upstream: Option<Upstream>,
    pub routes: Vec<Route>,
    pub limits: Limits,
    /// PEM: trusted authorities where the proxy itself speaks TLS.
    pub certificates: String,
    /// Whether tunnels to TLS routes are terminated here, with certificates of the session. If not, such tunnels are
    /// refused: they would bypass the routes' rules.
    pub intercept: bool,
    /// Prefixes of unusable routes, each with the reason.
    pub broken: Vec<(String, String)>,
    /// Whether secrets too short to be recognised in ordinary text are allowed; they are not hidden in responses.
    pub short_secrets: bool,
    /// Command that opens a host, with `{}` for the host.
    pub remedy: String,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            allowed: Vec::new(),
            reach: HostOverrides::default(),
            token: None,
            upstream: None,
            routes: Vec::new(),
            limits: Limits::default(),
            certificates: String::new(),
            intercept: true,
            broken: Vec::new(),
            short_secrets: false,
            remedy: "nono run --allow-domain {}".to_owned(),
        }
    }
}

/// Hosts that are open beside the rules, or closed despite them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostOverrides {
    /// Opens every host, this machine and private networks included, except link-local addresses and cloud metadata
    /// services.
    pub all: bool,
    /// Whether a rule that names a link-local or metadata address opens it.
    pub metadata: bool,
}

impl Default for HostOverrides {
    fn default() -> HostOverrides {
        HostOverrides { all: false, metadata: true }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upstream {
    pub host: String,
    pub port: u16,
    /// Value of `Proxy-Authorization` for the upstream proxy.
    pub authorization: Option<Secret>,
    /// Hosts reached directly, without the upstream proxy.
    pub bypass: Vec<HostRule>,
}

/// A service whose requests get a credential that the command never sees.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Route {
    pub name: String,
    /// `http://127.0.0.1:PORT/<prefix>/…` leads to `upstream`.
    pub prefix: String,
    pub https: bool,
    pub host: String,
    pub port: u16,
    /// Path put before the request's own path; starts with `/`, or is empty.
    pub base: String,
    pub inject: Inject,
    pub secret: RouteKey,
    /// Placeholder that the command has instead; the secret replaces it in requests to this host.
    #[serde(rename = "dummy")]
    pub placeholder: String,
    /// Permitted methods and paths; everything, if empty.
    pub endpoints: Vec<Endpoint>,
    pub tls: ClientTls,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RouteKey {
    Secret(Secret),
    /// The secret is missing; requests that need it are refused with this reason.
    Missing(String),
    /// The route has no secret. A client still has to present the placeholder to use the prefix.
    None,
}

impl From<Secret> for RouteKey {
    fn from(secret: Secret) -> RouteKey {
        RouteKey::Secret(secret)
    }
}

impl Route {
    pub fn secret(&self) -> Option<&Secret> {
        match &self.secret {
            RouteKey::Secret(secret) => Some(secret),
            RouteKey::Missing(_) | RouteKey::None => None,
        }
    }
}

/// Additional TLS settings for a route's server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientTls {
    /// PEM: additional trusted authorities.
    pub authorities: String,
    /// PEM: client certificate and its key.
    pub identity: Option<(String, Secret)>,
}

/// Part of a request into which the secret is inserted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Inject {
    /// `format` has `{}` where the secret goes.
    Header {
        name: String,
        format: String,
    },
    Query {
        name: String,
    },
    /// The placeholder is in the path where `pattern` has `{}`; the match becomes `replacement`, with the secret for
    /// `{}`.
    Path {
        pattern: String,
        replacement: String,
    },
    /// `Authorization: Basic` with `user:secret`.
    Basic {
        user: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub connections: usize,
    pub head_bytes: usize,
    pub headers: usize,
    /// Maximum time without traffic in either direction.
    pub idle: Duration,
    /// Maximum time to receive a request's head.
    pub head_time: Duration,
    pub connect_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 1024,
            head_bytes: 32 << 10,
            headers: 128,
            idle: Duration::from_secs(300),
            head_time: Duration::from_secs(30),
            connect_time: Duration::from_secs(30),
        }
    }
}

/// Secret text, never shown in messages or debug output.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(secret: impl Into<String>) -> Secret {
        Secret(secret.into())
    }

    pub fn basic(user: &str, password: &str) -> Secret {
        use base64::Engine;
        Secret(format!(
            "Basic {}",
            base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"))
        ))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Token that clients present to the proxy.
pub type Token = Secret;

/// Host and port of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestTarget {
    pub host: Host,
    pub port: u16,
}
