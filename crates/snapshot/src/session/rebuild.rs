//! Rebuilds a damaged record from the manifests, each of which has its own checksum and names its id, time and roots.
//! The new record lists the readable snapshots; the others are lost, and named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{
    ASIDE, LateRoot, RecordSlot, Recorded, Result, Session, SessionError, SessionHold, SnapshotList,
};
use crate::file::{self, Sync};
use crate::hash::content_hash;
use crate::manifest::{ManifestBody, SnapshotId};
use crate::node::Time;
use crate::time;

/// Result of replacing a damaged record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// Path to which the damaged record was moved.
    pub aside: PathBuf,
    pub what: String,
    /// Number of snapshots in the new record.
    pub snapshots: usize,
    /// Unreadable manifests: their snapshots are lost.
    pub lost: Vec<PathBuf>,
}

/// A readable manifest.
struct Readable {
    recorded: Recorded,
    sheet: ManifestBody,
    modified: SystemTime,
}

/// Everything known from the manifests.
#[derive(Default)]
pub(super) struct Rebuilt {
    pub(super) record: SnapshotList,
    pub(super) lost: Vec<PathBuf>,
}

impl Session {
    /// Make a record of the readable manifests.
    pub(super) fn rebuild(&self) -> Result<Rebuilt> {
        let (mut numbered, mut others) = (BTreeMap::<u32, Readable>::new(), Vec::new());
        let mut lost = Vec::new();
        for path in self.manifest_files()? {
            let Some(one) = self.readable(&path)? else {
                lost.push(path);
                continue;
            };
            match one.sheet.id {
                SnapshotId::Safety(_) => others.push(one),
                // A path was purged, and the process killed before it removed the old manifest: the later one counts.
                SnapshotId::Number(number) => match numbered.get(&number) {
                    Some(known) if known.modified > one.modified => {}
                    _ => drop(numbered.insert(number, one)),
                },
            }
        }
        others.sort_by(|a, b| (a.modified, &a.sheet.timestamp).cmp(&(b.modified, &b.sheet.timestamp)));
        Ok(Rebuilt { record: record_of(numbered.into_values().collect(), others), lost })
    }

    /// All files in the manifest folders, by name.
    fn manifest_files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for name in ["snapshots", "safety"] {
            let dir = self.dir.join(name);
            for path in file::entries(&dir).map_err(SessionError::io(&dir))? {
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if !file::is_temp(file.as_bytes()) && !file.contains(ASIDE) {
                    files.push(path);
                }
            }
        }
        files.sort();
        Ok(files)
    }

    /// Read a manifest; `None` if it is damaged.
    fn readable(&self, path: &Path) -> Result<Option<Readable>> {
        let bytes = match file::read(path) {
            // Not a file, or removed meanwhile.
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidData) =>
            {
                return Ok(None);
            }
            other => other.map_err(SessionError::io(path))?,
        };
        let modified = path.symlink_metadata().and_then(|meta| meta.modified());
        let (Ok(sheet), Ok(modified)) = (ManifestBody::decode(&bytes), modified) else { return Ok(None) };
        let file = path.strip_prefix(&self.dir).unwrap_or(path).to_string_lossy().into_owned();
        if !super::is_manifest_name(&file) {
            return Ok(None);
        }
        let recorded = Recorded::new(&sheet, file, content_hash(&bytes));
        Ok(Some(Readable { recorded, sheet, modified }))
    }

    /// Replace a damaged record by a rebuilt one, and set it and unreadable manifests aside. `None`: it is not damaged.
    pub(crate) fn mend(&self, _held: &SessionHold) -> Result<Option<Mended>> {
        let RecordSlot::Damaged { what, bytes } = self.find_record()? else { return Ok(None) };
        let Rebuilt { record, lost } = self.rebuild()?;
        let path = self.record_path();
        let aside = aside(&path);
        // The damaged record is replaced, so there is one at every moment.
        file::replace(&aside, &bytes, Sync::Yes).map_err(SessionError::io(&aside))?;
        for manifest in &lost {
            std::fs::rename(manifest, self::aside(manifest)).map_err(SessionError::io(manifest))?;
        }
        if record.snapshots.is_empty() {
            // A session of which nothing is left begins anew.
            file::remove(&path).map_err(SessionError::io(&path))?;
        } else {
            self.save_record(&record, Sync::Yes)?;
        }
        Ok(Some(Mended { aside, what, snapshots: record.snapshots.len(), lost }))
    }

    /// Damage of the record, the number of readable snapshots, and the unreadable manifests.
    pub(crate) fn damage(&self) -> Result<Option<(String, usize, Vec<PathBuf>)>> {
        let RecordSlot::Damaged { what, .. } = self.find_record()? else { return Ok(None) };
        let Rebuilt { record, lost } = self.rebuild()?;
        Ok(Some((what, record.snapshots.len(), lost)))
    }

    /// The record, or without one what the manifests say: what a collection must keep.
    pub(crate) fn record_or_manifests(&self) -> Result<Option<SnapshotList>> {
        match self.record()? {
            Some(record) => Ok(Some(record)),
            None => Ok(Some(self.rebuild()?.record)),
        }
    }

    /// Manifests that the record names and that cannot be read.
    pub fn lost_manifests(&self) -> Result<Vec<(SnapshotId, PathBuf)>> {
        let Some(record) = self.record()? else { return Ok(Vec::new()) };
        let mut lost = Vec::new();
        for (recorded, sheet) in self.sheets(&record) {
            if sheet?.is_none() {
                lost.push((recorded.snapshot(), self.manifest_path(recorded)));
            }
        }
        Ok(lost)
    }
}

