//! The filtering proxy as a thread of the calling process, for programs that start commands of their own.
//!
//! A session has its proxy in a confined process ([`crate::network`]); here the caller's process holds the secrets and
//! the sockets. The same in both: hosts that are not open are refused, secrets are inserted into outgoing requests and
//! hidden in answers, everything is reported as an event. Different here: a secret that cannot be fetched closes its
//! route only, and link-local addresses and those of cloud metadata services are closed whatever the rules say.

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

use nono_policy::host_rule::HostRule;
use nono_proxy::{EndpointError, Proxy, Secret};
use nono_sys::errno;
use thiserror::Error;

pub use config::{EndpointRule, Injection, ProxyConfig, ProxyConfigError, RouteConfig};
pub use event::{Decision, NetworkEvent};
pub use nono_proxy::{Guard, Handle, StartError};
pub use secret::Surroundings;

use crate::helper::CertificatesError;
use nono_supervisor::command_env::EnvError;

/// File of certificates for programs to trust, in the given folder.
const BUNDLE: &str = "nono-ca-bundle.pem";

/// Reason why there is no proxy.
#[derive(Debug, Error)]
pub enum ProxyError {
    #[error("cannot get random numbers: {}", errno::describe(.0))]
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

/// A running proxy. It ends when this and all clones of its handle are dropped.
pub struct RunningProxy {
    handle: Arc<Handle>,
    token: Secret,
    allowed: Vec<HostRule>,
    routes: Vec<PlacedRoute>,
    bundle: Option<PathBuf>,
    /// Whether connections go through another proxy, except those reached directly.
    external: bool,
}

/// Properties of a route for programs and events.
#[derive(Clone, Debug)]
pub(crate) struct PlacedRoute {
    prefix: String,
    injection: Injection,
    /// Whether it has a key, even one that could not be fetched.
    managed: bool,
    /// Variable that has the token instead of the key, if the key could be fetched.
    variable: Option<String>,
}

impl fmt::Debug for RunningProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningProxy").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl RunningProxy {
    /// Fetch the secrets and serve. A secret that cannot be fetched makes its route answer with an error; it does not
    /// fail the start.
    pub fn start(config: &ProxyConfig, around: &Surroundings) -> Result<RunningProxy, ProxyError> {
        let token = nono_sys::random::id::<32>().map_err(ProxyError::Random)?;
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

    /// Variables that name the proxy, and the certificates to trust where it terminates TLS.
    pub fn env_vars(&self) -> Vec<(String, OsString)> {
        environment::proxy(self.address(), &self.token, &self.allowed, self.bundle.as_deref())
    }

    /// Variables that name the routes, and the token to present there instead of a key.
    pub fn credential_env_vars(&self) -> Vec<(String, OsString)> {
        environment::routes(self.address(), &self.token, &self.routes)
    }

    /// Everything a command needs, after `extra`, which is not changed. Sorted by name.
    pub fn sandbox_env(&self, extra: &[(OsString, OsString)]) -> Result<Vec<(OsString, OsString)>, EnvError> {
        let own = self.env_vars().into_iter().chain(self.credential_env_vars());
        let mut all = extra.to_vec();
        all.extend(own.map(|(name, value)| (OsString::from(name), value)));
        nono_supervisor::command_env::sorted(&all)
    }

    /// Events since the last call; at most the last 4096.
    pub fn drain(&self) -> Vec<NetworkEvent> {
        let (events, _) = self.handle.drain();
        events.iter().filter_map(|event| NetworkEvent::of(event, &self.routes, self.external)).collect()
    }

    /// Address at which clients on this machine reach it.
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

/// Written as a whole: another proxy may have left one there.
fn write_bundle(path: PathBuf, certificates: &str, own: &str) -> Result<PathBuf, ProxyError> {
    let text = format!("{}\n{own}", certificates.trim_end());
    let wrong = |source| ProxyError::Bundle { path: path.clone(), source };
    nono_sys::fs::write_atomic(&path, text.as_bytes()).map_err(wrong)?;
    Ok(path)
}
