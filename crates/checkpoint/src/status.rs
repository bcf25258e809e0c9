//! Status of all projects, from their list alone: no tree is walked and no size counted.

use nono_history::quota::disk_bytes;

use crate::error::Result;
use crate::history::{DAMAGED, History};
use crate::manager::{CheckpointManager, ProjectStatus, StatusReport};
use crate::project::Project;
use crate::unprotected;
use crate::usage::Usage;

impl CheckpointManager {
    pub(crate) fn usage(&self) -> Usage {
        Usage::new(self.host())
    }

    /// Status of all projects, with the last known size; without one, the size of everything in the store.
    pub fn status(&self) -> Result<StatusReport> {
        let mut status = StatusReport {
            enabled: self.config().enabled,
            base: self.host().state_dir.clone(),
            ..StatusReport::default()
        };
        for dir in self.project_dirs()? {
            let damaged = dir.join(DAMAGED);
            if damaged.exists() {
                let what = "damaged and moved aside; names, pins and reasons of its checkpoints may be lost";
                status.problems.push(format!("{}: {what}", damaged.display()));
            }
            match project(&dir) {
                Ok(Some(project)) => status.projects.push(project),
                Ok(None) => {}
                Err(error) => status.problems.push(error.to_string()),
            }
        }
        status.projects.sort_by(|a, b| (&b.last_touch, &a.workdir).cmp(&(&a.last_touch, &b.workdir)));
        // A folder that is gone needs no protection.
        let notes = unprotected::without_project(self.host()).into_iter();
        status.unprotected = notes.filter(|note| note.dir.is_dir()).collect();
        for legacy in self.legacy()? {
            status.legacy_bytes = status.legacy_bytes.saturating_add(legacy.bytes);
            status.legacy.push((legacy.name(), legacy.bytes));
        }
        match self.usage().known() {
            Some(taken) => (status.store_bytes, status.exact) = (taken.bytes, taken.exact),
            None if status.projects.is_empty() => status.exact = true,
            None => {
                let projects = disk_bytes(&crate::project::projects_dir(self.host()))?;
                status.store_bytes = disk_bytes(&self.store_dir())?.saturating_add(projects);
            }
        }
        Ok(status)
    }
}

fn project(dir: &std::path::Path) -> Result<Option<ProjectStatus>> {
    let Some(project) = Project::load(dir)? else { return Ok(None) };
    let history = History::load(dir)?;
    Ok(Some(ProjectStatus {
        hash: dir.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        checkpoints: history.checkpoints.len() as u64,
        orphan: project.is_orphan(),
        last_touch: project.last_touch,
        workdir: project.workdir,
        unprotected: unprotected::of_project(dir).map(|note| note.why),
    }))
}
