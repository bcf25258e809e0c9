//! Repositories of git's: what changed in the history of one is one item, with what became of its branches. Its files
//! mean nothing one by one, and nine new objects tell nobody that there are three commits more.
//!
//! Everything is read from the snapshots. git itself is never run there: whoever could write the repository could make it
//! run something.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use nono_snapshot::node::Kind;
use nono_snapshot::{Change, ChangeType, SnapshotId, SnapshotManager, repository_of};

use super::{Item, ItemKind};
use crate::diagnostic::escape;

/// Larger files of refs are not read.
const REFS: u64 = 16 << 20;
/// A commit that is larger is not looked into.
const COMMIT: u64 = 1 << 20;
/// More commits are not counted.
const COMMITS: usize = 10_000;
/// Digits of a commit that people see.
const SHORT: usize = 7;

/// The changes as items, and the repositories among them as one item each.
pub(super) fn fold(
    manager: &SnapshotManager,
    from: &SnapshotId,
    to: &SnapshotId,
    changes: Vec<Change>,
) -> (Vec<Item>, Vec<Item>) {
    let mut items = Vec::new();
    let mut repositories: BTreeMap<PathBuf, Vec<Change>> = BTreeMap::new();
    for change in changes {
        match repository_of(&change.path) {
            Some(git) => repositories.entry(git).or_default().push(change),
            None => items.push(Item::from(change)),
        }
    }
    let one = |(git, changes): (PathBuf, Vec<Change>)| {
        let there = |id: &SnapshotId| matches!(manager.entry(id, &git), Ok(Some(_)));
        let kind = match (there(from), there(to)) {
            (false, true) => ItemKind::Created,
            (true, false) => ItemKind::Deleted,
            _ => ItemKind::Modified,
        };
        let sides = [Side { manager, id: from, git: &git }, Side { manager, id: to, git: &git }];
        Item {
            kind,
            old: None,
            new: None,
            size_delta: changes.iter().map(|change| change.size_delta).sum(),
            executes_later: None,
            history: Some(told(&sides, &changes)),
            path: git,
        }
    };
    (items, repositories.into_iter().map(one).collect())
}

/// One repository in one snapshot.
struct Side<'a> {
    manager: &'a SnapshotManager,
    id: &'a SnapshotId,
    git: &'a Path,
}

impl Side<'_> {
    /// A file of the repository; nothing where it is not there, too large or damaged: then nothing is told of it.
    fn read(&self, below: &str, limit: u64) -> Option<Vec<u8>> {
        let entry = self.manager.entry(self.id, &self.git.join(below)).ok()??;
        let Kind::File { hash, .. } = entry.kind else { return None };
        self.manager.content(hash, limit).ok()?
    }

    /// What stands in `packed-refs`.
    fn packed(&self) -> BTreeMap<String, String> {
        let text = self.read("packed-refs", REFS).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
        let pairs = lines.filter_map(|line| line.split_once(' '));
        pairs.map(|(commit, name)| (name.to_owned(), commit.to_owned())).collect()
    }

    /// The commit of a ref.
    fn commit(&self, name: &str, packed: &BTreeMap<String, String>) -> Option<String> {
        let loose = self.read(name, REFS).and_then(|text| String::from_utf8(text).ok());
        let loose = loose.map(|text| text.trim().to_owned()).filter(|text| is_commit(text));
        loose.or_else(|| packed.get(name).cloned())
    }

    /// The branch that is checked out, or the commit.
    fn head(&self) -> Option<String> {
        let text = String::from_utf8(self.read("HEAD", REFS)?).ok()?;
        let text = text.trim();
        let branch = text.strip_prefix("ref: ").map(short_name);
        branch.or_else(|| is_commit(text).then(|| short(text).to_owned()))
    }

    /// The parents of a commit that stands in a file of its own.
    fn parents(&self, commit: &str) -> Option<Vec<String>> {
        let (folder, file) = commit.split_at_checked(2)?;
        let packed = self.read(&format!("objects/{folder}/{file}"), COMMIT)?;
        let mut text = Vec::new();
        ZlibDecoder::new(packed.as_slice()).take(COMMIT).read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        let (kind, body) = text.split_once('\0')?;
        let header = kind.starts_with("commit ").then(|| body.split("\n\n").next().unwrap_or(body))?;
        Some(header.lines().filter_map(|line| line.strip_prefix("parent ")).map(str::to_owned).collect())
    }

    /// How many commits came on top of `old`; nothing where that cannot be told, or `new` does not come from it.
    fn count(&self, old: &str, new: &str) -> Option<usize> {
        let mut seen: HashSet<String> = HashSet::new();
        let mut waiting = vec![new.to_owned()];
        let mut met = false;
        while let Some(commit) = waiting.pop() {
            met |= commit == old;
            if commit == old || !seen.insert(commit.clone()) {
                continue;
            }
            if seen.len() > COMMITS {
                return None;
            }
            waiting.extend(self.parents(&commit)?);
        }
        met.then_some(seen.len())
    }
}

