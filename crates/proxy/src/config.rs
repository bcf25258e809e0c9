//! What a proxy lets through, and how.

use std::fmt;
use std::time::Duration;

use nono_policy::hosts::{Host, HostRule};
use serde::{Deserialize, Serialize};

use crate::credential::endpoint::Endpoint;

/// Everything a proxy is told. It crosses a pipe to the process that runs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    pub allowed: Vec<HostRule>,
    pub reach: Reach,
    /// What a program has to show; none: nothing.
    pub token: Option<Token>,
    pub upstream: Option<Upstream>,
    pub routes: Vec<Route>,
    pub limits: Limits,
    /// PEM: whose certificates are believed where the proxy itself speaks TLS.
    pub certificates: String,
    /// Tunnels to routes that speak TLS are ended here, by certificates of the session's own. Where they are not, there
    /// are no such tunnels: they would lead around the routes' rules.
    pub intercept: bool,
    /// Prefixes of routes that lead nowhere, and why.
    pub broken: Vec<(String, String)>,
    /// Secrets too short to be told from ordinary text are used, and not hidden in answers.
    pub short_secrets: bool,
    /// How to open a host, which stands where `{}` is.
    pub remedy: String,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            allowed: Vec::new(),
            reach: Reach::default(),
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

/// What is open beside the rules, and closed despite them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// Every host, this machine and its neighbours too; but nothing link-local, and nothing that hands out a cloud's
    /// credentials.
    pub all: bool,
    /// A rule that names a link-local address, or one of a cloud's credentials, opens it.
    pub metadata: bool,
}

impl Default for Reach {
    fn default() -> Reach {
        Reach { all: false, metadata: true }
    }
}

/// Another proxy on the way out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Upstream {
    pub host: String,
    pub port: u16,
    /// `Proxy-Authorization` for it.
    pub authorization: Option<Secret>,
    /// Reached directly.
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
    /// Before the request's own path; starts with `/`, or is empty.
    pub base: String,
    pub inject: Inject,
    pub secret: Key,
    /// What the command has instead; wherever it stands in a request to this host, the secret is put.
    pub dummy: String,
    /// What may be asked; anything, if there are none.
    pub endpoints: Vec<Endpoint>,
    pub tls: ClientTls,
}

/// The secret of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Key {
    Secret(Secret),
    /// There ought to be one, and there is not: whoever needs it is told why.
    Missing(String),
    /// Nothing goes in. The dummy is still what a client has to show to come in by the prefix.
    None,
}

impl From<Secret> for Key {
    fn from(secret: Secret) -> Key {
        Key::Secret(secret)
    }
}

impl Route {
    pub fn secret(&self) -> Option<&Secret> {
        match &self.secret {
            Key::Secret(secret) => Some(secret),
            Key::Missing(_) | Key::None => None,
        }
    }
}

/// How TLS is spoken to a route's server, beside what is usual.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientTls {
    /// PEM: authorities to believe as well.
    pub authorities: String,
    /// PEM: a certificate to show, and its key.
    pub identity: Option<(String, Secret)>,
}

/// Where the secret goes.
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
    /// The dummy stands in the path where `pattern` has `{}`; all of it becomes `replacement`, with the secret there.
    Path {
        pattern: String,
        replacement: String,
    },
    /// `Authorization: Basic`, `user:secret`.
    Basic {
        user: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub connections: usize,
    pub head_bytes: usize,
    pub headers: usize,
    /// Nothing is said in either direction for this long.
    pub idle: Duration,
    /// A request's head has to be through.
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

/// Shown never, in no message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(secret: impl Into<String>) -> Secret {
        Secret(secret.into())
    }

    /// What stands behind `Authorization:` for a user and a password.
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

/// What a program shows to be let in.
pub type Token = Secret;

/// Where a request wants to go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub host: Host,
    pub port: u16,
}
