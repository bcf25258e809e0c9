//! Changes since a checkpoint, file by file: kind, patch, and numbers of lines.

use std::path::PathBuf;

use nono_checkpoint::manager::Compared;
use nono_snapshot::ChangeCounts;

use crate::rollback::{Body, ChangeSet, Item, RollbackError, patch};

/// All changes, files that run later first.
#[derive(Clone, Debug)]
pub struct Differences {
    pub counts: ChangeCounts,
    pub all: Vec<Difference>,
}

/// Change of one file.
#[derive(Clone, Debug)]
pub struct Difference {
    pub item: Item,
    pub binary: bool,
    /// Patch for `git apply` and `patch -p1`. What a patch cannot express is a comment in it.
    pub patch: Vec<u8>,
    /// Lines added and removed; None if there are none to count.
    pub lines: Option<(usize, usize)>,
}

impl Differences {
    /// One patch of everything, by path.
    pub fn patch(&self) -> Vec<u8> {
        let mut all: Vec<&Difference> = self.all.iter().collect();
        all.sort_by_key(|one| &one.item.path);
        all.into_iter().flat_map(|one| &one.patch).copied().collect()
    }
}

/// Changes for display, limited to these files and directories. An empty list means all.
pub fn changes_of(compared: &mut Compared, of: &[PathBuf]) -> ChangeSet {
    super::changes(compared).within(of)
}

/// [`changes_of`] with patches and line counts.
pub fn differences(compared: &mut Compared, of: &[PathBuf]) -> Result<Differences, RollbackError> {
    let set = changes_of(compared, of);
    let all = set.items.iter().map(|item| one(compared, &set, item)).collect::<Result<_, _>>()?;
    Ok(Differences { counts: set.counts(), all })
}

fn one(compared: &Compared, set: &ChangeSet, item: &Item) -> Result<Difference, RollbackError> {
    let manager = &compared.manager;
    let mut text = Vec::new();
    patch::write_patch(manager, set, &[item], &mut text)?;
    let lines = match patch::file_diff(manager, item, 0)?.body {
        Body::Text(hunks) => Some(patch::line_counts(&hunks)),
        _ => None,
    };
    Ok(Difference { item: item.clone(), binary: patch::is_binary(manager, item)?, patch: text, lines })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nono_checkpoint::{CheckpointManager, CheckpointTarget, Config, Ensured, Host, Origin};

    use super::*;

    #[test]
    fn what_changed_in_lines_and_as_a_patch() {
        let dir = tempfile::tempdir().unwrap();
        let (project, state) = (dir.path().join("project"), dir.path().join("state"));
        fs::create_dir_all(project.join("sub")).unwrap();
        fs::write(project.join("a"), "one\ntwo\n").unwrap();
        fs::write(project.join("sub/b"), [0, 1]).unwrap();
        let host = Host { state_dir: state, home: dir.path().to_owned() };
        let mut manager = CheckpointManager::new(host, Config::default());
        let taken = manager.create(&project, "test", &Origin::default());
        assert!(matches!(taken, Ensured::Taken { .. }), "{taken:?}");
        fs::write(project.join("a"), "one\nthree\nfour\n").unwrap();
        fs::write(project.join("sub/b"), [0, 2]).unwrap();

        let target = CheckpointTarget::Text("1".to_owned());
        let mut compared = manager.compare(&project, &target).unwrap();
        let found = differences(&mut compared, &[]).unwrap();
        compared.close().unwrap();
        let told: Vec<_> = found.all.iter().map(|one| (one.binary, one.lines)).collect();
        assert_eq!(told, [(false, Some((2, 1))), (true, None)]);
        assert_eq!(found.counts.modified, 2);
        let patch = String::from_utf8_lossy(&found.patch()).into_owned();
        assert!(patch.contains("-two\n+three\n+four\n"), "{patch}");

        let root = project.canonicalize().unwrap();
        let mut compared = manager.compare(&project, &target).unwrap();
        let some = differences(&mut compared, &[root.join("sub")]).unwrap();
        compared.close().unwrap();
        assert_eq!(some.all.iter().map(|one| &one.item.path).collect::<Vec<_>>(), [&root.join("sub/b")]);
    }
}
