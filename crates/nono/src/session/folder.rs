//! The temporary folder of one session: what the child may see of nono, and the files used as masks.
//!
//! It lives in the temporary folder, never in nono's state, below one private folder per user. Its name consists of the
//! owner's pid, start time and pid namespace, so that the next run can remove what a killed or replaced process left
//! behind. The name is short because programs bind sockets below `TMPDIR`, and a socket path is limited to 107 bytes.
//! The masks are the same for all sessions, so they are made once per user.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nono_catalogue::session_ref::new_id;
use nono_policy::{ResolvedPolicy, SandboxState, Typed};
use nono_sandbox::SessionPaths;
use nono_sys::{fs, process};

use nono_agents::saved;

/// A session's folder; removed when dropped, unless it is left for the next run to remove.
#[derive(Debug)]
pub struct SessionFolder {
    pub id: String,
    pub dir: PathBuf,
    base: PathBuf,
    /// Base folders in other temporary directories, which the command may not change either.
    others: Vec<PathBuf>,
    keep: bool,
}

impl SessionFolder {
    /// Make a new folder below `base`, and remove those of ended sessions.
    pub fn create(base: &Path) -> io::Result<SessionFolder> {
        make_base(base)?;
        let pid = std::process::id();
        let started = process::start_time(pid).unwrap_or(0);
        let id = new_id();
        let name = format!("{pid:x}.{started:x}.{:x}", process::pid_namespace());
        sweep(base, &name);
        let mut attempt = 0u32;
        loop {
            let dir = match attempt {
                0 => base.join(&name),
                _ => base.join(format!("{name}.{attempt:x}")),
            };
            match fs::make_dir(&dir, 0o700) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
                Err(error) => return Err(error),
                Ok(()) => {
                    let folder =
                        SessionFolder { id, dir, base: base.to_owned(), others: Vec::new(), keep: false };
                    fs::make_dir(&folder.tmp(), 0o700)?;
                    return Ok(folder);
                }
            }
        }
    }

    /// The child's folder for temporary files.
    pub fn tmp(&self) -> PathBuf {
        self.paths().tmp_dir()
    }

    /// Path of the policy description for the child.
    pub fn cap_file(&self) -> PathBuf {
        self.dir.join("capabilities.json")
    }

    pub fn paths(&self) -> SessionPaths {
        SessionPaths {
            dir: self.dir.clone(),
            mask_dir: self.base.join(CLOSED_DIR),
            mask_file: self.base.join(CLOSED_FILE),
            empty_dir: self.base.join(EMPTY_DIR),
            run_dir: self.dir.join("run"),
            others: self.others.clone(),
        }
    }

    /// Protect the base folders in the usual temporary directories from a command that may write there. Missing ones
    /// are created: a command that creates one itself would control the folders of later sessions.
    pub fn close_usual_bases(&mut self, policy: &ResolvedPolicy) {
        let writable = |dir: &Path| {
            policy.grants.iter().any(|grant| grant.access.writes() && dir.starts_with(&grant.resolved))
        };
        let usual = USUAL_TEMP.iter().filter_map(|temp| Path::new(temp).canonicalize().ok());
        let bases = usual.map(|temp| base_in(&temp)).filter(|base| *base != self.base && writable(base));
        // A base that belongs to another user, or cannot be made, is not used by this user's sessions.
        self.others.extend(bases.filter(|base| make_base(base).is_ok()));
    }

    /// Write the policy description for the child.
    pub fn describe(
        &self,
        policy: &ResolvedPolicy,
        name: Option<&str>,
        typed: Option<Typed>,
    ) -> io::Result<()> {
        let state = SandboxState::told(policy, name.map(str::to_owned), Some(self.id.clone()));
        let state = SandboxState { typed, ..state };
        // Compact: it is written at every start and read by programs.
        fs::make_file_by(&self.cap_file(), 0o400, |file| Ok(serde_json::to_writer(file, &state)?))
    }

    /// Keep the folder for the next run to remove: this process is about to become the command.
    pub fn leave(mut self) {
        self.keep = true;
    }
}

impl Drop for SessionFolder {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed now is swept by the next run.
            let _ = fs::remove_tree(&self.dir);
        }
    }
}

/// Temporary directories used unless `TMPDIR` is set.
const USUAL_TEMP: &[&str] = &["/tmp", "/var/tmp"];

