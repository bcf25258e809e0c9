//! Reads and writes files in pieces of data and holes, in constant memory. A hole of terabytes is one piece.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::SeekFrom;

use super::error::{Result, StoreError};
use super::files::{pread, pwrite_all};
use crate::disk;
use crate::hash::is_zero;

/// Size of a piece of data, read at once.
pub(super) const PIECE: usize = 1 << 20;
const BLOCK: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub(super) enum SpanPiece<'a> {
    Data(&'a [u8]),
    Zeros(u64),
}

impl SpanPiece<'_> {
    /// Number of bytes of data in it.
    pub(super) fn data_len(&self) -> u64 {
        match self {
            SpanPiece::Data(bytes) => bytes.len() as u64,
            SpanPiece::Zeros(_) => 0,
        }
    }
}

/// Callback for the pieces of a file, with the offset of each.
pub(super) type EachPiece<'a> = &'a mut dyn FnMut(u64, SpanPiece<'_>) -> Result<()>;

/// A range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) hole: bool,
}

/// Next range, from `at` on; with `holes`, holes are looked for.
pub(super) fn span(fd: BorrowedFd<'_>, at: u64, size: u64, holes: bool) -> io::Result<Span> {
    let whole = Span { offset: at, len: size - at, hole: false };
    if !holes {
        return Ok(whole);
    }
    let data = match rustix::fs::seek(fd, SeekFrom::Data(at)) {
        Ok(data) => data.min(size),
        Err(rustix::io::Errno::NXIO) => size,
        // A filesystem that does not support holes.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => return Ok(whole),
        Err(errno) => return Err(errno.into()),
    };
    if data > at {
        return Ok(Span { offset: at, len: data - at, hole: true });
    }
    let end = match rustix::fs::seek(fd, SeekFrom::Hole(at)) {
        Ok(hole) => hole.min(size),
        // It became shorter; reading will show that.
        Err(rustix::io::Errno::NXIO) => size,
        Err(errno) => return Err(errno.into()),
    };
    Ok(Span { offset: at, len: end.max(at + 1) - at, hole: false })
}

/// Useful buffer size for a file of this size.
pub(super) fn piece_of(size: u64) -> usize {
    usize::try_from(size).unwrap_or(PIECE).min(PIECE)
}

/// Visit the pieces of a part of a file. `failed` maps read errors; a file that ends early is one.
pub(super) fn each_piece(
    fd: BorrowedFd<'_>,
    part: std::ops::Range<u64>,
    holes: bool,
    buffer: &mut Vec<u8>,
    failed: &dyn Fn(io::Error) -> StoreError,
    each: EachPiece<'_>,
) -> Result<()> {
    let (mut at, size) = (part.start, part.end);
    buffer.resize(piece_of(size - at), 0);
    while at < size {
        let span = span(fd, at, size, holes).map_err(failed)?;
        let end = span.offset + span.len;
        if span.hole {
            each(at, SpanPiece::Zeros(span.len))?;
            at = end;
        }
        while at < end {
            let now = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
            let read = pread(fd, &mut buffer[..now], at).map_err(failed)?;
            if read < now {
                return Err(failed(io::ErrorKind::UnexpectedEof.into()));
            }
            each(at, SpanPiece::Data(&buffer[..now]))?;
            at += now as u64;
        }
    }
    Ok(())
}

/// A new file, written in pieces.
#[derive(Debug)]
pub(super) struct SpanFile<'a> {
    fd: BorrowedFd<'a>,
    sparse: bool,
    /// End of the data written so far.
    end: u64,
}

impl<'a> SpanFile<'a> {
    /// With `sparse`, blocks of zeros become holes.
    pub(super) fn new(fd: BorrowedFd<'a>, sparse: bool) -> SpanFile<'a> {
        SpanFile { fd, sparse, end: 0 }
    }

    pub(super) fn piece(&mut self, at: u64, piece: SpanPiece<'_>) -> io::Result<()> {
        match piece {
            SpanPiece::Data(bytes) => self.data(at, bytes),
            SpanPiece::Zeros(_) if self.sparse => Ok(()),
            SpanPiece::Zeros(len) => self.zeros(at, len),
        }
    }

    pub(super) fn data(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if !self.sparse {
            return self.write(at, bytes);
        }
        let (mut start, mut place) = (0, 0);
        while place < bytes.len() {
            // Blocks are aligned to the file, not to the piece.
            let in_block = usize::try_from((at + place as u64) % BLOCK as u64).unwrap_or(0);
            let end = bytes.len().min(place + BLOCK - in_block);
            if is_zero(&bytes[place..end]) {
                self.write(at + start as u64, &bytes[start..place])?;
                start = end;
            }
            place = end;
        }
        self.write(at + start as u64, &bytes[start..])
    }

    fn zeros(&mut self, mut at: u64, mut len: u64) -> io::Result<()> {
        let zeros = vec![0; PIECE];
        while len > 0 {
            let now = usize::try_from(len).unwrap_or(PIECE).min(PIECE);
            self.write(at, &zeros[..now])?;
            at += now as u64;
            len -= now as u64;
        }
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        pwrite_all(self.fd, bytes, at)?;
        self.end = self.end.max(at + bytes.len() as u64);
        Ok(())
    }

    /// Set the file's size, in case it ends with a hole.
    pub(super) fn finish(self, size: u64) -> io::Result<()> {
        if self.end < size {
            disk::step()?;
            rustix::fs::ftruncate(self.fd, size)?;
        }
        Ok(())
    }
}
