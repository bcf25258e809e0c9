//! Merging of grants on the same path.
//!
//! Landlock adds up what its rules give on a path, whatever their source, so the enforced access is the union of all
//! entries. [`merge_grants`] returns that union, one entry per path, for the kernel. [`deduplicate`] is for display,
//! where the source matters too: it drops and joins entries so that the union stays the same and no entry shows more
//! access than its source asked for. Read asked for by the user and write by a group stay two entries: joined, one of
//! them would claim that the user asked for writing. Each entry keeps its own spelling, which led to its resolved path
//! when it was added; a spelling taken over from another entry could lead elsewhere from another working directory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::path::PathBuf;

use crate::access::{AccessMode, CapabilitySource};
use crate::resolved::FsCapability;

/// One grant a path: access adds up; the first of the strongest source gives the spelling and the source.
pub(crate) fn merge_grants(grants: Vec<FsCapability>) -> Vec<FsCapability> {
    joined(
        grants,
        |grant| (grant.resolved.clone(), grant.is_file),
        |known, grant| {
            let access = known.access.union(grant.access);
            if strength(&grant.source) > strength(&known.source) {
                *known = grant;
            }
            known.access = access;
        },
    )
}

/// Grants with those of one key joined, each at the place of the first.
fn joined<K: Eq + Hash>(
    grants: Vec<FsCapability>,
    key: impl Fn(&FsCapability) -> K,
    join: impl Fn(&mut FsCapability, FsCapability),
) -> Vec<FsCapability> {
    let mut index = HashMap::with_capacity(grants.len());
    let mut joined: Vec<FsCapability> = Vec::with_capacity(grants.len());
    for grant in grants {
        match index.entry(key(&grant)) {
            Entry::Vacant(slot) => {
                slot.insert(joined.len());
                joined.push(grant);
            }
            Entry::Occupied(slot) => join(&mut joined[*slot.get()], grant),
        }
    }
    joined
}

fn strength(source: &CapabilitySource) -> u8 {
    match source {
        CapabilitySource::User => 3,
        CapabilitySource::Profile(_) => 2,
        CapabilitySource::Group(_) => 1,
        CapabilitySource::Credential(_) | CapabilitySource::System => 0,
    }
}

/// Smallest equivalent list: entries of one source on one path are joined, and an entry that adds nothing to stronger
/// or earlier ones is dropped.
pub(super) fn deduplicate(grants: Vec<FsCapability>) -> Vec<FsCapability> {
    let mut joined = joined(
        grants,
        |grant| (grant.resolved.clone(), grant.is_file, grant.source.clone()),
        |known, grant| known.access = known.access.union(grant.access),
    );
    // The first in this order is kept: the stronger source, then the wider access, then the earlier entry.
    let mut order: Vec<usize> = (0..joined.len()).collect();
    order.sort_by_key(|index| {
        let grant = &joined[*index];
        std::cmp::Reverse((strength(&grant.source), grant.access == AccessMode::ReadWrite))
    });
    let mut given: HashMap<(PathBuf, bool), AccessMode> = HashMap::with_capacity(joined.len());
    let mut keep = vec![true; joined.len()];
    for index in order {
        let grant = &joined[index];
        match given.entry((grant.resolved.clone(), grant.is_file)) {
            Entry::Occupied(known) if known.get().covers(grant.access) => keep[index] = false,
            Entry::Occupied(mut known) => drop(known.insert(known.get().union(grant.access))),
            Entry::Vacant(slot) => drop(slot.insert(grant.access)),
        }
    }
    let mut keep = keep.into_iter();
    joined.retain(|_| keep.next().unwrap_or(true));
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use AccessMode::{Read, ReadWrite, Write};

    fn grant(path: &str, access: AccessMode, group: Option<&str>) -> FsCapability {
        let source = group.map_or(CapabilitySource::User, |name| CapabilitySource::Group(name.into()));
        FsCapability { original: path.into(), resolved: path.into(), access, is_file: false, source }
    }

    fn shown(grants: &[FsCapability]) -> Vec<String> {
        grants.iter().map(|g| format!("{} {} {}", g.source, g.resolved.display(), g.access)).collect()
    }

    fn union_at(grants: &[FsCapability], path: &str) -> Option<AccessMode> {
        let here = grants.iter().filter(|grant| grant.resolved == std::path::Path::new(path));
        here.map(|grant| grant.access).reduce(AccessMode::union)
    }

    #[test]
    fn grants_join_within_one_source_only() {
        let cases: &[(&[FsCapability], &[&str])] = &[
            (&[grant("/a", Read, None), grant("/a", Write, None)], &["user /a read+write"]),
            (
                &[grant("/a", Read, None), grant("/a", Write, Some("g"))],
                &["user /a read", "group:g /a write"],
            ),
            (
                &[grant("/a", ReadWrite, Some("g")), grant("/a", Read, None)],
                &["group:g /a read+write", "user /a read"],
            ),
            (&[grant("/a", Read, Some("g")), grant("/a", ReadWrite, None)], &["user /a read+write"]),
            (&[grant("/a", Read, Some("g")), grant("/a", Read, Some("h"))], &["group:g /a read"]),
            (&[grant("/a", Read, Some("g")), grant("/a", ReadWrite, Some("h"))], &["group:h /a read+write"]),
            (&[grant("/a", Read, None), grant("/a/b", Read, None)], &["user /a read", "user /a/b read"]),
        ];
        for (before, after) in cases {
            assert_eq!(shown(&deduplicate(before.to_vec())), *after);
        }
    }

    #[test]
    fn what_is_enforced_stays_the_same_in_every_case() {
        let modes = [Read, Write, ReadWrite];
        let sources = [None, Some("g"), Some("h")];
        let all: Vec<_> =
            modes.iter().flat_map(|mode| sources.iter().map(|source| grant("/a", *mode, *source))).collect();
        for one in &all {
            for two in &all {
                for three in &all {
                    let before = vec![one.clone(), two.clone(), three.clone()];
                    let after = deduplicate(before.clone());
                    assert_eq!(union_at(&before, "/a"), union_at(&after, "/a"));
                    for kept in &after {
                        let asked = before.iter().filter(|grant| grant.source == kept.source);
                        assert_eq!(asked.map(|g| g.access).reduce(AccessMode::union), Some(kept.access));
                    }
                    assert_eq!(deduplicate(after.clone()), after);
                }
            }
        }
    }

    #[test]
    fn a_spelling_is_never_taken_over() {
        let here = FsCapability { original: ".".into(), ..grant("/a", Write, None) };
        let joined = deduplicate(vec![grant("/a", Read, None), here.clone()]);
        assert_eq!(joined[0].original, PathBuf::from("/a"));
        let joined = deduplicate(vec![here, grant("/a", Read, Some("g"))]);
        assert_eq!(joined[0].original, PathBuf::from("."));
        assert_eq!(joined[1].original, PathBuf::from("/a"));
    }
}
