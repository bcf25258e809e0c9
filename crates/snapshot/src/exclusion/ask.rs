//! Small questions about rules.

use super::shared::{Shared, Source};
use super::{ExclusionConfig, FrozenRules, Has, Rules, RulesError};

impl Rules {
    /// Whether rules can be made of this.
    pub fn check(config: &ExclusionConfig) -> Result<(), RulesError> {
        let nothing = Source::Frozen(Box::<FrozenRules>::default());
        Shared::new(config, false, nothing).map(drop)
    }

    /// Whether all ignore files are disregarded.
    pub fn is_set_aside(&self) -> bool {
        self.shared.set_aside
    }

    /// Whether a directory may have rules of its own, given what its listing contains. Rules of the past are where
    /// they were, whatever is on disk now.
    pub(crate) fn may_add(&self, has: Has) -> bool {
        match &self.shared.source {
            Source::Live(_) => has.gitignore || has.git,
            Source::Frozen(frozen) => !frozen.files.is_empty() || !frozen.repositories.is_empty(),
        }
    }
}
