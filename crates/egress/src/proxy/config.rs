//! Configuration of a proxy, before anything is fetched.

use std::net::IpAddr;
use std::path::PathBuf;

pub use nono_policy::document::{DocumentInject as Injection, DocumentRoute as RouteConfig, EndpointRule};
use nono_policy::host_rule::{HostError, HostRule};
use thiserror::Error;

use crate::network::{UpstreamError, UpstreamProxy};

#[derive(Debug, Error)]
pub enum ProxyConfigError {
    #[error("bind_addr {0:?} is not an IP address")]
    Bind(String),
    #[error("allow_all_hosts opens every host, so allowed_hosts has to be empty")]
    AllowAll,
    #[error("allowed_hosts: {0}")]
    Host(HostError),
    #[error("bypass_hosts: {0}")]
    Bypass(HostError),
    #[error("max_connections has to be at least 1")]
    Connections,
    #[error("intercept_parent_ca_pems is not text in PEM")]
    Pems,
    #[error("external_proxy: {0}")]
    External(#[from] UpstreamError),
}

#[derive(Clone, Debug)]
pub struct ProxyConfig {
    pub allowed: Vec<HostRule>,
    pub allow_all_hosts: bool,
    pub routes: Vec<RouteConfig>,
    pub external_proxy: Option<UpstreamProxy>,
    pub bind_addr: IpAddr,
    /// Port; 0 for any free one.
    pub bind_port: u16,
    pub max_connections: usize,
    /// Folder for the certificates that clients have to trust; without it no tunnel is intercepted.
    pub intercept_ca_dir: Option<PathBuf>,
    /// Authorities (PEM) that clients and the proxy trust instead of the system's.
    pub intercept_parent_ca_pems: Option<String>,
}

impl ProxyConfig {
    /// Check what can be checked without access to the machine.
    pub fn new(
        allowed_hosts: &[String],
        allow_all_hosts: bool,
        bind_addr: &str,
        max_connections: usize,
    ) -> Result<ProxyConfig, ProxyConfigError> {
        let bind = bind_addr.parse().map_err(|_| ProxyConfigError::Bind(bind_addr.to_owned()))?;
        if allow_all_hosts && !allowed_hosts.is_empty() {
            return Err(ProxyConfigError::AllowAll);
        }
        if max_connections == 0 {
            return Err(ProxyConfigError::Connections);
        }
        let allowed: Result<_, _> = allowed_hosts.iter().map(|text| text.parse()).collect();
        Ok(ProxyConfig {
            allowed: allowed.map_err(ProxyConfigError::Host)?,
            allow_all_hosts,
            routes: Vec::new(),
            external_proxy: None,
            bind_addr: bind,
            bind_port: 0,
            max_connections,
            intercept_ca_dir: None,
            intercept_parent_ca_pems: None,
        })
    }

    /// Upstream proxy: `host:port`, or `http://user:password@host:port`.
    pub fn external(address: &str, bypass_hosts: &[String]) -> Result<UpstreamProxy, ProxyConfigError> {
        let proxy: UpstreamProxy = address.parse()?;
        let bypass: Result<_, _> = bypass_hosts.iter().map(|text| text.parse()).collect();
        Ok(UpstreamProxy { bypass: bypass.map_err(ProxyConfigError::Bypass)?, ..proxy })
    }
}
