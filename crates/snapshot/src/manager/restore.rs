//! Restoring: safety snapshot, plan, journal, apply; and completing an interrupted restore.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Result, SnapshotError, SnapshotManager};
use crate::diff::{Change, diff};
use crate::file::Sync;
use crate::hash::{ContentHash, TreeId};
use crate::manifest::{ManifestBody, SnapshotId, is_plain};
use crate::node::Node;
use crate::objects::StoreObjects;
use crate::restore::{
    Journal, JournalRecord, PreflightError, RestoreId, RestoreOutcome, RestorePlan, RestoreRequest,
    Selection, apply, plan, preflight, sweep, sync, verify,
};
use crate::session::{Session, SessionError, SessionHold, SnapshotList};
use crate::state::{ObjectError, Objects, SnapshotState};

/// Journal file in the folder of a session or project, present while a restore is not complete.
pub(super) const JOURNAL: &str = "restore.journal";

/// Selection and conflict handling of a restore.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    /// Absolute paths to restore, directories with their content; everything if empty.
    pub paths: Vec<PathBuf>,
    /// Paths that stay as they are, with their content; they are not reported.
    pub except: Vec<PathBuf>,
    /// Paths that differ from all of these snapshots were changed by others: reported and kept. Without any, no
    /// conflict is looked for. A `.git` is kept as a whole.
    pub keep_changed_since: Vec<SnapshotId>,
    /// Restore conflicting paths too.
    pub force: bool,
}

/// Result of a restore.
#[derive(Debug)]
pub struct Restored {
    pub outcome: RestoreOutcome,
    /// Restoring this snapshot undoes the restore.
    pub safety: SnapshotId,
}

impl std::ops::Deref for Restored {
    type Target = RestoreOutcome;

    fn deref(&self) -> &RestoreOutcome {
        &self.outcome
    }
}

impl SnapshotManager {
    /// Restore everything that snapshot `number` captured. The current state is captured first.
    pub fn restore_to(&mut self, number: u32) -> Result<Restored> {
        self.restore(&SnapshotId::Number(number), &RestoreOptions::default())
    }

    /// Restore any snapshot, or a part of it.
    pub fn restore(&mut self, id: &SnapshotId, options: &RestoreOptions) -> Result<Restored> {
        let held = self.enter()?;
        let selection = self.selection(options)?;
        let restored = self.restore_held(&held, id, &selection, options)?;
        self.settle_in_background();
        Ok(restored)
    }

    /// Changes that a restore would make; nothing is modified.
    pub fn compute_restore_diff(&mut self, number: u32) -> Result<Vec<Change>> {
        Ok(self.plan_restore(&SnapshotId::Number(number), &RestoreOptions::default())?.changes().to_vec())
    }

    /// Plan of a restore; nothing is modified.
    pub fn plan_restore(&mut self, id: &SnapshotId, options: &RestoreOptions) -> Result<RestorePlan> {
        let _held = self.enter()?;
        let record = self.recorded()?;
        let target = self.target(&record, id)?;
        let selection = self.selection(options)?;
        // Its objects are left to the next garbage collection; most of them are stored already.
        let current = self.capture_as(&target, &selection)?;
        let since = self.changed_since(options)?;
        let request = RestoreRequest {
            target: &target.state,
            current: &current.state,
            selection: &selection,
            except: &options.except,
            keep_changed_since: &states(&since),
            force: options.force,
            resumed: None,
        };
        Ok(plan(&request, &StoreObjects::new(&self.store))?)
    }

    /// Changes since a snapshot was taken; no snapshot is taken, and nothing is modified.
    pub fn compute_changes(&mut self, id: &SnapshotId) -> Result<Vec<Change>> {
        let _held = self.enter()?;
        let target = self.whole(&self.recorded()?, id)?;
        let current = self.capture_as(&target, &Selection::All)?;
        Ok(diff(&target.state, &current.state, &StoreObjects::new(&self.store))?)
    }

    /// Complete an interrupted restore, as the next operation would. Returns its result if there was one.
    pub fn recover(&mut self) -> Result<Option<Restored>> {
        let held = self.session.hold()?;
        self.session.tidy(&held)?;
        self.recover_held(&held)
    }

