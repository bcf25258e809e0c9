//! Finding sessions, and opening one of them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use nono_history::{Done, removal};
use nono_snapshot::session::SessionError;
use nono_snapshot::{Coverage, Lost, ManagerOptions, SnapshotError, SnapshotId, SnapshotManager};

use super::entry::{SessionEntry, Status};
use super::error::RollbackError;
use super::live_lock::is_live;
use super::quota::StoreQuota;
use super::settings::RollbackSettings;
use super::{folder, prune, seals, sequence};
use crate::audit::Author;
use crate::{own_file, session_ref};

/// Finds sessions below nono's state folder: `rollbacks/<id>/`, with one store for all of them in `store/`.
#[derive(Clone, Debug)]
pub struct Catalogue {
    pub(super) state_dir: PathBuf,
    /// Author under whom restores are recorded.
    pub(super) author: Option<Author>,
}

/// One snapshot of a session, for its timeline.
#[derive(Clone, Debug)]
pub struct SnapshotInfo {
    pub id: SnapshotId,
    pub timestamp: String,
    /// The content was removed by thinning.
    pub thinned: bool,
    pub durable: bool,
}

/// An opened session.
#[derive(Debug)]
pub struct RollbackSession {
    pub(super) entry: SessionEntry,
    pub(super) manager: SnapshotManager,
    pub(super) catalogue: Catalogue,
    /// Result of an interrupted restore that was completed, until it is taken.
    pub(super) recovered: Option<Done>,
    /// Opened by the process that runs the session.
    pub(super) running: bool,
}

impl Catalogue {
    pub fn new(state_dir: impl Into<PathBuf>) -> Catalogue {
        Catalogue { state_dir: state_dir.into(), author: None }
    }

    pub fn store_dir(&self) -> PathBuf {
        self.state_dir.join("store")
    }

    pub fn sessions_dir(&self) -> PathBuf {
        self.state_dir.join("rollbacks")
    }

    /// All sessions, newest first. An unreadable folder is reported in the second list and does not fail the call.
    pub fn list(&self) -> Result<(Vec<SessionEntry>, Vec<RollbackError>), RollbackError> {
        let (mut sessions, mut problems) = (Vec::new(), Vec::new());
        for place in self.places()? {
            match read_place(&place) {
                Ok(entry) => sessions.push(entry),
                // Pruned while the list was made.
                Err(_) if place.symlink_metadata().is_err() => {}
                // Just beginning, or killed before its command ran: nothing in it.
                Err(RollbackError::NoSession { .. }) if is_live(&place) || prune::is_unused(&place) => {}
                Err(error) => problems.push(error),
            }
        }
        sessions.sort_by_cached_key(|entry| std::cmp::Reverse(sequence::order(entry)));
        Ok((sessions, problems))
    }

    /// Entries of `rollbacks/` except nono's own files, by name.
    pub(super) fn places(&self) -> Result<Vec<PathBuf>, RollbackError> {
        let dir = self.sessions_dir();
        own_file::entries(&dir, |entry| Ok(!is_ours(&entry.file_name()))).map_err(RollbackError::io(&dir))
    }

    /// Find a session by full id, unique prefix of an id, name, `last`, or the path of a session folder of any origin.
    pub fn find(&self, text: &str) -> Result<SessionEntry, RollbackError> {
        if text.contains('/') {
            return self.at(Path::new(text));
        }
        let (sessions, problems) = self.list()?;
        if text == "last" {
            let none = || problems.into_iter().next().unwrap_or(RollbackError::NoSessions);
            return sessions.into_iter().next().ok_or_else(none);
        }
        if let Some(at) = session_ref::exact(&sessions, text) {
            return sessions.into_iter().nth(at).ok_or(RollbackError::NoSessions);
        }
        // An unreadable session: report the reason, not that it is missing.
        let dir = self.sessions_dir();
        if let Some(place) = self.places()?.into_iter().find(|place| *place == dir.join(text)) {
            return read_place(&place);
        }
        let folder = Path::new(text);
        let missing = || RollbackError::NotFound { text: text.to_owned() };
        let mut found = session_ref::beginning(sessions, text);
        match found.len() {
            0 if folder.join(folder::RECORD).is_file() => self.at(folder),
            0 | 1 => found.pop().ok_or_else(missing),
            _ => {
                let ids = found.into_iter().map(|entry| entry.id).collect();
                Err(RollbackError::Ambiguous { text: text.to_owned(), ids })
            }
        }
    }

