//! Sessions of a store.
//!
//! The *home* of a store is its parent folder. Sessions in the home are found by listing it, so a home can be moved,
//! copied or restored from a backup as a whole, and nothing in it names an absolute path. A session anywhere else has a
//! note in the store: its path, the path of the store when the note was written, and the objects it needs. If its
//! folder is missing, it counts as removed only if the store has not moved and the filesystem of the missing folder is
//! mounted; otherwise the objects in the note are kept.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::file::{self, Sync};
use crate::hash::{ContentHash, TreeId, content_hash};
use crate::manager::error::Result;
use crate::manifest::ManifestBody;
use crate::node::Kind;
use crate::paths;
use crate::session::{Session, SessionError};
use crate::state::SnapshotState;
use crate::store::Store;

/// Folder of notes in the store.
const NOTES: &str = "sessions";
/// Folders of a home that hold sessions; a session may also be directly in the home, or be the home.
const PARTS: [&str; 2] = ["rollbacks", "projects"];
/// Name prefix of further such folders: sessions of superseded formats.
const LEGACY: &str = "legacy-";
const FORMAT: u32 = 2;

/// Sessions found for a store.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Existing folders, by their real paths, sorted.
    pub(super) there: Vec<PathBuf>,
    /// Sessions whose folder is not reachable; their notes list what they need.
    pub(super) away: Vec<ForeignSession>,
    /// Removed sessions: their notes and folders.
    pub(super) gone: Vec<(PathBuf, PathBuf)>,
    /// Redundant notes, of sessions that a listing of the home finds: written by earlier versions, or damaged.
    pub(super) needless: Vec<PathBuf>,
    /// Unreadable notes of sessions outside the home.
    pub(super) damaged: Vec<PathBuf>,
    /// Notes of earlier versions, of existing sessions: rewritten when the session is opened.
    pub(super) old: Vec<(PathBuf, PathBuf)>,
    /// Sessions with notes without objects, whose disk is missing: what they need is unknown.
    pub(super) unknown: Vec<PathBuf>,
}

/// Note of a session outside its store's home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ForeignSession {
    format: u32,
    /// Id of the store; `store_dir` is where it was.
    store: String,
    #[serde(with = "paths")]
    store_dir: PathBuf,
    #[serde(with = "paths")]
    pub(super) dir: PathBuf,
    /// Filesystem of the folder's parent.
    place: u64,
    pub(super) trees: Vec<TreeId>,
    pub(super) contents: Vec<ContentHash>,
    pub(super) rules: Vec<ContentHash>,
    checksum: String,
}

impl ForeignSession {
    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut note = ForeignSession { checksum: String::new(), ..self.clone() };
        note.checksum = content_hash(&serde_json::to_vec(&note)?).hex();
        serde_json::to_vec(&note)
    }

    /// Add what a snapshot needs.
    fn take(&mut self, sheet: &ManifestBody) {
        self.rules.extend(sheet.rules.iter().flatten());
        roots_of(&sheet.state, &mut self.trees, &mut |hash| self.contents.push(hash));
    }

    fn sort(&mut self) {
        self.trees.sort_unstable();
        self.trees.dedup();
        for list in [&mut self.contents, &mut self.rules] {
            list.sort_unstable();
            list.dedup();
        }
    }
}

/// Collect the directories that are roots, and the contents of roots that are files.
pub(super) fn roots_of(state: &SnapshotState, trees: &mut Vec<TreeId>, content: &mut dyn FnMut(ContentHash)) {
    for root in &state.roots {
        match root.content.entry().map(|entry| &entry.kind) {
            Some(Kind::Dir { tree, .. }) => trees.push(*tree),
            Some(Kind::File { hash, .. }) => content(*hash),
            _ => {}
        }
    }
}

/// Parsed file of the notes folder.
enum NoteRead {
    Note(Box<ForeignSession>),
    /// Note of an earlier version: a folder and its filesystem, no objects.
    Old {
        dir: PathBuf,
        place: u64,
    },
    Damaged,
}

fn read_note(bytes: &[u8]) -> NoteRead {
    let note: Option<ForeignSession> = serde_json::from_slice(bytes).ok();
    if let Some(note) = note.filter(|note| note.format == FORMAT)
        && note.encode().ok().as_deref() == Some(bytes)
    {
        return NoteRead::Note(Box::new(note));
    }
    read_old(bytes).unwrap_or(NoteRead::Damaged)
}

fn read_old(bytes: &[u8]) -> Option<NoteRead> {
    let (sum, text) = (bytes.get(..64)?, bytes.get(65..)?);
    let place = u64::from_str_radix(std::str::from_utf8(text.get(..16)?).ok()?, 16).ok()?;
    let dir = paths::from_bytes(text.get(17..)?).to_owned();
    (content_hash(text).hex().as_bytes() == sum).then_some(NoteRead::Old { dir, place })
}

fn notes_dir(store: &Store) -> PathBuf {
    store.dir().join(NOTES)
}

