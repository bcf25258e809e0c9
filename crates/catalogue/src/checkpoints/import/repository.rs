//! Reader of another tool's git repository, without git: commits, trees, contents.
//!
//! Nothing in it is trusted: each object is checked against its name, and everything is bounded. A tree cannot contain
//! itself, because its name is a digest of its content; but a small one can stand for billions of paths.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use gix_hash::{Kind as HashKind, ObjectId};
use gix_object::tree::EntryKind;
use gix_object::{CommitRef, Find, Kind, TreeRefIter};
use gix_odb::Header;
use gix_ref::file::ReferenceExt;
use nono_snapshot::{AdoptedPiece, ContentHash, Contents, ContentsError, ImportedPath};
use thiserror::Error;

/// Git's original digest; the newer one is not used by the tool.
const HASH: HashKind = HashKind::Sha1;
/// Largest object read into memory.
const LARGEST: u64 = 256 << 20;
/// Maximum number of paths of one commit.
const PATHS: usize = 300_000;
/// Number of trees cached: a commit shares most of its trees with the next.
const TREES: usize = 4096;
/// Maximum depth of directories.
const DEPTH: usize = 256;
/// Maximum length of a path, as in the kernel.
const LONGEST: usize = 4096;
/// Maximum number of commits of one project.
const COMMITS: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) id: ObjectId,
    pub(super) tree: ObjectId,
    /// Seconds since 1970.
    pub(super) time: i64,
    /// First line of its message.
    pub(super) message: String,
}

/// Cause in one of git's own parts, which have an error type for each call.
type GitError = Box<dyn std::error::Error + Send + Sync>;

