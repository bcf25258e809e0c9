//! A session folder: the record of its snapshots, and the manifests.
//!
//! The record publishes snapshots: a manifest that it does not name does not count, and one that differs from what it
//! names is refused. The record is replaced as a whole, so a crash leaves the old or the new one. A damaged record is
//! rebuilt from the manifests (`rebuild`).

mod kept;
mod manifests;
pub(crate) mod rebuild;
mod record_defect;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::file::{self, Sync};
use crate::hash::{ContentHash, MerkleRoot, StateRoot, content_hash};
use crate::manifest::{ManifestBody, ManifestDefect, SnapshotId};
use crate::metadata::SessionMetadata;
use crate::node::Time;
use crate::paths;
use crate::unlock;

use record_defect::RecordDefect;

pub use rebuild::{Mended, aside};

/// Part of the names of damaged files that were set aside.
pub(crate) const ASIDE: &str = ".damaged-";

/// Result with [`SessionError`], unless another error is named.
pub(crate) type Result<T, E = SessionError> = std::result::Result<T, E>;

/// Error with a session folder.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is damaged: {what}", path.display())]
    Record { path: PathBuf, what: String },
    #[error("no snapshot {id} in {}", dir.display())]
    NoSnapshot { id: SnapshotId, dir: PathBuf },
    #[error("snapshot {id} cannot be restored: its contents were removed to save space")]
    Thinned { id: SnapshotId },
    #[error("cannot use {}: {defect}", path.display())]
    Manifest { path: PathBuf, defect: ManifestDefect },
    #[error("snapshot {id} is lost: its manifest {} is missing", path.display())]
    Lost { id: SnapshotId, path: PathBuf },
    #[error("cannot restore permissions changed for reading ({}): {source}", path.display())]
    StaysOpen { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {what}", path.display())]
    Metadata { path: PathBuf, what: String },
}

impl SessionError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> SessionError {
        move |source| SessionError::Io { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, what: impl std::fmt::Display) -> SessionError {
        SessionError::Record { path: path.to_owned(), what: what.to_string() }
    }
}

/// A snapshot in the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    #[serde(flatten)]
    pub id: SnapshotId,
    pub timestamp: String,
    pub merkle_root: MerkleRoot,
    pub state_root: StateRoot,
    /// File of the manifest, relative to the session folder; its digest follows.
    file: String,
    pub manifest: ContentHash,
    /// Whether it survives a power loss, and not only the end of the process.
    pub durable: bool,
    /// Whether its content was dropped; number and digests stay.
    pub thinned: bool,
}

impl Recorded {
    /// A new snapshot, whose manifest is in `file`.
    fn new(sheet: &ManifestBody, file: String, manifest: ContentHash) -> Recorded {
        Recorded {
            id: sheet.id.clone(),
            timestamp: sheet.timestamp.clone(),
            merkle_root: sheet.merkle_root(),
            state_root: sheet.state_root(),
            file,
            manifest,
            durable: false,
            thinned: false,
        }
    }

    pub fn snapshot(&self) -> SnapshotId {
        self.id.clone()
    }
}

/// Record of all snapshots, in the order they were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotList {
    pub format: u32,
    #[serde(with = "paths::list")]
    pub roots: Vec<PathBuf>,
    /// Start of the session: seconds and nanoseconds. Files changed since then are read at each capture.
    pub(crate) started: (i64, u32),
    /// Roots that the first snapshot does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<LateRoot>,
    pub snapshots: Vec<Recorded>,
    checksum: String,
}

/// A root added to a running session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateRoot {
    #[serde(with = "paths")]
    pub path: PathBuf,
    /// First snapshot that has it.
    pub first: u32,
}

/// Format without late roots; the next constant is the one with them.
const FORMAT: u32 = 1;
const FORMAT_LATE: u32 = 2;

/// File found in place of a record.
enum RecordSlot {
    None,
    Good(SnapshotList),
    Damaged { what: String, bytes: Vec<u8> },
}

impl SnapshotList {
    pub(crate) fn new(roots: Vec<PathBuf>, started: Time) -> SnapshotList {
        SnapshotList {
            format: FORMAT,
            roots,
            started: (started.seconds, started.nanos),
            ..SnapshotList::default()
        }
    }

