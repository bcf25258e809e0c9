//! What the server sends on an upgraded connection, which ends before a secret that the server sends back.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use thiserror::Error;
use tokio::io::{AsyncRead, ReadBuf};

use super::scan::Scanner;

/// Number of bytes read at once.
const PIECE: usize = 8 << 10;

#[derive(Clone, Copy, Debug, Error)]
#[error("the server sent the credential back; the connection was ended")]
pub(crate) struct Leak;

/// Stream that ends when the secret appears. Frames have lengths, so the secret cannot be replaced.
#[derive(Debug)]
pub(crate) struct UpgradedStream<S> {
    stream: S,
    /// `None` when the stream has ended.
    scanner: Option<Scanner>,
    /// Bytes that may be forwarded.
    clean: Vec<u8>,
    at: usize,
}

impl<S> UpgradedStream<S> {
    pub(crate) fn new(stream: S, scanner: Scanner) -> UpgradedStream<S> {
        UpgradedStream { stream, scanner: Some(scanner), clean: Vec::new(), at: 0 }
    }
}

/// Whether a connection was ended because of the secret.
pub(crate) fn is_leak(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Leak>()).is_some()
}

impl<S: AsyncRead + Unpin> UpgradedStream<S> {
    /// Reads until some bytes may be forwarded, or the stream ends.
    fn poll_clean(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.at == self.clean.len() {
            let Some(scanner) = &mut self.scanner else { return Poll::Ready(Ok(())) };
            (self.at, self.clean) = (0, Vec::new());
            let (stream, clean) = (&mut self.stream, &mut self.clean);
            let mut scratch = [0; PIECE];
            let mut buffer = ReadBuf::new(&mut scratch);
            ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
            let count = buffer.filled().len();
            scanner.push(buffer.filled(), clean);
            let found = match self.scanner.take_if(|_| count == 0) {
                Some(ended) => ended.finish(&mut self.clean),
                None => self.scanner.as_ref().map_or(0, Scanner::found),
            };
            if found > 0 {
                return Poll::Ready(Err(io::Error::other(Leak)));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for UpgradedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_clean(cx))?;
        let count = (self.clean.len() - self.at).min(buffer.remaining());
        buffer.put_slice(&self.clean[self.at..self.at + count]);
        self.at += count;
        Poll::Ready(Ok(()))
    }
}
