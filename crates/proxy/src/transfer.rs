//! Transfer of one body from a sender to a receiver, in the receiver's framing.
//!
//! The head of the message goes first, in the same write as the available part of the body. Received bytes are sent
//! before more are read.

use std::io;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::body::{BadBody, Decoder};
use crate::buffered::Buffered;
use crate::credential::scan::Scanner;
use crate::head::Framing;
use crate::pump::{Broken, pump};

#[derive(Debug, Error)]
pub(crate) enum Cut {
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error(transparent)]
    Bad(#[from] BadBody),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TransferPlan {
    pub(crate) from: Framing,
    /// Whether the receiver gets chunks.
    pub(crate) chunked: bool,
    pub(crate) idle: Duration,
}

/// Sends `out` (a head) and the body. A `scanner` may change the body's length, so then no length may have been sent.
pub(crate) async fn transfer<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mut out: Vec<u8>,
    plan: TransferPlan,
    mut scanner: Option<Scanner>,
    from: &mut Buffered<R>,
    to: &mut W,
    moved: &mut u64,
) -> Result<(), Cut> {
    let mut decoder = Decoder::new(plan.from);
    let scanned = scanner.is_some();
    loop {
        gather(&mut decoder, plan, &mut scanner, from, &mut out)?;
        if !out.is_empty() {
            send(&out, to, plan.idle).await?;
            *moved += out.len() as u64;
            out.clear();
        }
        if decoder.is_done() {
            return Ok(());
        }
        if !scanned && !plan.chunked && decoder.plain() > 0 && from.is_empty() {
            from.rest();
            return plain(&mut decoder, plan, from, to, moved).await;
        }
        let count = timeout(plan.idle, from.fill()).await.map_err(|_| Broken::Idle)?.map_err(Broken::Read)?;
        if count == 0 {
            decoder.end()?;
        }
    }
}

/// Collects the received bytes in the receiver's framing.
fn gather<R>(
    decoder: &mut Decoder,
    plan: TransferPlan,
    scanner: &mut Option<Scanner>,
    from: &mut Buffered<R>,
    out: &mut Vec<u8>,
) -> Result<(), BadBody> {
    let chunk = Chunk::start(plan.chunked, out);
    let start = out.len();
    while !from.is_empty() && !decoder.is_done() {
        let step = decoder.step(from.bytes())?;
        let data = &from.bytes()[step.data];
        match scanner {
            Some(scanner) => scanner.push(data, out),
            None => out.extend_from_slice(data),
        }
        from.consume(step.consumed);
    }
    if let Some(scanner) = scanner.take_if(|_| decoder.is_done()) {
        scanner.finish(out);
    }
    let length = out.len() - start;
    chunk.end(length, decoder.is_done(), out);
    Ok(())
}

/// Frame of one chunk. Its size comes before it but is known after it, so space is reserved.
struct Chunk(Option<usize>);

const ROOM: usize = 10;

impl Chunk {
    fn start(chunked: bool, out: &mut Vec<u8>) -> Chunk {
        let at = out.len();
        if chunked {
            out.extend_from_slice(&[0; ROOM]);
        }
        Chunk(chunked.then_some(at))
    }

    fn end(self, length: usize, last: bool, out: &mut Vec<u8>) {
        let Some(at) = self.0 else { return };
        if length == 0 {
            out.truncate(at);
        } else {
            // Leading zeros are part of the format.
            out[at..at + ROOM].copy_from_slice(format!("{length:08x}\r\n").as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        if last {
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }
}

/// Copies the middle of a body that needs no framing.
async fn plain<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    decoder: &mut Decoder,
    plan: TransferPlan,
    from: &mut Buffered<R>,
    to: &mut W,
    moved: &mut u64,
) -> Result<(), Cut> {
    let wanted = decoder.plain();
    let left = pump(&mut from.stream, to, wanted, plan.idle, moved).await?;
    decoder.passed(wanted - left);
    if !decoder.is_done() {
        decoder.end()?;
    }
    Ok(())
}

/// Writes everything and flushes.
pub(crate) async fn send<W: AsyncWrite + Unpin>(
    bytes: &[u8],
    to: &mut W,
    idle: Duration,
) -> Result<(), Broken> {
    let work = async {
        to.write_all(bytes).await?;
        to.flush().await
    };
    timeout(idle, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(Broken::Write)
}
