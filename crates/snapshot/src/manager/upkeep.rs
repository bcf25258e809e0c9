//! Maintenance of a store: settling, and garbage collection.
//!
//! [`super::sessions`] finds the sessions. A damaged part of a session cannot name what it needs: it is reported, and
//! everything else that the session needs is kept. The collection stops only if it cannot know what is needed: a folder
//! that cannot be read, or a session of which only the name is known.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::sessions::{ForeignSession, Sessions, drop_notes, roots_of, sessions};
use super::{Result, SnapshotManager};
use crate::cache::Cache;
use crate::file::{self, Sync};
use crate::hash::{ContentHash, TreeId};
use crate::manifest::{ManifestBody, SnapshotId};
use crate::node::{Kind, Node};
use crate::objects::StoreObjects;
use crate::session::{Session, SessionError, SessionHold, SnapshotList};
use crate::state::{ObjectError, Objects, Observer, SnapshotState};
use crate::store::{Collected, ObjectKey, Settled, Shares, Store};

#[derive(Debug)]
pub struct SettleReport {
    pub store: Settled,
    /// Snapshots that survive a power loss from now on.
    pub durable: Vec<SnapshotId>,
}

/// Result of a garbage collection.
#[derive(Debug)]
pub struct GcReport {
    pub store: Collected,
    /// Sessions outside the store's home whose folders were removed.
    pub forgotten: Vec<PathBuf>,
    /// Sessions outside the store's home whose folders are not reachable; what they need was kept.
    pub away: Vec<PathBuf>,
    /// Damaged parts of sessions that could not be followed. Contains file names, so escape it for display.
    pub damaged: Vec<String>,
}

/// Sync, mark what is durable, then compress, so that new snapshots survive a power loss as soon as possible.
pub(super) fn settle(
    store: &Store,
    session: &Session,
    cancel: &dyn Fn() -> bool,
    observer: &dyn Observer,
) -> Result<SettleReport> {
    let stop = || cancel() || observer.cancelled();
    let mut durable = sync(store, session, &stop)?;
    let before = session.record()?.unwrap_or_default();
    let settled = store.settle(&stop, &|done, total| observer.progress(done, total))?;
    if settled.durable {
        durable.extend(mark_durable(session, &before, &stop)?);
    }
    Ok(SettleReport { store: settled, durable })
}

/// Make published snapshots durable without compressing, and mark them. `cancel` is asked between files.
pub(super) fn sync(store: &Store, session: &Session, cancel: &dyn Fn() -> bool) -> Result<Vec<SnapshotId>> {
    let Some(before) = session.record()? else { return Ok(Vec::new()) };
    if before.snapshots.iter().all(|recorded| recorded.durable || recorded.thinned) {
        return Ok(Vec::new());
    }
    let synced = store.sync_until(cancel)?;
    if synced.durable { mark_durable(session, &before, cancel) } else { Ok(Vec::new()) }
}

