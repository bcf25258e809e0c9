//! The sessions there are, and one of them opened.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use nono_history::removal;
use nono_snapshot::session::SessionError;
use nono_snapshot::{
    Coverage, Lost, ManagerOptions, SessionMetadata, SnapshotError, SnapshotId, SnapshotManager,
};

use super::error::RollbackError;
use super::live::is_live;
use super::restore::Done;
use super::room::Room;
use super::settings::Settings;
use super::{folder, prune, seals, sequence};
use crate::audit::Author;
use crate::pick::{self, Pickable};

/// Finds sessions below nono's state folder: `rollbacks/<id>/`, with one store for all of them in `store/`.
#[derive(Clone, Debug)]
pub struct Catalogue {
    pub(super) state_dir: PathBuf,
    /// Who is on record for restores.
    pub(super) author: Option<Author>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It runs now.
    Live,
    Finished,
    /// Its supervisor was killed. Until a later command ends it, the last snapshots may be missing; everything else is there.
    Interrupted,
}

/// One session in a list.
#[derive(Clone, Debug)]
pub struct SessionEntry {
    pub id: String,
    pub dir: PathBuf,
    pub status: Status,
    pub pinned: bool,
    pub metadata: SessionMetadata,
    /// The project it belongs to: the first tracked path that is a folder.
    pub project: PathBuf,
    /// Made by the library, by Python or by somebody else, wherever it is: never pruned.
    pub foreign: bool,
}

impl SessionEntry {
    /// Of a session that runs, for the one who runs it.
    pub(super) fn running(metadata: &SessionMetadata, dir: &Path) -> SessionEntry {
        SessionEntry {
            id: metadata.session_id.clone(),
            dir: dir.to_owned(),
            status: Status::Live,
            pinned: false,
            metadata: metadata.clone(),
            project: PathBuf::new(),
            foreign: false,
        }
    }

    /// It ended, and nothing of what it tracked is other than before.
    pub fn is_empty(&self) -> bool {
        self.status != Status::Live && self.metadata.is_empty()
    }

    /// It ended, and its last snapshot could not be taken: what it changed is not known.
    pub fn lacks_final(&self) -> bool {
        self.status == Status::Finished && !self.foreign && self.metadata.final_snapshot.is_none()
    }
}

impl Pickable for SessionEntry {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> Option<&str> {
        self.metadata.name.as_deref()
    }
}

/// One snapshot of a session, for its timeline.
#[derive(Clone, Debug)]
pub struct SnapshotInfo {
    pub id: SnapshotId,
    pub timestamp: String,
    /// Its content was given up to make room in time.
    pub thinned: bool,
    pub durable: bool,
}

/// A session that is opened.
#[derive(Debug)]
pub struct RollbackSession {
    pub(super) entry: SessionEntry,
    pub(super) manager: SnapshotManager,
    pub(super) catalogue: Catalogue,
    /// What completing a restore that was cut off did, until somebody asks.
    pub(super) recovered: Option<Done>,
    /// By the one who runs it, while it does.
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

    /// All of them, newest first. A folder that cannot be read is an entry of `problems`, not the end of the list.
    pub fn list(&self) -> Result<(Vec<SessionEntry>, Vec<RollbackError>), RollbackError> {
        let (mut sessions, mut problems) = (Vec::new(), Vec::new());
        for place in self.places()? {
            match read_place(&place) {
                Ok(entry) => sessions.push(entry),
                // It was pruned while the list was made.
                Err(_) if place.symlink_metadata().is_err() => {}
                // It begins just now, or was killed before its command ran: there is nothing in it.
                Err(RollbackError::NoSession { .. }) if is_live(&place) || prune::is_unused(&place) => {}
                Err(error) => problems.push(error),
            }
        }
        sessions.sort_by_cached_key(|entry| std::cmp::Reverse(sequence::order(entry)));
        Ok((sessions, problems))
    }

