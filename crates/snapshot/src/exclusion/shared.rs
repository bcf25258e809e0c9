//! State shared by all directories of one scan: the caller's rules, and the source of ignore files.
//!
//! Live rules record everything that they read and decide, to be frozen afterwards; frozen rules use only that record.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard};

use super::caller_rules::CallerRules;
use super::frozen::FrozenRules;
use super::git_dir;
use super::repository::{Repository, WorktreeTop};
use super::{Evidence, ExclusionConfig, ExclusionNote, RuleFiles, RulesError, artifacts};
use crate::bytes::Writer;
use crate::hash::tagged;
use crate::pool::locked;

#[derive(Debug)]
pub(super) struct SharedRules {
    pub(super) config: ExclusionConfig,
    pub(super) words: Arc<CallerRules>,
    /// Whether all ignore files are set aside.
    pub(super) set_aside: bool,
    pub(super) source: RuleSource,
}

#[derive(Debug)]
pub(super) enum RuleSource {
    Live(Box<RootRules>),
    Frozen(Box<FrozenRules>),
}

#[derive(Debug)]
pub(super) struct RootRules {
    pub(super) root: PathBuf,
    open: Arc<AtomicUsize>,
    record: Mutex<RuleRecord>,
}

/// Record of what was read and decided.
#[derive(Debug, Default)]
pub(super) struct RuleRecord {
    /// Text of each `.gitignore`, by its directory.
    pub(super) files: BTreeMap<Vec<u8>, Arc<[u8]>>,
    /// Repositories at or below the root, by their top directory.
    pub(super) repositories: BTreeMap<Vec<u8>, RepositoryRecord>,
    pub(super) above: Option<ParentRepository>,
    pub(super) inside_git: bool,
    /// Decisions on directories that might be artifacts.
    pub(super) artifacts: BTreeMap<Vec<u8>, Option<String>>,
    /// Decisions on whether ignored folders are too large, by path.
    pub(super) large: BTreeMap<Vec<u8>, bool>,
    pub(super) notes: Vec<ExclusionNote>,
}

#[derive(Clone, Debug)]
pub(super) struct RepositoryRecord {
    pub(super) repository: Arc<Repository>,
    pub(super) exclude: Option<Arc<[u8]>>,
}

/// The repository that contains the root, when its top is above the root.
#[derive(Clone, Debug)]
pub(super) struct ParentRepository {
    /// Path of the root relative to the top, ending with a slash.
    pub(super) prefix: Box<[u8]>,
    pub(super) repository: RepositoryRecord,
    /// Text of each `.gitignore` from the top to the root's parent, with its directory relative to the top.
    pub(super) files: Vec<(Vec<u8>, Arc<[u8]>)>,
}

/// Rules that one directory adds.
#[derive(Debug, Default)]
pub(super) struct AddedRules {
    pub(super) repository: Option<RepositoryRecord>,
    pub(super) ignore_file: Option<Arc<[u8]>>,
}

impl SharedRules {
    pub(super) fn new(
        config: &ExclusionConfig,
        set_aside: bool,
        source: RuleSource,
    ) -> Result<SharedRules, RulesError> {
        let words = Arc::new(CallerRules::new(config)?);
        Ok(SharedRules { config: config.clone(), words, set_aside, source })
    }

    /// The same rules with another source.
    pub(super) fn with_source(&self, set_aside: bool, source: RuleSource) -> SharedRules {
        SharedRules { config: self.config.clone(), words: Arc::clone(&self.words), set_aside, source }
    }

    /// Whether ignore files are read at all.
    pub(super) fn ignore_in_force(&self) -> bool {
        self.leaves_ignored() || self.config.max_ignored_folder.is_some() && !self.set_aside
    }

    /// Whether entries that git ignores are excluded.
    pub(super) fn leaves_ignored(&self) -> bool {
        self.config.use_gitignore && !self.set_aside
    }

    /// Whether the ignored folder at `path` is too large. The first decision holds, however the folder grows.
    pub(super) fn is_large_folder(&self, path: &[u8], measure: &dyn Fn() -> bool) -> bool {
        match &self.source {
            RuleSource::Frozen(frozen) => frozen.large.get(path).copied().unwrap_or_else(measure),
            RuleSource::Live(live) => {
                let large = measure();
                live.record().large.insert(path.to_vec(), large);
                large
            }
        }
    }

    pub(super) fn config_digest(&self) -> [u8; 32] {
        let mut out = Writer::new();
        super::frozen::encode_config(&self.config, &mut out);
        out.byte(u8::from(self.set_aside));
        tagged(b"nono rules config v1\0", &[&out.finish()])
    }