/// Part of a repository that cannot be read.
#[derive(Debug, Error)]
pub(super) enum RepositoryError {
    #[error("its objects cannot be read: {0}")]
    Objects(#[source] io::Error),
    #[error("its refs cannot be read: {0}")]
    Refs(#[source] GitError),
    #[error(transparent)]
    Target(#[from] GitError),
    #[error("{0} is missing")]
    Missing(ObjectId),
    #[error("{0} is too large ({1} bytes)")]
    TooLarge(ObjectId, u64),
    #[error("{0} is damaged: {1}")]
    Damaged(ObjectId, #[source] GitError),
    /// Its content does not belong to its name.
    #[error("{0} is damaged")]
    Altered(ObjectId),
    #[error("its content is missing")]
    NoContent,
    #[error("there are more than {COMMITS} commits")]
    Commits,
    #[error("it has more than {PATHS} paths")]
    Paths,
    /// Error of an object, with the kind of object it was read as.
    #[error("{0} {1}")]
    Within(&'static str, #[source] Box<RepositoryError>),
}

impl RepositoryError {
    fn within(self, kind: &'static str) -> RepositoryError {
        RepositoryError::Within(kind, Box::new(self))
    }
}

/// Last component of a ref's name, and its target.
pub(super) type NamedRef = (String, Result<ObjectId, RepositoryError>);

/// Objects and refs of one repository.
pub(super) struct Repository {
    objects: gix_odb::Handle,
    refs: gix_ref::file::Store,
}

impl Repository {
    pub(super) fn open(dir: &Path) -> Result<Repository, RepositoryError> {
        let options = gix_odb::store::init::Options {
            alloc_limit_bytes: usize::try_from(LARGEST).ok(),
            ..gix_odb::store::init::Options::default()
        };
        let objects = gix_odb::at_opts(dir.join("objects"), HASH, None, options);
        let objects = objects.map_err(RepositoryError::Objects)?;
        Ok(Repository { objects, refs: gix_ref::file::Store::at(dir.to_owned(), HASH) })
    }

    /// Refs below this prefix.
    pub(super) fn refs(&self, prefix: &str) -> Result<Vec<NamedRef>, RepositoryError> {
        let all = self.refs.iter().map_err(GitError::from).map_err(RepositoryError::Refs)?;
        let below = prefix.try_into().map_err(GitError::from).map_err(RepositoryError::Refs)?;
        let mut found = Vec::new();
        for reference in all.prefixed(below).map_err(GitError::from).map_err(RepositoryError::Refs)? {
            let mut reference = match reference {
                Ok(reference) => reference,
                Err(error) => {
                    found.push((String::new(), Err(RepositoryError::Refs(error.into()))));
                    continue;
                }
            };
            let name = String::from_utf8_lossy(reference.name.as_bstr()).into_owned();
            let name = name.strip_prefix(prefix).unwrap_or(&name).to_owned();
            let id = reference.peel_to_id(&self.refs, &self.objects).map_err(GitError::from);
            found.push((name, id.map_err(RepositoryError::Target)));
        }
        Ok(found)
    }

    /// Target of `HEAD`.
    pub(super) fn head(&self) -> Result<ObjectId, RepositoryError> {
        let mut head = self.refs.find("HEAD").map_err(GitError::from)?;
        Ok(head.peel_to_id(&self.refs, &self.objects).map_err(GitError::from)?)
    }

    /// Read an object and check it against its name.
    fn object(&self, id: &ObjectId, kind: Kind) -> Result<Vec<u8>, RepositoryError> {
        let missing = || RepositoryError::Missing(*id);
        let header =
            self.objects.try_header(id).map_err(|error| RepositoryError::Damaged(*id, error.into()))?;
        let header = header.ok_or_else(missing)?;
        if header.size() > LARGEST {
            return Err(RepositoryError::TooLarge(*id, header.size()));
        }
        let mut buffer = Vec::new();
        let found = self.objects.try_find(id, &mut buffer);
        let found =
            found.map_err(|error| RepositoryError::Damaged(*id, error.into()))?.ok_or_else(missing)?;
        let digest = gix_object::compute_hash(HASH, found.kind, found.data);
        // No digest at all: the object is made to collide with another one.
        if found.kind != kind || digest.ok() != Some(*id) {
            return Err(RepositoryError::Altered(*id));
        }
        Ok(found.data.to_vec())
    }

    fn commit(&self, id: ObjectId) -> Result<(Commit, Vec<ObjectId>), RepositoryError> {
        let bytes = self.object(&id, Kind::Commit)?;
        let damaged = |error: GitError| RepositoryError::Damaged(id, error).within("commit");
        let commit = CommitRef::from_bytes(&bytes, HASH).map_err(|error| damaged(error.into()))?;
        let time = commit.time().map_err(|error| damaged(error.into()))?.seconds;
        let message = String::from_utf8_lossy(commit.message);
        let message = message.trim().lines().next().unwrap_or_default().to_owned();
        let read = Commit { id, tree: commit.tree(), time, message };
        Ok((read, commit.parents().collect()))
    }

    /// A commit and its ancestors, oldest first, and what could not be read.
    pub(super) fn history(&self, tip: ObjectId) -> (Vec<Commit>, Vec<RepositoryError>) {
        let (mut commits, mut problems) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        // Parents first: a commit is emitted when it is popped for the second time.
        let mut waiting = vec![(tip, None)];
        while let Some((id, read)) = waiting.pop() {
            if let Some(commit) = read {
                commits.push(commit);
                continue;
            }
            if !seen.insert(id) {
                continue;
            }
            if seen.len() > COMMITS {
                problems.push(RepositoryError::Commits);
                break;
            }
            match self.commit(id) {
                Ok((commit, parents)) => {
                    waiting.push((id, Some(commit)));
                    waiting.extend(parents.into_iter().map(|parent| (parent, None)));
                }
                Err(why) => problems.push(why),
            }
        }
        // At the limit, the commits read so far still count.
        commits.extend(waiting.into_iter().rev().filter_map(|(_, read)| read));
        (commits, problems)
    }
}

/// Contents of one repository, each identified by a number.
pub(super) struct Blobs<'a> {
    repository: &'a Repository,
    numbers: HashMap<ObjectId, usize>,
    ids: Vec<ObjectId>,
    stored: HashMap<usize, (ContentHash, u64)>,
    trees: HashMap<ObjectId, Arc<[u8]>>,
}

impl<'a> Blobs<'a> {
    pub(super) fn new(repository: &'a Repository) -> Blobs<'a> {
        Blobs {
            repository,
            numbers: HashMap::new(),
            ids: Vec::new(),
            stored: HashMap::new(),
            trees: HashMap::new(),
        }
    }

    fn tree(&mut self, id: ObjectId) -> Result<Arc<[u8]>, RepositoryError> {
        if let Some(known) = self.trees.get(&id) {
            return Ok(Arc::clone(known));
        }
        let bytes: Arc<[u8]> = self.repository.object(&id, Kind::Tree)?.into();
        if self.trees.len() >= TREES {
            self.trees.clear();
        }
        self.trees.insert(id, Arc::clone(&bytes));
        Ok(bytes)
    }

    fn number(&mut self, id: ObjectId) -> usize {
        let ids = &mut self.ids;
        *self.numbers.entry(id).or_insert_with(|| {
            ids.push(id);
            ids.len() - 1
        })
    }

    /// All paths of a tree. Unreadable ones are included as left out.
    pub(super) fn list(&mut self, tree: ObjectId) -> Result<Vec<ImportedPath>, RepositoryError> {
        let mut all = Vec::new();
        let mut waiting = vec![(Vec::new(), tree, 0)];
        while let Some((path, tree, depth)) = waiting.pop() {
            let bytes = match self.tree(tree) {
                Ok(bytes) if depth <= DEPTH => bytes,
                // Without the root tree there is nothing to import.
                Err(why) if path.is_empty() => return Err(why.within("tree")),
                Err(why) => {
                    all.push(left_out(path, true, why.within("tree").to_string()));
                    continue;
                }
                Ok(_) => {
                    all.push(left_out(path, true, "it is nested too deeply".to_owned()));
                    continue;
                }
            };
            let damaged = |error: GitError| RepositoryError::Damaged(tree, error).within("tree");
            for entry in TreeRefIter::from_bytes(&bytes, HASH) {
                let entry = match entry {
                    Ok(entry) => entry,
                    // The rest of this directory cannot be read; what was found is imported.
                    Err(error) if path.is_empty() => return Err(damaged(error.into())),
                    Err(error) => {
                        let name = [path.as_slice(), b"/(the rest)"].concat();
                        all.push(left_out(name, false, damaged(error.into()).to_string()));
                        break;
                    }
                };
                if all.len() + waiting.len() > PATHS {
                    return Err(RepositoryError::Paths);
                }
                let mut below = path.clone();
                if !below.is_empty() {
                    below.push(b'/');
                }
                below.extend_from_slice(entry.filename);
                let (mode, id) = (entry.mode.kind(), entry.oid.to_owned());
                if below.len() > LONGEST {
                    let shown = below.get(..LONGEST).unwrap_or_default().to_vec();
                    all.push(left_out(shown, false, "its path is too long".to_owned()));
                    continue;
                }
                match mode {
                    EntryKind::Tree => waiting.push((below, id, depth + 1)),
                    other => all.push(ImportedPath { piece: self.piece(other, id), path: below }),
                }
            }
        }
        Ok(all)
    }

    fn piece(&mut self, kind: EntryKind, id: ObjectId) -> AdoptedPiece {
        match kind {
            EntryKind::Link => match self.repository.object(&id, Kind::Blob) {
                Ok(target) if target.len() < LONGEST && !target.is_empty() && !target.contains(&0) => {
                    AdoptedPiece::Link { target }
                }
                Ok(_) => {
                    AdoptedPiece::LeftOut { is_dir: false, why: format!("{id} is not a symlink target") }
                }
                Err(why) => AdoptedPiece::LeftOut { is_dir: false, why: why.within("content").to_string() },
            },
            EntryKind::Commit => {
                let why = "a repository of its own, whose contents are kept elsewhere".to_owned();
                AdoptedPiece::LeftOut { is_dir: true, why }
            }
            kind => {
                let executable = kind == EntryKind::BlobExecutable;
                AdoptedPiece::File { executable, content: self.number(id) }
            }
        }
    }
}

impl Contents for Blobs<'_> {
    fn known(&self, content: usize) -> Option<(ContentHash, u64)> {
        self.stored.get(&content).copied()
    }

    fn read(&mut self, content: usize) -> Result<Vec<u8>, ContentsError> {
        let id = self.ids.get(content).ok_or(RepositoryError::NoContent)?;
        Ok(self.repository.object(id, Kind::Blob).map_err(|error| error.within("content"))?)
    }

    fn stored(&mut self, content: usize, hash: ContentHash, size: u64) {
        self.stored.insert(content, (hash, size));
    }
}

fn left_out(path: Vec<u8>, is_dir: bool, why: String) -> ImportedPath {
    ImportedPath { path, piece: AdoptedPiece::LeftOut { is_dir, why } }
}
