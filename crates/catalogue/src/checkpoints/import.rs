//! Import of another tool's checkpoints: those of Hermes, which keeps them in git repositories.
//!
//! There are two layouts. In the newer one all projects share one bare repository, `store/`, with a ref
//! `refs/hermes/<hash>` and a file `projects/<hash>.json` for each; in the older one each project has a repository of
//! its own, with a file `HERMES_WORKDIR` that names the folder. Both are read without git, and nothing in them is
//! changed; the project folders themselves are not read. Each commit becomes a checkpoint; one imported before is
//! recognised by its name and skipped.

mod repository;

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nono_checkpoint::adopt::Arrival;
use nono_checkpoint::{CheckpointError, CheckpointId, CheckpointManager};
use nono_snapshot::file;

use self::repository::{Blobs, Commit, Repository, RepositoryError};

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Folders whose checkpoints were found, with the number of new ones.
    pub projects: Vec<(PathBuf, u64)>,
    pub checkpoints: Vec<CheckpointId>,
    /// Number of checkpoints imported before.
    pub known: u64,
    /// Items that could not be imported, as a whole or in part.
    pub skipped: Vec<Skipped>,
}

/// Something that was not imported. Both texts contain foreign text: escape before printing to a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// A repository, a project, a commit, or a path in one.
    pub what: String,
    pub why: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("there are no checkpoints of Hermes in {}: neither a store nor a folder with HERMES_WORKDIR", path.display())]
    Nothing { path: PathBuf },
}

/// Reason a repository, or a project in it, is skipped.
#[derive(Debug, thiserror::Error)]
enum ImportProblem {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is damaged: {source}", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error("{} {what}", path.display())]
    Unusable { path: PathBuf, what: &'static str },
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error(transparent)]
    Project(#[from] CheckpointError),
    #[error("commit {id}: {source}")]
    Commit { id: gix_hash::ObjectId, source: Box<CheckpointError> },
}

/// Maximum number of missing paths of a commit that are named.
const NAMED: usize = 5;
/// Name of the shared repository.
const STORE: &str = "store";
const WORKDIR: &str = "HERMES_WORKDIR";
const REFS: &str = "refs/hermes/";
/// Maximum size of a file that names a folder.
const SMALL: u64 = 64 << 10;

/// Import what is in this folder: Hermes' `checkpoints`, or one repository of it.
pub fn import(dir: &Path, manager: &mut CheckpointManager) -> Result<Imported, ImportError> {
    let found = find(dir)?;
    if found.is_empty() {
        return Err(ImportError::Nothing { path: dir.to_owned() });
    }
    let mut imported = Imported::default();
    for place in found {
        let taken = match &place {
            ImportSource::Shared(dir) => shared(dir, manager, &mut imported),
            ImportSource::Single(dir) => single(dir, manager, &mut imported),
        };
        if let Err(why) = taken {
            let (ImportSource::Shared(dir) | ImportSource::Single(dir)) = place;
            imported.skipped.push(Skipped { what: dir.display().to_string(), why: why.to_string() });
        }
    }
    Ok(imported)
}

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ImportSource {
    Shared(PathBuf),
    Single(PathBuf),
}

fn find(dir: &Path) -> Result<Vec<ImportSource>, ImportError> {
    let mut found: Vec<ImportSource> = what_is(dir).into_iter().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    for path in entries(dir)? {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name.starts_with(b"legacy-") && path.is_dir() {
            // Repositories of the older layout, set aside by Hermes itself.
            found.extend(entries(&path)?.iter().filter_map(|path| what_is(path)));
        } else {
            found.extend(what_is(&path));
        }
    }
    Ok(found)
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let read =
        || std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>();
    let mut all = read().map_err(|source| ImportError::Io { path: dir.to_owned(), source })?;
    all.sort();
    Ok(all)
}

fn what_is(dir: &Path) -> Option<ImportSource> {
    let has = |name: &str| dir.join(name).symlink_metadata().is_ok();
    if !has("HEAD") || !has("objects") {
        return None;
    }
    if has(WORKDIR) {
        return Some(ImportSource::Single(dir.to_owned()));
    }
    let shared = has("projects") || has("indexes") || dir.file_name().is_some_and(|name| name == STORE);
    shared.then(|| ImportSource::Shared(dir.to_owned()))
}

/// Import all projects of a shared repository.
fn shared(dir: &Path, manager: &mut CheckpointManager, imported: &mut Imported) -> Result<(), ImportProblem> {
    let repository = Repository::open(dir)?;
    for (hash, tip) in repository.refs(REFS)? {
        let taken = tip.map_err(ImportProblem::from).and_then(|tip| {
            let workdir = workdir_of(dir, &hash)?;
            history(&repository, tip, &workdir, manager, imported)
        });
        if let Err(why) = taken {
            imported.skipped.push(Skipped { what: format!("{REFS}{hash}"), why: why.to_string() });
        }
    }
    Ok(())
}

fn single(dir: &Path, manager: &mut CheckpointManager, imported: &mut Imported) -> Result<(), ImportProblem> {
    let repository = Repository::open(dir)?;
    let mut bytes = small(&dir.join(WORKDIR))?;
    while bytes.last().is_some_and(u8::is_ascii_whitespace) {
        bytes.pop();
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).to_vec();
    let workdir = checked(PathBuf::from(OsString::from_vec(bytes)))?;
    history(&repository, repository.head()?, &workdir, manager, imported)
}

fn workdir_of(store: &Path, hash: &str) -> Result<PathBuf, ImportProblem> {
    let name = Path::new("projects").join(format!("{hash}.json"));
    let beside = store.parent().unwrap_or(store).join(&name);
    let path = Some(store.join(&name)).filter(|path| path.symlink_metadata().is_ok()).unwrap_or(beside);
    let bytes = small(&path)?;
    let value: serde_json::Value =
        serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes))
            .map_err(|source| ImportProblem::Damaged { path: path.clone(), source })?;
    let workdir = value.get("workdir").and_then(|workdir| workdir.as_str());
    let workdir = workdir.ok_or(ImportProblem::Unusable { path, what: "names no folder" })?;
    checked(PathBuf::from(workdir))
}