/// Name of a session's note.
fn note_name(dir: &Path) -> String {
    content_hash(paths::bytes(dir)).hex()
}

/// Filesystem of a folder's parent; 0 if there is none.
fn place(dir: &Path) -> u64 {
    dir.parent().and_then(|parent| rustix::fs::statvfs(parent).ok()).map_or(0, |stat| stat.f_fsid)
}

fn is_missing(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Home of a store, by its real path.
struct Home {
    store: PathBuf,
    dir: PathBuf,
    owner: u32,
    device: u64,
}

impl Home {
    fn of(store: &Store) -> Result<Home> {
        let path = store.dir().canonicalize().map_err(SessionError::io(store.dir()))?;
        let meta = path.symlink_metadata().map_err(SessionError::io(&path))?;
        let dir = path.parent().unwrap_or(&path).to_owned();
        Ok(Home { store: path, dir, owner: meta.uid(), device: meta.dev() })
    }

    /// Whether listing finds the session in this folder (by its real path), now and wherever the home is moved.
    fn holds(&self, dir: &Path) -> bool {
        let parent = dir.parent();
        let in_part = || parent.is_some_and(|part| part.parent() == Some(&self.dir) && is_part(part));
        let placed = dir == self.dir || parent == Some(&self.dir) || in_part();
        placed && self.is_candidate(dir)
    }

    /// Whether a folder is the store owner's and on the store's filesystem: another may be unmounted at a listing.
    fn is_candidate(&self, dir: &Path) -> bool {
        let own =
            |meta: std::fs::Metadata| meta.is_dir() && meta.uid() == self.owner && meta.dev() == self.device;
        let elsewhere =
            dir != self.dir && dir.join("store").symlink_metadata().is_ok_and(|meta| meta.is_dir());
        dir != self.store && !is_hidden(dir) && !elsewhere && dir.symlink_metadata().is_ok_and(own)
    }

    fn list(&self) -> Result<Vec<PathBuf>> {
        let mut found = vec![self.dir.clone()];
        // Legacy folders last: a session being moved there is then seen in at least one of its two places.
        let mut children = folders(&self.dir)?;
        children.sort_by_key(|path| path.file_name().is_some_and(is_legacy));
        for child in children {
            if is_part(&child) {
                found.extend(folders(&child)?);
            }
            found.push(child);
        }
        let mut sessions = Vec::new();
        for dir in found {
            if self.is_candidate(&dir) && is_session(&dir)? {
                sessions.push(dir);
            }
        }
        Ok(sessions)
    }
}

fn is_legacy(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(LEGACY.as_bytes())
}

fn is_part(dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| PARTS.iter().any(|part| name == *part) || is_legacy(name))
}

