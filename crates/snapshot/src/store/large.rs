//! Large objects: `large/<2 digits>/<address>` as plain bytes shared with the user's file, or a list of chunks
//! (`.chunks`, see [`super::chunks`]). Plain bytes over 1 GiB are accompanied by the hashes that the address was made
//! from (`.hashes`).
//!
//! Stores of version 1 have copies as plain bytes, and settled ones (`.zst`): a zstd stream of the parts that hold
//! data, the list of these parts, and a trailer with checksums of everything. They are read, and plain copies are still
//! settled. Everything works in constant memory, and holes cost nothing in any form.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;

use rustix::io::Errno;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::chunks::{ChunkList, FilePart};
use super::error::{Damage, Result, StoreError, there};
use super::files::{Folder, failed, file_stat, pread, pwrite_all, size_of};
use super::handle::Store;
use super::key::{ObjectKey, ObjectKind};
use super::large_names::OBJECTS;
pub(super) use super::large_names::{LargeName, PACKED, folder_name, name_of, parse_name};
use super::pack::is_durable;
use super::pack_record::LEVEL;
use super::spans::{EachPiece, PIECE, SpanFile, SpanPiece, each_piece, piece_of};
use crate::disk;
use crate::hash::{ContentHash, ContentHasher};

const MAGIC: [u8; 8] = *b"nonoLrg1";
const TRAILER: usize = 48;
const SPAN: usize = 16;
/// Maximum number of parts of a settled file: a longer list would take more than compression saves.
const MOST_SPANS: usize = 1 << 20;
/// Number of bytes tried before a file that does not become smaller is left uncompressed.
const PATIENCE: u64 = 64 << 20;
/// Maximum size that `read` returns; larger objects need `write_to`.
const WHOLE: u64 = 1 << 30;
/// Memory limit of the decoder, as a power of two: slightly more than the encoder's level needs.
const WINDOW: u32 = 24;

/// An open large object.
#[derive(Debug)]
pub(super) struct OpenLarge {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) size: u64,
    key: ObjectKey,
    form: StoredForm,
}

/// Stored form of an object.
#[derive(Debug)]
enum StoredForm {
    Plain,
    Packed(Closing),
    Chunks(Vec<FilePart>),
}

/// Trailer of a settled object.
#[derive(Debug)]
struct Closing {
    size: u64,
    stream: u64,
    sum: u64,
    spans: Vec<(u64, u64)>,
}