    /// Session in this folder, wherever it is.
    fn at(&self, path: &Path) -> Result<SessionEntry, RollbackError> {
        let dir = path.canonicalize().map_err(RollbackError::io(path))?;
        if !dir.is_dir() {
            return Err(RollbackError::NoSession { path: dir, what: "it is not a directory" });
        }
        let ours = self.sessions_dir().canonicalize().is_ok_and(|ours| dir.parent() == Some(&ours));
        if ours {
            return read_place(&dir);
        }
        // A session kept elsewhere is known by its id in `rollbacks/`.
        let known = dir.file_name().map(|name| self.sessions_dir().join(name));
        let known = known.filter(|place| {
            folder::follow(place).is_ok_and(|there| there.canonicalize().ok().as_ref() == Some(&dir))
        });
        known.map_or_else(|| folder::read_session(&dir, None), |place| read_place(&place))
    }

    /// Sessions whose roots overlap `dir`, newest first. Sessions of another format have nothing to restore.
    pub fn here(&self, dir: &Path) -> Result<Vec<SessionEntry>, RollbackError> {
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let (mut sessions, _) = self.list()?;
        sessions.retain(|entry| {
            entry.metadata.tracked_paths.iter().any(|path| overlap(path, &dir))
                && entry.dir.join(folder::RECORD).is_file()
        });
        Ok(sessions)
    }

    /// Other sessions that ran at the same time on overlapping roots, and changed something or still run: their changes
    /// cannot be told from those of this session.
    pub fn beside(&self, entry: &SessionEntry) -> Result<Vec<SessionEntry>, RollbackError> {
        let (mut sessions, _) = self.list()?;
        let meets = |other: &SessionEntry| {
            let mut roots = other.metadata.tracked_paths.iter();
            roots.any(|path| entry.metadata.tracked_paths.iter().any(|own| overlap(path, own)))
        };
        // The end of an interrupted session is not known.
        let before_end = |time: &str, of: &SessionEntry| {
            of.metadata.ended.as_deref().map_or(of.status == Status::Live, |end| time < end)
        };
        sessions.retain(|other| {
            other.id != entry.id
                && before_end(&other.metadata.started, entry)
                && before_end(&entry.metadata.started, other)
                && (other.status == Status::Live || !other.is_empty())
                && meets(other)
        });
        Ok(sessions)
    }

    /// Default session for a directory: the last one that worked there and changed something, or else the last one that
    /// worked there.
    pub fn last_here(&self, dir: &Path) -> Result<SessionEntry, RollbackError> {
        let mut here = self.here(dir)?;
        if here.is_empty() {
            let last = self.list()?.0.into_iter().next().map(Box::new);
            return Err(RollbackError::NoSessionHere { dir: dir.to_owned(), last });
        }
        let changed = here.iter().position(|entry| !entry.is_empty()).unwrap_or(0);
        Ok(here.swap_remove(changed))
    }

    /// The session in this folder, which the report of its run names; no other session is looked at.
    pub fn ended(id: &str, dir: &Path) -> Result<SessionEntry, RollbackError> {
        folder::read_session(dir, Some(id))
    }

    pub fn open(&self, entry: SessionEntry) -> Result<RollbackSession, RollbackError> {
        let store = self.store_of(&entry);
        let options = ManagerOptions {
            quota: self.quota_of(&entry, &store).map(|quota| quota.quota()),
            store: Some(store),
            own: vec![self.state_dir.clone()],
            ..ManagerOptions::default()
        };
        let manager = SnapshotManager::resume(&entry.dir, options)?;
        Ok(RollbackSession { entry, manager, catalogue: self.clone(), recovered: None, running: false })
    }

    /// Quota of a session in a store of nono's; None if it has a store of its own.
    pub(super) fn quota_of(&self, entry: &SessionEntry, store: &Path) -> Option<StoreQuota> {
        // Unreadable settings must not prevent an undo.
        let settings = RollbackSettings::load(&self.state_dir.join("config.toml")).unwrap_or_default();
        if store == self.store_dir() {
            return Some(StoreQuota::new(self, &settings, None));
        }
        let dest = entry.dir.parent()?;
        let elsewhere = (dest.to_owned(), entry.id.clone());
        (store == dest.join("store") && !entry.foreign)
            .then(|| StoreQuota::new(self, &settings, Some(elsewhere)))
    }

    /// Store of a session that has none of its own: the common one, or the one next to it.
    pub(super) fn store_of(&self, entry: &SessionEntry) -> PathBuf {
        let beside = entry.dir.parent().map(|parent| parent.join("store"));
        let elsewhere = !self.is_home(&entry.dir);
        beside.filter(|store| elsewhere && store.is_dir()).unwrap_or_else(|| self.store_dir())
    }

    /// Whether this folder is in nono's own `rollbacks/`.
    pub(super) fn is_home(&self, dir: &Path) -> bool {
        let parent = dir.parent().map(Path::canonicalize);
        matches!((parent, self.sessions_dir().canonicalize()), (Some(Ok(parent)), Ok(home)) if parent == home)
    }

