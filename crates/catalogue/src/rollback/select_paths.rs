//! Resolution of paths and globs typed by the user to paths of a session.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nono_snapshot::{SnapshotError, SnapshotId, SnapshotManager};

use super::catalogue::RollbackSession;
use super::error::RollbackError;
use nono_policy::glob::{self, Pattern};

impl RollbackSession {
    /// Resolve files, directories and globs as typed in `cwd` to paths of this session. Globs match the paths of the
    /// snapshot and of the session's last snapshot.
    pub fn resolve_paths(
        &self,
        snapshot: &SnapshotId,
        typed: &[OsString],
        cwd: &Path,
    ) -> Result<Vec<PathBuf>, RollbackError> {
        let last = self.last()?;
        let sides = Sides { manager: &self.manager, a: snapshot, b: &last };
        sides.resolve(typed, cwd, Globs::Also).map_err(|error| match error {
            RollbackError::Snapshot(error) => self.no_snapshot(error),
            RollbackError::NoSuchPath { path, .. } => {
                RollbackError::NoSuchPath { path, session: Some(self.entry.id.clone()) }
            }
            error => error,
        })
    }
}

/// Treatment of names that contain glob characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Globs {
    /// Take the name literally.
    No,
    /// Take it as a glob if nothing has that name.
    Also,
    /// Always take it as a glob.
    Yes,
}

/// The two snapshots that paths are looked up in.
pub(crate) struct Sides<'a> {
    pub(crate) manager: &'a SnapshotManager,
    pub(crate) a: &'a SnapshotId,
    pub(crate) b: &'a SnapshotId,
}

impl Sides<'_> {
    /// Resolve what the user typed in `cwd` to paths of the snapshots or of their roots.
    pub(crate) fn resolve(
        &self,
        typed: &[OsString],
        cwd: &Path,
        globs: Globs,
    ) -> Result<Vec<PathBuf>, RollbackError> {
        let mut all: Option<BTreeSet<PathBuf>> = None;
        let mut chosen = BTreeSet::new();
        for one in typed {
            let path = plain(&cwd.join(one));
            let special = globs != Globs::No && glob::is_special(one.as_bytes());
            let mut found = Vec::new();
            if !special || globs == Globs::Also {
                found = self.named(&path)?;
            }
            if found.is_empty() && special {
                let paths = match all.take() {
                    Some(paths) => paths,
                    None => self.all_paths()?,
                };
                found = self.matching(one, cwd, &paths)?;
                all = Some(paths);
            }
            if found.is_empty() {
                return Err(RollbackError::NoSuchPath { path, session: None });
            }
            chosen.extend(found);
        }
        Ok(topmost(chosen))
    }

    /// A path that is in one of the snapshots or in their roots; for a folder above roots, those roots. Symlinks above
    /// it are followed only if the literal path matches nothing: roots are stored as real paths.
    fn named(&self, path: &Path) -> Result<Vec<PathBuf>, RollbackError> {
        for path in [Some(path.to_owned()), real(path)].into_iter().flatten() {
            let roots = self.manager.roots();
            let below: Vec<PathBuf> = roots.iter().filter(|root| root.starts_with(&path)).cloned().collect();
            if !below.is_empty() {
                return Ok(below);
            }
            if !roots.iter().any(|root| path.starts_with(root)) {
                continue;
            }
            if self.manager.entry(self.a, &path)?.is_some()
                || self.manager.entry(self.b, &path)?.is_some()
                || path.symlink_metadata().is_ok()
            {
                return Ok(vec![path]);
            }
        }
        Ok(Vec::new())
    }

    fn matching(
        &self,
        typed: &OsStr,
        cwd: &Path,
        all: &BTreeSet<PathBuf>,
    ) -> Result<Vec<PathBuf>, RollbackError> {
        let wrong = |what| RollbackError::Pattern { pattern: typed.to_string_lossy().into_owned(), what };
        let mut matched = Vec::new();
        for one in glob::expand(typed.as_bytes()).map_err(wrong)? {
            let one = Path::new(OsStr::from_bytes(&one));
            // The components before the first one with glob characters are a plain directory.
            let special = |component: &Component<'_>| glob::is_special(component.as_os_str().as_bytes());
            let start: PathBuf = one.components().take_while(|component| !special(component)).collect();
            let rest: Vec<Component<'_>> =
                one.components().skip_while(|component| !special(component)).collect();
            let start = plain(&cwd.join(start));
            let roots = self.manager.roots();
            let inside = roots.iter().any(|root| super::catalogue::overlap(root, &start));
            let start = if inside { start } else { start.canonicalize().unwrap_or(start) };
            let pattern = Pattern::parse(rest.iter().map(|component| component.as_os_str().as_bytes()))
                .map_err(wrong)?;
            matched.extend(all.iter().filter(|path| below(path, &start, &pattern)).cloned());
        }
        Ok(matched)
    }

    /// All paths of both snapshots, directories included.
    fn all_paths(&self) -> Result<BTreeSet<PathBuf>, RollbackError> {
        let mut all = BTreeSet::new();
        for id in [self.a, self.b] {
            let manifest = self.manager.load_whole(id)?;
            let visited = manifest.each_entry(|path, _| {
                all.insert(path.to_owned());
            });
            visited.map_err(SnapshotError::from)?;
            if self.a == self.b {
                break;
            }
        }
        Ok(all)
    }
}

/// Remove `.` and `..` lexically.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// Follow the symlinks above the path, but not the last component: that may be a symlink which is meant itself.
fn real(path: &Path) -> Option<PathBuf> {
    let above = path.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    let (above, real) = above?;
    Some(real.join(path.strip_prefix(above).ok()?))
}

fn below(path: &Path, start: &Path, pattern: &Pattern) -> bool {
    let Ok(rest) = path.strip_prefix(start) else { return false };
    let names: Vec<&[u8]> = rest.components().map(|component| component.as_os_str().as_bytes()).collect();
    // After brace expansion a plain path may be left: it matches the start directory itself, a pattern does not.
    (names.is_empty() == pattern.is_empty()) && pattern.matches(&names)
}

/// Drop paths inside a chosen directory.
fn topmost(paths: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut top: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !top.last().is_some_and(|last| path.starts_with(last)) {
            top.push(path);
        }
    }
    top
}
