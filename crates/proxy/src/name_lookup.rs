//! Name resolution.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use nono_policy::host_rule::HostName;
use tokio::sync::Semaphore;

pub type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolver of host names. Called once for each connection to a server.
pub trait Resolve: Send + Sync {
    fn resolve(&self, name: &HostName) -> Lookup;
}

/// Maximum number of concurrent lookups: each one blocks a thread.
const MAX_LOOKUPS: usize = 32;

#[derive(Debug)]
pub struct System {
    room: Arc<Semaphore>,
}

impl Default for System {
    fn default() -> System {
        System { room: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }
}

impl Resolve for System {
    fn resolve(&self, name: &HostName) -> Lookup {
        let (name, room) = (name.as_str().to_owned(), self.room.clone());
        Box::pin(async move {
            let held = room.acquire_owned().await.map_err(io::Error::other)?;
            // The permit belongs to the thread, which may outlive the request that waits for it.
            let lookup = tokio::task::spawn_blocking(move || {
                let _held = held;
                let found = (name.as_str(), 0).to_socket_addrs()?;
                Ok(found.map(|address| address.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}
