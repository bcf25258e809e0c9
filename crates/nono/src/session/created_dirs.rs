//! Missing state directories of a tool: created before the command starts, and removed after it if they are still empty
//! and no other session relies on them.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nono_policy::data::{Group, GroupKind};
use nono_policy::{GrantKind, HostContext, MergedProfile, PolicyData, RunRequest};

use super::stand_ins::open_lock;
use nono_policy::state_dir;

/// Directories that were created, outermost first.
#[derive(Debug, Default)]
pub(super) struct CreatedDirs {
    dirs: Vec<PathBuf>,
    /// Held shared by all sessions that rely on such directories, from before they look for them until they end.
    lock: Option<File>,
}

/// The state directories of an agent, from the group of the same name.
pub fn agent_state(agent: &str, host: &HostContext) -> Vec<PathBuf> {
    let group = PolicyData::embedded().group(&agent.replace('-', "_"));
    group.into_iter().flat_map(|group| &group.create).filter_map(|text| host.expand(text).ok()).collect()
}

/// The state and cache directories of a profile's groups.
fn state_dirs(profile: &MergedProfile, host: &HostContext) -> Vec<PathBuf> {
    let chosen = |group: &&Group| {
        group.kind == GroupKind::Tool
            && profile.groups.include.contains(&group.name)
            && !profile.groups.exclude.contains(&group.name)
    };
    let groups = PolicyData::embedded().groups.iter().filter(chosen);
    groups.flat_map(|group| &group.create).filter_map(|text| host.expand(text).ok()).collect()
}

/// Directories granted for writing that the policy knows by name, so that a missing one is no typing error.
fn granted_dirs(request: &RunRequest, host: &HostContext) -> Vec<PathBuf> {
    let known = PolicyData::embedded().groups.iter().flat_map(|group| &group.made);
    let known: Vec<PathBuf> = known.filter_map(|text| host.expand(text).ok()).collect();
    let grants = request.grants.iter();
    let written = grants.filter(|grant| grant.access.writes() && grant.kind == GrantKind::Directory);
    written.map(|grant| host.absolute(&grant.path)).filter(|path| known.contains(path)).collect()
}

/// Create the missing ones. A directory that cannot be created is not granted.
pub(super) fn make(request: &RunRequest, profile: &MergedProfile, host: &HostContext) -> CreatedDirs {
    let dirs = [state_dirs(profile, host), granted_dirs(request, host)].concat();
    if dirs.is_empty() {
        return CreatedDirs::default();
    }
    let mut made = CreatedDirs { dirs: Vec::new(), lock: shared_lock(&host.state_dir).ok() };
    for dir in dirs {
        // Best effort: the policy says which of them are there.
        let _ = made.with_parents(&dir);
    }
    made
}

fn shared_lock(state_dir: &Path) -> io::Result<File> {
    state_dir::ensure(state_dir).map_err(io::Error::other)?;
    let lock = open_lock(state_dir, "made.lock")?;
    lock.lock_shared()?;
    Ok(lock)
}

impl CreatedDirs {
    fn with_parents(&mut self, dir: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = dir.ancestors().take_while(|dir| dir.symlink_metadata().is_err()).collect();
        for dir in missing.into_iter().rev() {
            match DirBuilder::new().mode(0o700).create(dir) {
                Ok(()) => self.dirs.push(dir.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Keep them: the command goes on after this process is replaced.
    pub(super) fn leave(mut self) {
        self.dirs.clear();
    }
}

impl Drop for CreatedDirs {
    fn drop(&mut self) {
        // Another session may have an empty one mounted, and would write into a removed directory.
        let alone = self.lock.as_ref().is_some_and(|lock| lock.try_lock().is_ok());
        for dir in self.dirs.iter().rev().filter(|_| alone) {
            // Fails for one that is in use, which stays.
            let _ = std::fs::remove_dir(dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nono_policy::{AccessMode, GrantRequest};

    #[test]
    fn every_agent_has_state_of_its_own() {
        let host = HostContext { home: Some("/h".into()), ..HostContext::default() };
        for agent in &PolicyData::embedded().agents {
            assert!(!agent_state(&agent.name, &host).is_empty(), "{}", agent.name);
        }
    }

    #[test]
    fn a_folder_that_is_known_by_name_is_made_where_it_is_granted_for_writing() {
        let home = tempfile::tempdir().unwrap();
        let host = HostContext {
            home: Some(home.path().to_owned()),
            state_dir: home.path().join(".nono"),
            ..HostContext::default()
        };
        let request = |name: &str, access| {
            let grant = GrantRequest { path: home.path().join(name), access, kind: GrantKind::Directory };
            RunRequest { grants: vec![grant], ..RunRequest::default() }
        };
        let made = |request: &RunRequest| make(request, &MergedProfile::default(), &host);
        assert!(made(&request(".gnupg", AccessMode::Read)).dirs.is_empty());
        assert!(made(&request(".gnupgg", AccessMode::ReadWrite)).dirs.is_empty());
        let keyring = made(&request(".gnupg", AccessMode::ReadWrite));
        assert!(home.path().join(".gnupg").is_dir());
        drop(keyring);
        assert!(!home.path().join(".gnupg").exists());
    }

    #[test]
    fn missing_directories_are_made_and_removed_if_unused() {
        let home = tempfile::tempdir().unwrap();
        let host = HostContext {
            home: Some(home.path().to_owned()),
            state_dir: home.path().join(".nono"),
            ..HostContext::default()
        };
        let mut profile = MergedProfile::default();
        profile.groups.include.push("opencode".to_owned());
        std::fs::create_dir(home.path().join(".config")).unwrap();
        let made = make(&RunRequest::default(), &profile, &host);
        for dir in [".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"] {
            assert!(home.path().join(dir).is_dir(), "{dir}");
        }
        std::fs::write(home.path().join(".local/share/opencode/db"), "").unwrap();
        drop(made);
        let left = |dir: &str| home.path().join(dir).exists();
        assert!(left(".config") && left(".local/share/opencode/db"));
        assert!(!left(".config/opencode") && !left(".local/state") && !left(".cache"));
        assert!(make(&RunRequest::default(), &MergedProfile::default(), &host).dirs.is_empty());
        // A directory that another session relies on stays.
        let (first, second) =
            (make(&RunRequest::default(), &profile, &host), make(&RunRequest::default(), &profile, &host));
        drop(first);
        assert!(left(".config/opencode") && left(".local/state/opencode"));
        drop(second);
        assert!(left(".config/opencode"), "the second did not make it");
    }
}