    pub fn pin(&self, entry: &SessionEntry, pinned: bool) -> Result<(), RollbackError> {
        folder::set_pinned(&entry.dir, pinned)
    }

    /// Running session, if any, whose roots overlap `roots`. `own`: session to ignore.
    pub(super) fn live_on(
        &self,
        roots: &[PathBuf],
        own: Option<&Path>,
    ) -> Result<Option<(String, PathBuf)>, RollbackError> {
        for place in self.places()? {
            let dir = folder::follow(&place).unwrap_or_else(|_| place.clone());
            if own == Some(&*dir) || !is_live(&dir) {
                continue;
            }
            let id = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Before its baseline, or if it is damaged, the roots stored when it began count; without those it counts
            // as overlapping.
            let known = read_place(&place).map(|entry| entry.metadata.tracked_paths).ok();
            let Some(tracked) = known.or_else(|| super::live_lock::roots(&dir)) else {
                return Ok(Some((id, dir)));
            };
            if let Some(root) = tracked.into_iter().find(|path| roots.iter().any(|root| overlap(path, root)))
            {
                return Ok(Some((id, root)));
            }
        }
        Ok(None)
    }
}

/// Session at a place in `rollbacks/`.
pub(super) fn read_place(place: &Path) -> Result<SessionEntry, RollbackError> {
    let strange = |what| RollbackError::NoSession { path: place.to_owned(), what };
    let meta = place.symlink_metadata().map_err(RollbackError::io(place))?;
    if !meta.is_dir() {
        return Err(strange("it is not a directory"));
    }
    let id =
        place.file_name().and_then(OsStr::to_str).ok_or_else(|| strange("its name is not valid UTF-8"))?;
    folder::read_session(&folder::follow(place)?, Some(id))
}

/// Whether this is one of nono's own files in `rollbacks/`, or the rest of an interrupted removal.
fn is_ours(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name == seals::FILE.as_bytes()
        || name == prune::LOCK.as_bytes()
        || name == prune::MARKER.as_bytes()
        || name == sequence::FILE.as_bytes()
        || removal::is_aside(name)
}

/// Whether the paths are equal or one contains the other.
pub fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

impl RollbackSession {
    pub fn entry(&self) -> &SessionEntry {
        &self.entry
    }

    /// Other sessions that ran on overlapping roots at the same time.
    pub fn beside(&self) -> Result<Vec<SessionEntry>, RollbackError> {
        self.catalogue.beside(&self.entry)
    }

    pub fn manager(&mut self) -> &mut SnapshotManager {
        &mut self.manager
    }

    /// Read access to the snapshot manager.
    pub fn engine(&self) -> &SnapshotManager {
        &self.manager
    }

    pub fn snapshots(&self) -> Result<Vec<SnapshotInfo>, RollbackError> {
        let record = self.record()?;
        let info = |recorded: nono_snapshot::session::Recorded| SnapshotInfo {
            id: recorded.snapshot(),
            timestamp: recorded.timestamp,
            thinned: recorded.thinned,
            durable: recorded.durable,
        };
        Ok(record.snapshots.into_iter().map(info).collect())
    }

    /// Last numbered snapshot; the baseline if there is no other.
    pub fn last(&self) -> Result<SnapshotId, RollbackError> {
        Ok(SnapshotId::Number(self.record()?.last_number().unwrap_or(0)))
    }

    pub fn coverage(&self, id: &SnapshotId) -> Result<Coverage, RollbackError> {
        let manifest = self.manager.load_whole(id).map_err(|error| self.no_snapshot(error))?;
        Ok(manifest.coverage)
    }

    /// Paths left out of the first snapshot that are gone or changed in the other.
    pub fn losses(&self, from: &SnapshotId, to: &SnapshotId) -> Result<Vec<Lost>, RollbackError> {
        self.manager.losses(from, to).map_err(|error| self.no_snapshot(error))
    }

    pub(super) fn record(&self) -> Result<nono_snapshot::session::SnapshotList, RollbackError> {
        let dir = self.entry.dir.clone();
        let missing = || RollbackError::NoSession { path: dir, what: "it has no record of snapshots" };
        self.manager.session().record()?.ok_or_else(missing)
    }

    /// Map an unknown snapshot to the session's own error.
    pub(super) fn no_snapshot(&self, error: SnapshotError) -> RollbackError {
        match error {
            SnapshotError::Session(SessionError::NoSnapshot { id: snapshot, .. }) => {
                RollbackError::NoSnapshot { id: self.entry.id.clone(), snapshot }
            }
            other => other.into(),
        }
    }
}
