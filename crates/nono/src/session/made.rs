//! The directories of a tool's state that were missing: made before the command starts, and removed after it where it left
//! them empty.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nono_policy::data::{Group, GroupKind};
use nono_policy::{HostContext, MergedProfile, PolicyData};

/// Directories that were made, from the outermost on.
#[derive(Debug, Default)]
pub(super) struct Made(Vec<PathBuf>);

/// The directories of state that the groups of a profile have.
pub fn state_dirs(profile: &MergedProfile, host: &HostContext) -> Vec<PathBuf> {
    let chosen = |group: &&Group| {
        group.kind == GroupKind::Tool
            && profile.groups.include.contains(&group.name)
            && !profile.groups.exclude.contains(&group.name)
    };
    let groups = PolicyData::embedded().groups.iter().filter(chosen);
    groups.flat_map(|group| &group.create).filter_map(|text| host.expand(text).ok()).collect()
}

/// Make those that are missing. What cannot be made is not granted, as if nobody had tried.
pub(super) fn make(profile: &MergedProfile, host: &HostContext) -> Made {
    let mut made = Made::default();
    for dir in state_dirs(profile, host) {
        // Best effort: the policy says which of them are there.
        let _ = made.with_parents(&dir);
    }
    made
}

impl Made {
    fn with_parents(&mut self, dir: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = dir.ancestors().take_while(|dir| dir.symlink_metadata().is_err()).collect();
        for dir in missing.into_iter().rev() {
            match DirBuilder::new().mode(0o700).create(dir) {
                Ok(()) => self.0.push(dir.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Leave them to whoever runs on.
    pub(super) fn leave(mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for dir in self.0.iter().rev() {
            // One that is used now stays.
            let _ = std::fs::remove_dir(dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_made_and_goes_again_if_nobody_needed_it() {
        let home = tempfile::tempdir().unwrap();
        let host = HostContext { home: Some(home.path().to_owned()), ..HostContext::default() };
        let mut profile = MergedProfile::default();
        profile.groups.include.push("opencode".to_owned());
        std::fs::create_dir(home.path().join(".config")).unwrap();
        let made = make(&profile, &host);
        for dir in [".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"] {
            assert!(home.path().join(dir).is_dir(), "{dir}");
        }
        std::fs::write(home.path().join(".local/share/opencode/db"), "").unwrap();
        drop(made);
        let left = |dir: &str| home.path().join(dir).exists();
        assert!(left(".config") && left(".local/share/opencode/db"));
        assert!(!left(".config/opencode") && !left(".local/state") && !left(".cache"));
        assert!(make(&MergedProfile::default(), &host).0.is_empty());
    }
}
