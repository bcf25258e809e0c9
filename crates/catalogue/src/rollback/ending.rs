//! The end of a tracked run: final snapshot, session record, audit log, retention.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use nono_snapshot::node::Reason;
use nono_snapshot::{
    CaptureError, ChangedByOthers, Example, Gaps, Lost, ManagerOptions, Manifest, Next, SessionMetadata,
    SnapshotError, SnapshotId, SnapshotManager,
};
use nono_sys::errno;

use super::catalogue::{Catalogue, RollbackSession};
use super::changes::Changed;
use super::entry::SessionEntry;
use super::error::RollbackError;
use super::live_lock::LiveLock;
use super::periodic_snapshots::Watching;
use super::quota::{self, StoreQuota};
use super::recorder::Recorder;
use super::running::SnapshotWork;
use super::settings::RollbackSettings;
use super::tracking::{RollbackReport, SharedObserver};
use super::{folder, seals};

/// Everything needed to finish a session when its command has ended.
#[derive(Debug)]
pub struct Ending {
    pub(super) catalogue: Catalogue,
    pub(super) session_dir: PathBuf,
    pub(super) metadata: SessionMetadata,
    pub(super) settings: RollbackSettings,
    pub(super) baseline: Manifest,
    pub(super) live: LiveLock,
    pub(super) quota: StoreQuota,
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) lost: Vec<Lost>,
    pub(super) warnings: Vec<String>,
}

impl Ending {
    /// Record the tracked paths that others changed between the agent's calls.
    #[must_use]
    pub fn with_others(mut self, others: Option<Vec<ChangedByOthers>>) -> Ending {
        let roots = &self.metadata.tracked_paths;
        let tracked = |other: &ChangedByOthers| roots.iter().any(|root| other.path.starts_with(root));
        self.metadata.others = others.map(|others| others.into_iter().filter(tracked).collect());
        self
    }

    /// Take the final snapshot, write the record, apply retention. The record is complete before the session stops
    /// being live: from then on other processes may restore or prune it.
    pub fn finish(
        mut self,
        watching: Watching,
        exit_code: Option<i32>,
        observer: SharedObserver,
        list: bool,
    ) -> RollbackReport {
        self.metadata.end(exit_code);
        let changes = self.last(Some(watching), observer, list);
        self.report(changes)
    }

    /// [`Ending::finish`] for a session whose supervisor was killed. If the snapshot is cancelled, nothing is changed.
    pub(super) fn finish_killed(
        mut self,
        observer: SharedObserver,
        list: bool,
    ) -> Result<RollbackReport, RollbackError> {
        self.metadata.interrupted = true;
        self.metadata.end(None);
        match self.last(None, observer, list) {
            Err(error) if is_cancelled(&error) => Err(error),
            changes => Ok(self.report(changes)),
        }
    }

    /// Apply retention, end the session and report. Other processes may restore or prune it from then on.
    fn report(mut self, changes: Result<Changed, RollbackError>) -> RollbackReport {
        // While this session is live, it is not pruned itself.
        let mut notes = Vec::new();
        if !self.quota.is_elsewhere() {
            // A session without changes pushes no other session out.
            let ending = Some(self.metadata.session_id.as_str()).filter(|_| !self.metadata.is_empty());
            match quota::prune_by_rule(&self.catalogue, &self.settings, ending) {
                Ok(removed) => notes.extend(removed),
                Err(error) => self.warnings.push(error.to_string()),
            }
        }
        if let Err(error) = self.live.end(&self.session_dir) {
            self.warnings.push(format!("{}: {}", self.session_dir.display(), errno::describe(&error)));
        }
        RollbackReport {
            id: self.metadata.session_id,
            dir: self.session_dir,
            coverage: self.baseline.coverage,
            made_uncovered: self.metadata.made_uncovered,
            lost: self.lost,
            snapshots: self.metadata.snapshot_count,
            changes,
            warnings: self.warnings,
            notes,
        }
    }

