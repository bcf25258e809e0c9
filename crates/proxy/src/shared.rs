//! State shared by all connections.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use nono_policy::host_rule::Host;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

use crate::address::is_localhost;
use crate::budget::Heads;
use crate::config::{Config, RequestTarget};
use crate::credential::Routes;
use crate::event::Events;
use crate::name_lookup::Resolve;

/// Maximum number of clients that get an error response when the proxy is full. More are closed silently.
const MAX_TOLD: usize = 32;
/// Number of descriptors reserved for the runtime, the resolver and the standard streams.
const OTHER_DESCRIPTORS: u64 = 64;

/// State shared by all clients of a proxy, over all listeners.
pub(crate) struct Common {
    pub(crate) config: Config,
    pub(crate) routes: Routes,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) events: Box<dyn Events>,
    pub(crate) heads: Heads,
    /// Permits for connections.
    pub(crate) room: Arc<Semaphore>,
    /// Permits for clients that get an error response because the proxy is full.
    pub(crate) told: Arc<Semaphore>,
}

/// State shared by the clients of one listener.
#[derive(Clone)]
pub(crate) struct ListenerShared {
    common: Arc<Common>,
    own: SocketAddr,
}

impl Common {
    pub(crate) fn new(
        config: Config,
        routes: Routes,
        resolver: Arc<dyn Resolve>,
        events: impl Events,
    ) -> Arc<Common> {
        let heads = Heads::new(&config.limits);
        let room = Arc::new(Semaphore::new(config.limits.connections.min(descriptors())));
        let told = Arc::new(Semaphore::new(MAX_TOLD));
        Arc::new(Common { config, routes, resolver, events: Box::new(events), heads, room, told })
    }
}

/// Number of connections that the process's descriptor limit allows.
fn descriptors() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let room = limit.map_or(u64::MAX, |limit| limit.saturating_sub(OTHER_DESCRIPTORS) / 2).max(1);
    usize::try_from(room).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

impl ListenerShared {
    pub(crate) fn new(common: Arc<Common>, own: SocketAddr) -> ListenerShared {
        ListenerShared { common, own }
    }

    /// Whether the target is the proxy itself, as its clients see it.
    pub(crate) fn is_own(&self, target: &RequestTarget) -> bool {
        self.own.port() == target.port
            && match &target.host {
                Host::Address(address) => {
                    *address == self.own.ip() || (self.own.ip().is_unspecified() && address.is_loopback())
                }
                name @ Host::Name(_) => {
                    (self.own.ip().is_loopback() || self.own.ip().is_unspecified()) && is_localhost(name)
                }
            }
    }
}

impl Deref for ListenerShared {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

/// A connection to a client or a server, whatever carries it.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}