    /// Rules that the directory at `path` adds.
    pub(super) fn look(&self, path: &[u8], dir: BorrowedFd<'_>, has: RuleFiles) -> AddedRules {
        match &self.source {
            RuleSource::Live(live) => live.look(self, path, dir, has),
            RuleSource::Frozen(frozen) => frozen.look(path),
        }
    }

    /// Earlier decision that a directory is an artifact, if there is one.
    pub(super) fn decided_artifact(&self, path: &[u8]) -> Option<String> {
        match &self.source {
            RuleSource::Live(live) => live.record().artifacts.get(path).cloned().flatten(),
            RuleSource::Frozen(frozen) => frozen.artifacts.get(path).cloned().flatten(),
        }
    }

    /// Description of the artifact at `path`. Decisions that depend on its surroundings are recorded.
    pub(super) fn artifact_dir(&self, path: &[u8], name: &[u8], around: &dyn Evidence) -> Option<String> {
        if !self.config.artifacts {
            return None;
        }
        match &self.source {
            // A cache tag added to a directory later hides nothing: only an artifact's name does.
            RuleSource::Frozen(frozen) => match frozen.artifacts.get(path) {
                Some(decided) => decided.clone(),
                None => artifacts::directory(name, around).map(str::to_owned),
            },
            RuleSource::Live(live) => {
                let what = artifacts::directory(name, around).or_else(|| artifacts::tagged(name, around));
                let what = what.map(str::to_owned);
                if what.is_some() || artifacts::is_candidate(name) {
                    live.record().artifacts.insert(path.to_vec(), what.clone());
                }
                what
            }
        }
    }
}

impl RootRules {
    pub(super) fn new(root: PathBuf) -> RootRules {
        RootRules { root, open: Arc::default(), record: Mutex::default() }
    }

    pub(super) fn record(&self) -> MutexGuard<'_, RuleRecord> {
        locked(&self.record)
    }

    fn look(&self, shared: &SharedRules, path: &[u8], dir: BorrowedFd<'_>, has: RuleFiles) -> AddedRules {
        // Without ignore rules, a repository matters only for its tracked paths among artifacts.
        let wanted = shared.ignore_in_force() || shared.config.artifacts;
        let mut added = AddedRules::default();
        if has.git && wanted {
            let place = WorktreeTop::below(path);
            added.repository = self.repository(shared, dir, place, &shown(path, ".git"));
        }
        if has.gitignore && shared.ignore_in_force() {
            added.ignore_file = self.ignore_file(dir, || shown(path, ".gitignore"));
        }
        let mut record = self.record();
        record.repositories.extend(added.repository.clone().map(|found| (path.to_vec(), found)));
        record.files.extend(added.ignore_file.clone().map(|text| (path.to_vec(), text)));
        drop(record);
        added
    }

    /// The repository whose top is `dir`, if it is one; `name` is the displayed name of its `.git`.
    pub(super) fn repository(
        &self,
        shared: &SharedRules,
        dir: BorrowedFd<'_>,
        place: WorktreeTop,
        name: &str,
    ) -> Option<RepositoryRecord> {
        let unknown = |why: &std::io::Error| {
            // Its tracked paths are unknown, so its rules must not exclude anything.
            let repository = Repository::known(place.clone(), false, Err(why.to_string()));
            Some(RepositoryRecord { repository: Arc::new(repository), exclude: None })
        };
        let git = match git_dir::find(dir) {
            Ok(found) => found?,
            Err(error) => return unknown(&error),
        };
        let settings = match git.settings() {
            Ok(settings) => settings,
            Err(error) => return unknown(&error),
        };
        let exclude = || self.kept(git.exclude(), || format!("{name}/info/exclude"));
        let exclude = if shared.ignore_in_force() { exclude() } else { None };
        let repository = Arc::new(Repository::live(place, git, settings, &self.open));
        Some(RepositoryRecord { repository, exclude })
    }

    pub(super) fn ignore_file(
        &self,
        dir: BorrowedFd<'_>,
        name: impl FnOnce() -> String,
    ) -> Option<Arc<[u8]>> {
        self.kept(git_dir::read_ignore_file(dir), name)
    }

    /// Text of an ignore file; one that cannot be read excludes nothing, and a note is made.
    fn kept(
        &self,
        read: std::io::Result<Option<Vec<u8>>>,
        name: impl FnOnce() -> String,
    ) -> Option<Arc<[u8]>> {
        match read {
            Ok(text) => text.map(Arc::from),
            Err(error) => {
                self.record()
                    .notes
                    .push(ExclusionNote::IgnoreFileNotRead { file: name(), why: error.to_string() });
                None
            }
        }
    }
}

/// Displayed name of the file `name` in the directory `path`.
pub(super) fn shown(path: &[u8], name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{}/{name}", String::from_utf8_lossy(path)) }
}