impl Store {
    pub(super) fn large_is_there(&self, key: &ObjectKey) -> Result<bool> {
        if key.kind != ObjectKind::Blob {
            return Ok(false);
        }
        let Some(folder) = there(self.large.open_folder(&folder_name(&key.hash)))? else { return Ok(false) };
        for shape in OBJECTS {
            let stat = folder.stat(&name_of(&key.hash, shape))?;
            if stat.is_some_and(|stat| !is_suspect(&stat)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Bytes on disk of a large object; 0 if there is none.
    pub(super) fn large_bytes(&self, key: &ObjectKey) -> Result<u64> {
        let Some(folder) = there(self.large.open_folder(&folder_name(&key.hash)))? else { return Ok(0) };
        let mut bytes = 0;
        for shape in [LargeName::Plain, LargeName::Packed, LargeName::Chunks, LargeName::Hashes] {
            let stat = folder.stat(&name_of(&key.hash, shape))?;
            bytes += stat.map_or(0, |stat| super::files::allocated(&stat));
        }
        Ok(bytes)
    }

    pub(super) fn open_large(&self, hash: &[u8; 32]) -> Result<Option<OpenLarge>> {
        let Some(folder) = there(self.large.open_folder(&folder_name(hash)))? else { return Ok(None) };
        for shape in OBJECTS {
            if let Some(open) = there(OpenLarge::open(&folder, &name_of(hash, shape), hash))? {
                return Ok(Some(open));
            }
        }
        Ok(None)
    }

    pub(super) fn read_large(&self, key: ObjectKey) -> Result<Vec<u8>> {
        let large = self.open_large(&key.hash)?.ok_or_else(|| self.missing(key))?;
        if large.size > WHOLE {
            return Err(StoreError::TooLarge { size: large.size, dir: self.dir().to_owned() });
        }
        let mut bytes = Vec::new();
        let mut hasher = ContentHasher::new(large.size);
        large.each_piece(self, &mut Vec::new(), false, &mut |_, piece| {
            feed(&mut hasher, piece);
            match piece {
                SpanPiece::Data(data) => bytes.extend_from_slice(data),
                SpanPiece::Zeros(len) => {
                    bytes.resize(bytes.len() + usize::try_from(len).unwrap_or(0), 0);
                }
            }
            Ok(())
        })?;
        large.check(hasher)?;
        Ok(bytes)
    }

    /// Restore a large object; false if there is none of this address.
    pub(super) fn write_large_to(
        &self,
        hash: ContentHash,
        size: u64,
        sparse: bool,
        out: BorrowedFd<'_>,
    ) -> Result<bool> {
        let Some(large) = self.open_large(hash.as_bytes())? else { return Ok(false) };
        if large.size != size {
            return Err(large.damaged(Damage::Content));
        }
        let mut buffer = Vec::new();
        let mut hasher = ContentHasher::new(size);
        let plain = matches!(large.form, StoredForm::Plain);
        if plain && clone(out, large.file.as_fd()).map_err(StoreError::Target)? {
            self.hash_clone(out, &large, &mut buffer, &mut hasher)?;
        } else {
            let mut target = SpanFile::new(out, sparse);
            large.each_piece(self, &mut buffer, false, &mut |at, piece| {
                feed(&mut hasher, piece);
                target.piece(at, piece).map_err(StoreError::Target)
            })?;
            target.finish(size).map_err(StoreError::Target)?;
        }
        large.check(hasher)?;
        Ok(true)
    }

    /// Hash the restored file. If it is open for writing only, hash the file that it shares data with.
    fn hash_clone(
        &self,
        out: BorrowedFd<'_>,
        large: &OpenLarge,
        buffer: &mut Vec<u8>,
        hasher: &mut ContentHasher,
    ) -> Result<()> {
        let mut take = |_: u64, piece: SpanPiece<'_>| {
            feed(hasher, piece);
            Ok(())
        };
        let readable = !matches!(rustix::io::pread(out, &mut [0u8][..], 0), Err(Errno::BADF));
        if readable {
            return each_piece(out, 0..large.size, true, buffer, &StoreError::Target, &mut take);
        }
        large.each_piece(self, buffer, false, &mut take)
    }

    /// One chunk of a file, checked against its address and its length in the list.
    fn read_chunk(&self, large: &OpenLarge, hash: [u8; 32], len: u64) -> Result<Vec<u8>> {
        let key = ObjectKey::chunk(hash);
        match self.read_packed(key) {
            Ok(Some(bytes)) if bytes.len() as u64 == len => Ok(bytes),
            Ok(_) | Err(StoreError::Damaged { .. }) => Err(large.damaged(Damage::Part(key))),
            Err(error) => Err(error),
        }
    }
}

/// Whether a crash of the machine may have damaged it: written before the last boot, and not known to be durable.
pub(super) fn is_suspect(stat: &rustix::fs::Stat) -> bool {
    !is_durable(stat) && stat.st_ctime < booted()
}

/// Boot time, as a time of day.
fn booted() -> i64 {
    #[cfg(feature = "failpoints")]
    if let Some(at) = crate::disk::failpoint::rebooted() {
        return at;
    }
    let up = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec - up.tv_sec
}

pub(super) fn feed(hasher: &mut ContentHasher, piece: SpanPiece<'_>) {
    match piece {
        SpanPiece::Data(bytes) => hasher.data(bytes),
        SpanPiece::Zeros(len) => hasher.zeros(len),
    }
}

/// Share the data of one file with another; false if the filesystem cannot.
pub(super) fn clone(to: BorrowedFd<'_>, from: BorrowedFd<'_>) -> io::Result<bool> {
    disk::step()?;
    match rustix::fs::ioctl_ficlone(to, from) {
        Ok(()) => Ok(true),
        Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::IO)) => Err(errno.into()),
        Err(_) => Ok(false),
    }
}

impl OpenLarge {
    pub(super) fn open(folder: &Folder, name: &str, hash: &[u8; 32]) -> Result<OpenLarge> {
        let (file, path) = (folder.open(name)?, folder.path_of(name));
        let size = size_of(&file_stat(&file, &path)?);
        let key = ObjectKey { kind: ObjectKind::Blob, hash: *hash };
        let mut large = OpenLarge { file, path, size, key, form: StoredForm::Plain };
        match parse_name(name) {
            Some((_, LargeName::Packed)) => {
                let closing = large.read_closing()?.ok_or_else(|| large.damaged(Damage::Trailer))?;
                large.size = closing.size;
                large.form = StoredForm::Packed(closing);
            }
            Some((_, LargeName::Chunks)) => {
                let mut bytes = Vec::new();
                (&large.file).read_to_end(&mut bytes).map_err(failed("read", &large.path))?;
                let list = ChunkList::decode(&bytes).ok_or_else(|| large.damaged(Damage::List))?;
                large.size = list.size;
                large.form = StoredForm::Chunks(list.parts);
            }
            _ => {}
        }
        Ok(large)
    }

