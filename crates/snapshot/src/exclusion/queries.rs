//! Queries on rules.

use std::os::fd::BorrowedFd;

use super::paths::last_component;
use super::shared::{RuleSource, SharedRules};
use super::{ExclusionConfig, ExclusionVerdict, FrozenRules, RuleFiles, Rules, RulesError};

impl Rules {
    /// Check that a configuration is valid.
    pub fn check(config: &ExclusionConfig) -> Result<(), RulesError> {
        let nothing = RuleSource::Frozen(Box::<FrozenRules>::default());
        SharedRules::new(config, false, nothing).map(drop)
    }

    /// Whether all ignore files are set aside.
    pub fn is_set_aside(&self) -> bool {
        self.shared.set_aside
    }

    /// Whether the entry at `path` and all directories containing it are captured. `dir` is the root; `there` gives the
    /// entries below it, as evidence of artifacts. An entry that only a search in an excluded directory would find
    /// counts as excluded.
    pub(crate) fn take(
        &self,
        dir: BorrowedFd<'_>,
        path: &[u8],
        is_dir: bool,
        there: &dyn Fn(&[u8]) -> bool,
    ) -> bool {
        let mut rules = self.root(dir);
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let here = &path[..end];
            let name = last_component(here);
            let above = &here[..end - name.len()];
            let beside = |name: &[u8]| there(&[above, name].concat());
            let whole = end < path.len();
            match rules.judge(here, name, whole || is_dir, &beside) {
                ExclusionVerdict::Take | ExclusionVerdict::TakeAnyway => {}
                ExclusionVerdict::Leave(_) | ExclusionVerdict::Search(_) => return false,
            }
            if whole {
                rules = rules.enter(self, here, dir, RuleFiles { gitignore: true, git: true }, false);
            }
        }
        true
    }

    /// Whether a directory may add rules, given its listing. Frozen rules apply where they were.
    pub(crate) fn may_add(&self, has: RuleFiles) -> bool {
        match &self.shared.source {
            RuleSource::Live(_) => has.gitignore || has.git,
            RuleSource::Frozen(frozen) => !frozen.files.is_empty() || !frozen.repositories.is_empty(),
        }
    }
}
