//! What a store needs besides captures: settling, checking, and the collection of what no session names any more.
//!
//! A store knows its sessions: each manager leaves a note with its folder. A session whose folder is gone holds nothing
//! any more; one whose folder cannot be read stops the collection, because what it needs cannot be known.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use super::{SnapshotError, SnapshotManager};
use crate::cache::Cache;
use crate::file::{self, Sync};
use crate::hash::{ContentHash, TreeId, content_hash};
use crate::manifest::{Sheet, SnapshotId};
use crate::node::{Kind, Node};
use crate::objects::StoreObjects;
use crate::paths;
use crate::session::{Held, Record, Session, SessionError};
use crate::state::{ObjectError, Objects, Observer, SnapshotState};
use crate::store::{Collected, Key, Settled, Shares, Store};

/// What settling did.
#[derive(Debug)]
pub struct SettleReport {
    pub store: Settled,
    /// Snapshots that survive a loss of power from now on.
    pub durable: Vec<SnapshotId>,
}

/// What a collection of garbage did.
#[derive(Debug)]
pub struct GcReport {
    pub store: Collected,
    /// Sessions whose folders are gone.
    pub forgotten: Vec<PathBuf>,
}

const SESSIONS: &str = "sessions";

fn sessions_dir(store: &Store) -> PathBuf {
    store.dir().join(SESSIONS)
}

/// Let the store know of a session.
pub(super) fn register(store: &Store, session: &Session) -> Result<(), SnapshotError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| SnapshotError::Session(SessionError::Io { path, source })
    };
    for dir in [sessions_dir(store), store.dir().join("cache")] {
        file::make_dirs(&dir).map_err(io(&dir))?;
        // What is collected from it is deleted, so it must be the store's own folder and no way to another.
        if std::fs::symlink_metadata(&dir).map_err(io(&dir))?.is_symlink() {
            let what = "it is a link and should be a folder".to_owned();
            return Err(SessionError::Record { path: dir, what }.into());
        }
    }
    let dir = session.dir().canonicalize().map_err(io(session.dir()))?;
    let name = content_hash(paths::bytes(&dir)).hex();
    let path = sessions_dir(store).join(&name);
    // The session is held, so nobody else writes its note.
    file::sweep_temps(&sessions_dir(store), &name).map_err(io(&path))?;
    let note = note(&dir, place(&dir));
    if file::read(&path).ok().as_deref() == Some(&note) {
        return Ok(());
    }
    file::replace(&path, &note, Sync::Yes).map_err(io(&path))
}

/// The folder, which filesystem it stands on, and a checksum of both.
fn note(dir: &Path, place: u64) -> Vec<u8> {
    let text = [format!("{place:016x} ").as_bytes(), paths::bytes(dir)].concat();
    [content_hash(&text).hex().as_bytes(), b" ", &text].concat()
}

/// The filesystem that a folder's parent is on; 0 where there is none.
fn place(dir: &Path) -> u64 {
    dir.parent().and_then(|parent| rustix::fs::statvfs(parent).ok()).map_or(0, |stat| stat.f_fsid)
}

/// A session as its note names it.
pub(super) struct Noted {
    dir: PathBuf,
    place: u64,
}

fn read_note(bytes: &[u8]) -> Option<Noted> {
    let place = u64::from_str_radix(std::str::from_utf8(bytes.get(65..81)?).ok()?, 16).ok()?;
    let dir = paths::from_bytes(bytes.get(82..)?).to_owned();
    (note(&dir, place) == bytes).then_some(Noted { dir, place })
}

/// The sessions of a store; the names of notes that are damaged.
pub(super) fn sessions(store: &Store) -> Result<(Vec<Noted>, Vec<PathBuf>), SnapshotError> {
    let dir = sessions_dir(store);
    let io = |source| SnapshotError::Session(SessionError::Io { path: dir.clone(), source });
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(&dir).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.file_name().is_some_and(|name| file::is_temp(name.as_encoded_bytes())) {
            continue;
        }
        let bytes = file::read(&path).map_err(io)?;
        match read_note(&bytes) {
            Some(noted) => found.push(noted),
            None => damaged.push(path),
        }
    }
    found.sort_by(|a, b| a.dir.cmp(&b.dir));
    Ok((found, damaged))
}

/// The folders of the sessions that a store knows, whether they are there or not.
pub fn session_dirs(store: &Store) -> Result<Vec<PathBuf>, SnapshotError> {
    let (found, _) = sessions(store)?;
    Ok(found.into_iter().map(|noted| noted.dir).collect())
}

/// Sync, write down what is durable now, then compress: what was just taken survives a loss of power as soon as it can.
pub(super) fn settle(
    store: &Store,
    session: &Session,
    cancel: &dyn Fn() -> bool,
    observer: &dyn Observer,
) -> Result<SettleReport, SnapshotError> {
    let stop = || cancel() || observer.cancelled();
    let mut durable = sync(store, session, &stop)?;
    let before = session.record()?.unwrap_or_default();
    let settled = store.settle(&stop, &|done, total| observer.progress(done, total))?;
    if settled.durable {
        durable.extend(mark_durable(session, &before, &stop)?);
    }
    Ok(SettleReport { store: settled, durable })
}

