//! Rules in force in one directory, and their verdicts on its entries.
//!
//! A directory that adds no rules shares those of its parent. The ignore files in force form a chain, the innermost
//! first; it is dropped without recursion, since a tree may be 100,000 directories deep.

use std::sync::Arc;

use super::ignore_file::{IgnoreRule, List, Subject};
use super::repository::{Repository, Standing, WorktreeTop};
use super::shared::SharedRules;
use super::{Evidence, ExclusionVerdict, artifacts};
use crate::hash::tagged;
use crate::node::Reason;

/// Rules in force in one directory.
#[derive(Clone, Debug)]
pub struct DirRules {
    pub(super) shared: Arc<SharedRules>,
    pub(super) ignore: Option<Arc<Link>>,
    pub(super) repository: Option<Arc<Repository>>,
    pub(super) mode: Mode,
    digest: [u8; 32],
}

/// Rules that apply to the entries of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    /// Inside `.git`: no ignore rule applies.
    InGit,
    /// Inside a directory excluded for this reason: only forced and tracked entries are captured.
    Searching(Reason),
}

/// One ignore file in force.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) list: List,
    pub(super) place: WorktreeTop,
    /// Displayed name of the file.
    pub(super) file: String,
    pub(super) outer: Option<Arc<Link>>,
}

impl Drop for Link {
    fn drop(&mut self) {
        let mut outer = self.outer.take();
        while let Some(mut link) = outer.and_then(Arc::into_inner) {
            outer = link.outer.take();
        }
    }
}

impl DirRules {
    /// The caller's own rules alone.
    pub(super) fn start(shared: Arc<SharedRules>) -> DirRules {
        let digest = shared.config_digest();
        DirRules { shared, ignore: None, repository: None, mode: Mode::Plain, digest }
    }

    /// Digest that changes whenever a verdict on the name of a file in this directory could. Git's index is not part of
    /// it: it is consulted only for entries that a rule matches, and such verdicts are never [`ExclusionVerdict::Take`].
    ///
    /// Valid for one path: the same directory elsewhere in the tree may have the same digest and other verdicts.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Whether no rule of any kind can apply here: [`DirRules::judge`] always returns [`ExclusionVerdict::Take`].
    pub fn is_trivial(&self) -> bool {
        let ignore = self.ignore.is_none() && !matches!(self.mode, Mode::Searching(_));
        let limited = self.shared.config.artifacts || self.shared.config.max_repository.is_some();
        ignore && self.shared.words.excludes_nothing() && (self.mode == Mode::InGit || !limited)
    }

    pub(super) fn with_mode(&self, mode: Mode) -> DirRules {
        let mut rules = self.clone();
        let part = match &mode {
            Mode::Plain => b"plain".to_vec(),
            Mode::InGit => b"git".to_vec(),
            Mode::Searching(reason) => format!("search {reason:?}").into_bytes(),
        };
        rules.mode = mode;
        rules.mix(b"mode", &part);
        rules
    }

    /// Rules in the top directory of a repository: outer ignore files no longer apply.
    pub(super) fn with_repository(&self, repository: Arc<Repository>) -> DirRules {
        let mut rules = self.clone();
        rules.ignore = None;
        rules.mix(b"repository", &[u8::from(repository.fold)]);
        rules.repository = Some(repository);
        rules
    }

    pub(super) fn with_list(&mut self, text: &Arc<[u8]>, place: WorktreeTop, file: String) {
        let fold = self.repository.as_ref().is_some_and(|repository| repository.fold);
        let list = List::parse(Arc::clone(text), fold);
        self.mix(b"list", text);
        if !list.is_empty() {
            self.ignore = Some(Arc::new(Link { list, place, file, outer: self.ignore.take() }));
        }
    }

    fn mix(&mut self, what: &[u8], part: &[u8]) {
        self.digest = tagged(b"nono rules v1\0", &[&self.digest, what, part]);
    }

    /// Verdict on an entry. `path` is relative to the root, `name` its last component.
    pub fn judge(&self, path: &[u8], name: &[u8], is_dir: bool, around: &dyn Evidence) -> ExclusionVerdict {
        if self.is_trivial() {
            return ExclusionVerdict::Take;
        }
        let words = &self.shared.words;
        if words.can_force() && words.forces(path) {
            return ExclusionVerdict::TakeAnyway;
        }
        if let Some(reason) = words.excludes(path, name) {
            return self.leave(reason, is_dir, false);
        }
        match &self.mode {
            Mode::InGit => ExclusionVerdict::Take,
            Mode::Searching(reason) => self.search(reason, path, is_dir),
            Mode::Plain if name == b".git" => self.judge_repository(path, name, is_dir, around),
            Mode::Plain => self.judge_plain(path, name, is_dir, around),
        }
    }

