//! Stream with a buffer of bytes that were read and not used yet.
//!
//! Idle connections hold no memory: bytes are read into one buffer per thread and only those that have to wait are
//! kept.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::config::Limits;
use crate::head::{Malformed, Parsed, worth_parsing};

const SCRATCH: usize = 64 << 10;
/// Maximum number of bytes read at once into a kept buffer.
const FILL: usize = 16 << 10;

thread_local! {
    static BUFFER: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
}

/// Calls a function with the thread's buffer.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut scratch = BUFFER.take().unwrap_or_else(|| vec![0; SCRATCH].into_boxed_slice());
    let done = work(&mut scratch);
    BUFFER.set(Some(scratch));
    done
}

/// Reason why no head was read.
#[derive(Debug, Error)]
pub(crate) enum NoHead {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Broken(#[from] io::Error),
    #[error("the connection ended in the middle of a head")]
    Ended,
}

#[derive(Debug)]
pub(crate) struct Buffered<S> {
    pub(crate) stream: S,
    held: Vec<u8>,
    start: usize,
}

impl<S> Buffered<S> {
    pub(crate) fn new(stream: S) -> Buffered<S> {
        Buffered::with(stream, Vec::new())
    }

    /// Wraps a stream of which `held` was read before.
    pub(crate) fn with(stream: S, held: Vec<u8>) -> Buffered<S> {
        Buffered { stream, held, start: 0 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.held[self.start..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.held.len()
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.held.len());
        if self.is_empty() {
            self.held.clear();
            self.start = 0;
        }
    }

    /// Removes and returns all buffered bytes.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.start) {
            0 => held,
            // A new allocation without the consumed part.
            start => held[start..].to_vec(),
        }
    }

    /// Puts back the bytes that [`Buffered::take`] removed.
    pub(crate) fn put(&mut self, held: Vec<u8>) {
        self.held = held;
        self.start = 0;
    }

    /// Releases memory before a long wait.
    pub(crate) fn rest(&mut self) {
        if self.is_empty() {
            self.put(Vec::new());
        }
    }
}

impl<S: AsyncRead + Unpin> Buffered<S> {
    /// Reads more bytes; 0 is the end.
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.poll_fill_some(cx, FILL)
    }

    /// Reads at most `most` bytes; 0 is the end.
    pub(crate) fn poll_fill_some(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        with_scratch(|scratch| {
            let mut buffer = ReadBuf::new(&mut scratch[..most.min(FILL)]);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) => {
                    self.held.extend_from_slice(buffer.filled());
                    Poll::Ready(Ok(buffer.filled().len()))
                }
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Pending => Poll::Pending,
            }
        })
    }

    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        self.fill_some(FILL).await
    }

    pub(crate) async fn fill_some(&mut self, most: usize) -> io::Result<usize> {
        poll_fn(|cx| self.poll_fill_some(cx, most)).await
    }

    /// Reads one head and removes it from the buffer. The buffer never grows much larger than a head.
    pub(crate) async fn head<T>(
        &mut self,
        limits: &Limits,
        parse: fn(&[u8], &Limits) -> Result<Parsed<T>, Malformed>,
    ) -> Result<T, NoHead> {
        let mut seen = 0;
        loop {
            let bytes = self.bytes();
            if (worth_parsing(bytes, seen) || bytes.len() > limits.head_bytes)
                && let Parsed::Complete { head, length } = parse(bytes, limits)?
            {
                self.consume(length);
                // Handling the request may take long.
                self.rest();
                return Ok(head);
            }
            seen = bytes.len();
            let most = limits.head_bytes.saturating_sub(seen) + 1;
            if self.fill_some(most).await? == 0 {
                return Err(NoHead::Ended);
            }
        }
    }

    /// Whether nothing was received and the stream has not ended.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        let more = poll_fn(|cx| Poll::Ready(self.poll_fill(cx).is_pending()));
        more.await && self.is_empty()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Buffered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_empty() {
            self.rest();
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let count = self.bytes().len().min(buffer.remaining());
        buffer.put_slice(&self.bytes()[..count]);
        self.consume(count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Buffered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