/// Make what is published survive a loss of power, as it is, and write that down. `cancel` is asked between files.
pub(super) fn sync(
    store: &Store,
    session: &Session,
    cancel: &dyn Fn() -> bool,
) -> Result<Vec<SnapshotId>, SnapshotError> {
    let Some(before) = session.record()? else { return Ok(Vec::new()) };
    if before.snapshots.iter().all(|recorded| recorded.durable || recorded.thinned) {
        return Ok(Vec::new());
    }
    let synced = store.sync_until(cancel)?;
    if synced.durable { mark_durable(session, &before, cancel) } else { Ok(Vec::new()) }
}

/// The snapshots of `before` are durable in the store; their manifests and the record follow. Nothing where the session
/// is held for long: the next one marks them.
fn mark_durable(
    session: &Session,
    before: &Record,
    cancel: &dyn Fn() -> bool,
) -> Result<Vec<SnapshotId>, SnapshotError> {
    let mut durable = Vec::new();
    let Some(_held) = hold_soon(session, cancel)? else { return Ok(durable) };
    let Some(mut record) = session.record()? else { return Ok(durable) };
    for recorded in &mut record.snapshots {
        let known = before.find(&recorded.snapshot()).is_some_and(|old| old.manifest == recorded.manifest);
        if known && !recorded.durable && !recorded.thinned {
            session.sync_manifest(recorded)?;
            recorded.durable = true;
            durable.push(recorded.snapshot());
        }
    }
    if !durable.is_empty() {
        session.save_record(&record, Sync::Yes)?;
        session.sync_name()?;
    }
    Ok(durable)
}