fn small(path: &Path) -> Result<Vec<u8>, ImportProblem> {
    let failed = |source| ImportProblem::Io { path: path.to_owned(), source };
    let size = path.symlink_metadata().map_err(failed)?.len();
    if size > SMALL {
        return Err(ImportProblem::Unusable { path: path.to_owned(), what: "is too large" });
    }
    file::read(path).map_err(failed)
}

/// Check that the path is absolute; resolve it if it exists.
fn checked(workdir: PathBuf) -> Result<PathBuf, ImportProblem> {
    use std::path::Component;
    let plain = |component| matches!(component, Component::RootDir | Component::Normal(_));
    if !workdir.is_absolute() || !workdir.components().all(plain) {
        return Err(ImportProblem::Unusable { path: workdir, what: "is not an absolute path" });
    }
    Ok(workdir.canonicalize().unwrap_or(workdir))
}

/// Import all commits of one project, oldest first.
fn history(
    repository: &Repository,
    tip: gix_hash::ObjectId,
    workdir: &Path,
    manager: &mut CheckpointManager,
    imported: &mut Imported,
) -> Result<(), ImportProblem> {
    let (commits, problems) = repository.history(tip);
    let project = workdir.display();
    let damaged = |why: RepositoryError| Skipped { what: format!("{project}"), why: why.to_string() };
    imported.skipped.extend(problems.into_iter().map(damaged));
    let arrival = manager.begin_adopting(workdir)?;
    let mut import = Import { blobs: Blobs::new(repository), arrival, new: 0, imported };
    let result = commits.iter().try_for_each(|commit| import.commit(commit, workdir));
    let new = import.new;
    imported.projects.push((workdir.to_owned(), new));
    result
}

struct Import<'a, 'i> {
    blobs: Blobs<'a>,
    arrival: Arrival,
    new: u64,
    imported: &'i mut Imported,
}

impl Import<'_, '_> {
    /// Import one commit. An error ends the project: nothing more of it can be imported.
    fn commit(&mut self, commit: &Commit, workdir: &Path) -> Result<(), ImportProblem> {
        let from = format!("hermes:{}", commit.id);
        if self.arrival.is_known(&from) {
            self.imported.known += 1;
            return Ok(());
        }
        let what = format!("{}: commit {}", workdir.display(), commit.id);
        let state = match self.blobs.list(commit.tree) {
            Ok(state) => state,
            Err(why) => {
                self.imported.skipped.push(Skipped { what, why: why.to_string() });
                return Ok(());
            }
        };
        let adopted = self.arrival.adopt(&from, &state, &mut self.blobs, commit.time, &commit.message);
        let (id, left_out) =
            adopted.map_err(|source| ImportProblem::Commit { id: commit.id, source: source.into() })?;
        self.new += 1;
        self.imported.checkpoints.push(id);
        let more = left_out.len().saturating_sub(NAMED);
        for (path, why) in left_out.into_iter().take(NAMED) {
            let path = String::from_utf8_lossy(&path).into_owned();
            self.imported.skipped.push(Skipped { what: format!("{what}: {path}"), why });
        }
        if more > 0 {
            let why = format!("{more} more paths could not be imported");
            self.imported.skipped.push(Skipped { what, why });
        }
        Ok(())
    }
}
