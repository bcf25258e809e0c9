//! Detection of a `.git` that differs only in ways that do not matter.
//!
//! A `.git` is restored or kept as a whole. `git status` alone rewrites its index, with other times and inode numbers;
//! if that made it a conflict, a hook that the session planted in it would stay.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use nono_snapshot::diff::{FileKind, Version};
use nono_snapshot::restore::{Skipped, Why};
use nono_snapshot::{Change, ContentHash, RestoreOptions, SnapshotId, git_index};

use crate::error::Result;
use crate::log::Scope;
use crate::restore::History;

/// Largest index compared.
const COMPARED: u64 = 128 << 20;

/// Repositories that are restored after all.
#[derive(Debug, Default)]
pub(crate) struct Unchanged {
    /// Each `.git`, or the chosen paths in it if only some were chosen.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) changes: Vec<Change>,
}

impl History<'_> {
    /// Remove a `.git` from the conflicts of a restore to `target` if every path that the restore would change is as in
    /// one of `bases`, or is an index with the same entries.
    pub(crate) fn take_unchanged(
        &mut self,
        target: &SnapshotId,
        scope: &Scope,
        bases: &[SnapshotId],
        skipped: &mut Vec<Skipped>,
    ) -> Result<Unchanged> {
        let conflicts = skipped.iter().filter(|skipped| skipped.why == Why::ChangedSince);
        let conflicts = conflicts.map(|skipped| &skipped.path);
        let mut repositories: Vec<PathBuf> =
            conflicts.filter(|path| path.file_name() == Some(OsStr::new(".git"))).cloned().collect();
        if repositories.is_empty() {
            return Ok(Unchanged::default());
        }
        let paths = repositories.clone();
        let options =
            RestoreOptions { paths, except: scope.except.clone(), force: true, ..RestoreOptions::default() };
        let mut changes = self.manager.plan_restore(target, &options)?.changes().to_vec();
        let mut others: Vec<PathBuf> = changes.iter().map(|change| change.path.clone()).collect();
        for base in bases {
            if others.is_empty() {
                break;
            }
            others = self.other_than(base, &options, others)?;
        }
        repositories.retain(|repository| !others.iter().any(|other| other.starts_with(repository)));
        skipped.retain(|skipped| !repositories.contains(&skipped.path));
        let paths: Vec<PathBuf> =
            repositories.iter().flat_map(|repository| chosen(repository, &scope.paths)).collect();
        changes.retain(|change| paths.iter().any(|path| change.path.starts_with(path)));
        Ok(Unchanged { paths, changes })
    }

    /// Paths whose present state differs from a snapshot.
    fn other_than(
        &mut self,
        base: &SnapshotId,
        options: &RestoreOptions,
        paths: Vec<PathBuf>,
    ) -> Result<Vec<PathBuf>> {
        let plan = self.manager.plan_restore(base, options)?;
        let changes = plan.changes().to_vec();
        let changes: HashMap<&Path, &Change> =
            changes.iter().map(|change| (change.path.as_path(), change)).collect();
        let mut others = Vec::new();
        for path in paths {
            let is_other = match changes.get(path.as_path()) {
                Some(change) => !self.is_same_index(options, change)?,
                // What the snapshot does not contain cannot be compared.
                None => plan.skipped().iter().any(|skipped| path.starts_with(&skipped.path)),
            };
            if is_other {
                others.push(path);
            }
        }
        Ok(others)
    }

    fn is_same_index(&self, options: &RestoreOptions, change: &Change) -> Result<bool> {
        if !options.paths.iter().any(|repository| is_index(repository, &change.path)) {
            return Ok(false);
        }
        let (Some(old), Some(new)) = (file_content(change.old.as_ref()), file_content(change.new.as_ref()))
        else {
            return Ok(false);
        };
        let (old, new) = (self.manager.content(old, COMPARED)?, self.manager.content(new, COMPARED)?);
        Ok(matches!((old, new), (Some(old), Some(new)) if git_index::same_entries(&old, &new)))
    }
}

/// Content hash of a regular file.
pub fn file_content(version: Option<&Version>) -> Option<ContentHash> {
    version.filter(|version| version.kind == FileKind::File).and_then(|version| version.hash)
}

/// Outermost `.git` that the path is, or is in.
pub fn git_of(path: &Path) -> Option<&Path> {
    path.ancestors().filter(|above| above.file_name().is_some_and(|name| name == ".git")).last()
}

/// Whether this is an index of the repository itself, of one of its worktrees, or of a submodule.
fn is_index(repository: &Path, path: &Path) -> bool {
    let Ok(below) = path.strip_prefix(repository) else { return false };
    let names: Vec<&OsStr> = below.iter().collect();
    match names.as_slice() {
        [index] => *index == "index",
        [first, _, index] if *first == "worktrees" => *index == "index",
        [first, _, .., index] if *first == "modules" => *index == "index",
        _ => false,
    }
}

/// Chosen part of a repository: all of it, or these paths.
fn chosen(repository: &Path, paths: &[PathBuf]) -> Vec<PathBuf> {
    if paths.is_empty() || paths.iter().any(|path| repository.starts_with(path)) {
        return vec![repository.to_owned()];
    }
    paths.iter().filter(|path| path.starts_with(repository)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_an_index_is() {
        let is = |path: &str| is_index(Path::new("/a/.git"), &Path::new("/a/.git").join(path));
        assert!(is("index") && is("worktrees/one/index") && is("modules/deep/er/index"));
        assert!(is("modules/one/worktrees/two/index"));
        assert!(
            !is("hooks/index") && !is("worktrees/index") && !is("refs/heads/index") && !is("index/index")
        );
        assert!(!is_index(Path::new("/a/.git"), Path::new("/b/.git/index")));
    }

    #[test]
    fn what_is_chosen_of_a_repository() {
        let of = |paths: &[&str]| {
            let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            chosen(Path::new("/a/.git"), &paths)
        };
        for whole in [&[][..], &["/a"], &["/a/.git/hooks", "/a/.git"]] {
            assert_eq!(of(whole), [PathBuf::from("/a/.git")]);
        }
        assert_eq!(of(&["/b", "/a/.git/hooks"]), [PathBuf::from("/a/.git/hooks")]);
    }
}
