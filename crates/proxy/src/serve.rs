//! The listener, and everything that hangs on it.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::config::Config;
use crate::credential::Routes;
use crate::event::{Events, Mode};
use crate::record::Record;
use crate::refusal::Refusal;
use crate::requests;
use crate::resolve::{Resolve, System};
use crate::shared::Shared;

/// When no descriptor is left: connections end meanwhile.
const BREATH: Duration = Duration::from_millis(50);
/// Clients that are told that there is no room. More are closed without a word.
const MAX_TOLD: usize = 32;
const TELL: Duration = Duration::from_millis(500);
/// Descriptors that are not connections: the runtime's, the resolver's, the standard ones.
const OTHER_DESCRIPTORS: u64 = 64;

/// The proxy. See [`Proxy::serve`] and [`crate::Handle`].
#[derive(Clone, Copy, Debug)]
pub struct Proxy;

impl Proxy {
    /// Serve until `shutdown`, inside of the caller's runtime (which has its timers and its network on). `events` gets
    /// every event; a function does, or whatever is [`Events`]. On shutdown everything that is open ends; its events
    /// have all been given when this returns.
    ///
    /// Each connection takes two descriptors: the caller sees to it that the process may have enough. Where it may not,
    /// fewer connections are served.
    pub async fn serve(
        listener: TcpListener,
        config: Config,
        events: impl Events,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        Proxy::serve_with(listener, config, Arc::new(System::default()), events, shutdown).await
    }

    /// The same with other eyes for names.
    pub async fn serve_with(
        listener: TcpListener,
        config: Config,
        resolver: Arc<dyn Resolve>,
        events: impl Events,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let routes = Routes::new(&config).map_err(io::Error::other)?;
        Proxy::run(listener, Shared::new(config, routes, resolver, events), shutdown).await
    }

    /// The same with `routes` that were made of this config before, by a caller who needs their authority.
    pub async fn serve_routes(
        listener: TcpListener,
        config: Config,
        routes: Routes,
        events: impl Events,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let resolver = Arc::new(System::default());
        Proxy::run(listener, Shared::new(config, routes, resolver, events), shutdown).await
    }

    async fn run(
        listener: TcpListener,
        mut shared: Shared,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        shared.own = Some(listener.local_addr()?);
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let shared = Arc::new(shared);
        let mut clients = Clients::new(&shared);
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = clients.tasks.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => clients.take(stream, &shared),
                    Err(error) if is_shortage(&error) => sleep(BREATH).await,
                    // The client went away before it was accepted.
                    Err(_) => {}
                },
            }
        }
        clients.tasks.shutdown().await;
        Ok(())
    }
}

struct Clients {
    tasks: JoinSet<()>,
    room: Arc<Semaphore>,
    told: Arc<Semaphore>,
}

impl Clients {
    fn new(shared: &Shared) -> Clients {
        let room = shared.config.limits.connections.min(descriptors());
        Clients {
            tasks: JoinSet::new(),
            room: Arc::new(Semaphore::new(room)),
            told: Arc::new(Semaphore::new(MAX_TOLD)),
        }
    }

    fn take(&mut self, stream: TcpStream, shared: &Arc<Shared>) {
        let shared = shared.clone();
        if let Ok(place) = self.room.clone().try_acquire_owned() {
            self.tasks.spawn(async move {
                // Without it answers are only slower.
                let _set = stream.set_nodelay(true);
                requests::serve(stream, &shared).await;
                drop(place);
            });
            return;
        }
        let refusal = Refusal::full();
        Record::new(&shared, Mode::Forward).refuse(&refusal);
        if let Ok(place) = self.told.clone().try_acquire_owned() {
            self.tasks.spawn(async move {
                // It is closed in any case.
                let _told = timeout(TELL, tell(stream, &refusal)).await;
                drop(place);
            });
        }
    }
}

async fn tell(mut stream: TcpStream, refusal: &Refusal) -> io::Result<()> {
    stream.write_all(&refusal.answer(false, false)).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.map(drop)
}

/// How many connections the process's descriptors are good for.
fn descriptors() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let room = limit.map_or(u64::MAX, |limit| limit.saturating_sub(OTHER_DESCRIPTORS) / 2).max(1);
    usize::try_from(room).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM].iter().any(|shortage| errno == Some(*shortage))
}
