//! Rules as they were when a snapshot was taken: the same verdicts, whatever is on disk now.
//!
//! They hold the caller's rules, the text of every ignore file that was read, the places of repositories, the tracked
//! paths among the excluded ones, and the decisions on artifacts. Of the index only paths that a rule matches are kept:
//! no others are ever looked up. Each rule set has one encoding, which is checked when it is read. New directories with
//! an artifact's name are judged by the evidence at that time.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::config::{ExclusionConfig, LargePacks};
use super::index::Tracked;
use super::paths::{PathSet, relative};
use super::repository::{Repository, WorktreeTop};
use super::shared::{AddedRules, ParentRepository, RepositoryRecord};
use crate::bytes::{Malformed, Reader, Writer};

/// Result of [`super::Rules::freeze`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrozenRules {
    pub(super) config: ExclusionConfig,
    pub(super) set_aside: bool,
    pub(super) inside_git: bool,
    pub(super) above: Option<FrozenAbove>,
    /// Text of each `.gitignore`, by its directory.
    pub(super) files: BTreeMap<Vec<u8>, Arc<[u8]>>,
    /// Repositories at or below the root, by their top directory.
    pub(super) repositories: BTreeMap<Vec<u8>, FrozenRepository>,
    pub(super) artifacts: BTreeMap<Vec<u8>, Option<String>>,
    /// Decisions on whether ignored folders are too large, by path.
    pub(super) large: BTreeMap<Vec<u8>, bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FrozenRepository {
    pub(super) fold: bool,
    pub(super) exclude: Option<Arc<[u8]>>,
    /// Tracked paths that a rule would exclude, or why they are unknown.
    pub(super) tracked: Result<Tracked, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FrozenAbove {
    pub(super) prefix: Box<[u8]>,
    pub(super) repository: FrozenRepository,
    pub(super) files: Vec<(Vec<u8>, Arc<[u8]>)>,
}

const VERSION: u8 = 1;

impl FrozenRules {
    /// The caller's rules alone, for a tree that was not scanned.
    pub(crate) fn unseen(config: ExclusionConfig) -> FrozenRules {
        FrozenRules { config, ..FrozenRules::default() }
    }

    /// The caller's rules.
    pub fn config(&self) -> &ExclusionConfig {
        &self.config
    }

    /// Whether the ignore files were set aside, because they would have excluded almost everything.
    pub fn is_set_aside(&self) -> bool {
        self.set_aside
    }

    /// The same rules without any ignore file.
    pub(super) fn without_ignore_files(&self) -> FrozenRules {
        let mut rules = self.clone();
        rules.set_aside = true;
        rules.files.clear();
        if let Some(above) = &mut rules.above {
            above.files.clear();
            above.repository.exclude = None;
        }
        rules.repositories.values_mut().for_each(|repository| repository.exclude = None);
        rules
    }

    pub(super) fn look(&self, path: &[u8]) -> AddedRules {
        let repository = self.repositories.get(path).map(|found| found.thaw(WorktreeTop::below(path)));
        AddedRules { repository, ignore_file: self.files.get(path).cloned() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.byte(VERSION);
        encode_config(&self.config, &mut out);
        let flags = [self.set_aside, self.inside_git, self.above.is_some(), !self.large.is_empty()];
        out.byte(bits(&flags));
        if let Some(above) = &self.above {
            out.bytes(above.prefix.strip_suffix(b"/").unwrap_or(&above.prefix));
            above.repository.encode(&mut out);
            out.list(&above.files, |(dir, text), out| {
                out.bytes(dir);
                out.bytes(text);
            });
        }
        encode_map(&self.files, &mut out, |text, out| out.bytes(text));
        encode_map(&self.repositories, &mut out, FrozenRepository::encode);
        encode_map(&self.artifacts, &mut out, |what, out| encode_option(what.as_deref(), out, str::as_bytes));
        if !self.large.is_empty() {
            encode_map(&self.large, &mut out, |large, out| out.byte(u8::from(*large)));
        }
        out.finish()
    }

    pub fn decode(bytes: &[u8]) -> Result<FrozenRules, Malformed> {
        let mut from = Reader::new(bytes);
        if from.byte()? != VERSION {
            return Err(Malformed("the version of frozen rules"));
        }
        let config = decode_config(&mut from)?;
        let [set_aside, inside_git, has_above, has_large] = flags(&mut from)?;
        let above = has_above.then(|| FrozenAbove::decode(&mut from)).transpose()?;
        let files = decode_map(&mut from, |from| from.bytes().map(Arc::from))?;
        let repositories = decode_map(&mut from, FrozenRepository::decode)?;
        let artifacts = decode_map(&mut from, |from| decode_option(from, Reader::text))?;
        let large = has_large.then(|| {
            decode_map(&mut from, |from| {
                let [large] = flags(from)?;
                Ok(large)
            })
        });
        let large = large.transpose()?.unwrap_or_default();
        if has_large && large.is_empty() {
            return Err(Malformed("the folders of frozen rules"));
        }
        from.end()?;
        Ok(FrozenRules { config, set_aside, inside_git, above, files, repositories, artifacts, large })
    }
}

impl FrozenRepository {
    fn thaw(&self, place: WorktreeTop) -> RepositoryRecord {
        let repository = Repository::known(place, self.fold, self.tracked.clone());
        RepositoryRecord { repository: Arc::new(repository), exclude: self.exclude.clone() }
    }

    fn encode(&self, out: &mut Writer) {
        out.byte(bits(&[self.fold, self.tracked.is_ok()]));
        encode_option(self.exclude.as_deref(), out, |text| text);
        match &self.tracked {
            Ok(tracked) => {
                tracked.files.encode(out);
                tracked.links.encode(out);
            }
            Err(why) => out.bytes(why.as_bytes()),
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<FrozenRepository, Malformed> {
        let [fold, known] = flags(from)?;
        let exclude = decode_option(from, |from| from.bytes().map(Arc::from))?;
        let tracked = if known {
            Ok(Tracked { files: PathSet::decode(from)?, links: PathSet::decode(from)? })
        } else {
            Err(from.text()?)
        };
        Ok(FrozenRepository { fold, exclude, tracked })
    }
}

impl FrozenAbove {
    pub(super) fn thaw(&self) -> ParentRepository {
        let repository = self.repository.thaw(WorktreeTop::Above(self.prefix.clone()));
        ParentRepository { prefix: self.prefix.clone(), repository, files: self.files.clone() }
    }

    fn decode(from: &mut Reader<'_>) -> Result<FrozenAbove, Malformed> {
        let prefix: Box<[u8]> = [relative(from)?, b"/"].concat().into();
        let repository = FrozenRepository::decode(from)?;
        let files: Vec<(Vec<u8>, Arc<[u8]>)> =
            from.list(|from| Ok((from.bytes()?.to_vec(), from.bytes()?.into())))?;
        // Each is a directory on the way from the top to the root, outer ones first.
        let on_the_way = |dir: &[u8]| {
            dir.is_empty()
                || prefix.strip_prefix(dir).is_some_and(|rest| rest.len() > 1 && rest.starts_with(b"/"))
        };
        let rising = files.is_sorted_by(|(a, _), (b, _)| a.len() < b.len());
        if !rising || !files.iter().all(|(dir, _)| on_the_way(dir)) {
            return Err(Malformed("the ignore files above a root"));
        }
        Ok(FrozenAbove { prefix, repository, files })
    }
}

pub(super) fn encode_config(config: &ExclusionConfig, out: &mut Writer) {
    let all_packs = config.large_git_packs == LargePacks::Take;
    let limits = [config.max_ignored_folder, config.max_repository];
    let limited = limits.map(|limit| limit.is_some());
    out.byte(bits(&[config.use_gitignore, config.artifacts, all_packs, limited[0], limited[1]]));
    limits.into_iter().flatten().for_each(|limit| out.number(limit));
    for list in [&config.exclude_patterns, &config.exclude_globs, &config.force_include] {
        out.list(list, |text, out| out.bytes(text.as_bytes()));
    }
}

fn decode_config(from: &mut Reader<'_>) -> Result<ExclusionConfig, Malformed> {
    let [use_gitignore, artifacts, all_packs, folders, repositories] = flags(from)?;
    Ok(ExclusionConfig {
        max_ignored_folder: folders.then(|| from.number()).transpose()?,
        max_repository: repositories.then(|| from.number()).transpose()?,
        use_gitignore,
        artifacts,
        large_git_packs: if all_packs { LargePacks::Take } else { LargePacks::LeaveOut },
        exclude_patterns: from.list(Reader::text)?,
        exclude_globs: from.list(Reader::text)?,
        force_include: from.list(Reader::text)?,
    })
}

fn bits(flags: &[bool]) -> u8 {
    flags.iter().enumerate().fold(0, |byte, (number, flag)| byte | u8::from(*flag) << number)
}

fn flags<const N: usize>(from: &mut Reader<'_>) -> Result<[bool; N], Malformed> {
    let byte = from.byte()?;
    if byte >> N != 0 {
        return Err(Malformed("the flags of frozen rules"));
    }
    Ok(std::array::from_fn(|number| byte >> number & 1 == 1))
}

fn encode_option<T: ?Sized>(value: Option<&T>, out: &mut Writer, bytes: impl Fn(&T) -> &[u8]) {
    out.byte(u8::from(value.is_some()));
    if let Some(value) = value {
        out.bytes(bytes(value));
    }
}

fn decode_option<'a, T>(
    from: &mut Reader<'a>,
    value: impl FnOnce(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<Option<T>, Malformed> {
    let [some] = flags(from)?;
    some.then(|| value(from)).transpose()
}

fn encode_map<T>(map: &BTreeMap<Vec<u8>, T>, out: &mut Writer, value: impl Fn(&T, &mut Writer)) {
    out.number(map.len() as u64);
    for (path, item) in map {
        out.bytes(path);
        value(item, out);
    }
}

/// Decode a map by path, in rising order; the empty path is the root.
fn decode_map<'a, T>(
    from: &mut Reader<'a>,
    value: impl Fn(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<BTreeMap<Vec<u8>, T>, Malformed> {
    let mut last: Option<&[u8]> = None;
    let items = from.list(|from| {
        let root = from.clone().bytes()?.is_empty();
        let path = if root { from.bytes()? } else { relative(from)? };
        if last.is_some_and(|last| last >= path) {
            return Err(Malformed("the order of frozen rules"));
        }
        last = Some(path);
        Ok((path.to_vec(), value(from)?))
    })?;
    Ok(items.into_iter().collect())
}
