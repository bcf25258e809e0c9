//! Connection to a server, kept for the next request to the same target.

use std::net::SocketAddr;

use crate::buffered::Buffered;
use crate::config::RequestTarget;
use crate::dial::Reached;
use crate::shared::Stream;

/// Connection to the target at the address that was checked.
pub(crate) struct Server {
    pub(crate) stream: Buffered<Box<dyn Stream>>,
    pub(crate) address: SocketAddr,
    target: RequestTarget,
    /// Whether the connection uses TLS. A request for such a connection is never sent over another one.
    secure: bool,
}

impl Server {
    pub(crate) fn new(mut reached: Reached, target: RequestTarget) -> Server {
        let held = reached.stream.take();
        let stream = Buffered::with(Box::new(reached.stream.stream) as Box<dyn Stream>, held);
        Server { stream, address: reached.address, target, secure: false }
    }

    pub(crate) fn secured(stream: Box<dyn Stream>, address: SocketAddr, target: RequestTarget) -> Server {
        Server { stream: Buffered::new(stream), address, target, secure: true }
    }
}

/// Kept connection of one client, at most one: nothing is shared between clients.
#[derive(Default)]
pub(crate) struct KeptConnection(Option<Server>);

impl KeptConnection {
    pub(crate) fn put(&mut self, mut server: Server) {
        server.stream.rest();
        self.0 = Some(server);
    }

    /// Takes the kept connection if it is to this target and still open; otherwise closes it.
    pub(crate) async fn take_for(&mut self, target: &RequestTarget, secure: bool) -> Option<Server> {
        let same = |server: &Server| server.target == *target && server.secure == secure;
        let mut server = self.0.take().filter(same)?;
        server.stream.is_quiet().await.then_some(server)
    }
}
