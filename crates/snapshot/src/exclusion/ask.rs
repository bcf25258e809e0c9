//! Small questions about rules.

use super::shared::{Shared, Source};
use super::{ExclusionConfig, FrozenRules, Rules, RulesError};

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

    /// Whether these are rules of the past: what is on disk says nothing about them.
    pub fn is_frozen(&self) -> bool {
        matches!(self.shared.source, Source::Frozen(_))
    }
}
