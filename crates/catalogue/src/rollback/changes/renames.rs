//! Rename detection among deleted and created files.
//!
//! By content first, in one pass over maps, so any number of changes costs little. Then by similarity: bytes in lines
//! that both have, as a share of the larger side, as git measures it; only among few and small files.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::hash::{Hash, Hasher};
use std::path::Path;

use nono_snapshot::diff::{FileKind, Version};
use nono_snapshot::{ContentHash, SnapshotManager};

use super::{Item, ItemKind};
use crate::rollback::patch;

/// Smallest share of common bytes, in percent, that makes a rename.
const SIMILAR: u64 = 50;
/// Largest file compared.
const COMPARED: u64 = 1 << 20;
/// Maximum number of candidates compared per side. Above it only those with the same file name are compared, and above it again none.
const CANDIDATES: usize = 400;
/// Maximum number of bytes read on a side.
const READ: u64 = 32 << 20;

/// Replace each deletion and creation that form a rename by one item.
pub(super) fn find(manager: &SnapshotManager, items: Vec<Item>) -> Vec<Item> {
    let mut found = RenamePairs::new(&items);
    for same in [same_name, same_folder, anything] {
        found.by_content(&items, same);
    }
    found.by_similarity(&items, manager);
    found.merge(items)
}

struct RenamePairs {
    went: Vec<usize>,
    came: Vec<usize>,
    /// Index of the deleted item, by the index of the created one.
    pairs: HashMap<usize, usize>,
}

type Likeness = fn(&Path) -> &OsStr;

fn same_name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

fn same_folder(path: &Path) -> &OsStr {
    path.parent().map(Path::as_os_str).unwrap_or_default()
}

fn anything(_: &Path) -> &OsStr {
    OsStr::new("")
}

/// Content of a non-empty regular file: an empty one is no evidence of a rename.
fn content(version: Option<&Version>) -> Option<(ContentHash, u64)> {
    let version = version.filter(|version| version.kind == FileKind::File)?;
    Some((version.hash?, version.size.filter(|size| *size > 0)?))
}

impl RenamePairs {
    fn new(items: &[Item]) -> RenamePairs {
        let of = |kind: ItemKind, side: fn(&Item) -> Option<&Version>| {
            let fits = |item: &Item| item.kind == kind && content(side(item)).is_some();
            (0..items.len()).filter(|index| fits(&items[*index])).collect()
        };
        RenamePairs {
            went: of(ItemKind::Deleted, |item| item.old.as_ref()),
            came: of(ItemKind::Created, |item| item.new.as_ref()),
            pairs: HashMap::new(),
        }
    }

    fn pair(&mut self, pairs: &[(usize, usize)]) {
        let (came, went): (HashSet<usize>, HashSet<usize>) = pairs.iter().copied().unzip();
        self.came.retain(|index| !came.contains(index));
        self.went.retain(|index| !went.contains(index));
        self.pairs.extend(pairs.iter().copied());
    }

    /// Pair items with the same content whose paths are alike.
    fn by_content(&mut self, items: &[Item], like: Likeness) {
        let mut by_key: HashMap<_, VecDeque<usize>> = HashMap::new();
        for &index in &self.went {
            let item = &items[index];
            by_key.entry((content(item.old.as_ref()), like(&item.path))).or_default().push_back(index);
        }
        let mut pairs = Vec::new();
        for &index in &self.came {
            let item = &items[index];
            let key = (content(item.new.as_ref()), like(&item.path));
            pairs.extend(by_key.get_mut(&key).and_then(VecDeque::pop_front).map(|went| (index, went)));
        }
        self.pair(&pairs);
    }

    fn by_similarity(&mut self, items: &[Item], manager: &SnapshotManager) {
        let (went, came) = self.candidates(items);
        let read = |list: &[usize], side: fn(&Item) -> Option<&Version>| -> Vec<(usize, Lines)> {
            let mut left = READ;
            let lines = list.iter().filter_map(|index| {
                let (hash, size) = content(side(&items[*index]))?;
                left = left.checked_sub(size)?;
                // Unreadable: it stays a creation or a deletion.
                let bytes = manager.content(hash, COMPARED).ok()??;
                (!patch::looks_binary(&bytes)).then(|| (*index, Lines::of(&bytes)))
            });
            lines.collect()
        };
        let went = read(&went, |item| item.old.as_ref());
        let came = if went.is_empty() { Vec::new() } else { read(&came, |item| item.new.as_ref()) };
        let mut scores = scores(&went, &came);
        scores.sort_by_key(|&(came, went, score)| {
            let other_name = same_name(&items[came].path) != same_name(&items[went].path);
            (std::cmp::Reverse(score), other_name, came, went)
        });
        let mut taken = (HashSet::new(), HashSet::new());
        let mut pairs = Vec::new();
        for (came, went, _) in scores {
            if !taken.0.contains(&came) && !taken.1.contains(&went) {
                taken.0.insert(came);
                taken.1.insert(went);
                pairs.push((came, went));
            }
        }
        self.pair(&pairs);
    }

