//! What all connections have in common.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use nono_policy::hosts::Host;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::address::is_localhost;
use crate::budget::Heads;
use crate::config::{Config, Target};
use crate::credential::Routes;
use crate::event::Events;
use crate::resolve::Resolve;

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) routes: Routes,
    pub(crate) resolver: Arc<dyn Resolve>,
    /// Where the proxy listens, once it does.
    pub(crate) own: Option<SocketAddr>,
    pub(crate) events: Box<dyn Events>,
    pub(crate) heads: Heads,
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        routes: Routes,
        resolver: Arc<dyn Resolve>,
        events: impl Events,
    ) -> Shared {
        let heads = Heads::new(&config.limits);
        Shared { config, routes, resolver, own: None, events: Box::new(events), heads }
    }

    /// Whether the proxy itself is meant, as its clients see it.
    pub(crate) fn is_own(&self, target: &Target) -> bool {
        self.own.is_some_and(|own| {
            own.port() == target.port
                && match &target.host {
                    Host::Address(address) => *address == own.ip(),
                    name @ Host::Name(_) => own.ip().is_loopback() && is_localhost(name),
                }
        })
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A connection to a client or a server, whatever carries it.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}