    fn judge_plain(&self, path: &[u8], name: &[u8], is_dir: bool, around: &dyn Evidence) -> ExclusionVerdict {
        if let Some((link, rule)) = self.ignored(path, name, is_dir).filter(|_| self.shared.leaves_ignored())
        {
            let reason = Reason::Ignored { rule: link.list.line(rule), file: link.file.clone() };
            return match self.standing(path, is_dir) {
                // Capture more rather than less: the index might contain it.
                Standing::Tracked | Standing::Undecided => ExclusionVerdict::TakeAnyway,
                Standing::HoldsTracked => ExclusionVerdict::Search(reason),
                Standing::Unknown => self.leave(reason, is_dir, false),
            };
        }
        if !is_dir {
            return ExclusionVerdict::Take;
        }
        let artifact = || self.shared.artifact_dir(path, name, around).map(Reason::Artifact);
        let Some(reason) = artifact().or_else(|| self.too_large(path, name, around)) else {
            return ExclusionVerdict::Take;
        };
        let standing = self.standing(path, is_dir);
        match standing {
            Standing::Tracked => ExclusionVerdict::TakeAnyway,
            _ => self.leave(reason, is_dir, standing == Standing::HoldsTracked),
        }
    }

    fn judge_repository(
        &self,
        path: &[u8],
        name: &[u8],
        is_dir: bool,
        around: &dyn Evidence,
    ) -> ExclusionVerdict {
        let limit = self.shared.config.max_repository.filter(|_| is_dir);
        let is_large = |limit: &u64| self.shared.is_large_folder(path, &|| around.is_larger(name, *limit));
        match limit.filter(is_large) {
            Some(limit) => self.leave(Reason::LargeRepository { limit }, is_dir, false),
            None => ExclusionVerdict::Take,
        }
    }

    /// Reason to exclude an ignored folder when ignored files are captured.
    fn too_large(&self, path: &[u8], name: &[u8], around: &dyn Evidence) -> Option<Reason> {
        let limit = self.shared.config.max_ignored_folder?;
        self.ignored(path, name, true)?;
        let large = self.shared.is_large_folder(path, &|| around.is_larger(name, limit));
        large.then_some(Reason::LargeFolder { limit })
    }

    /// The rule that excludes `path`, if any.
    pub(super) fn ignored(&self, path: &[u8], name: &[u8], is_dir: bool) -> Option<(&Link, &IgnoreRule)> {
        let mut next = Some(self.ignore.as_deref()?);
        // All lists of a chain belong to one repository.
        let fold = self.repository.as_ref().is_some_and(|repository| repository.fold);
        let subject = Subject::new(name, is_dir, fold);
        while let Some(link) = next {
            if let Some(rule) = link.list.last_match(&subject, &link.place.seen(path)) {
                return (!rule.negative).then_some((link, rule));
            }
            next = link.outer.as_deref();
        }
        None
    }

    /// Verdict inside an excluded directory.
    fn search(&self, reason: &Reason, path: &[u8], is_dir: bool) -> ExclusionVerdict {
        // An entry that the caller excluded by name stays excluded even if git tracks it.
        let rescued =
            matches!(reason, Reason::Ignored { .. } | Reason::Artifact(_) | Reason::LargeFolder { .. });
        match if rescued { self.standing(path, is_dir) } else { Standing::Unknown } {
            Standing::Tracked => ExclusionVerdict::TakeAnyway,
            Standing::HoldsTracked => ExclusionVerdict::Search(reason.clone()),
            Standing::Unknown | Standing::Undecided => self.leave(reason.clone(), is_dir, false),
        }
    }

    fn leave(&self, reason: Reason, is_dir: bool, holds_tracked: bool) -> ExclusionVerdict {
        if is_dir && (holds_tracked || self.shared.words.can_force()) {
            return ExclusionVerdict::Search(reason);
        }
        ExclusionVerdict::Leave(reason)
    }

    fn standing(&self, path: &[u8], is_dir: bool) -> Standing {
        self.repository.as_ref().map_or(Standing::Unknown, |repository| repository.standing(path, is_dir))
    }

    /// Reason for which a directory is searched; the same as [`DirRules::judge`] gave.
    pub(super) fn reason_again(&self, path: &[u8], name: &[u8]) -> Option<Reason> {
        if let Some(reason) = self.shared.words.excludes(path, name) {
            return Some(reason);
        }
        let ignored = self.ignored(path, name, true);
        if let Some((link, rule)) = ignored.filter(|_| self.shared.leaves_ignored()) {
            return Some(Reason::Ignored { rule: link.list.line(rule), file: link.file.clone() });
        }
        if let Some(what) = self.shared.decided_artifact(path) {
            return Some(Reason::Artifact(what));
        }
        if let Some(limit) = self.shared.config.max_repository.filter(|_| name == b".git") {
            return Some(Reason::LargeRepository { limit });
        }
        if let Some(limit) = ignored.and(self.shared.config.max_ignored_folder) {
            return Some(Reason::LargeFolder { limit });
        }
        artifacts::presumed(name).map(str::to_owned).map(Reason::Artifact)
    }
}