/// What became of the branches, tags and the like.
fn told(sides: &[Side<'_>; 2], changes: &[Change]) -> Vec<String> {
    let [old, new] = sides;
    let (old_packed, new_packed) = (old.packed(), new.packed());
    let mut names: BTreeSet<String> = BTreeSet::new();
    for change in changes {
        let below = change.path.strip_prefix(old.git).unwrap_or(&change.path);
        names.extend(below.to_str().filter(|below| below.starts_with("refs/")).map(str::to_owned));
    }
    let differ = |name: &&String| old_packed.get(*name) != new_packed.get(*name);
    names.extend(old_packed.keys().chain(new_packed.keys()).filter(differ).cloned());
    let mut lines = Vec::new();
    if let (Some(before), Some(after)) = (old.head(), new.head())
        && before != after
    {
        lines.push(format!("HEAD {before} -> {after}"));
    }
    for name in names {
        let (before, after) = (old.commit(&name, &old_packed), new.commit(&name, &new_packed));
        let shown = short_name(&name);
        lines.extend(match (before, after) {
            (Some(before), Some(after)) if before == after => None,
            (Some(before), Some(after)) => {
                let more = match new.count(&before, &after) {
                    Some(1) => ", 1 commit".to_owned(),
                    Some(count) => format!(", {count} commits"),
                    None => String::new(),
                };
                Some(format!("{shown} {} -> {}{more}", short(&before), short(&after)))
            }
            (None, Some(after)) => Some(format!("{shown} new at {}", short(&after))),
            (Some(before), None) => Some(format!("{shown} gone, was {}", short(&before))),
            (None, None) => None,
        });
    }
    if lines.is_empty() {
        let index = changes.iter().any(|change| change.path == old.git.join("index"));
        let objects = |wanted: ChangeType| {
            let is_object = |change: &&Change| change.path.starts_with(old.git.join("objects"));
            changes.iter().filter(is_object).filter(|change| change.change_type == wanted).count()
        };
        lines.push(match (objects(ChangeType::Created), objects(ChangeType::Deleted)) {
            // Packed, they would be in new files.
            (0, 1) => "1 object file removed, none added".to_owned(),
            (0, gone @ 2..) => format!("{gone} object files removed, none added"),
            (_, 0) if index => "index and objects".to_owned(),
            (0, 0) => "other files of the repository".to_owned(),
            _ => "objects stored in another way".to_owned(),
        });
    }
    lines
}

/// `main` of `refs/heads/main`, on one line whatever is in it.
fn short_name(name: &str) -> String {
    let name = name.strip_prefix("refs/").unwrap_or(name);
    let kinds = ["heads/", "remotes/"];
    escape(kinds.iter().find_map(|kind| name.strip_prefix(kind)).unwrap_or(name))
}

fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}

/// A digest in hexadecimal digits: SHA-1 or SHA-256.
fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
