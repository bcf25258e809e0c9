//! Grants by path, and their reduction: one folder instead of many files in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nono_policy::AccessMode;

use super::Proposed;

/// Number of entries in a folder that are replaced by a grant of the folder.
const ENOUGH: usize = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct Grants {
    folders: BTreeMap<PathBuf, AccessMode>,
    files: BTreeMap<PathBuf, AccessMode>,
}

fn add(map: &mut BTreeMap<PathBuf, AccessMode>, path: &Path, access: AccessMode) {
    let known = map.entry(path.to_owned()).or_insert(access);
    *known = known.union(access);
}

impl Grants {
    pub(super) fn folder(&mut self, path: &Path, access: AccessMode) {
        add(&mut self.folders, path, access);
    }

    pub(super) fn file(&mut self, path: &Path, access: AccessMode) {
        add(&mut self.files, path, access);
    }

    /// Add the access to the writable folder above `path`. False: there is none.
    pub(super) fn widen_above(&mut self, path: &Path, access: AccessMode) -> bool {
        // The topmost one existed before the run.
        let above =
            path.ancestors().skip(1).filter(|above| self.folders.get(*above).is_some_and(|a| a.writes()));
        let Some(above) = above.last().map(Path::to_owned) else { return false };
        self.folder(&above, access);
        true
    }

    /// Whether a folder above `path` gives the access already.
    fn is_covered(&self, path: &Path, access: AccessMode) -> bool {
        let given = path.ancestors().skip(1).filter_map(|above| self.folders.get(above).copied());
        given.reduce(AccessMode::union).is_some_and(|given| given.covers(access))
    }

    /// Fold until nothing changes, and drop grants covered by a folder above. `is_wide` names the folders that are
    /// never opened as a whole.
    pub(super) fn reduced(&self, is_wide: impl Fn(&Path, AccessMode) -> bool) -> Grants {
        let mut grants = self.clone();
        while let Some((folder, access)) = grants.next_fold(&is_wide) {
            grants.folder(&folder, access);
        }
        let all = grants.clone();
        let left = |map: &mut BTreeMap<PathBuf, AccessMode>| {
            map.retain(|path, access| !all.is_covered(path, *access));
        };
        left(&mut grants.folders);
        left(&mut grants.files);
        grants
    }

    /// The next folder to grant instead of its entries. Subfolders count for reading only; for writing, only files
    /// directly in the folder count.
    fn next_fold(&self, is_wide: &impl Fn(&Path, AccessMode) -> bool) -> Option<(PathBuf, AccessMode)> {
        [AccessMode::Read, AccessMode::Write].into_iter().find_map(|access| {
            let folders = self.folders.iter().filter(|_| access == AccessMode::Read);
            let mut counts: BTreeMap<&Path, usize> = BTreeMap::new();
            for (path, given) in self.files.iter().chain(folders) {
                let counts_here = given.covers(access) && !self.is_covered(path, access);
                if let Some(parent) = path.parent().filter(|_| counts_here) {
                    *counts.entry(parent).or_default() += 1;
                }
            }
            let fold = |(folder, count): (&Path, usize)| {
                let given = self.folders.get(folder).is_some_and(|given| given.covers(access));
                (count >= ENOUGH && !given && !is_wide(folder, access)).then(|| (folder.to_owned(), access))
            };
            counts.into_iter().find_map(fold)
        })
    }

    pub(super) fn into_list(self) -> Vec<Proposed> {
        let folders = self.folders.into_iter().map(|(path, access)| Proposed { path, access, is_dir: true });
        let files = self.files.into_iter().map(|(path, access)| Proposed { path, access, is_dir: false });
        folders.chain(files).collect()
    }
}