    /// Result of an interrupted restore that an operation completed. Cleared by the call.
    pub fn take_recovered(&mut self) -> Option<Restored> {
        self.recovered.take()
    }

    /// Abandon an interrupted restore that cannot be completed: the tree stays as it is, and so does the safety
    /// snapshot taken before. Returns whether there was one.
    pub fn abandon_restore(&mut self) -> Result<bool> {
        let held = self.session.hold()?;
        self.session.tidy(&held)?;
        let path = self.journal_path();
        let there = path.symlink_metadata().is_ok();
        let id = Journal::load(&path).ok().flatten().map(|journal| journal.record.id);
        crate::file::remove(&path).map_err(|source| SessionError::Io { path, source })?;
        id.map_or(Ok(()), |id| self.withdraw(id))?;
        Ok(there)
    }

    fn selection(&self, options: &RestoreOptions) -> Result<Selection> {
        for path in options.paths.iter().chain(&options.except) {
            self.ensure_tracked(path)?;
        }
        let all = options.paths.is_empty();
        Ok(if all { Selection::All } else { Selection::Paths(options.paths.clone()) })
    }

    pub(super) fn ensure_tracked(&self, path: &Path) -> Result<()> {
        if is_plain(path) && self.roots.iter().any(|root| path.starts_with(root)) {
            return Ok(());
        }
        Err(SnapshotError::NotTracked { path: path.to_owned() })
    }

    /// Whether a snapshot can be read, so that later changes can be told apart. One that was not durable may have been
    /// lost in a power loss.
    pub fn can_compare(&self, id: &SnapshotId) -> bool {
        self.recorded().and_then(|record| self.read_through(&record, id)).is_ok()
    }

    /// Load a snapshot, checking that its directories are stored if that is in doubt.
    fn read_through(&self, record: &SnapshotList, id: &SnapshotId) -> Result<ManifestBody> {
        let sheet = self.whole(record, id)?;
        if !record.find(id).is_some_and(|recorded| recorded.durable) {
            let objects = StoreObjects::new(&self.store);
            super::upkeep::each_object(&sheet.state, &objects, &mut HashSet::new(), |_| {}, |_, _| {})?;
        }
        Ok(sheet)
    }

    /// Load the snapshot to restore. If it was not durable and directories are missing, a power loss took them.
    fn target(&self, record: &SnapshotList, id: &SnapshotId) -> Result<ManifestBody> {
        let durable = record.find(id).is_some_and(|recorded| recorded.durable);
        self.read_through(record, id).map_err(|error| match error {
            SnapshotError::Object(ObjectError::Missing { .. }) if !durable => {
                SnapshotError::Lost { id: id.clone() }
            }
            other => other,
        })
    }

    /// States that tell which changes are by others. A forced restore needs only the restored snapshot: the others may
    /// be damaged.
    fn changed_since(&self, options: &RestoreOptions) -> Result<Vec<ManifestBody>> {
        let ids: &[SnapshotId] = if options.force { &[] } else { &options.keep_changed_since };
        let record = self.recorded()?;
        ids.iter().map(|id| self.whole(&record, id)).collect()
    }

    fn restore_held(
        &mut self,
        held: &SessionHold,
        id: &SnapshotId,
        selection: &Selection,
        options: &RestoreOptions,
    ) -> Result<Restored> {
        let _paused = self.make_room_to_restore()?;
        let target = self.target(&self.recorded()?, id)?;
        let restore = random_id()?;
        let Safety { sheet, deferred } = self.safety(held, &target, restore, selection)?;
        let id = sheet.id.clone();
        let restored = self.begin(restore, &target, sheet, selection, options, &deferred)?;
        if !restored.cancelled {
            self.drop_unstored(held, &[&id], &deferred)?;
        }
        // If there is no room for it, the next baseline tries again.
        let _ = self.store.keep_reserve();
        Ok(restored)
    }