/// Whether the folder's name marks it as being removed.
fn is_hidden(dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Folders in a folder; none if it does not exist.
fn folders(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        other => other.map_err(SessionError::io(dir))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(SessionError::io(dir))?;
        // Ignore one that was removed meanwhile.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Whether the folder has a record, or manifests without one.
fn is_session(dir: &Path) -> Result<bool> {
    for name in ["record.json", "snapshots/000.json"] {
        let path = dir.join(name);
        match path.symlink_metadata() {
            Ok(_) => return Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(source) => return Err(SessionError::Io { path, source }.into()),
        }
    }
    Ok(false)
}

/// Register a session with the store: by its place in the home, or by a note.
pub(super) fn register(store: &Store, session: &Session) -> Result<()> {
    for dir in [notes_dir(store), store.dir().join("cache")] {
        file::make_dirs(&dir).map_err(SessionError::io(&dir))?;
        // Objects collected from the store are deleted, so it must be a real folder and not a link to another.
        if dir.symlink_metadata().map_err(SessionError::io(&dir))?.is_symlink() {
            return Err(SessionError::damaged(&dir, "it is a symbolic link, not a folder").into());
        }
    }
    store.ensure_id()?;
    note(store, session, None, Sync::Yes)
}

/// Write the note of a session outside the home, with a snapshot about to be recorded. The caller holds the session.
pub(super) fn note(store: &Store, session: &Session, new: Option<&ManifestBody>, sync: Sync) -> Result<()> {
    let dir = session.dir().canonicalize().map_err(SessionError::io(session.dir()))?;
    let name = note_name(&dir);
    let path = notes_dir(store).join(&name);
    let home = Home::of(store)?;
    if home.holds(&dir) {
        let removed = if is_missing(&path) { Ok(()) } else { file::remove(&path) };
        return Ok(removed.map_err(SessionError::io(&path))?);
    }
    // The session is held, so no other process writes its note.
    file::sweep_temps(&notes_dir(store), &name).map_err(SessionError::io(&path))?;
    let mut note = ForeignSession {
        format: FORMAT,
        store: store.id()?.unwrap_or_default(),
        store_dir: home.store,
        place: place(&dir),
        trees: Vec::new(),
        contents: session.kept_keys()?,
        rules: Vec::new(),
        checksum: String::new(),
        dir,
    };
    if let Some(record) = session.record()? {
        for (_, sheet) in session.sheets(&record) {
            if let Some(sheet) = sheet? {
                note.take(&sheet);
            }
        }
    }
    if let Some(sheet) = new {
        note.take(sheet);
    }
    note.sort();
    let bytes = note.encode().map_err(|error| SessionError::damaged(&path, error))?;
    if file::read(&path).ok().as_deref() == Some(&bytes) {
        return Ok(());
    }
    Ok(file::replace(&path, &bytes, sync).map_err(SessionError::io(&path))?)
}

pub(super) fn sessions(store: &Store) -> Result<Sessions> {
    let home = Home::of(store)?;
    let id = store.id()?;
    let mut found = Sessions { there: home.list()?, ..Sessions::default() };
    let listed: Vec<String> = found.there.iter().map(|dir| note_name(dir)).collect();
    let (mut old, mut noted) = (Vec::new(), Vec::new());
    let dir = notes_dir(store);
    for path in file::entries(&dir).map_err(SessionError::io(&dir))? {
        let name = path.file_name().unwrap_or_default();
        if file::is_temp(name.as_encoded_bytes()) || is_set_aside(name) {
            continue;
        }
        let read = file::read_existing(&path).map_err(SessionError::io(&path))?;
        let Some(bytes) = read else { continue };
        let is_listed = listed.iter().any(|listed| name == listed.as_str());
        match read_note(&bytes) {
            _ if is_listed => found.needless.push(path),
            NoteRead::Note(note) if !is_missing(&note.dir) => noted.push(note.dir),
            NoteRead::Note(note) if note.is_gone(&home, id.as_deref()) => found.gone.push((path, note.dir)),
            NoteRead::Note(note) => found.away.push(*note),
            NoteRead::Old { dir, place } => old.push(Old { path, dir, place }),
            NoteRead::Damaged => found.damaged.push(path),
        }
    }
    found.add_old(&home, old);
    found.there.append(&mut noted);
    found.there.sort();
    found.there.dedup();
    found.damaged.sort();
    Ok(found)
}

/// Whether a name is that of a damaged file that was set aside.
fn is_set_aside(name: &OsStr) -> bool {
    name.to_string_lossy().contains(crate::session::ASIDE)
}

impl ForeignSession {
    /// Whether the session was removed, not only unreachable: store and filesystem of the folder are where they were.
    fn is_gone(&self, home: &Home, id: Option<&str>) -> bool {
        id == Some(self.store.as_str()) && self.store_dir == home.store && self.place == place(&self.dir)
    }
}

/// A note of an earlier version.
struct Old {
    path: PathBuf,
    dir: PathBuf,
    place: u64,
}

impl Old {
    /// Home that the session was in, if any.
    fn home(&self) -> Option<&Path> {
        let parent = self.dir.parent()?;
        if is_part(parent) { parent.parent() } else { Some(parent) }
    }
}

impl Sessions {
    /// Classify notes of earlier versions, which named every session by its absolute path and not the store's place.
    /// Those of sessions in the home are redundant: the sessions are listed, or were removed. The home may have been
    /// moved since, and another one made in its place.
    fn add_old(&mut self, home: &Home, old: Vec<Old>) {
        let is_listed = |old: &Old| {
            let place = old.home().and_then(|above| old.dir.strip_prefix(above).ok());
            place.is_some_and(|place| self.there.contains(&home.dir.join(place)))
        };
        let former: Vec<PathBuf> = old
            .iter()
            .filter(|old| is_listed(old))
            .filter_map(|old| old.home().map(Path::to_owned))
            .collect();
        let mut there = Vec::new();
        for old in old {
            let part = old.dir.parent().filter(|part| is_part(part)).and_then(Path::file_name);
            let moved = old.home().is_some_and(|above| {
                above != home.dir
                    && former.iter().any(|former| former == above)
                    && above.join("store").is_dir()
            });
            let of_this_home = old.home().is_some_and(|above| former.iter().any(|former| former == above))
                || part.is_some_and(|part| home.dir.join(part).is_dir());
            if !is_missing(&old.dir) && !moved {
                self.old.push((old.path, old.dir.clone()));
                there.push(old.dir);
            } else if of_this_home {
                self.needless.push(old.path);
            } else if place(&old.dir) == old.place {
                self.gone.push((old.path, old.dir));
            } else {
                self.unknown.push(old.dir);
            }
        }
        self.there.append(&mut there);
    }
}

/// Existing session folders that a store knows.
pub fn session_dirs(store: &Store) -> Result<Vec<PathBuf>> {
    Ok(sessions(store)?.there)
}

/// Remove unneeded notes. The caller must hold the store's exclusive lock.
pub(super) fn drop_notes(store: &Store, notes: &[PathBuf]) -> Result<()> {
    for path in notes {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let removed = file::remove(path).and_then(|()| file::sweep_temps(&notes_dir(store), &name));
        removed.map_err(SessionError::io(path))?;
    }
    Ok(())
}
