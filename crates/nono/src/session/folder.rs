//! The folder of one session: what the child may see of nono, and the material for its masks.
//!
//! It lives in the temporary folder, never in nono's state, below one private folder per user. It names its owner by
//! pid and start time, so that the next run can sweep what a killed or replaced process left behind.

use std::io;
use std::path::{Path, PathBuf};

use nono_policy::{ResolvedPolicy, SandboxState};
use nono_sandbox::SessionPaths;
use nono_sys::{fs, process};

/// A session's folder; removed when dropped, unless it is left to the next run's sweep.
#[derive(Debug)]
pub struct SessionFolder {
    pub id: String,
    pub dir: PathBuf,
    keep: bool,
}

impl SessionFolder {
    /// Make a new one below `base`, and sweep what ended sessions left there.
    pub fn create(base: &Path) -> io::Result<SessionFolder> {
        make_base(base)?;
        sweep(base);
        let stamp = format!("{}-{}", process::timestamp(), std::process::id());
        for attempt in 0u32.. {
            let id = if attempt == 0 { stamp.clone() } else { format!("{stamp}-{attempt}") };
            let dir = base.join(&id);
            match fs::make_dir(&dir, 0o700) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    let folder = SessionFolder { id, dir, keep: false };
                    folder.furnish()?;
                    return Ok(folder);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn furnish(&self) -> io::Result<()> {
        let pid = std::process::id();
        let owner = format!("{pid} {}", process::start_time(pid).unwrap_or(0));
        fs::make_file(&self.dir.join("owner"), 0o400, owner.as_bytes())?;
        fs::make_dir(&self.tmp(), 0o700)?;
        let paths = self.paths();
        fs::make_dir(&paths.run_dir, 0o700)?;
        fs::make_dir(&paths.mask_dir, 0o000)?;
        fs::make_file(&paths.mask_file, 0o000, b"")
    }

    /// The child's own place for temporary files.
    pub fn tmp(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    /// Where the child's policy is described to itself.
    pub fn cap_file(&self) -> PathBuf {
        self.dir.join("capabilities.json")
    }

    pub fn paths(&self) -> SessionPaths {
        SessionPaths {
            dir: self.dir.clone(),
            mask_dir: self.dir.join("closed"),
            mask_file: self.dir.join("closed-file"),
            run_dir: self.dir.join("run"),
        }
    }

    /// Write down the policy for the child.
    pub fn describe(&self, policy: &ResolvedPolicy, name: Option<&str>) -> io::Result<()> {
        let state = SandboxState::from_policy(policy, name.map(str::to_owned), Some(self.id.clone()));
        let json = state.to_json().map_err(io::Error::other)?;
        fs::make_file(&self.cap_file(), 0o400, json.as_bytes())
    }

    /// Leave the folder to the next run: this process is about to become the command.
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

fn make_base(base: &Path) -> io::Result<()> {
    match fs::make_dir(base, 0o700) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let trusted = fs::check_private_dir(base, process::uid())?;
            trusted.map_err(|_| io::Error::new(io::ErrorKind::PermissionDenied, "somebody else's folder has that name"))
        }
        Err(error) => Err(error),
    }
}

/// Remove the folders of sessions whose process is gone. Best effort: a folder in the way of nothing can wait.
fn sweep(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        if is_orphan(&entry.path()) {
            let _ = fs::remove_tree(&entry.path());
        }
    }
}

/// A folder without an owner file is being made right now by somebody else, or is not ours: it stays.
fn is_orphan(dir: &Path) -> bool {
    let Ok(owner) = std::fs::read_to_string(dir.join("owner")) else { return false };
    let mut words = owner.split(' ');
    let pid = words.next().and_then(|word| word.parse::<u32>().ok());
    let started = words.next().and_then(|word| word.parse::<u64>().ok());
    match (pid, started) {
        (Some(pid), Some(started)) => process::start_time(pid) != Some(started),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_session_and_orphans_go_with_the_next() {
        let base = std::env::temp_dir().join(format!("nono-folder-test-{}", std::process::id()));
        let orphan = base.join("orphan");
        let first = SessionFolder::create(&base).unwrap();
        std::fs::create_dir(&orphan).unwrap();
        std::fs::write(orphan.join("owner"), "999999999 1").unwrap();
        let second = SessionFolder::create(&base).unwrap();
        assert!(!orphan.exists(), "swept");
        assert!(first.dir.exists(), "alive");
        assert_ne!(first.id, second.id);
        let dir = first.dir.clone();
        drop(first);
        assert!(!dir.exists());
        drop(second);
        std::fs::remove_dir(&base).unwrap();
    }
}
