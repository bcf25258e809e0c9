//! Folder of a project in nono's state, locked for one operation.
//!
//! The folder is a session folder of the snapshot engine with a few more files beside the record. The lock here is
//! taken before the engine's own and covers a whole operation, so that the files match the record. Each project has its
//! own lock: two projects never wait for each other.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nono_snapshot::file;
use nono_snapshot::session::Session;

use crate::error::{CheckpointError, Result};
use crate::host::Host;
use crate::project::{self, Project, ProjectHash};
use crate::project_path::ProjectPath;

/// Locked project; unlocked on drop, and by the end of the process.
#[derive(Debug)]
#[must_use]
pub(crate) struct Folder {
    pub(crate) dir: PathBuf,
    pub(crate) hash: ProjectHash,
    pub(crate) project: Project,
    lock: File,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing is not enough: a process being forked by another thread has the descriptor until it executes.
        let _ = self.lock.unlock();
    }
}

const LOCK: &str = "project.lock";

/// Resolution of the time of last use, so that it is not written each time.
const TOUCH_SECONDS: u64 = 60;

impl Folder {
    /// Waits for the lock of this project and takes it. The project is created if missing.
    pub(crate) fn create(host: &Host, workdir: &Path) -> Result<Folder> {
        let dir = project::folder_of(host, workdir);
        loop {
            file::make_dirs(&dir).map_err(CheckpointError::io(&dir))?;
            let Some(lock) = hold(&dir)? else { continue };
            let now = nono_sys::time::now_iso();
            let project = match Project::load_or_rebuild(&dir)? {
                Some(project) => project,
                // New, or so damaged that only the folder's path is known.
                None => Project {
                    workdir: workdir.to_owned(),
                    created_at: now.clone(),
                    last_touch: now,
                    place: ProjectPath::of(workdir),
                },
            };
            let folder = Folder { dir, hash: ProjectHash::of(workdir), project, lock };
            folder.check(workdir)?;
            return Ok(folder);
        }
    }

    /// Locks an existing project.
    pub(crate) fn open(host: &Host, workdir: &Path) -> Result<Option<Folder>> {
        Folder::at(&project::folder_of(host, workdir))?
            .map(|folder| folder.check(workdir).map(|()| folder))
            .transpose()
    }

    /// Locks the project in a folder of `projects/`.
    pub(crate) fn at(dir: &Path) -> Result<Option<Folder>> {
        loop {
            if Project::load(dir)?.is_none() {
                return Ok(None);
            }
            let Some(lock) = hold(dir)? else { continue };
            let Some(project) = Project::load_or_rebuild(dir)? else { return Ok(None) };
            let hash = ProjectHash::of(&project.workdir);
            return Ok(Some(Folder { dir: dir.to_owned(), hash, project, lock }));
        }
    }

    fn check(&self, workdir: &Path) -> Result<()> {
        if self.project.workdir == workdir {
            return Ok(());
        }
        let what = format!("it records another project, {}", self.project.workdir.display());
        Err(CheckpointError::damaged(self.file(project::PROJECT), what))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Whether there is a record of snapshots that can be read.
    pub(crate) fn has_record(&self) -> bool {
        Session::new(&self.dir).record().is_ok_and(|record| record.is_some())
    }

    /// Sets the time of last use to now.
    pub(crate) fn touch(&mut self) -> Result<()> {
        let now = nono_sys::time::now_iso();
        let seconds = |moment: &str| nono_sys::time::seconds(moment).unwrap_or(0);
        // An empty file is the result of a power loss; what is known is written again.
        let there = self.file(project::PROJECT).metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 0);
        if there && seconds(&now).abs_diff(seconds(&self.project.last_touch)) < TOUCH_SECONDS {
            return Ok(());
        }
        self.project.last_touch = now;
        // A disk may come back elsewhere; if the folder is missing now, its last place is kept.
        self.project.place = ProjectPath::of(&self.project.workdir).or_else(|| self.project.place.take());
        self.project.save(&self.dir)
    }
}

/// Takes the lock; `None` if the folder was removed while waiting.
fn hold(dir: &Path) -> Result<Option<File>> {
    let path = dir.join(LOCK);
    let open = nono_sys::fs::open_lock(&path);
    let Some(lock) = file::existing(open).map_err(CheckpointError::io(&path))? else { return Ok(None) };
    lock.lock().map_err(CheckpointError::io(&path))?;
    let held = lock.metadata().map_err(CheckpointError::io(&path))?;
    let same = path.symlink_metadata().is_ok_and(|now| (now.dev(), now.ino()) == (held.dev(), held.ino()));
    Ok(same.then_some(lock))
}