    /// Plan a restore and apply it.
    pub(super) fn begin(
        &self,
        restore: RestoreId,
        target: &ManifestBody,
        safety: ManifestBody,
        selection: &Selection,
        options: &RestoreOptions,
        deferred: &HashSet<ContentHash>,
    ) -> Result<Restored> {
        let since = self.changed_since(options)?;
        let request = RestoreRequest {
            target: &target.state,
            current: &safety.state,
            selection,
            except: &options.except,
            keep_changed_since: &states(&since),
            force: options.force,
            resumed: None,
        };
        let plan = plan(&request, &self.keeping(deferred))?;
        look_ahead(&plan)?;
        self.make_durable(&safety.id, Some(&target.id))?;
        self.announce(restore)?;
        let journal = Journal::begin(
            &self.journal_path(),
            JournalRecord {
                id: restore,
                target: target.id.to_text(),
                safety: safety.id.to_text(),
                keep_changed_since: options.keep_changed_since.iter().map(SnapshotId::to_text).collect(),
                force: options.force,
                roots: self.roots.clone(),
                selection: selection.clone(),
                except: options.except.clone(),
            },
        );
        if journal.is_err() {
            self.withdraw(restore)?;
        }
        let journal = journal?;
        self.carry_out(&plan, journal, safety.id, deferred)
    }

    /// Make the safety snapshot and what the journal will name durable, before bytes are removed from the tree. The
    /// safety snapshot relies on nothing that may be damaged; an older one may, and is marked durable only if nothing
    /// in the store is in doubt.
    fn make_durable(&self, safety: &SnapshotId, target: Option<&SnapshotId>) -> Result<()> {
        let synced = self.store.sync()?;
        let mut record = self.recorded()?;
        for recorded in &mut record.snapshots {
            let id = recorded.snapshot();
            if !recorded.durable && (id == *safety || Some(&id) == target) {
                self.session.sync_manifest(recorded)?;
                recorded.durable = synced.durable || id == *safety;
            }
        }
        Ok(self.session.save_record(&record, Sync::Yes)?)
    }

    /// Apply a plan under its journal.
    fn carry_out(
        &self,
        plan: &RestorePlan,
        journal: Journal,
        safety: SnapshotId,
        deferred: &HashSet<ContentHash>,
    ) -> Result<Restored> {
        self.observer.changing();
        let mut outcome = apply(plan, &self.keeping(deferred), &journal, &*self.observer);
        if !outcome.cancelled {
            let wrong = verify(plan, &outcome);
            outcome.failed.extend(wrong);
            // The journal must stay until everything is on disk.
            sync(plan)?;
            let id = journal.record.id;
            journal.finish()?;
            // The next operation removes a note without a journal: no reason to fail the restore.
            let _ = self.withdraw(id);
        }
        if !outcome.kept.is_empty() {
            super::sessions::note(&self.store, &self.session, None, Sync::Yes)?;
        }
        Ok(Restored { outcome, safety })
    }

    /// Capture the current state under the rules of the snapshot to restore: exactly what the restore may touch.
    fn safety(
        &mut self,
        held: &SessionHold,
        target: &ManifestBody,
        restore: RestoreId,
        selection: &Selection,
    ) -> Result<Safety> {
        let mut captured = self.capture_as(target, selection)?;
        let deferred = std::mem::take(&mut captured.deferred);
        let record = self.recorded()?;
        let id = SnapshotId::Safety(format!("safety-{restore}"));
        self.publish(held, record, captured, id.clone(), None)?;
        let sheet = self.session.sheet(&self.recorded()?, &id)?;
        Ok(Safety { sheet, deferred })
    }