    pub(super) fn damaged(&self, damage: Damage) -> StoreError {
        StoreError::Damaged { file: self.path.clone(), object: Some(self.key), damage }
    }

    pub(super) fn check(&self, hasher: ContentHasher) -> Result<()> {
        match hasher.finish() {
            Some(hash) if *hash.as_bytes() == self.key.hash => Ok(()),
            _ => Err(self.damaged(Damage::Content)),
        }
    }

    fn read_at(&self, at: u64, len: usize) -> Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; len];
        let read = pread(self.file.as_fd(), &mut bytes, at).map_err(failed("read", &self.path))?;
        Ok((read == len).then_some(bytes))
    }

    /// Read the trailer; `None` if any bit was changed. `self.size` is that of the file here.
    fn read_closing(&self) -> Result<Option<Closing>> {
        let Some(start) = self.size.checked_sub(TRAILER as u64) else { return Ok(None) };
        let Some(trailer) = self.read_at(start, TRAILER)? else { return Ok(None) };
        let long = |at: usize| trailer[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (size, count, stream, sum) = (long(8), long(16), long(24), long(32));
        let Some(list) = usize::try_from(count).ok().filter(|count| *count <= MOST_SPANS) else {
            return Ok(None);
        };
        // The lengths must add up to the file's, so a forged one reserves no memory.
        if stream.checked_add((list * SPAN) as u64) != Some(start) || trailer[..8] != MAGIC {
            return Ok(None);
        }
        let Some(mut all) = self.read_at(stream, list * SPAN)? else { return Ok(None) };
        let spans = decode_spans(&all, size);
        all.extend_from_slice(&trailer[..40]);
        let fine = xxh3_64(&all) == long(40);
        Ok(spans.filter(|_| fine).map(|spans| Closing { size, stream, sum, spans }))
    }

    /// Visit all pieces in order. With `sums`, the checksum of the stream is checked too.
    pub(super) fn each_piece(
        &self,
        store: &Store,
        buffer: &mut Vec<u8>,
        sums: bool,
        each: EachPiece<'_>,
    ) -> Result<()> {
        match &self.form {
            StoredForm::Plain => {
                let failed = |source: io::Error| failed("read", &self.path)(source);
                each_piece(self.file.as_fd(), 0..self.size, true, buffer, &failed, each)
            }
            StoredForm::Packed(closing) => self.each_unpacked(closing, buffer, sums, each),
            StoredForm::Chunks(parts) => self.each_part(store, parts, each),
        }
    }

    fn each_part(&self, store: &Store, parts: &[FilePart], each: EachPiece<'_>) -> Result<()> {
        let mut at = 0;
        for part in parts {
            match part.chunk {
                Some(hash) => each(at, SpanPiece::Data(&store.read_chunk(self, hash, part.len)?))?,
                None => each(at, SpanPiece::Zeros(part.len))?,
            }
            at += part.len;
        }
        Ok(())
    }

    fn each_unpacked(
        &self,
        closing: &Closing,
        buffer: &mut Vec<u8>,
        sums: bool,
        each: EachPiece<'_>,
    ) -> Result<()> {
        let broken = |_: io::Error| self.damaged(Damage::Payload { offset: 0 });
        let stream = Stream { file: &self.file, at: 0, end: closing.stream, sum: Xxh3::new() };
        let mut decoder = zstd::stream::read::Decoder::new(stream).map_err(broken)?;
        decoder.window_log_max(WINDOW).map_err(broken)?;
        buffer.resize(piece_of(self.size).max(1), 0);
        let mut at = 0;
        for (offset, len) in &closing.spans {
            if *offset > at {
                each(at, SpanPiece::Zeros(offset - at))?;
            }
            at = *offset;
            while at < offset + len {
                let now = usize::try_from(offset + len - at).unwrap_or(PIECE).min(PIECE);
                decoder.read_exact(&mut buffer[..now]).map_err(broken)?;
                each(at, SpanPiece::Data(&buffer[..now]))?;
                at += now as u64;
            }
        }
        if at < closing.size {
            each(at, SpanPiece::Zeros(closing.size - at))?;
        }
        if sums { self.check_stream(decoder, closing, buffer) } else { Ok(()) }
    }

    fn check_stream(
        &self,
        mut decoder: zstd::stream::read::Decoder<'_, io::BufReader<Stream<'_>>>,
        closing: &Closing,
        buffer: &mut [u8],
    ) -> Result<()> {
        let broken = || self.damaged(Damage::Payload { offset: 0 });
        if decoder.read(buffer).map_err(|_| broken())? != 0 {
            return Err(broken());
        }
        let mut rest = decoder.finish().into_inner();
        while rest.read(buffer).map_err(failed("read", &self.path))? > 0 {}
        if rest.sum.digest() == closing.sum { Ok(()) } else { Err(broken()) }
    }
}

