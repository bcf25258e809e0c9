//! Closed files under other names.
//!
//! A file with several names is looked up among the closed files before the user is asked about it: a person who is
//! shown `~/backup/key` does not see that it is `~/.ssh/id_rsa`. The names below a closed directory are collected when
//! the first such file comes up, and again when they are too old; their number is bounded, since a directory may hold
//! anything. A link made a moment ago, or beyond that bound, is a file like any other: it is asked about, never simply
//! opened. (The command cannot make one: its mounts and Landlock are between it and the closed files.)

use std::collections::{HashMap, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nono_policy::{AccessMode, DeniedReason, PathKind, QueryResult, ResolvedPolicy, query_path};

use super::pin_path::Identity;

/// Maximum number of entries examined, over all closed directories together.
const MOST: usize = 20_000;
/// Maximum age of the collected names.
const FRESH: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Aliases {
    closed: Vec<(PathBuf, DeniedReason)>,
    known: Mutex<Option<(Instant, HashMap<Identity, DeniedReason>)>>,
}

impl Aliases {
    pub(super) fn new(policy: &ResolvedPolicy, own: &[PathBuf]) -> Aliases {
        let closed = policy.closed.iter().filter(|closed| closed.kind != PathKind::Absent);
        let closed =
            closed.filter_map(|closed| match query_path(policy, &closed.resolved, true, AccessMode::Write) {
                QueryResult::Denied { reason, .. } => Some((closed.resolved.clone(), reason)),
                QueryResult::Allowed { .. } => None,
            });
        let own = own.iter().map(|path| (path.clone(), DeniedReason::NonoState));
        Aliases { closed: closed.chain(own).collect(), known: Mutex::default() }
    }

    /// Reason a file with several names is closed, if one of them is.
    pub(super) fn reason(&self, identity: Identity) -> Option<DeniedReason> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|(at, _)| at.elapsed() > FRESH) {
            *known = Some((Instant::now(), self.gather()));
        }
        known.as_ref().and_then(|(_, files)| files.get(&identity).cloned())
    }

    fn gather(&self) -> HashMap<Identity, DeniedReason> {
        let mut found = HashMap::new();
        let mut left = MOST;
        // Breadth first over all of them: one large directory does not keep the others from being seen.
        let mut waiting: VecDeque<_> = self.closed.iter().map(|(path, why)| (path.clone(), why)).collect();
        while let Some((path, why)) = waiting.pop_front() {
            if left == 0 {
                break;
            }
            left -= 1;
            // One that cannot be examined has no name that the user could have given it elsewhere.
            let meta =
                std::fs::symlink_metadata(&path).ok().filter(|meta| meta.is_file() && meta.nlink() > 1);
            if let Some(meta) = meta {
                found.entry(Identity::of(&meta)).or_insert_with(|| why.clone());
            }
            waiting.extend(below(&path, left.saturating_sub(waiting.len())).map(|below| (below, why)));
        }
        found
    }
}

fn below(path: &Path, most: usize) -> impl Iterator<Item = PathBuf> + use<> {
    let is_folder = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    let entries = is_folder.then(|| std::fs::read_dir(path).ok()).flatten();
    entries.into_iter().flatten().flatten().take(most).map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_of_what_is_closed_are_known() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(dir.join("own/deep")).unwrap();
        for name in ["own/deep/key", "own/single", "other"] {
            std::fs::write(dir.join(name), "x").unwrap();
        }
        std::fs::hard_link(dir.join("own/deep/key"), dir.join("alias")).unwrap();
        std::fs::hard_link(dir.join("other"), dir.join("other-alias")).unwrap();
        std::os::unix::fs::symlink(&dir, dir.join("own/out")).unwrap();
        let closed = vec![(dir.join("own"), DeniedReason::NonoState)];
        let aliases = Aliases { closed, known: Mutex::default() };
        let reason = |name: &str| aliases.reason(Identity::of(&std::fs::metadata(dir.join(name)).unwrap()));
        assert_eq!(reason("alias"), Some(DeniedReason::NonoState));
        assert_eq!(reason("other-alias"), None, "and no link is followed");
        assert_eq!(reason("own/single"), None, "it has no other name");
    }
}