    fn last(
        &mut self,
        watching: Option<Watching>,
        observer: SharedObserver,
        list: bool,
    ) -> Result<Changed, RollbackError> {
        // After a panic of the thread a new manager continues: snapshots are on record, and the rules are those of the
        // baseline.
        let mut manager = match watching.map(Watching::stop) {
            Some(Some(SnapshotWork { manager, metadata, problems, .. })) => {
                self.warnings.extend(problems);
                self.metadata.checkpoints = metadata.checkpoints;
                manager
            }
            Some(None) => {
                self.warnings.push("the thread that takes snapshots ended unexpectedly".to_owned());
                self.resume()?
            }
            None => self.resume()?,
        };
        manager.observe(observer);
        let how = Next { open_closed: true, first_rules: true, if_changed: false };
        let (quota, warnings) = (&self.quota, &mut self.warnings);
        let taken = quota.with_room(&mut manager, Gaps::Allow, warnings, |manager| manager.create_next(how));
        manager.observe(());
        let taken = match taken {
            // A later command can try again.
            Err(error) if self.metadata.interrupted && is_cancelled(&error) => return Err(error),
            taken => taken,
        };
        if let Ok(Some(manifest)) = &taken
            && let Some(gaps) = nono_history::quota::gaps(&manifest.coverage)
        {
            self.warnings.push(format!("in the last snapshot: {gaps}"));
        }
        if let Ok(Some(manifest)) = &taken {
            self.metadata.final_snapshot = Some(manifest.number);
            self.recorder.taken(manifest);
            // The record is closed even if this fails.
            let first = manager.load_whole(&SnapshotId::Number(0)).map_err(RollbackError::from);
            match first.and_then(|first| made_uncovered(&first, manifest)) {
                Ok(made) => self.metadata.made_uncovered = made,
                Err(error) => self.warnings.push(error.to_string()),
            }
            match manager.losses(&SnapshotId::Number(0), &SnapshotId::Number(manifest.number)) {
                Ok(lost) => {
                    self.metadata.lost = lost.len() as u64;
                    self.lost = lost;
                }
                Err(error) => self.warnings.push(error.to_string()),
            }
        }
        self.take_in_log(taken.as_ref().ok().and_then(Option::as_ref));
        let changes = self.close(manager, list);
        taken?;
        changes
    }

    fn take_in_log(&mut self, last: Option<&Manifest>) {
        let closed = self.recorder.close(last);
        self.metadata.audit_event_count = closed.event_count;
        self.metadata.audit_integrity = closed.integrity;
        self.metadata.network_events = closed.network_events;
    }

    fn resume(&self) -> Result<SnapshotManager, RollbackError> {
        let options = ManagerOptions {
            store: Some(self.quota.store()),
            quota: Some(self.quota.quota()),
            own: vec![self.catalogue.state_dir.clone()],
            ..ManagerOptions::default()
        };
        Ok(SnapshotManager::resume(&self.session_dir, options)?)
    }

    /// Write the record, with the counts of changes if they are known.
    fn close(&mut self, manager: SnapshotManager, list: bool) -> Result<Changed, RollbackError> {
        let record = manager.session().record().map_err(SnapshotError::from)?.unwrap_or_default();
        self.metadata.merkle_roots = folder::numbered(&record).iter().map(|one| one.merkle_root).collect();
        self.metadata.snapshot_count = manager.snapshot_count()?;
        self.take_in_late_roots(&manager)?;
        let entry = SessionEntry::running(&self.metadata, &self.session_dir);
        let catalogue = self.catalogue.clone();
        let session = RollbackSession { entry, manager, catalogue, recovered: None, running: true };
        let last = SnapshotId::Number(self.metadata.final_snapshot.unwrap_or(0));
        let changes = Changed::between(&session.manager, &SnapshotId::Number(0), &last, list);
        // Without a final snapshot the changes are unknown, which is not the same as none.
        let known = changes.as_ref().ok().filter(|_| self.metadata.final_snapshot.is_some());
        self.metadata.changes = known.map(|changed| changed.counts);
        session.manager.save_session_metadata(&self.metadata)?;
        seals::seal(&self.catalogue, &self.metadata.session_id, &self.session_dir)?;
        changes
    }

    /// Include roots added while the command ran in the record and its coverage.
    fn take_in_late_roots(&mut self, manager: &SnapshotManager) -> Result<(), RollbackError> {
        if manager.roots() == self.metadata.tracked_paths {
            return Ok(());
        }
        self.metadata.tracked_paths = manager.roots().to_vec();
        self.baseline.coverage = manager.load_whole(&SnapshotId::Number(0))?.coverage;
        self.metadata.coverage = Some(self.baseline.coverage.clone());
        Ok(())
    }
}

fn is_cancelled(error: &RollbackError) -> bool {
    matches!(error, RollbackError::Snapshot(SnapshotError::Capture(CaptureError::Cancelled)))
}

/// Paths that the last snapshot leaves out and the first did not contain. Both are searched only if they differ,
/// because that takes time.
fn made_uncovered(first: &Manifest, last: &Manifest) -> Result<Vec<Example>, RollbackError> {
    if first.state == last.state {
        return Ok(Vec::new());
    }
    let known: HashSet<PathBuf> =
        first.left_out().map_err(SnapshotError::from)?.into_iter().map(|(path, _)| path).collect();
    let made = last.left_out().map_err(SnapshotError::from)?.into_iter();
    let made = made.filter(|(path, reason)| !known.contains(path) && *reason != Reason::OwnState);
    Ok(made.take(MADE).map(|(path, reason)| Example { path, reason: reason.to_string() }).collect())
}

/// Maximum number of such paths reported.
const MADE: usize = 20;