    /// What stands in `rollbacks/`, without our own files there, by name.
    pub(super) fn places(&self) -> Result<Vec<PathBuf>, RollbackError> {
        let dir = self.sessions_dir();
        let entries = match std::fs::read_dir(&dir) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(RollbackError::io(&dir))?,
        };
        let mut places = Vec::new();
        for entry in entries {
            let entry = entry.map_err(RollbackError::io(&dir))?;
            let name = entry.file_name();
            if !is_ours(&name) {
                places.push(entry.path());
            }
        }
        places.sort();
        Ok(places)
    }

    /// A full id, a unique beginning of one, a name, `last`, or the path of a session folder made by anybody.
    pub fn find(&self, text: &str) -> Result<SessionEntry, RollbackError> {
        if text.contains('/') {
            return self.at(Path::new(text));
        }
        let (sessions, problems) = self.list()?;
        if text == "last" {
            return newest(sessions, problems);
        }
        if let Some(at) = pick::exact(&sessions, text) {
            return sessions.into_iter().nth(at).ok_or(RollbackError::NoSessions);
        }
        // A session that is there and cannot be read: the reason, not that it is missing.
        let dir = self.sessions_dir();
        if let Some(place) = self.places()?.into_iter().find(|place| *place == dir.join(text)) {
            return read_place(&place);
        }
        let folder = Path::new(text);
        let missing = || RollbackError::NotFound { text: text.to_owned() };
        let mut found = pick::beginning(sessions, text);
        match found.len() {
            0 if folder.join(folder::RECORD).is_file() => self.at(folder),
            0 | 1 => found.pop().ok_or_else(missing),
            _ => {
                let ids = found.into_iter().map(|entry| entry.id).collect();
                Err(RollbackError::Ambiguous { text: text.to_owned(), ids })
            }
        }
    }

    /// The session in this folder, wherever it is.
    fn at(&self, path: &Path) -> Result<SessionEntry, RollbackError> {
        let dir = path.canonicalize().map_err(RollbackError::io(path))?;
        if !dir.is_dir() {
            return Err(RollbackError::NoSession { path: dir, what: "it is no folder" });
        }
        let ours = self.sessions_dir().canonicalize().is_ok_and(|ours| dir.parent() == Some(&ours));
        if ours {
            return read_place(&dir);
        }
        // The place of a session that was put elsewhere knows it by its id.
        let known = dir.file_name().map(|name| self.sessions_dir().join(name));
        let known = known.filter(|place| {
            folder::follow(place).is_ok_and(|there| there.canonicalize().ok().as_ref() == Some(&dir))
        });
        known.map_or_else(|| folder::read_session(&dir, None), |place| read_place(&place))
    }

    /// Sessions that tracked something around or below `dir`, newest first. One of another format has nothing to restore.
    pub fn here(&self, dir: &Path) -> Result<Vec<SessionEntry>, RollbackError> {
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let (mut sessions, _) = self.list()?;
        sessions.retain(|entry| {
            entry.metadata.tracked_paths.iter().any(|path| overlap(path, &dir))
                && entry.dir.join(folder::RECORD).is_file()
        });
        Ok(sessions)
    }

    /// Other sessions that worked in the same place while this one did, and changed something or still run: what they
    /// changed meanwhile cannot be told from what this one did.
    pub fn beside(&self, entry: &SessionEntry) -> Result<Vec<SessionEntry>, RollbackError> {
        let (mut sessions, _) = self.list()?;
        let meets = |other: &SessionEntry| {
            let mut roots = other.metadata.tracked_paths.iter();
            roots.any(|path| entry.metadata.tracked_paths.iter().any(|own| overlap(path, own)))
        };
        // When an interrupted one ended is not known.
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

    /// The last session that tracked something around or below `dir`; without one, the last of all.
    pub fn last_for(&self, dir: &Path) -> Result<SessionEntry, RollbackError> {
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let (sessions, problems) = self.list()?;
        let around =
            |entry: &&SessionEntry| entry.metadata.tracked_paths.iter().any(|path| overlap(path, &dir));
        match sessions.iter().find(around).cloned() {
            Some(entry) => Ok(entry),
            None => newest(sessions, problems),
        }
    }

    /// The session meant in a directory where none was named: the last one that worked there and changed something; where
    /// none did, the last one.
    pub fn last_here(&self, dir: &Path) -> Result<SessionEntry, RollbackError> {
        let mut here = self.here(dir)?;
        if here.is_empty() {
            let last = self.list()?.0.into_iter().next().map(Box::new);
            return Err(RollbackError::NoSessionHere { dir: dir.to_owned(), last });
        }
        let changed = here.iter().position(|entry| !entry.is_empty()).unwrap_or(0);
        Ok(here.swap_remove(changed))
    }

    pub fn open(&self, entry: SessionEntry) -> Result<RollbackSession, RollbackError> {
        let store = self.store_of(&entry);
        let options = ManagerOptions {
            quota: self.room_of(&entry, &store).map(|room| room.quota()),
            store: Some(store),
            own: vec![self.state_dir.clone()],
            ..ManagerOptions::default()
        };
        let manager = SnapshotManager::resume(&entry.dir, options)?;
        Ok(RollbackSession { entry, manager, catalogue: self.clone(), recovered: None, running: false })
    }

    /// The room of a session in a store of ours; nothing where it has a store of its own.
    pub(super) fn room_of(&self, entry: &SessionEntry, store: &Path) -> Option<Room> {
        // Settings that cannot be read must not stand between a person and an undo.
        let settings = Settings::load(&self.state_dir.join("config.toml")).unwrap_or_default();
        if store == self.store_dir() {
            return Some(Room::new(self, &settings, None));
        }
        let dest = entry.dir.parent()?;
        let elsewhere = (dest.to_owned(), entry.id.clone());
        (store == dest.join("store") && !entry.foreign).then(|| Room::new(self, &settings, Some(elsewhere)))
    }

    /// The store of a session that has none of its own: ours, or the one beside it.
    pub(super) fn store_of(&self, entry: &SessionEntry) -> PathBuf {
        let beside = entry.dir.parent().map(|parent| parent.join("store"));
        let elsewhere = !self.is_home(&entry.dir);
        beside.filter(|store| elsewhere && store.is_dir()).unwrap_or_else(|| self.store_dir())
    }

    /// Whether this folder is below nono's own, and not put elsewhere.
    pub(super) fn is_home(&self, dir: &Path) -> bool {
        let parent = dir.parent().map(Path::canonicalize);
        matches!((parent, self.sessions_dir().canonicalize()), (Some(Ok(parent)), Ok(home)) if parent == home)
    }

    pub fn pin(&self, entry: &SessionEntry, pinned: bool) -> Result<(), RollbackError> {
        folder::set_pinned(&entry.dir, pinned)
    }

    /// The running session, if any, that tracks something around or below one of `roots`. `own`: not that one.
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
            // Before its first snapshot, or where it is damaged, it is what it said when it began; else it is taken for all.
            let known = read_place(&place).map(|entry| entry.metadata.tracked_paths).ok();
            let Some(tracked) = known.or_else(|| super::live::roots(&dir)) else {
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

/// The session of a place in `rollbacks/`.
pub(super) fn read_place(place: &Path) -> Result<SessionEntry, RollbackError> {
    let strange = |what| RollbackError::NoSession { path: place.to_owned(), what };
    let meta = place.symlink_metadata().map_err(RollbackError::io(place))?;
    if !meta.is_dir() {
        return Err(strange("it is no folder"));
    }
    let id = place.file_name().and_then(OsStr::to_str).ok_or_else(|| strange("its name is no text"))?;
    folder::read_session(&folder::follow(place)?, Some(id))
}

/// Files of our own in `rollbacks/`, and what a removal left that was cut off.
fn is_ours(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name == seals::FILE.as_bytes()
        || name == prune::LOCK.as_bytes()
        || name == sequence::FILE.as_bytes()
        || removal::is_aside(name)
}

/// Equal, above or below.
pub(crate) fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

fn newest(sessions: Vec<SessionEntry>, problems: Vec<RollbackError>) -> Result<SessionEntry, RollbackError> {
    // With nothing but damaged sessions, the damage is the answer.
    sessions
        .into_iter()
        .next()
        .ok_or_else(|| problems.into_iter().next().unwrap_or(RollbackError::NoSessions))
}

impl RollbackSession {
    pub fn entry(&self) -> &SessionEntry {
        &self.entry
    }

    /// Other sessions that worked in the same place at the same time.
    pub fn beside(&self) -> Result<Vec<SessionEntry>, RollbackError> {
        self.catalogue.beside(&self.entry)
    }

    pub fn manager(&mut self) -> &mut SnapshotManager {
        &mut self.manager
    }

    /// The same, to be looked at.
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

    /// The last numbered snapshot; the baseline where there is no other.
    pub fn last(&self) -> Result<SnapshotId, RollbackError> {
        Ok(SnapshotId::Number(self.record()?.last_number().unwrap_or(0)))
    }

    pub fn coverage(&self, id: &SnapshotId) -> Result<Coverage, RollbackError> {
        let manifest = self.manager.load_whole(id).map_err(|error| self.no_snapshot(error))?;
        Ok(manifest.coverage)
    }

    /// What one snapshot had left out and is gone or changed in another.
    pub fn losses(&self, from: &SnapshotId, to: &SnapshotId) -> Result<Vec<Lost>, RollbackError> {
        self.manager.losses(from, to).map_err(|error| self.no_snapshot(error))
    }

    pub(super) fn record(&self) -> Result<nono_snapshot::session::Record, RollbackError> {
        let dir = self.entry.dir.clone();
        let missing = || RollbackError::NoSession { path: dir, what: "it has no record of snapshots" };
        self.manager.session().record()?.ok_or_else(missing)
    }

    /// A snapshot that is not there, in the session's words.
    pub(super) fn no_snapshot(&self, error: SnapshotError) -> RollbackError {
        match error {
            SnapshotError::Session(SessionError::NoSnapshot { id: snapshot, .. }) => {
                RollbackError::NoSnapshot { id: self.entry.id.clone(), snapshot }
            }
            other => other.into(),
        }
    }
}
