//! Listener of the proxy, and its clients.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::config::Config;
use crate::credential::Routes;
use crate::event::{Events, Mode};
use crate::name_lookup::Resolve;
use crate::pending_event::PendingEvent;
use crate::refusal::Refusal;
use crate::requests;
use crate::shared::{Common, ListenerShared};

/// Pause when no descriptor is left; connections end meanwhile.
const BREATH: Duration = Duration::from_millis(50);
const TELL: Duration = Duration::from_millis(500);

/// The proxy. See [`Proxy::serve`] and [`crate::Handle`].
#[derive(Clone, Copy, Debug)]
pub struct Proxy;

impl Proxy {
    /// Serves until `shutdown`, inside the caller's runtime, which has its timers and its network enabled. `routes` are
    /// those of `config`, made before because the caller needs their authority. `events` receives every event: a
    /// function, or another [`Events`]. On shutdown all connections end, and all their events have been delivered when
    /// this returns.
    ///
    /// Each connection takes two descriptors: the caller makes sure that the process may have enough. Otherwise fewer
    /// connections are served.
    pub async fn serve(
        listener: TcpListener,
        config: Config,
        routes: Routes,
        resolver: Arc<dyn Resolve>,
        events: impl Events,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let common = Common::new(config, routes, resolver, events);
        ProxyListener::open(listener, common)?.serve(shutdown).await;
        Ok(())
    }
}

pub(crate) struct ProxyListener {
    listener: tokio::net::TcpListener,
    shared: Arc<ListenerShared>,
    clients: JoinSet<()>,
}

impl ProxyListener {
    /// Opens the listener, inside the runtime that will serve it.
    pub(crate) fn open(listener: TcpListener, common: Arc<Common>) -> io::Result<ProxyListener> {
        listener.set_nonblocking(true)?;
        let shared = Arc::new(ListenerShared::new(common, listener.local_addr()?));
        let listener = tokio::net::TcpListener::from_std(listener)?;
        Ok(ProxyListener { listener, shared, clients: JoinSet::new() })
    }

    /// Serves until `shutdown`, then ends all connections of this listener.
    pub(crate) async fn serve(mut self, shutdown: impl Future<Output = ()>) {
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = self.clients.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => self.take(stream),
                    Err(error) if is_shortage(&error) => sleep(BREATH).await,
                    // The client left before it was accepted.
                    Err(_) => {}
                },
            }
        }
        self.clients.shutdown().await;
    }

    fn take(&mut self, stream: TcpStream) {
        let shared = self.shared.clone();
        if let Ok(place) = shared.room.clone().try_acquire_owned() {
            self.clients.spawn(async move {
                // On failure responses are only slower.
                let _set = stream.set_nodelay(true);
                requests::serve(stream, &shared).await;
                drop(place);
            });
            return;
        }
        let refusal = Refusal::full();
        PendingEvent::new(&shared, Mode::Forward).refuse(&refusal);
        if let Ok(place) = shared.told.clone().try_acquire_owned() {
            self.clients.spawn(async move {
                // The connection is closed in any case.
                let _told = timeout(TELL, tell(stream, &refusal)).await;
                drop(place);
            });
        }
    }
}

impl Drop for ProxyListener {
    fn drop(&mut self) {
        // A process that was forked meanwhile has this socket too: closing it here would leave it open there, and
        // clients would wait in its queue. Shutdown stops listening in both.
        let _closed = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
    }
}

async fn tell(mut stream: TcpStream, refusal: &Refusal) -> io::Result<()> {
    stream.write_all(&refusal.answer(false, false)).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.map(drop)
}

fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM].iter().any(|shortage| errno == Some(*shortage))
}
