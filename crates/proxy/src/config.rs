//! What a proxy lets through, and how.

use std::fmt;
use std::time::Duration;

use nono_policy::hosts::{Host, HostRule};
use serde::{Deserialize, Serialize};

/// Everything a proxy is told. It crosses a pipe to the process that runs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    pub allowed: Vec<HostRule>,
    /// What a program has to show; none: nothing.
    pub token: Option<Token>,
    pub upstream: Option<Upstream>,
    pub routes: Vec<Route>,
    pub limits: Limits,
    /// PEM: whose certificates are believed where the proxy itself speaks TLS.
    pub certificates: String,
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
    pub secret: Secret,
    /// What the command has instead; wherever it stands in a request to this host, the secret is put.
    pub dummy: String,
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
