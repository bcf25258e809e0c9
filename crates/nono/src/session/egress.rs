//! The filtering proxy of a session, from planning to start.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use nono_policy::ResolvedPolicy;
use nono_sandbox::{Blueprint, PROXY_PORT, ProxyPlace};

use super::audit_log::RunLog;
use super::error::SessionError;
use super::folder::SessionFolder;
use super::request::Host;
use crate::network::{self, Listen, Network, NetworkError, NetworkObserver, NetworkStart, Networking};

/// A planned proxy that is not started yet.
#[derive(Debug)]
pub(super) struct Connection {
    networking: Networking,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    state_dir: PathBuf,
    /// Listening socket on the host, where the command has no network namespace.
    listener: Option<TcpListener>,
}

impl Connection {
    /// Plan the proxy and add it to the blueprint; `None` where nothing is filtered.
    pub(super) fn new(
        networking: Networking,
        policy: &ResolvedPolicy,
        host: &Host,
        blueprint: Blueprint,
    ) -> Result<(Option<Connection>, Blueprint), SessionError> {
        if !networking.is_needed(&policy.network)? {
            return Ok((None, blueprint));
        }
        let (listener, blueprint) = match blueprint.proxy {
            Some(ProxyPlace::Host(_)) => {
                let listener = network::bind().map_err(NetworkError::Listen)?;
                match listener.local_addr().map_err(NetworkError::Listen)? {
                    SocketAddr::V4(address) => (Some(listener), blueprint.proxy_at(address)),
                    // It was bound to an IPv4 address.
                    SocketAddr::V6(_) => return Err(NetworkError::Twice.into()),
                }
            }
            Some(ProxyPlace::Own { .. }) | None => (None, blueprint),
        };
        let (cwd, state_dir) = (host.context.cwd.clone(), host.context.state_dir.clone());
        let connection = Connection { networking, env: host.env.clone(), cwd, state_dir, listener };
        Ok((Some(connection), blueprint))
    }

    /// Start the proxy. In a network namespace it serves as soon as the child's listening socket is handed over.
    pub(super) fn open(
        self,
        policy: &ResolvedPolicy,
        folder: &SessionFolder,
        trail: Option<&Arc<RunLog>>,
    ) -> Result<Network, SessionError> {
        let observer: Arc<dyn NetworkObserver> = match trail {
            Some(trail) => trail.clone(),
            None => Arc::new(()),
        };
        let here = self.listener.is_some();
        let listen = self.listener.map_or(Listen::Inside { port: PROXY_PORT }, Listen::Here);
        let (folder, state_dir) = (&*folder.dir, Some(&*self.state_dir));
        let start = NetworkStart { policy, env: &self.env, cwd: &self.cwd, folder, state_dir, listen };
        let network = Network::start(&self.networking, start, observer)?;
        if here {
            network.serve_here()?;
        }
        Ok(network)
    }
}
