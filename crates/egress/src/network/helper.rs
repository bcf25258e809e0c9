//! Process in which the proxy runs.
//!
//! It gives up all rights before the first thread starts ([`harden`], [`confine`]): its configuration stays in its
//! memory, and it reaches the network and nothing else. When its input ends it ends, whatever is open.

use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use nono_proxy::credential::{RouteError, Routes};
use nono_proxy::name_lookup::System;
use nono_proxy::{Config, Proxy};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;
use tokio::sync::oneshot;

use super::event_queue::{Backlog, BacklogSink};
use super::wire::{HelperFrame, HelperMessage, SAID, TOLD};
use crate::helper::{ConfineError, Inbox, confine, harden};

/// Time for connections to end at the end.
const GRACE: Duration = Duration::from_secs(3);

#[derive(Debug, Error)]
pub enum HelperError {
    #[error("the helper's socket: {0}")]
    Socket(#[from] io::Error),
    #[error(transparent)]
    Confine(#[from] ConfineError),
    #[error(transparent)]
    Route(#[from] RouteError),
    #[error("unexpected message from the supervisor")]
    OutOfTurn,
}

/// Confine this process, then filter as configured over `input`, a unix socket. Call it from a process of its own
/// without other threads, which ends when this returns.
pub fn serve(input: impl AsFd) -> Result<(), HelperError> {
    harden()?;
    let socket = UnixStream::from(input.as_fd().try_clone_to_owned()?);
    let mut inbox = Inbox::new(socket.try_clone()?, TOLD);
    let Some(HelperFrame::Setup { config }) = inbox.next()? else { return Err(HelperError::OutOfTurn) };
    match prepare(&socket, &mut inbox, &config) {
        Ok(Some((listener, routes))) => run(listener, *config, routes, &socket, inbox),
        Ok(None) => Ok(()),
        Err(error) => {
            SAID.write(&mut &socket, &HelperMessage::Unable { why: error.to_string() })?;
            Err(error)
        }
    }
}

/// Give up all rights, and wait for the socket to serve. None if the supervisor is gone.
fn prepare(
    mut socket: &UnixStream,
    inbox: &mut Inbox,
    config: &Config,
) -> Result<Option<(TcpListener, Routes)>, HelperError> {
    raise_descriptors();
    confine()?;
    let routes = Routes::new(config)?;
    SAID.write(&mut socket, &HelperMessage::Ready { authority: routes.ca_pem().map(str::to_owned) })?;
    match inbox.next()? {
        Some(HelperFrame::Listener) => {
            let listener = inbox.descriptor().ok_or(HelperError::OutOfTurn)?;
            Ok(Some((listener.into(), routes)))
        }
        None | Some(HelperFrame::End) => Ok(None),
        Some(HelperFrame::Setup { .. }) => Err(HelperError::OutOfTurn),
    }
}

/// Raise the descriptor limit: two for each connection. With fewer, fewer connections are served.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn run(
    listener: TcpListener,
    config: Config,
    routes: Routes,
    mut socket: &UnixStream,
    inbox: Inbox,
) -> Result<(), HelperError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    SAID.write(&mut socket, &HelperMessage::Serving)?;
    let stop = wait_for_the_end(inbox)?;
    let backlog = Arc::new(Backlog::default());
    let writer = write_events(socket.try_clone()?, backlog.clone())?;
    let (ending, ended) = oneshot::channel::<()>();
    let shutdown = async move {
        // A thread that is gone means the same.
        let _ = stop.await;
        let _ = ending.send(());
    };
    let (resolver, events) = (Arc::new(System::default()), BacklogSink(backlog.clone()));
    let served = runtime.block_on(async {
        tokio::select! {
            served = Proxy::serve(listener, config, routes, resolver, events, shutdown) => served,
            // What does not end in time ends with the process.
            () = after(ended, GRACE) => Ok(()),
        }
    });
    // A hanging name lookup is not waited for.
    runtime.shutdown_background();
    // The runtime is gone, and with it all connections: no event comes after this.
    backlog.close();
    let written = writer.join().unwrap_or(Ok(()));
    served?;
    written?;
    SAID.write(&mut socket, &HelperMessage::Done)?;
    Ok(())
}

async fn after(begin: oneshot::Receiver<()>, time: Duration) {
    match begin.await {
        Ok(()) => tokio::time::sleep(time).await,
        // The sender is gone: the service has ended, and no time limit applies.
        Err(_) => std::future::pending().await,
    }
}

/// Thread that ends when the supervisor says so or is gone.
fn wait_for_the_end(mut inbox: Inbox) -> io::Result<oneshot::Receiver<()>> {
    let (stop, stopped) = oneshot::channel();
    std::thread::Builder::new().name("end".to_owned()).spawn(move || {
        // Any message means the end: nothing else is expected.
        let _ = inbox.next::<HelperFrame>();
        let _ = stop.send(());
    })?;
    Ok(stopped)
}

/// Thread that sends all events to the supervisor, in few writes.
fn write_events(mut socket: UnixStream, backlog: Arc<Backlog>) -> io::Result<JoinHandle<io::Result<()>>> {
    std::thread::Builder::new().name("events".to_owned()).spawn(move || {
        while let Some(events) = backlog.take() {
            let mut frames = Vec::new();
            for (event, untold) in events {
                frames.extend(SAID.encode(&HelperMessage::Event { event: Box::new(event), untold })?);
            }
            socket.write_all(&frames)?;
        }
        Ok(())
    })
}
