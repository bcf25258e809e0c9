//! Git repositories in a list of changes: all changes inside one `.git` are one item that says what happened to its
//! branches. Its files mean little one by one: nine new objects do not show that there are three new commits.
//!
//! Everything is read from the snapshots. git itself is never run there: a process that could write the repository
//! could make git run a command.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use nono_snapshot::node::Kind;
use nono_snapshot::{Change, ChangeType, SnapshotId, SnapshotManager, repository_of};

use super::{Item, ItemKind};
use nono_policy::text::escape;

/// Largest file of refs that is read.
const REFS: u64 = 16 << 20;
/// Largest commit that is read.
const COMMIT: u64 = 1 << 20;
/// Maximum number of commits counted.
const COMMITS: usize = 10_000;
/// Number of digits of a commit shown.
const SHORT: usize = 7;

/// Split changes into ordinary items and one item for each repository.
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
        let sides =
            [RepositorySide { manager, id: from, git: &git }, RepositorySide { manager, id: to, git: &git }];
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
struct RepositorySide<'a> {
    manager: &'a SnapshotManager,
    id: &'a SnapshotId,
    git: &'a Path,
}

impl RepositorySide<'_> {
    /// Read a file of the repository. None if it is missing, too large or damaged: then it is not reported.
    fn read(&self, below: &str, limit: u64) -> Option<Vec<u8>> {
        let entry = self.manager.entry(self.id, &self.git.join(below)).ok()??;
        let Kind::File { hash, .. } = entry.kind else { return None };
        self.manager.content(hash, limit).ok()?
    }

    /// Refs in `packed-refs`.
    fn packed(&self) -> BTreeMap<String, String> {
        let text = self.read("packed-refs", REFS).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
        let pairs = lines.filter_map(|line| line.split_once(' '));
        pairs.map(|(commit, name)| (name.to_owned(), commit.to_owned())).collect()
    }

    /// Commit of a ref.
    fn commit(&self, name: &str, packed: &BTreeMap<String, String>) -> Option<String> {
        let loose = self.read(name, REFS).and_then(|text| String::from_utf8(text).ok());
        let loose = loose.map(|text| text.trim().to_owned()).filter(|text| is_commit(text));
        loose.or_else(|| packed.get(name).cloned())
    }

    /// Checked-out branch, or commit.
    fn head(&self) -> Option<String> {
        let text = String::from_utf8(self.read("HEAD", REFS)?).ok()?;
        let text = text.trim();
        let branch = text.strip_prefix("ref: ").map(short_name);
        branch.or_else(|| is_commit(text).then(|| short(text).to_owned()))
    }

    /// Parents of a commit stored as a loose object.
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

    /// Number of commits on top of `old`. None if it is unknown, or `new` does not descend from it.
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

/// Description of what happened to branches, tags and other refs.
fn told(sides: &[RepositorySide<'_>; 2], changes: &[Change]) -> Vec<String> {
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
            // Packing would have added new files.
            (0, 1) => "1 object file removed, none added".to_owned(),
            (0, gone @ 2..) => format!("{gone} object files removed, none added"),
            (_, 0) if index => "index and objects".to_owned(),
            (0, 0) => "other files of the repository".to_owned(),
            _ => "objects stored in another way".to_owned(),
        });
    }
    lines
}

/// Short name of a ref (`main` for `refs/heads/main`), escaped to one line.
fn short_name(name: &str) -> String {
    let name = name.strip_prefix("refs/").unwrap_or(name);
    let kinds = ["heads/", "remotes/"];
    escape(kinds.iter().find_map(|kind| name.strip_prefix(kind)).unwrap_or(name))
}

fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}

/// Whether this is a digest in hexadecimal digits: SHA-1 or SHA-256.
fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
