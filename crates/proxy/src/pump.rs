//! Copying of bytes from one stream to another.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::buffered::with_scratch;
use crate::other_protocols::{Opaque, WrongHost};

/// Reason why copying ended, by side.
#[derive(Debug, Error)]
pub(crate) enum Broken {
    #[error("read failed: {0}")]
    Read(io::Error),
    #[error("write failed: {0}")]
    Write(io::Error),
    #[error("idle for too long")]
    Idle,
    #[error("a request in the tunnel names another host than the one it was opened for")]
    WrongHost,
}

/// Copy state of one direction.
#[derive(Debug)]
pub(crate) struct Pump {
    /// Bytes read, but not written yet.
    held: Vec<u8>,
    at: usize,
    left: u64,
    /// Whether bytes were written, but perhaps not flushed yet.
    dirty: bool,
    ended: bool,
    /// Scanner of the bytes, if any.
    opaque: Option<Opaque>,
}

impl Pump {
    /// Copies at most `left` bytes, after those in `held`.
    pub(crate) fn new(left: u64, held: Vec<u8>) -> Pump {
        Pump { held, at: 0, left, dirty: false, ended: false, opaque: None }
    }

    /// Copies everything, after the bytes in `held`, until a request names another host.
    pub(crate) fn reading_along(mut opaque: Opaque, held: Vec<u8>) -> Result<Pump, Broken> {
        opaque.push(&held).map_err(|WrongHost| Broken::WrongHost)?;
        Ok(Pump { opaque: Some(opaque), ..Pump::new(u64::MAX, held) })
    }

    /// Number of bytes of the limit that were not read.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Copies until nothing can be moved now (pending), or the limit or the end is reached and all is written.
    pub(crate) fn poll<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
        to: &mut W,
        moved: &mut u64,
    ) -> Poll<Result<(), Broken>> {
        loop {
            while self.at < self.held.len() {
                let count = ready!(write(cx, to, &self.held[self.at..]))?;
                self.at += count;
                *moved += count as u64;
                self.dirty = true;
            }
            if !self.held.is_empty() {
                (self.held, self.at) = (Vec::new(), 0);
            }
            if self.left == 0 || self.ended {
                return self.poll_flush(cx, to);
            }
            match with_scratch(|scratch| self.pass(cx, from, to, moved, scratch)) {
                Poll::Ready(done) => done?,
                Poll::Pending => {
                    let _flushed = self.poll_flush(cx, to)?;
                    return Poll::Pending;
                }
            }
        }
    }

    /// Copies one piece. Bytes that cannot be written at once are kept.
    fn pass<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
        to: &mut W,
        moved: &mut u64,
        scratch: &mut [u8],
    ) -> Poll<Result<(), Broken>> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(scratch.len());
        let mut buffer = ReadBuf::new(&mut scratch[..room]);
        ready!(Pin::new(from).poll_read(cx, &mut buffer)).map_err(Broken::Read)?;
        let bytes = buffer.filled();
        if let Some(opaque) = &mut self.opaque {
            opaque.push(bytes).map_err(|WrongHost| Broken::WrongHost)?;
        }
        self.ended = bytes.is_empty();
        self.left -= bytes.len() as u64;
        let mut at = 0;
        while at < bytes.len() {
            let Poll::Ready(count) = write(cx, to, &bytes[at..])? else {
                self.held = bytes[at..].to_vec();
                break;
            };
            at += count;
            *moved += count as u64;
            self.dirty = true;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
    ) -> Poll<Result<(), Broken>> {
        if self.dirty {
            ready!(Pin::new(to).poll_flush(cx)).map_err(Broken::Write)?;
            self.dirty = false;
        }
        Poll::Ready(Ok(()))
    }
}

fn write<W: AsyncWrite + Unpin>(
    cx: &mut Context<'_>,
    to: &mut W,
    bytes: &[u8],
) -> Poll<Result<usize, Broken>> {
    match ready!(Pin::new(to).poll_write(cx, bytes)) {
        Ok(0) => Poll::Ready(Err(Broken::Write(io::ErrorKind::WriteZero.into()))),
        Ok(count) => Poll::Ready(Ok(count)),
        Err(error) => Poll::Ready(Err(Broken::Write(error))),
    }
}

/// Idle timer. It reads the clock only when polled.
pub(crate) struct Idle {
    sleep: Pin<Box<Sleep>>,
    limit: Duration,
    seen: u64,
}

impl Idle {
    pub(crate) fn new(limit: Duration) -> Idle {
        Idle { sleep: Box::pin(sleep_until(Instant::now() + limit)), limit, seen: 0 }
    }

    /// Ready after the idle time. `moved` is the total number of bytes so far, in both directions.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, moved: u64) -> Poll<()> {
        if moved != self.seen {
            self.seen = moved;
            self.sleep.as_mut().reset(Instant::now() + self.limit);
        }
        self.sleep.as_mut().poll(cx)
    }
}

/// Copies `left` bytes, or fewer if the source ends before. Returns the number not copied.
pub(crate) async fn pump<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    from: &mut R,
    to: &mut W,
    left: u64,
    idle: Duration,
    moved: &mut u64,
) -> Result<u64, Broken> {
    let mut pump = Pump::new(left, Vec::new());
    let mut idle = Idle::new(idle);
    let work = poll_fn(|cx| match pump.poll(cx, from, to, moved) {
        Poll::Pending => idle.poll(cx, *moved).map(|()| Err(Broken::Idle)),
        done @ Poll::Ready(_) => done,
    });
    pin!(work).await?;
    Ok(pump.left())
}

/// Copies in both directions until both have ended. The end of one side is passed on to the other.
pub(crate) async fn join<A, B>(
    (one, mut up): (&mut A, Pump),
    (other, mut down): (&mut B, Pump),
    idle: Duration,
    (sent, received): (&mut u64, &mut u64),
) -> Result<(), Broken>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let mut idle = Idle::new(idle);
    let (mut up_done, mut down_done) = (false, false);
    poll_fn(|cx| {
        if !up_done && up.poll(cx, one, other, sent)?.is_ready() {
            up_done = Pin::new(&mut *other).poll_shutdown(cx).map_err(Broken::Write)?.is_ready();
        }
        if !down_done && down.poll(cx, other, one, received)?.is_ready() {
            down_done = Pin::new(&mut *one).poll_shutdown(cx).map_err(Broken::Write)?.is_ready();
        }
        if up_done && down_done {
            return Poll::Ready(Ok(()));
        }
        idle.poll(cx, *sent + *received).map(|()| Err(Broken::Idle))
    })
    .await
}
