//! Journal of a running restore: enough to plan it again. It is published by a rename before anything is modified and
//! removed when all is done, so it exists exactly if a restore was interrupted. It ends with a checksum over the rest;
//! a damaged one, or one of a newer version, is an error and never partly used.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use super::Selection;
use crate::bytes::{Malformed, Reader, Writer};
use crate::disk;
use crate::file;
use crate::hash::tagged;

const MAGIC: &[u8] = b"nono restore v2\0";
/// Maximum size of a journal, so that a forged file cannot fill the memory.
const MAX_SIZE: u64 = 1 << 28;

/// Id of a restore, part of the names of its temporary files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RestoreId([u8; 8]);

impl RestoreId {
    pub fn random() -> io::Result<RestoreId> {
        nono_sys::random::bytes().map(RestoreId)
    }

    /// Name prefix of its temporary files.
    pub(crate) fn prefix(self) -> String {
        format!("{}{self}-", String::from_utf8_lossy(PREFIX))
    }
}

/// Name prefix of the temporary files of all restores.
pub(super) const PREFIX: &[u8] = b".nono-";

/// Whether a name is that of a restore's temporary file: `.nono-<16 hex digits>-<number>`. Such a file is never
/// captured: it is incomplete, or displaced and not yet checked, and removed when the restore is completed.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    let Some((id, rest)) = name.strip_prefix(PREFIX).and_then(|rest| rest.split_first_chunk::<16>()) else {
        return false;
    };
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let number = rest.strip_prefix(b"-").unwrap_or_default();
    id.iter().all(is_hex) && !number.is_empty() && number.iter().all(u8::is_ascii_digit)
}

impl fmt::Display for RestoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&nono_sys::hex::encode(&self.0))
    }
}

/// Description of a restore. Snapshots are named as the caller names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRecord {
    pub id: RestoreId,
    pub target: String,
    pub safety: String,
    pub keep_changed_since: Vec<String>,
    pub force: bool,
    pub roots: Vec<PathBuf>,
    pub selection: Selection,
    pub except: Vec<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: the restore journal is damaged: {source}", path.display())]
    Damaged { path: PathBuf, source: Malformed },
    #[error("{}: complete the interrupted restore first", path.display())]
    Unfinished { path: PathBuf },
}

/// A journal on disk.
#[derive(Debug)]
#[must_use = "a restore that is done must finish its journal"]
pub struct Journal {
    path: PathBuf,
    pub record: JournalRecord,
}

impl Journal {
    /// Publish the journal. From now on an interrupted restore is completed by the next operation.
    pub fn begin(path: &Path, record: JournalRecord) -> Result<Journal, JournalError> {
        let error = |source| JournalError::Io { path: path.to_path_buf(), source };
        if fs::symlink_metadata(path).is_ok() {
            return Err(JournalError::Unfinished { path: path.to_path_buf() });
        }
        file::replace(path, &record.encode(), file::Sync::Yes).map_err(error)?;
        Ok(Journal { path: path.to_path_buf(), record })
    }

    /// Journal of an interrupted restore, if there is one.
    pub fn load(path: &Path) -> Result<Option<Journal>, JournalError> {
        let error = |source| JournalError::Io { path: path.to_path_buf(), source };
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let open = fs::OpenOptions::new().read(true).custom_flags(nofollow).open(path);
        let Some(file) = file::existing(open).map_err(error)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(MAX_SIZE).read_to_end(&mut bytes).map_err(error)?;
        let record = JournalRecord::decode(&bytes)
            .map_err(|source| JournalError::Damaged { path: path.to_path_buf(), source })?;
        Ok(Some(Journal { path: path.to_path_buf(), record }))
    }

    /// Remove the journal: the restore is complete, and its result is recorded elsewhere.
    pub fn finish(self) -> Result<(), JournalError> {
        let remove = || {
            disk::step()?;
            fs::remove_file(&self.path)?;
            file::sync_parent(&self.path)
        };
        remove().map_err(|source| JournalError::Io { path: self.path.clone(), source })
    }
}

impl JournalRecord {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::onto(MAGIC.to_vec());
        out.raw(&self.id.0);
        out.bytes(self.target.as_bytes());
        out.bytes(self.safety.as_bytes());
        let write_path = |path: &PathBuf, out: &mut Writer| out.bytes(path.as_os_str().as_bytes());
        out.list(&self.keep_changed_since, |base, out| out.bytes(base.as_bytes()));
        out.byte(u8::from(self.force));
        out.list(&self.roots, write_path);
        match &self.selection {
            Selection::All => out.byte(0),
            Selection::Paths(paths) => {
                out.byte(1);
                out.list(paths, write_path);
            }
        }
        out.list(&self.except, write_path);
        let mut bytes = out.finish();
        let sum = tagged(b"nono journal\0", &[&bytes]);
        bytes.extend_from_slice(&sum);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<JournalRecord, Malformed> {
        let (body, sum) = bytes.split_last_chunk::<32>().ok_or(Malformed("cut short"))?;
        if tagged(b"nono journal\0", &[body]) != *sum {
            return Err(Malformed("the checksum"));
        }
        let mut from = Reader::new(body);
        if from.raw(MAGIC.len())? != MAGIC {
            return Err(Malformed("the version of a journal"));
        }
        let record = JournalRecord {
            id: RestoreId(from.array()?),
            target: from.text()?,
            safety: from.text()?,
            keep_changed_since: from.list(Reader::text)?,
            force: flag(&mut from)?,
            roots: from.list(read_path)?,
            selection: if flag(&mut from)? {
                Selection::Paths(from.list(read_path)?)
            } else {
                Selection::All
            },
            except: from.list(read_path)?,
        };
        from.end()?;
        Ok(record)
    }
}

fn flag(from: &mut Reader<'_>) -> Result<bool, Malformed> {
    match from.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed("a flag")),
    }
}

/// Read a path that is absolute and has no `..`.
fn read_path(from: &mut Reader<'_>) -> Result<PathBuf, Malformed> {
    let path = PathBuf::from(std::ffi::OsString::from_vec(from.bytes()?.to_vec()));
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if path.is_absolute() && plain { Ok(path) } else { Err(Malformed("a path")) }
}