    pub(crate) fn started(&self) -> Time {
        Time { seconds: self.started.0, nanos: self.started.1 }
    }

    pub fn find(&self, id: &SnapshotId) -> Option<&Recorded> {
        self.snapshots.iter().find(|recorded| recorded.id == *id)
    }

    pub(crate) fn first_roots(&self) -> Vec<PathBuf> {
        let late = |root: &&PathBuf| self.late.iter().any(|late| late.path == **root);
        self.roots.iter().filter(|root| !late(root)).cloned().collect()
    }

    /// Number of the last numbered snapshot.
    pub fn last_number(&self) -> Option<u32> {
        self.snapshots.iter().rev().find_map(|recorded| recorded.id.number())
    }

    /// Number of the last numbered snapshot that was not dropped.
    pub fn newest(&self) -> Option<u32> {
        let mut there = self.snapshots.iter().rev().filter(|recorded| !recorded.thinned);
        there.find_map(|recorded| recorded.id.number())
    }

    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let format = if self.late.is_empty() { FORMAT } else { FORMAT_LATE };
        let mut record = SnapshotList { format, checksum: String::new(), ..self.clone() };
        record.checksum = content_hash(&serde_json::to_vec(&record)?).hex();
        let mut bytes = serde_json::to_vec_pretty(&record)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Decode a record. There is one canonical form; anything else is damage.
    fn decode(bytes: &[u8]) -> Result<SnapshotList, RecordDefect> {
        let record: SnapshotList = serde_json::from_slice(bytes)?;
        if ![FORMAT, FORMAT_LATE].contains(&record.format) {
            return Err(RecordDefect::Format(record.format));
        }
        if !record.snapshots.iter().all(|recorded| is_manifest_name(&recorded.file)) {
            return Err(RecordDefect::File);
        }
        if !record.late.iter().all(|late| record.roots.contains(&late.path)) {
            return Err(RecordDefect::LateRoot);
        }
        match record.encode() {
            Ok(encoded) if encoded == bytes => Ok(record),
            _ => Err(RecordDefect::Checksum),
        }
    }
}

/// Format number, if these bytes are an intact record of a later version, which must not be modified.
fn is_of_a_later_format(bytes: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct SessionFormat {
        format: u32,
    }
    let found: SessionFormat = serde_json::from_slice(bytes).ok()?;
    (found.format > FORMAT_LATE).then_some(found.format)
}

/// A folder with snapshots.
#[derive(Clone, Debug)]
pub struct Session {
    dir: PathBuf,
}

/// Lock on a session for one operation; released on drop, and at the end of the process.
#[derive(Debug)]
#[must_use]
pub(crate) struct SessionHold(File);

impl Drop for SessionHold {
    fn drop(&mut self) {
        // Closing is not enough: a process being forked by another thread has the descriptor until it executes.
        let _ = self.0.unlock();
    }
}

