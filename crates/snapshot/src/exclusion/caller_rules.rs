//! The caller's own rules: patterns, globs, and forced paths.
//!
//! A pattern without `/` is the name of a component. With `/` it is a part of the path below the root; the slash before
//! the first component counts, so `/build` also means a `build…` at the top. Nothing above the root is ever considered.
//! `force_include` works the same way, and if it has no `/` but `*`, `?`, `[` or `{`, it is also a glob on components
//! (a malformed one is only a name). An empty pattern matches nothing.

use super::config::{ExclusionConfig, RulesError};
use super::glob::{Glob, has_special};
use crate::node::Reason;

#[derive(Debug)]
pub(super) struct CallerRules {
    patterns: Vec<Pattern>,
    globs: Vec<(String, Glob)>,
    force: Vec<(Pattern, Option<Glob>)>,
}

#[derive(Debug)]
enum Pattern {
    Component(String),
    Part(String),
}

impl CallerRules {
    pub(super) fn new(config: &ExclusionConfig) -> Result<CallerRules, RulesError> {
        let patterns = config.exclude_patterns.iter().filter_map(|text| Pattern::new(text)).collect();
        let glob = |text: &String| match Glob::parse(text) {
            Ok(glob) => Ok((text.clone(), glob)),
            Err(why) => Err(RulesError::Glob { glob: text.clone(), why }),
        };
        let globs = config.exclude_globs.iter().map(glob).collect::<Result<_, _>>()?;
        let force = config.force_include.iter().filter_map(|text| {
            let glob = has_special(text) && !text.contains('/');
            Some((Pattern::new(text)?, glob.then(|| Glob::parse(text).ok()).flatten()))
        });
        Ok(CallerRules { patterns, globs, force: force.collect() })
    }

    /// Whether these rules exclude nothing.
    pub(super) fn excludes_nothing(&self) -> bool {
        self.patterns.is_empty() && self.globs.is_empty()
    }

    /// Whether forced entries may be inside excluded directories.
    pub(super) fn can_force(&self) -> bool {
        !self.force.is_empty()
    }

    /// Whether `path` or a directory containing it is forced.
    pub(super) fn forces(&self, path: &[u8]) -> bool {
        self.force.iter().any(|(pattern, glob)| {
            let mut components = path.split(|byte| *byte == b'/');
            match pattern {
                Pattern::Part(part) => has_part(path, part),
                Pattern::Component(name) => components.any(|component| {
                    component == name.as_bytes() || glob.as_ref().is_some_and(|glob| glob.matches(component))
                }),
            }
        })
    }

    /// Reason to exclude `path`, if any. Its parent directories were checked before.
    pub(super) fn excludes(&self, path: &[u8], name: &[u8]) -> Option<Reason> {
        let pattern = self.patterns.iter().find_map(|pattern| match pattern {
            Pattern::Component(text) => (text.as_bytes() == name).then_some(text),
            Pattern::Part(text) => has_part(path, text).then_some(text),
        });
        if let Some(text) = pattern {
            return Some(Reason::Pattern(text.clone()));
        }
        let glob = self.globs.iter().find(|(_, glob)| glob.matches(name));
        glob.map(|(text, _)| Reason::Glob(text.clone()))
    }
}

impl Pattern {
    fn new(text: &str) -> Option<Pattern> {
        match text {
            "" => None,
            text if text.contains('/') => Some(Pattern::Part(text.into())),
            text => Some(Pattern::Component(text.into())),
        }
    }
}

/// Whether `part` is a substring of `/` followed by `path`.
fn has_part(path: &[u8], part: &str) -> bool {
    let part = part.as_bytes();
    part.strip_prefix(b"/").is_some_and(|start| path.starts_with(start))
        || path.windows(part.len()).any(|window| window == part)
}
