//! Locked project, with the engine's manager on it and its history matched to the record.

use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use nono_snapshot::exclusion::LargePacks;
use nono_snapshot::session::{SessionError, SnapshotList};
use nono_snapshot::{
    CaptureOptions, Coverage, ExclusionConfig, Limits, ManagerOptions, Next, Now, SnapshotError,
    SnapshotManager,
};

use super::CheckpointManager;
use crate::config::Ignored;
use crate::error::{CheckpointError, Result};
use crate::folder::Folder;
use crate::history::History;
use crate::project::{self, Root};

/// Age from which files count as settled: longer than the kernel holds back dirty pages; see [`CaptureOptions::young`].
const YOUNG: Duration = Duration::from_secs(120);

/// Project opened for one operation.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) folder: Folder,
    pub(crate) manager: SnapshotManager,
    pub(crate) history: History,
}

/// Limits of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// Limits from the settings.
    Settings,
    /// No limits: everything that a restore removes has to be stored.
    None,
}

impl Open {
    pub(crate) fn workdir(&self) -> &Path {
        &self.folder.project.workdir
    }

    pub(crate) fn save_history(&self) -> Result<()> {
        self.history.save(&self.folder.dir)
    }

    pub(crate) fn record(&self) -> Result<SnapshotList> {
        let record = self.manager.session().record().map_err(SnapshotError::from)?;
        Ok(record.unwrap_or_default())
    }

    /// Updates the numbers of files of all checkpoints, after something was purged from them.
    pub(crate) fn recount(&mut self) -> Result<()> {
        for line in &mut self.history.checkpoints {
            let Some(coverage) = readable(&self.manager, line.snapshot)? else { continue };
            (line.files, line.left_out) = (coverage.files, coverage.entries_left_out());
            line.stats = None;
        }
        self.save_history()
    }

    /// Matches the history to the record.
    pub(crate) fn look_now_as_newest(&mut self) -> Result<Now> {
        Ok(match self.record()?.newest() {
            Some(newest) => self.manager.look_now_as(&newest.into())?,
            None => self.manager.look_now(Next::default())?,
        })
    }

    fn repair(&mut self) -> Result<()> {
        let record = self.record()?;
        let manager = &self.manager;
        let coverage = |number| readable(manager, number);
        if self.history.repair(&self.folder.hash, &record, coverage)? {
            self.save_history()?;
        }
        Ok(())
    }
}

/// Coverage of a snapshot; `None` if its manifest is damaged or gone.
fn readable(manager: &SnapshotManager, number: u32) -> Result<Option<Coverage>> {
    match manager.load_manifest(number) {
        Ok(manifest) => Ok(Some(manifest.coverage)),
        Err(SnapshotError::Session(SessionError::Manifest { .. } | SessionError::Lost { .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl CheckpointManager {
    /// Project that a path belongs to.
    pub fn root_of(&self, path: &Path) -> Result<Root> {
        project::root_within(&self.host, path, self.within.as_deref())
    }

    /// Opens the project of a path, which must have a history.
    pub(crate) fn open(&self, path: &Path, bounds: Bounds) -> Result<Open> {
        let root = self.root_of(path)?;
        let none = || CheckpointError::NoProject { path: root.dir.clone() };
        let folder = Folder::open(&self.host, &root.dir)?.ok_or_else(none)?;
        if !folder.has_record() {
            return Err(none());
        }
        self.open_folder(folder, bounds)
    }

    /// Excluded paths of checkpoints: regenerable output, and files over the size limits.
    fn exclusion(&self) -> ExclusionConfig {
        let megabytes = |number: u64| number.saturating_mul(1 << 20);
        ExclusionConfig {
            use_gitignore: self.config.ignored == Ignored::LeaveOut,
            artifacts: true,
            max_ignored_folder: Some(megabytes(self.config.max_ignored_folder_mb)),
            // Half of the quota of all projects.
            max_repository: Some(megabytes(self.config.max_total_size_mb) / 2).filter(|limit| *limit > 0),
            large_git_packs: LargePacks::Take,
            ..ExclusionConfig::default()
        }
    }

    /// Opens a locked project and cleans up after killed processes.
    pub(crate) fn open_folder(&self, folder: Folder, bounds: Bounds) -> Result<Open> {
        let limited = bounds == Bounds::Settings;
        let megabytes = self.config.max_file_size_mb;
        let max_file = (limited && megabytes > 0).then(|| megabytes.saturating_mul(1 << 20));
        // What a restore replaces counts, but the quota must not prevent a safety snapshot.
        let quota = self.usage().quota(if limited { self.retention().max_bytes } else { 0 });
        let max_entries = if limited { self.config.max_files } else { 0 };
        let options = ManagerOptions {
            store: Some(self.host.state_dir.join("store")),
            quota: Some(quota),
            capture: CaptureOptions { max_file, young: Some(YOUNG), ..CaptureOptions::default() },
            own: std::iter::once(&self.host.state_dir).chain(&self.own).cloned().collect(),
            give_up_any: true,
            settle_by_hand: true,
            ..ManagerOptions::default()
        };
        let exclusion = self.exclusion();
        let limits = Limits { max_entries, max_bytes: 0 };
        // A project with snapshots has the roots of its record; one that cannot be read starts anew.
        let roots = (!folder.has_record()).then(|| folder.project.workdir.clone());
        let mut manager = SnapshotManager::with_options(&folder.dir, roots, exclusion, limits, options)?;
        // The path was checked before and may lead elsewhere by now.
        if manager.roots() != std::slice::from_ref(&folder.project.workdir) {
            return Err(CheckpointError::Moved { project: folder.project.workdir.clone() });
        }
        manager.observe(self.watcher.clone());
        let history = History::load_or_begin(&folder.dir)?;
        let mut open = Open { folder, manager, history };
        open.repair()?;
        if let Some(mut completed) = open.finish_restore()? {
            completed.done.unrecorded = self.recorder.as_ref().and_then(|record| record(&completed));
            self.completed.lock().unwrap_or_else(PoisonError::into_inner).push(completed);
        }
        let others = open.manager.complete_cut_off()?;
        let mut told = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        told.extend(others.iter().map(ToString::to_string));
        drop(told);
        Ok(open)
    }
}
