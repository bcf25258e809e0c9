//! The filtering proxy as a thread of the calling process, for programs that start commands of their own.
//!
//! A session has its proxy in a confined process ([`crate::network`]); here the caller's process holds the secrets and the
//! sockets. What is the same: hosts that are not open are refused, secrets go into requests on the way out and are hidden
//! in the answers, everything is told as an event. What differs: a secret that cannot be had closes its route only, and
//! link-local addresses and those of a cloud's credentials are closed whatever the rules say.

mod build;
mod config;
mod environment;
mod event;
mod secret;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use nono_policy::hosts::HostRule;
use nono_proxy::{EndpointError, Proxy, Secret};
use nono_sys::errno;
use thiserror::Error;

pub use config::{Injection, ProxyConfig, ProxyConfigError, RouteConfig};
pub use event::{Decision, NetworkEvent};
pub use nono_proxy::{Guard, Handle, StartError};
pub use secret::Surroundings;

use crate::exec::EnvError;
use crate::helper::CertificatesError;

/// What programs are told to believe, in the folder that was named.
const BUNDLE: &str = "nono-ca-bundle.pem";

/// Why there is no proxy.
#[derive(Debug, Error)]
pub enum ProxyError {
    #[error("no random numbers are to be had: {}", errno::describe(.0))]
    Random(io::Error),
    #[error("route {prefix}: {source}")]
    Endpoint { prefix: String, source: EndpointError },
    #[error("route {prefix}: {why}")]
    Route { prefix: String, why: &'static str },
    #[error("{} cannot be read: {}", .path.display(), errno::describe(.source))]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    #[error("{} cannot be written: {}", .path.display(), errno::describe(.source))]
    Bundle { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Start(#[from] StartError),
}

/// A proxy that serves. It ends when this and all clones of its handle are gone.
pub struct RunningProxy {
    handle: Arc<Handle>,
    token: Secret,
    allowed: Vec<HostRule>,
    routes: Vec<Placed>,
    bundle: Option<PathBuf>,
    /// Goes through another proxy, but for what is reached directly.
    external: bool,
}

/// What programs and events are told of a route.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    prefix: String,
    injection: Injection,
    /// It has a key, whether that could be had or not.
    managed: bool,
    /// The variable that has the token in place of the key, where the key could be had.
    variable: Option<String>,
}

impl fmt::Debug for RunningProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningProxy").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl RunningProxy {
    /// Fetch the secrets and serve. A secret that cannot be had is an answer of its route, not an error.
    pub fn start(config: &ProxyConfig, around: &Surroundings) -> Result<RunningProxy, ProxyError> {
        let token = crate::helper::random_hex::<32>().map_err(|error| ProxyError::Random(error.into()))?;
        let token = Secret::new(token);
        let (engine, routes) = build::engine(config, &token, around)?;
        let certificates = engine.certificates.clone();
        let handle = Proxy::start(engine, SocketAddr::new(config.bind_addr, config.bind_port))?;
        let bundle = match (&config.intercept_ca_dir, handle.ca_pem()) {
            (Some(folder), Some(own)) => Some(write_bundle(folder.join(BUNDLE), &certificates, own)?),
            _ => None,
        };
        let external = config.external_proxy.is_some();
        let allowed = config.allowed.clone();
        Ok(RunningProxy { handle: Arc::new(handle), token, allowed, routes, bundle, external })
    }

    pub fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// How programs find the proxy, and whom to believe where it speaks for a server.
    pub fn env_vars(&self) -> Vec<(String, OsString)> {
        environment::proxy(self.address(), &self.token, &self.allowed, self.bundle.as_deref())
    }

    /// Where programs find the routes, and what they show there in place of a key.
    pub fn credential_env_vars(&self) -> Vec<(String, OsString)> {
        environment::routes(self.address(), &self.token, &self.routes)
    }

    /// Everything a command needs, after `extra`, which it does not change. Sorted by name.
    pub fn sandbox_env(&self, extra: &[(OsString, OsString)]) -> Result<Vec<(OsString, OsString)>, EnvError> {
        let own = self.env_vars().into_iter().chain(self.credential_env_vars());
        let mut all = extra.to_vec();
        all.extend(own.map(|(name, value)| (OsString::from(name), value)));
        crate::exec::environment(&all)
    }

    /// What happened since the last time; at most the last 4096 events.
    pub fn drain(&self) -> Vec<NetworkEvent> {
        let (events, _) = self.handle.drain();
        events.iter().filter_map(|event| NetworkEvent::of(event, &self.routes, self.external)).collect()
    }

    /// Where clients on this machine reach it.
    fn address(&self) -> SocketAddr {
        let bound = self.handle.address();
        let ip = match bound.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        SocketAddr::new(ip, bound.port())
    }
}

/// Replaced whole: another proxy may have left one there.
fn write_bundle(path: PathBuf, certificates: &str, own: &str) -> Result<PathBuf, ProxyError> {
    let text = format!("{}\n{own}", certificates.trim_end());
    let wrong = |source| ProxyError::Bundle { path: path.clone(), source };
    nono_sys::fs::write_atomic(&path, text.as_bytes()).map_err(wrong)?;
    Ok(path)
}