    /// Indexes worth reading: small enough, and of a size that something on the other side can be similar to.
    fn candidates(&self, items: &[Item]) -> (Vec<usize>, Vec<usize>) {
        let sized = |list: &[usize], side: fn(&Item) -> Option<&Version>| -> Vec<(usize, u64)> {
            let size = |index: &usize| Some((*index, content(side(&items[*index]))?.1));
            list.iter().filter_map(size).filter(|(_, size)| *size <= COMPARED).collect()
        };
        let went = sized(&self.went, |item| item.old.as_ref());
        let came = sized(&self.came, |item| item.new.as_ref());
        let (went, came) = (near(&went, &came), near(&came, &went));
        if went.len().max(came.len()) <= CANDIDATES {
            return (went, came);
        }
        let names = |list: &[usize]| -> HashSet<&OsStr> {
            list.iter().map(|index| same_name(&items[*index].path)).collect()
        };
        let (names_went, names_came) = (names(&went), names(&came));
        let both = |list: Vec<usize>| -> Vec<usize> {
            let shared = |index: &usize| {
                let name = same_name(&items[*index].path);
                names_went.contains(name) && names_came.contains(name)
            };
            list.into_iter().filter(shared).collect()
        };
        let (went, came) = (both(went), both(came));
        if went.len().max(came.len()) <= CANDIDATES { (went, came) } else { (Vec::new(), Vec::new()) }
    }

    fn merge(self, items: Vec<Item>) -> Vec<Item> {
        let went: HashSet<usize> = self.pairs.values().copied().collect();
        let mut old: HashMap<usize, Item> = HashMap::new();
        let mut kept = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            if went.contains(&index) {
                old.insert(index, item);
            } else {
                kept.push((index, item));
            }
        }
        let rename = |(index, item): (usize, Item)| {
            let Some(old) = self.pairs.get(&index).and_then(|went| old.remove(went)) else { return item };
            Item {
                size_delta: item.size_delta + old.size_delta,
                kind: ItemKind::Renamed { from: old.path },
                old: old.old,
                ..item
            }
        };
        kept.into_iter().map(rename).collect()
    }
}

/// Indexes of `list` that are at least half and at most twice as large as something in `others`.
fn near(list: &[(usize, u64)], others: &[(usize, u64)]) -> Vec<usize> {
    let mut sizes: Vec<u64> = others.iter().map(|(_, size)| *size).collect();
    sizes.sort_unstable();
    let fits = |size: u64| {
        let first = sizes.partition_point(|other| other * 100 < size * SIMILAR);
        sizes.get(first).is_some_and(|other| size * 100 >= other * SIMILAR)
    };
    list.iter().filter(|(_, size)| fits(*size)).map(|(index, _)| *index).collect()
}

/// Text as the number of bytes in each of its lines, by line hash. A hash collision makes a file look slightly more
/// similar: a rename is a guess anyway, and only the name of the change depends on it.
struct Lines {
    bytes: HashMap<u64, u64>,
    size: u64,
}

impl Lines {
    fn of(text: &[u8]) -> Lines {
        let mut bytes = HashMap::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let mut hasher = DefaultHasher::new();
            line.hash(&mut hasher);
            *bytes.entry(hasher.finish()).or_default() += line.len() as u64;
        }
        Lines { bytes, size: text.len() as u64 }
    }
}

/// Created index, deleted index and similarity in percent, for pairs above the threshold.
fn scores(went: &[(usize, Lines)], came: &[(usize, Lines)]) -> Vec<(usize, usize, u64)> {
    let mut holders: HashMap<u64, Vec<(usize, u64)>> = HashMap::new();
    for (position, (_, lines)) in went.iter().enumerate() {
        for (line, bytes) in &lines.bytes {
            holders.entry(*line).or_default().push((position, *bytes));
        }
    }
    let mut scores = Vec::new();
    for (index, lines) in came {
        let mut common = vec![0; went.len()];
        for (line, bytes) in &lines.bytes {
            for (position, theirs) in holders.get(line).into_iter().flatten() {
                common[*position] += bytes.min(theirs);
            }
        }
        for ((old, theirs), common) in went.iter().zip(common) {
            let score = common * 100 / lines.size.max(theirs.size).max(1);
            if score >= SIMILAR {
                scores.push((*index, *old, score));
            }
        }
    }
    scores
}

/// Similarity of two texts, in percent.
pub(in crate::rollback) fn similarity(old: &[u8], new: &[u8]) -> u64 {
    if old == new {
        return 100;
    }
    let scores = scores(&[(0, Lines::of(old))], &[(0, Lines::of(new))]);
    // 100 % means identical content only.
    scores.first().map_or(0, |(_, _, score)| *score).min(99)
}
