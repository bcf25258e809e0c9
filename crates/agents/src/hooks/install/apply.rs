//! Carrying out a plan: each file is first copied to nono's own folder (a copy next to the file would be in reach of a
//! command), then replaced as a whole, at the target of a symlink and with its mode and owner. After an interruption
//! all files are whole, and running the same command again does the rest.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nono_sys::fs::Lock;

use super::install_record::InstallRecord;
use super::{FileEdit, InstallError, InstallPlan, Purpose};

/// Folder of the copies, in nono's folder.
const BACKUPS: &str = "backups";

/// Result of carrying out a plan.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    pub written: Vec<PathBuf>,
    pub removed: Vec<PathBuf>,
    pub backups: Vec<PathBuf>,
}

/// Write the changes of the plan.
pub fn apply(plan: &InstallPlan) -> Result<Applied, InstallError> {
    let applied = Applied::default();
    if plan.changes.is_empty() {
        return Ok(applied);
    }
    nono_policy::state_dir::ensure(&plan.state_dir)?;
    let lock = plan.state_dir.join("hooks.lock");
    let held = Lock::try_exclusive(&lock).map_err(InstallError::io(&lock))?;
    let _held = held.ok_or(InstallError::Busy { path: lock })?;
    // Check all of them before the first is written.
    for change in &plan.changes {
        check(plan, change)?;
    }
    let record = InstallRecord::load(&plan.state_dir)?;
    let mut work = Work { plan, stamp: stamp(), record, applied, folders: Vec::new() };
    for change in &plan.changes {
        let done = match &change.after {
            Some(after) => work.put(change, after),
            None => work.delete(change),
        };
        // What was done is on record even if the next change fails.
        let saved = work.record.save(&plan.state_dir);
        done.and(saved)?;
    }
    // Innermost first. Folders with other files in them stay.
    work.folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
    work.folders.retain(|folder| plan.reach.remove_folder(folder).is_err());
    Ok(work.applied)
}

/// Check that the file is still what the plan was made for, and at the same target.
fn check(plan: &InstallPlan, change: &FileEdit) -> Result<(), InstallError> {
    let reach = plan.reach.for_change(change);
    let is_there = change.purpose == Purpose::Config || reach.leads_to(&change.path)? == change.leads_to;
    if is_there && reach.read(&change.path)? == change.before {
        Ok(())
    } else {
        Err(InstallError::Changed { path: change.path.clone() })
    }
}

/// A plan that is being carried out.
struct Work<'a> {
    plan: &'a InstallPlan,
    stamp: String,
    record: InstallRecord,
    applied: Applied,
    /// Folders that were created for deleted files.
    folders: Vec<PathBuf>,
}

impl Work<'_> {
    fn put(&mut self, change: &FileEdit, after: &[u8]) -> Result<(), InstallError> {
        let (path, agent) = (&change.path, self.plan.agent);
        let reach = self.plan.reach.for_change(change);
        let folders = reach.make_folders(path)?;
        let backup = change.before.as_ref().map(|before| self.back_up(path, before)).transpose()?;
        self.applied.backups.extend(backup.clone());
        // nono's own file is private; the agent's files get what the umask allows.
        let mode = if change.purpose == Purpose::Config { 0o600 } else { 0o666 };
        reach.write(path, after, mode)?;
        self.applied.written.push(path.clone());
        if !self.plan.is_install {
            self.record.forget(path, agent);
        } else if change.purpose != Purpose::Config {
            self.record.installed(path, agent, (change.before.as_deref(), after), backup, folders);
        }
        Ok(())
    }

    fn delete(&mut self, change: &FileEdit) -> Result<(), InstallError> {
        let (path, agent) = (&change.path, self.plan.agent);
        let before = change.before.as_deref().unwrap_or_default();
        // What an install created and nobody changed since is not copied: nothing is lost with it.
        if !matches!(self.record.original(path, agent, before), Some(Ok(None))) {
            self.applied.backups.push(self.back_up(path, before)?);
        }
        self.plan.reach.for_change(change).remove_file(path)?;
        self.applied.removed.push(path.clone());
        self.folders.extend(self.record.forget(path, agent).into_iter().flat_map(|file| file.folders()));
        Ok(())
    }

    /// Copy the planned content to nono's own folder, under an unused name.
    fn back_up(&self, path: &Path, bytes: &[u8]) -> Result<PathBuf, InstallError> {
        let folder = self.plan.state_dir.join(BACKUPS);
        nono_policy::state_dir::ensure(&folder)?;
        for attempt in 1..1000 {
            let mut name = path.file_name().unwrap_or_default().to_os_string();
            name.push(format!(".backup-{}", self.stamp));
            if attempt > 1 {
                name.push(format!("-{attempt}"));
            }
            let backup = folder.join(name);
            match nono_sys::fs::make_file(&backup, 0o600, bytes) {
                Ok(()) => return Ok(backup),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(source) => return Err(InstallError::Io { path: backup, source }),
            }
        }
        Err(InstallError::Io { path: path.to_owned(), source: ErrorKind::AlreadyExists.into() })
    }
}

/// Current time as `YYYYMMDD-HHMMSS`.
fn stamp() -> String {
    let digits: String = nono_sys::time::now_iso().chars().filter(char::is_ascii_digit).take(14).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    format!("{day}-{time}")
}
