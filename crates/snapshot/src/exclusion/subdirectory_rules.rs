//! Derives the rules of a subdirectory from those of its parent.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::dir_rules::{DirRules, Mode};
use super::paths::last_component;
use super::repository::WorktreeTop;
use super::shared::{AddedRules, RuleSource, SharedRules, shown};
use super::{RuleFiles, Rules, parent_repository};

impl Rules {
    /// Rules in force in the root, which is open as `dir`.
    pub fn root(&self, dir: BorrowedFd<'_>) -> Arc<DirRules> {
        let start = DirRules::start(Arc::clone(&self.shared));
        if let RuleSource::Live(live) = &self.shared.source
            && parent_repository::is_inside_git(&live.root)
        {
            live.record().inside_git = true;
            return Arc::new(start.with_mode(Mode::InGit));
        }
        root_rules(&self.shared, &start, self.shared.look(b"", dir, RuleFiles { gitignore: true, git: true }))
    }
}

/// Rules of the root from frozen rules, without reading the disk.
pub(super) fn frozen_root(shared: &Arc<SharedRules>, added: AddedRules) -> Arc<DirRules> {
    root_rules(shared, &DirRules::start(Arc::clone(shared)), added)
}

fn root_rules(shared: &Arc<SharedRules>, start: &DirRules, added: AddedRules) -> Arc<DirRules> {
    let mut rules = start.clone();
    let wanted = shared.ignore_in_force() || shared.config.artifacts;
    match &shared.source {
        RuleSource::Frozen(frozen) if frozen.inside_git => return Arc::new(start.with_mode(Mode::InGit)),
        _ if added.repository.is_some() || !wanted => {}
        RuleSource::Live(live) => {
            let above = parent_repository::find(live, shared);
            if let Some(above) = &above {
                rules = rules.with_above(above);
            }
            live.record().above = above;
        }
        RuleSource::Frozen(frozen) => {
            if let Some(above) = &frozen.above {
                rules = rules.with_above(&above.thaw());
            }
        }
    }
    rules.adding(b"", added).map_or_else(|| Arc::new(rules), Arc::new)
}

impl DirRules {
    /// Rules in the subdirectory at `path` (relative to the root, always needed), open as `dir`. `has` is its listing.
    /// `searching`: [`DirRules::judge`] returned [`super::ExclusionVerdict::Search`] for it.
    pub fn enter(
        self: &Arc<Self>,
        rules: &Rules,
        path: &[u8],
        dir: BorrowedFd<'_>,
        has: RuleFiles,
        searching: bool,
    ) -> Arc<DirRules> {
        self.enter_with(path, searching, || rules.shared.look(path, dir, has))
    }

    pub(super) fn enter_with(
        self: &Arc<Self>,
        path: &[u8],
        searching: bool,
        look: impl FnOnce() -> AddedRules,
    ) -> Arc<DirRules> {
        if searching {
            return self.searched(path);
        }
        if self.mode == Mode::InGit {
            return Arc::clone(self);
        }
        if last_component(path) == b".git" {
            let mut rules = self.with_mode(Mode::InGit);
            rules.ignore = None;
            rules.repository = None;
            return Arc::new(rules);
        }
        let added = look();
        if self.mode == Mode::Plain {
            return self.adding(path, added).map_or_else(|| Arc::clone(self), Arc::new);
        }
        // Found while searching and captured as a whole: the usual rules apply again.
        let plain = self.with_mode(Mode::Plain);
        plain.adding(path, added).map_or_else(|| Arc::new(plain), Arc::new)
    }

    fn searched(self: &Arc<Self>, path: &[u8]) -> Arc<DirRules> {
        let own = match &self.mode {
            Mode::Searching(_) => self.shared.words.excludes(path, last_component(path)),
            _ => self.reason_again(path, last_component(path)),
        };
        match own {
            Some(reason) if self.mode != Mode::Searching(reason.clone()) => {
                Arc::new(self.with_mode(Mode::Searching(reason)))
            }
            _ => Arc::clone(self),
        }
    }

    /// Add the rules of the directory at `path`; `None` if it has none.
    fn adding(&self, path: &[u8], added: AddedRules) -> Option<DirRules> {
        let mut rules = match &added.repository {
            Some(found) => self.with_repository(Arc::clone(&found.repository)),
            None if added.ignore_file.is_some() => self.clone(),
            None => return None,
        };
        if let Some(text) = added.repository.and_then(|found| found.exclude) {
            rules.with_list(&text, WorktreeTop::below(path), shown(path, ".git/info/exclude"));
        }
        if let Some(text) = added.ignore_file {
            rules.with_list(&text, WorktreeTop::below(path), shown(path, ".gitignore"));
        }
        Some(rules)
    }
}
