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
    let mut applied = Applied::default();
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
    let mut record = InstallRecord::load(&plan.state_dir)?;
    let stamp = stamp();
    let mut folders = Vec::new();
    for change in &plan.changes {
        let done = match &change.after {
            Some(after) => put(plan, change, after, &stamp, &mut record, &mut applied),
            None => delete(plan, change, &stamp, &mut record, &mut applied).map(|made| folders.extend(made)),
        };
        // What was done is on record even if the next change fails.
        let saved = record.save(&plan.state_dir);
        done.and(saved)?;
    }
    // Innermost first. Folders with other files in them stay.
    folders.sort_by_key(|folder: &PathBuf| std::cmp::Reverse(folder.components().count()));
    folders.retain(|folder| plan.reach.remove_folder(folder).is_err());
    Ok(applied)
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

fn put(
    plan: &InstallPlan,
    change: &FileEdit,
    after: &[u8],
    stamp: &str,
    record: &mut InstallRecord,
    applied: &mut Applied,
) -> Result<(), InstallError> {
    let path = &change.path;
    let reach = plan.reach.for_change(change);
    let folders = reach.make_folders(path)?;
    let backup = change.before.as_ref().map(|before| back_up(plan, path, before, stamp)).transpose()?;
    applied.backups.extend(backup.clone());
    // nono's own file is private; the agent's files get what the umask allows.
    let mode = if change.purpose == Purpose::Config { 0o600 } else { 0o666 };
    reach.write(path, after, mode)?;
    applied.written.push(path.clone());
    if !plan.is_install {
        record.forget(path, plan.agent);
    } else if change.purpose != Purpose::Config {
        record.installed(path, plan.agent, (change.before.as_deref(), after), backup, folders);
    }
    Ok(())
}

/// Delete a file; returns the folders that were created for it.
fn delete(
    plan: &InstallPlan,
    change: &FileEdit,
    stamp: &str,
    record: &mut InstallRecord,
    applied: &mut Applied,
) -> Result<Vec<PathBuf>, InstallError> {
    let path = &change.path;
    if !is_only_ours(plan, change, record) {
        let before = change.before.as_deref().unwrap_or_default();
        applied.backups.push(back_up(plan, path, before, stamp)?);
    }
    plan.reach.for_change(change).remove_file(path)?;
    applied.removed.push(path.clone());
    Ok(record.forget(path, plan.agent).map(|file| file.folders()).unwrap_or_default())
}

/// Whether an install created the file and it was not changed since: nothing is lost with it.
fn is_only_ours(plan: &InstallPlan, change: &FileEdit, record: &InstallRecord) -> bool {
    let now = change.before.as_deref().unwrap_or_default();
    matches!(record.original(&change.path, plan.agent, now), Some(Ok(None)))
}

/// Current time as `YYYYMMDD-HHMMSS`.
fn stamp() -> String {
    let digits: String = nono_sys::time::now_iso().chars().filter(char::is_ascii_digit).take(14).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    format!("{day}-{time}")
}

/// Copy the planned content to nono's own folder, under an unused name.
fn back_up(plan: &InstallPlan, path: &Path, bytes: &[u8], stamp: &str) -> Result<PathBuf, InstallError> {
    let folder = plan.state_dir.join(BACKUPS);
    nono_policy::state_dir::ensure(&folder)?;
    for attempt in 1..1000 {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".backup-{stamp}"));
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
