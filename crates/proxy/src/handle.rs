//! Proxy in a thread of its own, for libraries.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use thiserror::Error;
use tokio::sync::oneshot;

use crate::config::Config;
use crate::credential::{RouteError, Routes};
use crate::event::ProxyEvent;
use crate::name_lookup::System;
use crate::serve::{Proxy, ProxyListener};
use crate::shared::Common;

/// Maximum number of undrained events; the oldest are dropped first.
const MAX_PENDING: usize = 4096;

#[derive(Default)]
struct Pending {
    events: VecDeque<ProxyEvent>,
    dropped: u64,
}

/// A running proxy. It ends when this is dropped.
///
/// In a process that was forked from this one, the proxy's thread does not exist and its locks may be held forever:
/// there a handle has a port, no events, and nothing to stop.
pub struct Handle {
    address: SocketAddr,
    ca_pem: Option<String>,
    pending: Arc<Mutex<Pending>>,
    common: Arc<Common>,
    runtime: tokio::runtime::Handle,
    running: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
    home: ProxyThread,
}

/// Id of the process that the thread was started in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProxyThread(u32);

impl ProxyThread {
    fn here() -> ProxyThread {
        ProxyThread(std::process::id())
    }

    fn is_here(self) -> bool {
        self == ProxyThread::here()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Listens on `bind` (port 0: any) and serves.
    pub fn start(config: Config, bind: SocketAddr) -> Result<Handle, StartError> {
        let routes = Routes::new(&config)?;
        let ca_pem = routes.ca_pem().map(str::to_owned);
        let listener = TcpListener::bind(bind).map_err(|source| StartError::Bind { bind, source })?;
        let address = listener.local_addr().map_err(|source| StartError::Bind { bind, source })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let pending = Arc::new(Mutex::new(Pending::default()));
        let events = pending.clone();
        let events = move |event| note(&events, event);
        let common = Common::new(config, routes, Arc::new(System::default()), events);
        let entered = runtime.enter();
        let listener = ProxyListener::open(listener, common.clone())?;
        drop(entered);
        let (stop, stopped) = oneshot::channel::<()>();
        let handle = runtime.handle().clone();
        let thread = thread::Builder::new().name("nono-proxy".to_owned()).spawn(move || {
            // A dropped handle counts as a request to stop.
            runtime.block_on(listener.serve(async { drop(stopped.await) }));
            // Connections of other listeners end here too. A hanging name lookup is not waited for.
            runtime.shutdown_background();
        })?;
        let running = Mutex::new(Some((stop, thread)));
        Ok(Handle { address, ca_pem, pending, common, runtime: handle, running, home: ProxyThread::here() })
    }
}

#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    Route(#[from] RouteError),
    #[error("cannot listen on {bind}: {source}")]
    Bind { bind: SocketAddr, source: io::Error },
    #[error("cannot start the proxy's thread: {0}")]
    Thread(#[from] io::Error),
}

/// Another socket that a proxy serves. Dropping it ends all its connections; their events can then be drained.
#[derive(Debug)]
#[must_use = "the socket is served until this is dropped"]
pub struct Guard {
    stop: Option<oneshot::Sender<()>>,
    over: Option<mpsc::Receiver<()>>,
    home: ProxyThread,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (stop, over) = (self.stop.take(), self.over.take());
        if !self.home.is_here() {
            std::mem::forget((stop, over));
            return;
        }
        drop(stop);
        // Nothing is ever sent: the channel closes when the task or the whole proxy ends.
        let _ended = over.map(|over| over.recv());
    }
}

fn note(pending: &Mutex<Pending>, event: ProxyEvent) {
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

    /// Certificate of the authority that clients have to trust for the hosts with credentials.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves another listening socket with the same rules, token and events. It may be of another network namespace.
    /// After [`Handle::shutdown`] it is not served either.
    pub fn serve_also(&self, listener: OwnedFd) -> io::Result<Guard> {
        if !self.home.is_here() {
            return Err(io::Error::other("the proxy runs in the process that this one was forked from"));
        }
        let entered = self.runtime.enter();
        let listener = ProxyListener::open(TcpListener::from(listener), self.common.clone())?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (ends, over) = mpsc::channel();
        drop(self.runtime.spawn(async move {
            let _ends: mpsc::Sender<()> = ends;
            listener.serve(async { drop(stopped.await) }).await;
        }));
        drop(entered);
        Ok(Guard { stop: Some(stop), over: Some(over), home: self.home })
    }

    /// All events since the last call, and the number of dropped ones. The event of a request is here as soon as its
    /// client has the whole response.
    pub fn drain(&self) -> (Vec<ProxyEvent>, u64) {
        if !self.home.is_here() {
            return (Vec::new(), 0);
        }
        self.wait_until_idle();
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut pending.events).into(), std::mem::take(&mut pending.dropped))
    }

    /// Waits for the proxy's thread to finish its current task, in which it sends the end of a response and then
    /// reports it.
    fn wait_until_idle(&self) {
        let (next, breath) = mpsc::channel::<()>();
        drop(self.runtime.spawn(async move { drop(next) }));
        // Nothing is ever sent. A proxy that has ended drops the sender at once.
        let _settled = breath.recv();
    }

    /// Ends all connections; their events can be drained afterwards. A second call does nothing.
    pub fn shutdown(&self) {
        if !self.home.is_here() {
            return;
        }
        // Held to the end, so that a concurrent caller also returns after everything has ended.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((stop, thread)) = running.take() {
            // The thread may have ended by itself: then there is nothing to stop or to wait for.
            let _stopped = stop.send(());
            let _joined = thread.join();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.home.is_here() {
            let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(running.take());
        }
        self.shutdown();
    }
}
