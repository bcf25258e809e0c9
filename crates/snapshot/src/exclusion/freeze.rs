//! Freezing: turns the record of live rules into rules that need no disk.
//!
//! Most of the work is git's index. A tracked path that a rule matches may be missing on disk and come back later, so
//! every path of the index is checked against the rules once, not only those that the scan met.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::dir_rules::DirRules;
use super::frozen::{FrozenAbove, FrozenRepository, FrozenRules};
use super::index::Tracked;
use super::paths::{PathSet, last_component};
use super::repository::WorktreeTop;
use super::shared::{RepositoryRecord, RuleRecord, RuleSource, SharedRules};
use super::subdirectory_rules::frozen_root;
use super::{Evidence, ExclusionVerdict, Rules};

impl Rules {
    /// Freeze everything that was read and decided since these rules were made; call it after the scan.
    pub fn freeze(&self) -> FrozenRules {
        let live = match &self.shared.source {
            RuleSource::Frozen(frozen) => return FrozenRules::clone(frozen),
            RuleSource::Live(live) => live,
        };
        let record = live.record();
        let mut frozen = draft(&self.shared, &record);
        let Some(judge) = Judge::new(&self.shared, &frozen) else { return frozen };
        if let (Some(to), Some(from)) = (&mut frozen.above, &record.above) {
            to.repository.tracked = judge.left_out(b"", &from.repository);
        }
        for (top, to) in &mut frozen.repositories {
            if let Some(from) = record.repositories.get(top) {
                to.tracked = judge.left_out(top, from);
            }
        }
        frozen
    }
}

/// Frozen rules without the tracked paths.
fn draft(shared: &SharedRules, record: &RuleRecord) -> FrozenRules {
    let repository = |found: &RepositoryRecord| FrozenRepository {
        fold: found.repository.fold,
        exclude: found.exclude.clone(),
        tracked: Ok(Tracked::default()),
    };
    FrozenRules {
        config: shared.config.clone(),
        set_aside: shared.set_aside,
        inside_git: record.inside_git,
        above: record.above.as_ref().map(|above| FrozenAbove {
            prefix: above.prefix.clone(),
            repository: repository(&above.repository),
            files: above.files.clone(),
        }),
        files: record.files.clone(),
        repositories: record
            .repositories
            .iter()
            .map(|(top, found)| (top.clone(), repository(found)))
            .collect(),
        artifacts: record.artifacts.clone(),
        large: record.large.clone(),
    }
}

/// Checks tracked paths against rules without tracked paths.
struct Judge {
    shared: Arc<SharedRules>,
}

impl Judge {
    /// `None` if no rule can exclude a tracked path.
    fn new(shared: &SharedRules, draft: &FrozenRules) -> Option<Judge> {
        let above =
            draft.above.iter().any(|above| !above.files.is_empty() || above.repository.exclude.is_some());
        let excludes = draft.repositories.values().any(|repository| repository.exclude.is_some());
        if !shared.config.artifacts && !above && !excludes && draft.files.is_empty() {
            return None;
        }
        // Without the decisions on artifacts every name may be one: too many paths are kept rather than too few.
        let rules = FrozenRules { artifacts: BTreeMap::new(), large: BTreeMap::new(), ..draft.clone() };
        let source = RuleSource::Frozen(Box::new(rules));
        Some(Judge { shared: Arc::new(shared.with_source(shared.set_aside, source)) })
    }

    fn left_out(&self, top: &[u8], from: &RepositoryRecord) -> Result<Tracked, String> {
        let tracked = from.repository.tracked().as_ref().map_err(Clone::clone)?;
        if from.repository.fold {
            // A case-folded index does not have the paths on disk: keep all of them.
            return Ok(tracked.clone());
        }
        let place = &from.repository.place;
        let among = |set: &PathSet, is_dir| {
            let mut walk = FreezeWalk::new(&self.shared);
            PathSet::from_sorted(set.iter().filter(|path| {
                below_root(place, top, path).is_some_and(|path| walk.leaves_out(&path, is_dir))
            }))
        };
        Ok(Tracked { files: among(&tracked.files, false), links: among(&tracked.links, true) })
    }
}

/// Convert a path relative to the repository's top into one relative to the root.
fn below_root(place: &WorktreeTop, top: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    match place {
        WorktreeTop::Above(prefix) => path.strip_prefix(&**prefix).map(<[u8]>::to_vec),
        WorktreeTop::Below(0) => Some(path.to_vec()),
        WorktreeTop::Below(_) => Some([top, b"/", path].concat()),
    }
}

/// Walks paths in their order, keeping the rules of the directories on the way.
struct FreezeWalk {
    root: Arc<DirRules>,
    /// Directories from the outermost on: the length of the path, and the rules in it unless it is excluded.
    dirs: Vec<(usize, Option<Arc<DirRules>>)>,
    /// Path of the innermost of them.
    at: Vec<u8>,
}

impl FreezeWalk {
    fn new(shared: &Arc<SharedRules>) -> FreezeWalk {
        let added = match &shared.source {
            RuleSource::Frozen(frozen) => frozen.look(b""),
            RuleSource::Live(_) => super::shared::AddedRules::default(),
        };
        FreezeWalk { root: frozen_root(shared, added), dirs: Vec::new(), at: Vec::new() }
    }

    fn leaves_out(&mut self, path: &[u8], is_dir: bool) -> bool {
        let parent = path.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |end| &path[..end]);
        self.go_to(parent);
        match self.dirs.last() {
            Some((_, None)) => true,
            Some((_, Some(rules))) => leaves_out(rules, path, is_dir),
            None => leaves_out(&self.root, path, is_dir),
        }
    }

    fn go_to(&mut self, dir: &[u8]) {
        while !is_at_or_below(dir, &self.at) {
            self.dirs.pop();
            self.at.truncate(self.dirs.last().map_or(0, |(len, _)| *len));
        }
        while self.at.len() < dir.len() {
            let from = if self.at.is_empty() { 0 } else { self.at.len() + 1 };
            let end = dir[from..].iter().position(|byte| *byte == b'/').map_or(dir.len(), |len| from + len);
            let outer = self.dirs.last().map_or(Some(&self.root), |(_, rules)| rules.as_ref());
            let rules = outer.and_then(|outer| enter(outer, &dir[..end]));
            self.dirs.push((end, rules));
            self.at = dir[..end].to_vec();
        }
    }
}

/// Rules in a directory, unless it is excluded.
fn enter(outer: &Arc<DirRules>, path: &[u8]) -> Option<Arc<DirRules>> {
    if leaves_out(outer, path, true) {
        return None;
    }
    let RuleSource::Frozen(frozen) = &outer.shared.source else { return None };
    Some(outer.enter_with(path, false, || frozen.look(path)))
}

/// Evidence that is always there, so that every candidate counts as an artifact.
pub(super) struct Anything;

impl Evidence for Anything {
    fn is_filled(&self, _path: &[u8]) -> bool {
        true
    }

    fn any_ends_with(&self, _end: &[u8]) -> bool {
        true
    }

    fn begins_with(&self, _path: &[u8], _bytes: &[u8]) -> bool {
        true
    }

    fn is_larger(&self, _name: &[u8], _limit: u64) -> bool {
        true
    }
}

fn leaves_out(rules: &DirRules, path: &[u8], is_dir: bool) -> bool {
    let verdict = rules.judge(path, last_component(path), is_dir, &Anything);
    matches!(verdict, ExclusionVerdict::Leave(_) | ExclusionVerdict::Search(_))
}

fn is_at_or_below(path: &[u8], dir: &[u8]) -> bool {
    dir.is_empty() || path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
