//! `nono mcp`: a Model Context Protocol server on stdin and stdout, for agents that want checkpoints as tools.
//!
//! Nothing but the protocol goes to stdout. The server ends when stdin does: open questions are withdrawn, and a
//! restore that the user confirmed is completed.

mod answer;
mod call;
mod catalogue;
mod inside;
mod outside;
mod person;
mod policy;
mod responses;
mod server;
mod tool;

use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio::sync::watch;

use server::Server;

use super::upkeep;
use crate::failure::Failure;
use crate::host::untold;
use crate::message;

/// Maximum size of a message in bytes; arguments of tools are far shorter.
const LINE: usize = 4 << 20;
/// Stack size of worker threads: trees may be deep.
const STACK: usize = 8 << 20;

pub(crate) fn mcp() -> Result<u8, Failure> {
    let untold = untold();
    if !untold.is_empty() {
        let program = std::env::current_exe()?;
        return Err(Command::new(program).arg("mcp").envs(untold).exec().into());
    }
    if io::stdin().is_terminal() {
        message::line(
            "this is a Model Context Protocol server on stdin and stdout, started by agents (Ctrl-D ends it)",
        );
        message::line("hint: claude mcp add nono -- nono mcp");
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().thread_stack_size(STACK).build()?;
    let (closes, closed) = watch::channel(false);
    let server = Server::new(closed);
    let stored = Arc::clone(&server.stored);
    let served = runtime.block_on(async {
        let input = UntilClosed { input: tokio::io::stdin(), closes };
        let transport = AsyncRwTransport::new_server(input, tokio::io::stdout()).with_max_line_length(LINE);
        match server.serve(transport).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| Failure::new(error.to_string())),
            // A client that closes the connection at once is no error.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(first_words(&error)),
        }
    });
    match &served {
        // Waits until a confirmed restore is complete.
        Ok(()) => drop(runtime),
        // No client was served, and stdin may never end.
        Err(_) => runtime.shutdown_background(),
    }
    if stored.load(Ordering::Relaxed) {
        upkeep::after_command();
    }
    served.map(|()| 0)
}

/// Failure of the handshake, without the client's whole message in it.
fn first_words(error: &ServerInitializeError) -> Failure {
    let what = match error {
        ServerInitializeError::ExpectedInitializeRequest(_) => {
            "the client did not begin with `initialize`".to_owned()
        }
        error => error.to_string().chars().take(200).collect(),
    };
    Failure::new(format!("mcp: {what}"))
}

/// Stdin whose end cancels every waiting call.
struct UntilClosed {
    input: Stdin,
    closes: watch::Sender<bool>,
}

impl AsyncRead for UntilClosed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.input).poll_read(context, buffer));
        if read.is_err() || buffer.filled().len() == before {
            self.closes.send_replace(true);
        }
        Poll::Ready(read)
    }
}
