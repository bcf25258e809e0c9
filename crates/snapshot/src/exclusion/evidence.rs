//! Questions about what stands around an entry that is judged.

/// Surroundings of an entry: the evidence for build artifacts.
pub trait Evidence {
    /// Whether a sibling of this name, or `name/marker` inside the entry, exists and is not an empty file.
    fn is_filled(&self, path: &[u8]) -> bool;

    /// Whether the directory of this name, beside which there is evidence, is empty.
    fn is_empty(&self, _name: &[u8]) -> bool {
        false
    }

    /// Whether the name of any sibling ends with these bytes.
    fn any_ends_with(&self, _end: &[u8]) -> bool {
        false
    }

    /// Whether the file at `path`, inside the entry, begins with these bytes.
    fn begins_with(&self, _path: &[u8], _bytes: &[u8]) -> bool {
        false
    }

    /// Whether the files in the directory of this name hold more bytes than `limit`.
    fn is_larger(&self, _name: &[u8], _limit: u64) -> bool {
        false
    }
}

/// Names in a directory's listing that matter for rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RuleFiles {
    pub gitignore: bool,
    pub git: bool,
}