/// New name for a damaged file: beside the old one, with the time in it.
pub fn aside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    let stamp: String = time::now_iso().chars().filter(char::is_ascii_alphanumeric).collect();
    name.push(format!("{ASIDE}{stamp}"));
    let first = path.with_file_name(&name);
    let free = |path: &PathBuf| path.symlink_metadata().is_err();
    let more = |count: u32| {
        let mut name = name.clone();
        name.push(format!("-{count}"));
        path.with_file_name(name)
    };
    std::iter::once(first.clone()).chain((2..1000).map(more)).find(free).unwrap_or(first)
}

/// Make a record: numbered snapshots by number, each other one after the last one taken before it.
fn record_of(numbered: Vec<Readable>, others: Vec<Readable>) -> SnapshotList {
    let mut roots: Vec<PathBuf> = Vec::new();
    let mut late = Vec::new();
    for (at, one) in numbered.iter().enumerate() {
        for root in
            one.sheet.state.roots.iter().filter(|root| !roots.contains(&root.path)).collect::<Vec<_>>()
        {
            roots.push(root.path.clone());
            if let (true, SnapshotId::Number(first)) = (at > 0, &one.recorded.id) {
                late.push(LateRoot { path: root.path.clone(), first: *first });
            }
        }
    }
    if numbered.is_empty() {
        let all = others.iter().flat_map(|one| &one.sheet.state.roots).map(|root| root.path.clone());
        roots.extend(all);
        roots.dedup();
    }
    roots.sort();
    // The start is unknown: with time 0 every file counts as changed since, so that none is trusted unread.
    let mut record = SnapshotList { late, ..SnapshotList::new(roots, Time { seconds: 0, nanos: 0 }) };
    let mut others = others.into_iter().peekable();
    let mut numbered = numbered.into_iter().peekable();
    while let Some(one) = numbered.next() {
        record.snapshots.push(one.recorded);
        let next = numbered.peek().map(|next| next.modified);
        while let Some(other) = others.next_if(|other| next.is_none_or(|next| other.modified < next)) {
            record.snapshots.push(other.recorded);
        }
    }
    record.snapshots.extend(others.map(|one| one.recorded));
    record
}
