//! A proxy in a thread of its own, for libraries.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::config::Config;
use crate::credential::Routes;
use crate::event::Event;
use crate::serve::Proxy;

/// What waits to be drained; the oldest events give way.
const MAX_PENDING: usize = 4096;

#[derive(Default)]
struct Pending {
    events: VecDeque<Event>,
    dropped: u64,
}

/// A running proxy. It ends when this is dropped.
pub struct Handle {
    address: SocketAddr,
    ca_pem: Option<String>,
    pending: Arc<Mutex<Pending>>,
    running: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Listen on `bind` (port 0: any) and serve.
    pub fn start(config: Config, bind: SocketAddr) -> io::Result<Handle> {
        let routes = Routes::new(&config).map_err(io::Error::other)?;
        let ca_pem = routes.ca_pem().map(str::to_owned);
        let listener = TcpListener::bind(bind)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let pending = Arc::new(Mutex::new(Pending::default()));
        let (stop, stopped) = oneshot::channel::<()>();
        let events = pending.clone();
        let thread = thread::Builder::new().name("nono-proxy".to_owned()).spawn(move || {
            // The listener was fine a moment ago, and nothing else fails: then nobody is served, which is safe.
            let _ended = runtime.block_on(Proxy::serve_routes(
                listener,
                config,
                routes,
                move |event| note(&events, event),
                // A handle that is gone means the same.
                async { drop(stopped.await) },
            ));
            // A lookup that hangs is not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Handle { address, ca_pem, pending, running: Mutex::new(Some((stop, thread))) })
    }
}

fn note(pending: &Mutex<Pending>, event: Event) {
    let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
    if pending.events.len() == MAX_PENDING {
        pending.events.pop_front();
        pending.dropped += 1;
    }
    pending.events.push_back(event);
}

impl Handle {
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Whom the clients have to trust for the hosts that credentials are for.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All events since the last time, and how many more there were.
    pub fn drain(&self) -> (Vec<Event>, u64) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut pending.events).into(), std::mem::take(&mut pending.dropped))
    }

    /// End everything that is open; its events can be drained afterwards. The second time nothing happens.
    pub fn shutdown(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = running {
            // The thread may have ended by itself: then there is nothing to stop, and nothing to wait for.
            let _stopped = stop.send(());
            let _joined = thread.join();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shutdown();
    }
}