impl Session {
    pub fn new(dir: impl Into<PathBuf>) -> Session {
        Session { dir: dir.into() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The same folder by its real path.
    pub(crate) fn resolved(&self) -> Result<Session> {
        let dir = self.dir.canonicalize().map_err(SessionError::io(&self.dir))?;
        Ok(Session { dir })
    }

    pub(crate) fn create(&self) -> Result<()> {
        file::make_dirs(&self.dir).map_err(SessionError::io(&self.dir))?;
        self.create_parts()
    }

    /// Create the subfolders of an existing session folder.
    pub(crate) fn create_parts(&self) -> Result<()> {
        for name in ["snapshots", "safety"] {
            let dir = self.dir.join(name);
            file::make_dir(&dir).map_err(SessionError::io(&dir))?;
        }
        Ok(())
    }

    /// Remove what killed processes left: temporary files, unrecorded manifests. A damaged record is replaced first.
    pub(crate) fn tidy(&self, held: &SessionHold) -> Result<()> {
        let io = || SessionError::io(&self.dir);
        let record = match self.find_record()? {
            RecordSlot::None => None,
            RecordSlot::Good(record) => Some(record),
            RecordSlot::Damaged { .. } => {
                self.mend(held)?;
                self.record()?
            }
        };
        // Only a session that has a snapshot can have changed permissions.
        let roots = record.as_ref().map(|record| record.roots.as_slice()).unwrap_or_default();
        unlock::close_again(&self.unlocked_path(), roots)
            .map_err(|error| SessionError::StaysOpen { path: error.path, source: error.source })?;
        for dir in [self.dir.clone(), self.dir.join("snapshots"), self.dir.join("safety")] {
            file::sweep_temps(&dir, "").map_err(io())?;
        }
        // Without a record it is unknown which manifests count; the next baseline reuses their names.
        let Some(record) = record else { return Ok(()) };
        let there = record.snapshots.iter().filter(|recorded| !recorded.thinned);
        let named: std::collections::HashSet<PathBuf> =
            there.map(|recorded| self.manifest_path(recorded)).collect();
        for dir in ["snapshots", "safety"] {
            for entry in std::fs::read_dir(self.dir.join(dir)).map_err(io())? {
                let path = entry.map_err(io())?.path();
                let aside = path.file_name().is_some_and(|name| name.to_string_lossy().contains(ASIDE));
                if !aside && !named.contains(&path) {
                    file::remove(&path).map_err(SessionError::io(&path))?;
                }
            }
        }
        Ok(())
    }

    fn lock_file(&self) -> Result<(PathBuf, File)> {
        let path = self.dir.join("lock");
        let file = nono_sys::fs::open_lock(&path).map_err(SessionError::io(&path))?;
        Ok((path, file))
    }

    /// Wait for other operations on this session, and lock it.
    pub(crate) fn hold(&self) -> Result<SessionHold> {
        let (path, file) = self.lock_file()?;
        file.lock().map_err(SessionError::io(&path))?;
        Ok(SessionHold(file))
    }

    /// Lock it unless another operation has it.
    pub(crate) fn try_hold(&self) -> Result<Option<SessionHold>> {
        let (path, file) = self.lock_file()?;
        match file.try_lock() {
            Ok(()) => Ok(Some(SessionHold(file))),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(source)) => Err(SessionError::Io { path, source }),
        }
    }

    /// Whether an operation on this session is running, in this process or another.
    pub(crate) fn is_held(&self) -> bool {
        let Ok(file) = File::open(self.dir.join("lock")) else { return false };
        nono_sys::fs::is_locked(&file).unwrap_or(false)
    }

    /// Path of the log of changed permissions.
    pub(crate) fn unlocked_path(&self) -> PathBuf {
        self.dir.join("unlocked")
    }

    fn record_path(&self) -> PathBuf {
        self.dir.join("record.json")
    }

    /// The record; `None` for a folder without any snapshot. A damaged one is rebuilt from the readable manifests, and
    /// replaced by the next operation that locks the session.
    pub fn record(&self) -> Result<Option<SnapshotList>> {
        match self.find_record()? {
            RecordSlot::None => Ok(None),
            RecordSlot::Good(record) => Ok(Some(record)),
            RecordSlot::Damaged { what, .. } => {
                let record = self.rebuild()?.record;
                if record.snapshots.is_empty() {
                    return Err(SessionError::Record { path: self.record_path(), what });
                }
                Ok(Some(record))
            }
        }
    }

    /// Whether the record on disk is damaged.
    pub fn is_damaged(&self) -> bool {
        matches!(self.find_record(), Ok(RecordSlot::Damaged { .. }))
    }

    /// Damage of the record on disk.
    pub(crate) fn record_damage(&self) -> Result<Option<SessionError>> {
        let path = self.record_path();
        match self.find_record()? {
            RecordSlot::Damaged { what, .. } => Ok(Some(SessionError::Record { path, what })),
            RecordSlot::None | RecordSlot::Good(_) => Ok(None),
        }
    }

    fn find_record(&self) -> Result<RecordSlot> {
        let path = self.record_path();
        let read = file::read_existing(&path).map_err(SessionError::io(&path))?;
        let Some(bytes) = read else { return Ok(RecordSlot::None) };
        match SnapshotList::decode(&bytes) {
            Ok(record) => Ok(RecordSlot::Good(record)),
            Err(defect) => match is_of_a_later_format(&bytes) {
                Some(format) => Err(SessionError::damaged(&path, RecordDefect::Format(format))),
                None => Ok(RecordSlot::Damaged { what: defect.to_string(), bytes }),
            },
        }
    }

    pub(crate) fn save_record(&self, record: &SnapshotList, sync: Sync) -> Result<()> {
        let path = self.record_path();
        let bytes = record.encode().map_err(|error| SessionError::damaged(&path, error))?;
        file::replace(&path, &bytes, sync).map_err(SessionError::io(&path))
    }

    /// Path of a snapshot's manifest.
    pub fn manifest_path(&self, recorded: &Recorded) -> PathBuf {
        self.dir.join(&recorded.file)
    }

    /// Name for a new manifest: never that of a recorded one, which stays until the record changes.
    fn new_manifest(&self, sheet: &ManifestBody, digest: ContentHash) -> String {
        let plain = match &sheet.id {
            SnapshotId::Number(number) => format!("snapshots/{number:03}"),
            SnapshotId::Safety(id) => format!("safety/{id}"),
        };
        let file = format!("{plain}.json");
        if self.dir.join(&file).exists() { format!("{plain}-{}.json", &digest.hex()[..8]) } else { file }
    }

    /// Write a manifest. It counts once the record names it.
    pub(crate) fn save_manifest(&self, sheet: &ManifestBody) -> Result<Recorded> {
        let bytes = sheet.encode().map_err(|error| SessionError::damaged(&self.dir, error))?;
        let digest = content_hash(&bytes);
        let recorded = Recorded::new(sheet, self.new_manifest(sheet, digest), digest);
        let path = self.manifest_path(&recorded);
        // On disk before the record that names it, which must never lead to an empty file.
        file::replace(&path, &bytes, Sync::Whole).map_err(SessionError::io(&path))?;
        Ok(recorded)
    }

    /// Make a manifest survive a power loss.
    pub(crate) fn sync_manifest(&self, recorded: &Recorded) -> Result<()> {
        let path = self.manifest_path(recorded);
        let sync = || {
            let file = File::open(&path)?;
            crate::disk::step()?;
            file.sync_data()?;
            file::sync_parent(&path)
        };
        sync().map_err(SessionError::io(&path))
    }

    /// Make the folder's own name survive a power loss.
    pub(crate) fn sync_name(&self) -> Result<()> {
        file::sync_parent(&self.dir).map_err(SessionError::io(&self.dir))
    }

    /// Read a manifest, and check it against the record.
    pub(crate) fn sheet(&self, record: &SnapshotList, id: &SnapshotId) -> Result<ManifestBody> {
        let Some(recorded) = record.find(id) else {
            return Err(SessionError::NoSnapshot { id: id.clone(), dir: self.dir.clone() });
        };
        if recorded.thinned {
            return Err(SessionError::Thinned { id: id.clone() });
        }
        let path = self.manifest_path(recorded);
        let Some(bytes) = file::read_existing(&path).map_err(SessionError::io(&path))? else {
            return Err(SessionError::Lost { id: id.clone(), path });
        };
        let refuse = |defect| SessionError::Manifest { path: path.clone(), defect };
        let sheet = ManifestBody::decode(&bytes).map_err(refuse)?;
        if content_hash(&bytes) != recorded.manifest || sheet.id != *id {
            return Err(refuse(ManifestDefect::NotRecorded));
        }
        if sheet.state.roots.iter().any(|root| !record.roots.contains(&root.path)) {
            return Err(refuse(ManifestDefect::OtherRoots));
        }
        Ok(sheet)
    }

    pub fn save_metadata(&self, metadata: &SessionMetadata) -> Result<()> {
        let path = self.dir.join("session.json");
        let json = metadata.to_json().map_err(|error| metadata_error(&path, error))?;
        file::replace(&path, json.as_bytes(), Sync::Yes).map_err(SessionError::io(&path))
    }

    pub fn load_metadata(&self) -> Result<SessionMetadata> {
        let path = self.dir.join("session.json");
        let bytes = file::read(&path).map_err(SessionError::io(&path))?;
        serde_json::from_slice(&bytes).map_err(|error| metadata_error(&path, error))
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn metadata_error(path: &Path, error: serde_json::Error) -> SessionError {
    SessionError::Metadata { path: path.to_owned(), what: error.to_string() }
}

/// Whether it is `snapshots/…` or `safety/…` with one component, as this module makes them.
fn is_manifest_name(file: &str) -> bool {
    let name = file.strip_prefix("snapshots/").or_else(|| file.strip_prefix("safety/"));
    name.is_some_and(|name| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
        !name.starts_with('.') && name.bytes().all(plain)
    })
}