/// Mark the snapshots of `before` as durable: they are in the store; their manifests and the record follow. Does
/// nothing if the session stays locked: the next settling marks them.
pub(super) fn mark_durable(
    session: &Session,
    before: &SnapshotList,
    cancel: &dyn Fn() -> bool,
) -> Result<Vec<SnapshotId>> {
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

/// Lock the session, waiting only for a moment; `None` if another process keeps it.
fn hold_soon(session: &Session, cancel: &dyn Fn() -> bool) -> Result<Option<SessionHold>> {
    const ATTEMPTS: usize = 100;
    for _ in 0..ATTEMPTS {
        let held = session.try_hold()?;
        if held.is_some() || cancel() {
            return Ok(held);
        }
        // A blocking lock could not be cancelled.
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Ok(None)
}

/// Objects that snapshots need.
#[derive(Debug, Default)]
pub(super) struct LiveObjects {
    pub(super) trees: HashSet<TreeId>,
    pub(super) others: HashSet<ObjectKey>,
}

impl LiveObjects {
    fn contains(&self, key: ObjectKey) -> bool {
        match key.kind {
            crate::store::ObjectKind::Tree => self.trees.contains(&TreeId::from_bytes(key.hash)),
            _ => self.others.contains(&key),
        }
    }

    fn snapshot(&mut self, sheet: &ManifestBody, walk: &mut SessionWalk<'_>) -> Result<(), ObjectError> {
        self.others.extend(sheet.rules.iter().flatten().map(|hash| ObjectKey::rules(*hash)));
        let mut waiting = Vec::new();
        roots_of(&sheet.state, &mut waiting, &mut |hash| self.others.extend([ObjectKey::from(hash)]));
        self.trees(waiting, walk)
    }

    /// Add what an unreachable session needs, as listed in its note.
    fn note(&mut self, note: &ForeignSession, walk: &mut SessionWalk<'_>) -> Result<(), ObjectError> {
        self.others.extend(note.rules.iter().map(|hash| ObjectKey::rules(*hash)));
        self.others.extend(note.contents.iter().map(|hash| ObjectKey::from(*hash)));
        self.trees(note.trees.clone(), walk)
    }

    fn trees(&mut self, waiting: Vec<TreeId>, walk: &mut SessionWalk<'_>) -> Result<(), ObjectError> {
        let mut content = |hash: ContentHash| self.others.extend([ObjectKey::from(hash)]);
        let mut lost = |error: ObjectError| match error {
            ObjectError::Missing { .. } | ObjectError::Damaged { .. } => {
                walk.damaged.push(format!("{}: {error}", walk.dir.display()));
                Ok(())
            }
            ObjectError::Io { .. } => Err(error),
        };
        each_below(waiting, walk.objects, &mut self.trees, &mut content, &mut |_, _| {}, &mut lost)
    }
}

/// Walk over one session.
struct SessionWalk<'a> {
    dir: &'a Path,
    objects: &'a dyn Objects,
    damaged: &'a mut Vec<String>,
}

/// Visit every directory not in `seen` yet, and every content below; ends at one that cannot be loaded.
pub(super) fn each_object(
    state: &SnapshotState,
    objects: &dyn Objects,
    seen: &mut HashSet<TreeId>,
    mut content: impl FnMut(ContentHash),
    mut visit: impl FnMut(TreeId, &Node),
) -> Result<(), ObjectError> {
    let mut waiting = Vec::new();
    roots_of(state, &mut waiting, &mut content);
    each_below(waiting, objects, seen, &mut content, &mut visit, &mut Err)
}

/// The same starting from directories; `lost` handles one that cannot be loaded.
fn each_below(
    mut waiting: Vec<TreeId>,
    objects: &dyn Objects,
    seen: &mut HashSet<TreeId>,
    content: &mut dyn FnMut(ContentHash),
    visit: &mut dyn FnMut(TreeId, &Node),
    lost: &mut dyn FnMut(ObjectError) -> Result<(), ObjectError>,
) -> Result<(), ObjectError> {
    while let Some(tree) = waiting.pop() {
        if !seen.insert(tree) {
            continue;
        }
        let node = match objects.node(tree) {
            Ok(node) => node,
            Err(error) => {
                lost(error)?;
                continue;
            }
        };
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

/// Selects snapshots of a session (by its folder); with `None`, the session itself.
type Which<'a> = &'a dyn Fn(&Path, Option<&SnapshotId>) -> bool;

/// Sessions and damage found while marking.
#[derive(Debug, Default)]
pub(super) struct MarkFindings {
    sessions: Sessions,
    damaged: Vec<String>,
}

/// Objects that the selected snapshots of a store need.
pub(super) fn live(store: &Store, which: Which<'_>) -> Result<(LiveObjects, MarkFindings)> {
    let objects = StoreObjects::new(store);
    let mut found = sessions(store)?;
    loop {
        let (mut live, mut damaged) = (LiveObjects::default(), Vec::new());
        ensure_known(&found)?;
        for dir in found.there.iter().filter(|dir| which(dir, None)) {
            let mut walk = SessionWalk { dir, objects: &objects, damaged: &mut damaged };
            session_needs(&Session::new(dir), which, &mut live, &mut walk)?;
        }
        for note in found.away.iter().filter(|note| which(&note.dir, None)) {
            let mut walk = SessionWalk { dir: &note.dir, objects: &objects, damaged: &mut damaged };
            live.note(note, &mut walk)?;
        }
        // A session moved within the home while it was listed is found in its new place now.
        let again = sessions(store)?;
        if again.there.iter().all(|dir| found.there.contains(dir)) {
            return Ok((live, MarkFindings { sessions: found, damaged }));
        }
        found = again;
    }
}

/// Fail if only the name of a session is known.
fn ensure_known(found: &Sessions) -> Result<()> {
    if let Some(path) = found.damaged.first() {
        let what = "the session reference names no session; `nono rollback repair` sets it aside";
        return Err(SessionError::damaged(path, what).into());
    }
    if let Some(path) = found.unknown.first() {
        return Err(SessionError::damaged(path, "its disk is not mounted; nothing was collected").into());
    }
    Ok(())
}

/// Add what the readable snapshots of one session need, and the contents displaced by restores.
fn session_needs(
    session: &Session,
    which: Which<'_>,
    live: &mut LiveObjects,
    walk: &mut SessionWalk<'_>,
) -> Result<()> {
    let record = match session.record_or_manifests() {
        Err(error @ SessionError::Record { .. }) if session.is_damaged() => {
            walk.damaged.push(error.to_string());
            None
        }
        other => other?,
    };
    for (recorded, sheet) in record.iter().flat_map(|record| session.sheets(record)) {
        if !which(session.dir(), Some(&recorded.snapshot())) {
            continue;
        }
        match sheet? {
            Some(sheet) => live.snapshot(&sheet, walk)?,
            None => walk.damaged.push(format!(
                "{}: snapshot {} is lost",
                session.manifest_path(recorded).display(),
                recorded.snapshot()
            )),
        }
    }
    live.others.extend(session.kept_keys()?.into_iter().map(ObjectKey::from));
    Ok(())
}

/// Remove objects that no session of a store needs.
pub fn gc(store: &Store) -> Result<GcReport> {
    let mut met = MarkFindings::default();
    let collected = store.gc_with(true, |store| mark(store, &mut met))?;
    Ok(report(met, collected))
}

/// The same, leaving no unneeded byte in the packs.
pub fn gc_compact(store: &Store) -> Result<GcReport> {
    let mut met = MarkFindings::default();
    let collected = store.gc_compact_with(|store| mark(store, &mut met))?;
    Ok(report(met, collected))
}

/// Compute the live set, and first remove whatever names dead objects.
fn mark(store: &Store, met: &mut MarkFindings) -> Result<impl Fn(ObjectKey) -> bool + use<>> {
    let (live, found) = live(store, &|_, _| true)?;
    // A cache of a dropped tree would name removed objects.
    drop_caches(store, &live)?;
    let gone = found.sessions.gone.iter().map(|(note, _)| note);
    drop_notes(store, &gone.chain(&found.sessions.needless).cloned().collect::<Vec<_>>())?;
    *met = found;
    Ok(move |key: ObjectKey| live.contains(key))
}

fn report(met: MarkFindings, collected: Collected) -> GcReport {
    GcReport {
        store: collected,
        forgotten: met.sessions.gone.into_iter().map(|(_, dir)| dir).collect(),
        away: met.sessions.away.into_iter().map(|note| note.dir).collect(),
        damaged: met.damaged,
    }
}

/// Space shared between the sessions of a store that are `mine`, without snapshots that are `gone`, and all others.
pub fn shares(
    store: &Store,
    mine: &dyn Fn(&Path) -> bool,
    gone: &dyn Fn(&Path, &SnapshotId) -> bool,
) -> Result<Shares> {
    let stays = |dir: &Path, id: Option<&SnapshotId>| mine(dir) && id.is_none_or(|id| !gone(dir, id));
    let (others, _) = live(store, &|dir, _| !mine(dir))?;
    let (own, _) = live(store, &stays)?;
    Ok(store.shares(&|key| own.contains(key), &|key| others.contains(key))?)
}

/// Stat caches of a store, damaged ones as `None`.
pub(super) fn caches(store: &Store) -> Result<Vec<(PathBuf, Option<Cache>)>> {
    let dir = store.dir().join("cache");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&dir).map_err(SessionError::io(&dir))? {
        let path = entry.map_err(SessionError::io(&dir))?.path();
        if path.file_name().is_some_and(|name| file::is_temp(name.as_encoded_bytes())) {
            continue;
        }
        let cache = Cache::load(&path).map_err(SessionError::io(&dir))?;
        all.push((path, cache));
    }
    Ok(all)
}

fn drop_caches(store: &Store, live: &LiveObjects) -> Result<()> {
    // Caches are written only under the store's lock, which the collection holds now.
    let dir = store.dir().join("cache");
    file::sweep_temps(&dir, "").map_err(SessionError::io(&dir))?;
    for (path, cache) in caches(store)? {
        let tree = cache.as_ref().and_then(Cache::tree);
        if !tree.is_some_and(|tree| live.trees.contains(&tree)) {
            file::remove(&path).map_err(SessionError::io(&path))?;
        }
    }
    Ok(())
}

impl SnapshotManager {
    /// Compress the captured contents, and make them survive a power loss; waits for it, unlike the background.
    pub fn settle(&mut self) -> Result<SettleReport> {
        self.background.stop();
        settle(&self.store, &self.session, &|| false, &*self.observer)
    }

    /// Make the snapshots survive a power loss without compressing; returns those that newly do. Done first in the
    /// background, unless the manager was told otherwise.
    pub fn sync(&mut self) -> Result<Vec<SnapshotId>> {
        sync(&self.store, &self.session, &|| self.observer.cancelled())
    }

    /// Remove objects that no session of this store needs any more.
    pub fn gc(&mut self) -> Result<GcReport> {
        self.background.stop();
        // An interrupted restore may still need the contents it displaced.
        let held = self.enter()?;
        drop(held);
        gc(&self.store)
    }
}