/// The user's base folder for sessions in a temporary directory.
pub(super) fn base_in(temp: &Path) -> PathBuf {
    temp.join(format!("nono-{}", process::uid()))
}

const CLOSED_DIR: &str = "closed";
const CLOSED_FILE: &str = "closed-file";
const EMPTY_DIR: &str = "empty";

/// Make the user's base folder, with the masks that all sessions share.
fn make_base(base: &Path) -> io::Result<()> {
    make_private(base)?;
    for (name, mode) in [(CLOSED_DIR, 0o000), (EMPTY_DIR, 0o500)] {
        let dir = base.join(name);
        shared(&dir, fs::make_dir(&dir, mode), mode, |meta| meta.is_dir() && meta.nlink() <= 2)?;
    }
    let file = base.join(CLOSED_FILE);
    shared(&file, fs::make_file(&file, 0o000, b""), 0o000, |meta| meta.is_file() && meta.len() == 0)
}

/// Make a folder that only this user can change, or check that the existing one is.
pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    match fs::make_dir(dir, 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let why = "it exists, but is not a folder that only you can write";
            let trusted = fs::check_private_dir(dir, process::uid())?;
            trusted.map_err(|_| io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
        result => result,
    }
}

/// Check that a mask was made, or that the existing one is exactly what would be made: a mask that was changed could
/// show content instead of hiding it.
fn shared(
    path: &Path,
    made: io::Result<()>,
    mode: u32,
    is_empty: impl Fn(&Metadata) -> bool,
) -> io::Result<()> {
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        result => return result,
    }
    let meta = std::fs::symlink_metadata(path)?;
    if is_empty(&meta) && meta.uid() == process::uid() && meta.mode() & 0o7777 == mode {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("{} was changed; remove it", path.display())))
}

/// Remove the folders of sessions whose process is gone, after carrying back what agents saved there. Best effort: what
/// stays is tried again by the next run.
fn sweep(base: &Path, own_name: &str) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    let orphans = entries.flatten().map(|entry| entry.path()).filter(|dir| is_orphan(dir));
    for orphan in orphans {
        // The rename succeeds for one process only. The new name is an orphan again if this process dies.
        let taken = base.join(format!("{own_name}.swept-{}", new_id()));
        if std::fs::rename(&orphan, &taken).is_ok() {
            saved::carry_out(&taken);
            let _ = fs::remove_tree(&taken);
        }
    }
}

/// Whether a session folder's owner is gone. Folders with other names or of other pid namespaces do not count; nor does
/// a process that exists but whose start time `/proc` does not tell.
pub(crate) fn is_orphan(dir: &Path) -> bool {
    let Some((pid, started, namespace)) = owner(dir) else { return false };
    let gone = || match process::start_time(pid) {
        Some(now) => now != started,
        None => !process::exists(pid),
    };
    namespace == process::pid_namespace() && gone()
}

/// Pid, start time and pid namespace from the folder's name.
fn owner(dir: &Path) -> Option<(u32, u64, u64)> {
    let name = dir.file_name()?.to_str()?;
    let mut parts = name.split('.').map(|part| u64::from_str_radix(part, 16).ok());
    Some((parts.next()??.try_into().ok()?, parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_session_and_orphans_go_with_the_next() {
        let base = std::env::temp_dir().join(format!("nono-folder-test-{}", std::process::id()));
        let orphan = base.join(format!("3b9ac9ff.1.{:x}", process::pid_namespace()));
        let elsewhere = base.join("3b9ac9ff.1.1");
        let stranger = base.join("stranger");
        let first = SessionFolder::create(&base).unwrap();
        std::fs::create_dir(&orphan).unwrap();
        std::fs::create_dir(&stranger).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        let second = SessionFolder::create(&base).unwrap();
        assert!(!orphan.exists(), "swept");
        assert!(stranger.exists(), "not ours");
        assert!(elsewhere.exists(), "of another pid namespace");
        assert!(first.dir.exists(), "alive");
        assert_ne!(first.id, second.id);
        assert!(second.tmp().as_os_str().len() - base.as_os_str().len() < 40, "room for a socket's path");
        let dir = first.dir.clone();
        drop(first);
        assert!(!dir.exists());
        drop(second);
        fs::remove_tree(&base).unwrap();
    }
}