/// The session, if nobody holds it or whoever does is done in a moment.
fn hold_soon(session: &Session, cancel: &dyn Fn() -> bool) -> Result<Option<Held>, SnapshotError> {
    const ATTEMPTS: usize = 100;
    for _ in 0..ATTEMPTS {
        let held = session.try_hold()?;
        if held.is_some() || cancel() {
            return Ok(held);
        }
        // The system's lock cannot be waited for and left again.
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Ok(None)
}

/// The objects that snapshots need.
#[derive(Debug, Default)]
pub(super) struct Live {
    trees: HashSet<TreeId>,
    others: HashSet<Key>,
}

impl Live {
    pub(super) fn contains(&self, key: Key) -> bool {
        match key.kind {
            crate::store::ObjectKind::Tree => self.trees.contains(&TreeId::from_bytes(key.hash)),
            _ => self.others.contains(&key),
        }
    }

    fn snapshot(&mut self, sheet: &Sheet, objects: &dyn Objects) -> Result<(), ObjectError> {
        self.others.extend(sheet.rules.iter().flatten().map(|hash| Key::rules(*hash)));
        let others = &mut self.others;
        let content = |hash: ContentHash| {
            others.insert(Key::from(hash));
        };
        each_object(&sheet.state, objects, &mut self.trees, content, |_, _| {})
    }
}

/// Every directory that is not in `seen` yet, and every content below.
pub(super) fn each_object(
    state: &SnapshotState,
    objects: &dyn Objects,
    seen: &mut HashSet<TreeId>,
    mut content: impl FnMut(ContentHash),
    mut visit: impl FnMut(TreeId, &Node),
) -> Result<(), ObjectError> {
    let mut waiting = Vec::new();
    for root in &state.roots {
        match root.content.entry().map(|entry| &entry.kind) {
            Some(Kind::Dir { tree, .. }) => waiting.push(*tree),
            Some(Kind::File { hash, .. }) => content(*hash),
            _ => {}
        }
    }
    while let Some(tree) = waiting.pop() {
        if !seen.insert(tree) {
            continue;
        }
        let node = objects.node(tree)?;
        visit(tree, &node);
        for entry in &node.entries {
            match &entry.kind {
                Kind::Dir { tree, .. } => waiting.push(*tree),
                Kind::File { hash, .. } => content(*hash),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Which snapshots of a session (by its folder) count; with nothing, whether the session does.
type Which<'a> = &'a dyn Fn(&Path, Option<&SnapshotId>) -> bool;

/// What these snapshots of a store need. A session whose folder is gone needs nothing.
pub(super) fn live(
    store: &Store,
    which: Which<'_>,
    forgotten: &mut Vec<PathBuf>,
) -> Result<Live, SnapshotError> {
    let mut live = Live::default();
    let objects = StoreObjects::new(store);
    let (found, damaged) = sessions(store)?;
    if let Some(path) = damaged.into_iter().next() {
        let what = "it should name a session's folder".to_owned();
        return Err(SessionError::Record { path, what }.into());
    }
    for Noted { dir, place: noted } in found.into_iter().filter(|noted| which(&noted.dir, None)) {
        let missing =
            std::fs::symlink_metadata(&dir).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        // Gone is gone only where the place it stood in is there; a disk that is not mounted comes back.
        if missing && place(&dir) == noted {
            forgotten.push(dir);
            continue;
        }
        if missing {
            let what = "the disk it was on is not there; nothing was collected".to_owned();
            return Err(SessionError::Record { path: dir, what }.into());
        }
        let session = Session::new(dir);
        let Some(record) = session.record()? else { continue };
        let there = record.snapshots.iter().filter(|recorded| !recorded.thinned);
        for recorded in there.filter(|recorded| which(session.dir(), Some(&recorded.snapshot()))) {
            live.snapshot(&session.sheet(&record, &recorded.snapshot())?, &objects)?;
        }
        for kept in session.kept()? {
            live.others.insert(Key::from(kept));
        }
    }
    Ok(live)
}

/// Collect what no session of a store needs.
pub fn gc(store: &Store) -> Result<GcReport, SnapshotError> {
    let mut forgotten = Vec::new();
    let collected = store.gc_with(true, |store| mark(store, &mut forgotten))?;
    drop_notes(store, forgotten, collected)
}

/// The same, and not one byte of it stays in the packs.
pub fn purge(store: &Store) -> Result<GcReport, SnapshotError> {
    let mut forgotten = Vec::new();
    let collected = store.purge_with(|store| mark(store, &mut forgotten))?;
    drop_notes(store, forgotten, collected)
}

fn mark(store: &Store, forgotten: &mut Vec<PathBuf>) -> Result<impl Fn(Key) -> bool + use<>, SnapshotError> {
    let live = live(store, &|_, _| true, forgotten)?;
    // A cache of a tree that is given up would name objects that are gone.
    drop_caches(store, &live)?;
    Ok(move |key: Key| live.contains(key))
}

/// How the room of a store is shared between the sessions for which `mine` is true and all others. Snapshots of the first
/// that are `gone` do not count as needed.
pub fn shares(
    store: &Store,
    mine: &dyn Fn(&Path) -> bool,
    gone: &dyn Fn(&Path, &SnapshotId) -> bool,
) -> Result<Shares, SnapshotError> {
    let stays = |dir: &Path, id: Option<&SnapshotId>| mine(dir) && id.is_none_or(|id| !gone(dir, id));
    let others = live(store, &|dir, _| !mine(dir), &mut Vec::new())?;
    let own = live(store, &stays, &mut Vec::new())?;
    Ok(store.shares(&|key| own.contains(key), &|key| others.contains(key))?)
}

fn drop_notes(
    store: &Store,
    forgotten: Vec<PathBuf>,
    collected: Collected,
) -> Result<GcReport, SnapshotError> {
    for dir in &forgotten {
        let name = content_hash(paths::bytes(dir)).hex();
        let path = sessions_dir(store).join(&name);
        let removed = file::remove(&path).and_then(|()| file::sweep_temps(&sessions_dir(store), &name));
        removed.map_err(|source| SessionError::Io { path, source })?;
    }
    Ok(GcReport { store: collected, forgotten })
}

/// The stat caches of a store, damaged ones as `None`.
pub(super) fn caches(store: &Store) -> Result<Vec<(PathBuf, Option<Cache>)>, SnapshotError> {
    let dir = store.dir().join("cache");
    let io = |source| SnapshotError::Session(SessionError::Io { path: dir.clone(), source });
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&dir).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.file_name().is_some_and(|name| file::is_temp(name.as_encoded_bytes())) {
            continue;
        }
        let cache = Cache::load(&path).map_err(io)?;
        all.push((path, cache));
    }
    Ok(all)
}

fn drop_caches(store: &Store, live: &Live) -> Result<(), SnapshotError> {
    // Caches are written by those who hold the store's lock, which only the collection holds now.
    let dir = store.dir().join("cache");
    file::sweep_temps(&dir, "").map_err(|source| SessionError::Io { path: dir, source })?;
    for (path, cache) in caches(store)? {
        let tree = cache.as_ref().and_then(Cache::tree);
        if !tree.is_some_and(|tree| live.trees.contains(&tree)) {
            file::remove(&path).map_err(|source| SessionError::Io { path, source })?;
        }
    }
    Ok(())
}

impl SnapshotManager {
    /// Compress what was captured, and make it survive a loss of power. Done in the background unless the manager was
    /// told otherwise; this waits for it.
    pub fn settle(&mut self) -> Result<SettleReport, SnapshotError> {
        self.background.stop();
        settle(&self.store, &self.session, &|| false, &*self.observer)
    }

    /// Make the snapshots survive a loss of power, without compressing anything; which ones do from now on. Done in the
    /// background first of all, unless the manager was told otherwise.
    pub fn sync(&mut self) -> Result<Vec<SnapshotId>, SnapshotError> {
        sync(&self.store, &self.session, &|| self.observer.cancelled())
    }

    /// Collect what no session of this store needs any more.
    pub fn gc(&mut self) -> Result<GcReport, SnapshotError> {
        self.background.stop();
        // A restore that was cut off may still need what it displaced.
        let held = self.enter()?;
        drop(held);
        gc(&self.store)
    }
}