/// Compressed part of a file, checksummed as it is read.
struct Stream<'a> {
    file: &'a File,
    at: u64,
    end: u64,
    sum: Xxh3,
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let read = pread(self.file.as_fd(), &mut buffer[..most], self.at)?;
        self.sum.update(&buffer[..read]);
        self.at += read as u64;
        Ok(read)
    }
}

/// Decode the list of parts; `None` unless they rise, do not touch and end within the size.
fn decode_spans(bytes: &[u8], size: u64) -> Option<Vec<(u64, u64)>> {
    let mut end = 0;
    let mut spans = Vec::with_capacity(bytes.len() / SPAN);
    for span in bytes.chunks_exact(SPAN) {
        let (offset, len) = span.split_first_chunk::<8>()?;
        let (offset, len) = (u64::from_le_bytes(*offset), u64::from_le_bytes(*len.first_chunk()?));
        if offset < end || len == 0 {
            return None;
        }
        end = offset.checked_add(len).filter(|end| *end <= size)?;
        spans.push((offset, len));
    }
    Some(spans)
}

/// A large object being compressed into a new file.
pub(super) struct LargePacker<'a> {
    out: &'a File,
    path: PathBuf,
    encoder: zstd::stream::write::Encoder<'static, Vec<u8>>,
    spans: Vec<(u64, u64)>,
    sum: Xxh3,
    taken: u64,
    written: u64,
}

impl<'a> LargePacker<'a> {
    pub(super) fn new(out: &'a File, path: PathBuf) -> Result<LargePacker<'a>> {
        let encoder =
            zstd::stream::write::Encoder::new(Vec::new(), LEVEL).map_err(failed("compress", &path))?;
        Ok(LargePacker { out, path, encoder, spans: Vec::new(), sum: Xxh3::new(), taken: 0, written: 0 })
    }

    /// Whether it is worth continuing.
    pub(super) fn promises(&self) -> bool {
        self.spans.len() < MOST_SPANS && (self.taken < PATIENCE || self.saves())
    }

    pub(super) fn saves(&self) -> bool {
        self.written < self.taken - self.taken / 32
    }

    /// Add the next piece; returns the bytes added to the file.
    pub(super) fn piece(&mut self, at: u64, piece: SpanPiece<'_>) -> Result<u64> {
        let SpanPiece::Data(bytes) = piece else { return Ok(0) };
        match self.spans.last_mut() {
            Some((offset, len)) if *offset + *len == at => *len += bytes.len() as u64,
            _ => self.spans.push((at, bytes.len() as u64)),
        }
        self.taken += bytes.len() as u64;
        self.encoder.write_all(bytes).map_err(failed("compress", &self.path))?;
        self.drain()
    }

    fn drain(&mut self) -> Result<u64> {
        let ready = std::mem::take(self.encoder.get_mut());
        self.sum.update(&ready);
        pwrite_all(self.out.as_fd(), &ready, self.written).map_err(failed("write", &self.path))?;
        self.written += ready.len() as u64;
        Ok(ready.len() as u64)
    }

    /// Write the trailer; returns the bytes added.
    pub(super) fn finish(mut self, size: u64) -> Result<u64> {
        self.encoder.do_finish().map_err(failed("compress", &self.path))?;
        let last = self.drain()?;
        let mut end = Vec::with_capacity(self.spans.len() * SPAN + TRAILER);
        for (offset, len) in &self.spans {
            end.extend_from_slice(&offset.to_le_bytes());
            end.extend_from_slice(&len.to_le_bytes());
        }
        end.extend_from_slice(&MAGIC);
        for number in [size, self.spans.len() as u64, self.written, self.sum.digest()] {
            end.extend_from_slice(&number.to_le_bytes());
        }
        let sum = xxh3_64(&end);
        end.extend_from_slice(&sum.to_le_bytes());
        pwrite_all(self.out.as_fd(), &end, self.written).map_err(failed("write", &self.path))?;
        Ok(last + end.len() as u64)
    }
}