    pub(super) fn recover_held(&mut self, held: &SessionHold) -> Result<Option<Restored>> {
        let Some(journal) = Journal::load(&self.journal_path())? else { return Ok(None) };
        let _paused = self.make_room_to_restore()?;
        let record = self.recorded()?;
        let wanted = journal.record.clone();
        let named = |text: &str| self.whole(&record, &SnapshotId::from_text(text));
        let target = named(&wanted.target)?;
        let first = named(&wanted.safety)?;
        // A snapshot that can no longer be read is skipped; the restore has to be completed all the same.
        let asked = wanted.keep_changed_since.iter().filter(|_| !wanted.force);
        let since = asked.map(|text| SnapshotId::from_text(text)).filter(|id| self.can_compare(id));
        let since: Vec<ManifestBody> = since.map(|id| self.whole(&record, &id)).collect::<Result<_, _>>()?;
        let since = states(&since);
        if wanted.roots != self.roots {
            let dir = self.session.dir().to_owned();
            return Err(SnapshotError::OtherRoots { dir, roots: wanted.roots });
        }
        // The original plan tells where temporary files may be.
        let mut request = RestoreRequest {
            target: &target.state,
            current: &first.state,
            selection: &wanted.selection,
            except: &wanted.except,
            keep_changed_since: &since,
            force: wanted.force,
            resumed: None,
        };
        let none = HashSet::new();
        let objects = self.keeping(&none);
        let before = plan(&request, &objects)?;
        let swept = sweep(&before, wanted.id, &objects);
        drop(objects);
        let again = random_id()?;
        let Safety { sheet: now, deferred } = self.safety(held, &target, again, &wanted.selection)?;
        request.current = &now.state;
        request.resumed = Some(&first.state);
        // Changes made after the kill are not confirmed by the user: entries that are in neither the old nor the new
        // state stay.
        let either = [&first.state, &target.state];
        if wanted.force || since.is_empty() {
            request.keep_changed_since = &either;
            request.force = false;
        }
        let plan = plan(&request, &self.keeping(&deferred))?;
        look_ahead(&plan)?;
        self.make_durable(&now.id, None)?;
        let mut restored = self.carry_out(&plan, journal, first.id.clone(), &deferred)?;
        if !restored.cancelled {
            self.drop_unstored(held, &[&first.id, &now.id], &deferred)?;
        }
        restored.outcome.kept.extend(swept.kept);
        restored.outcome.failed.extend(swept.failed);
        Ok(Some(restored))
    }

    fn journal_path(&self) -> PathBuf {
        self.session.dir().join(JOURNAL)
    }

    fn keeping<'a>(&'a self, deferred: &'a HashSet<ContentHash>) -> Keeping<'a> {
        Keeping {
            deferred,
            objects: StoreObjects::new(&self.store),
            session: &self.session,
            one_at_a_time: Mutex::new(()),
        }
    }
}

/// A safety snapshot, and the contents that it names but the store does not hold yet.
struct Safety {
    sheet: ManifestBody,
    deferred: HashSet<ContentHash>,
}

/// Checks before anything is modified. Too little space for everything does not stop the restore: what does not fit is
/// reported by name.
fn look_ahead(plan: &RestorePlan) -> Result<()> {
    match preflight(plan) {
        Err(PreflightError::NoSpace { .. }) => Ok(()),
        other => Ok(other?),
    }
}

fn states(sheets: &[ManifestBody]) -> Vec<&SnapshotState> {
    sheets.iter().map(|sheet| &sheet.state).collect()
}

pub(super) fn random_id() -> Result<RestoreId> {
    let random = RestoreId::random();
    Ok(random.map_err(|source| SessionError::Io { path: "/dev/urandom".into(), source })?)
}

/// The store's objects; contents displaced by a restore are listed in the session before they are removed.
struct Keeping<'a> {
    /// Contents that are only in the tree.
    deferred: &'a HashSet<ContentHash>,
    objects: StoreObjects<'a>,
    session: &'a Session,
    one_at_a_time: Mutex<()>,
}

impl Objects for Keeping<'_> {
    fn node(&self, id: TreeId) -> Result<Arc<Node>, ObjectError> {
        self.objects.node(id)
    }

    fn write_file(
        &self,
        hash: ContentHash,
        size: u64,
        sparse: bool,
        out: BorrowedFd<'_>,
    ) -> Result<(), ObjectError> {
        self.objects.write_file(hash, size, sparse, out)
    }

    fn keep_file(&self, file: BorrowedFd<'_>, size: u64) -> Result<ContentHash, ObjectError> {
        let (hash, published) = self.objects.keep(file, size)?;
        let path = self.session.dir().to_owned();
        let failed = |error| ObjectError::Io { path: path.clone(), source: std::io::Error::other(error) };
        self.objects.sync().map_err(failed)?;
        let _alone = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = self.session.note_kept(hash);
        noted.map_err(|error| ObjectError::Io { path, source: std::io::Error::other(error) })?;
        drop(published);
        Ok(hash)
    }

    fn holds(&self, hash: ContentHash) -> bool {
        // Of two files with the same content the first may have been moved by now.
        !self.deferred.contains(&hash) || self.objects.contains(hash)
    }

    fn take_file(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        file: BorrowedFd<'_>,
        hash: ContentHash,
    ) -> Result<bool, ObjectError> {
        self.objects.take(dir, name, file, hash)
    }
}
