//! Git's index: as git writes it, and malformed.

use super::*;
use crate::exclusion::ExclusionNote;
use crate::exclusion::index::{self, Tracked};

fn parse(place: &Place, id_len: usize) -> Result<Tracked, &'static str> {
    index::parse(&fs::read(place.root().join(".git/index")).unwrap(), id_len, false)
}

fn listed(place: &Place) -> Vec<Vec<u8>> {
    let output = place.git("", &["ls-files", "-z"]);
    let mut paths: Vec<Vec<u8>> =
        output.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect();
    paths.dedup();
    paths
}

fn sample() -> Place {
    let place = Place::with(
        &["a", "a.b", "a0", "dir/x", "dir/sub/y", "dir-x/z", &"long/".repeat(40), "z z"]
            .map(|path| path.trim_end_matches('/')),
    );
    place.git("", &["init", "-q"]);
    place.git("", &["add", "-f", "."]);
    place
}

#[test]
fn all_versions_are_read() {
    for version in ["2", "3", "4"] {
        let place = sample();
        place.git("", &["update-index", "--index-version", version]);
        // Flags that only version 3 has.
        place.git("", &["update-index", "--skip-worktree", "a"]);
        place.write("later", "");
        place.git("", &["add", "-N", "later"]);
        let entry = format!("160000,{},sub/module", "1".repeat(40));
        place.git("", &["update-index", "--add", "--cacheinfo", &entry]);
        let entry = format!("100644,{},{}", "1".repeat(40), "deep/".repeat(1000) + "end");
        place.git("", &["update-index", "--add", "--cacheinfo", &entry]);
        let tracked = parse(&place, 20).unwrap();
        let mut found: Vec<Vec<u8>> =
            tracked.files.iter().chain(tracked.links.iter()).map(<[u8]>::to_vec).collect();
        found.sort();
        assert_eq!(found, listed(&place), "version {version}");
        assert_eq!(tracked.links.iter().collect::<Vec<_>>(), [b"sub/module"]);
        assert!(tracked.files.contains(b"dir/x") && !tracked.files.contains(b"dir"));
        assert!(tracked.files.any_below(b"dir") && tracked.files.any_below(b"dir/sub"));
        assert!(
            !tracked.files.any_below(b"a")
                && !tracked.files.any_below(b"di")
                && !tracked.files.any_below(b"z")
        );
    }
}

#[test]
fn a_repository_with_sha_256_is_read() {
    let place = Place::with(&["a", "b/c"]);
    place.git("", &["init", "-q", "--object-format=sha256"]);
    place.write(".gitignore", "*\n");
    place.git("", &["add", "-f", "b/c"]);
    assert_eq!(parse(&place, 32).unwrap().files.iter().collect::<Vec<_>>(), [b"b/c"]);
    assert_eq!(place.ask("b/c"), ExclusionVerdict::TakeAnyway);
    assert_eq!(place.ask("a"), ignored("*", ".gitignore"));
    assert_eq!(place.rules().notes(), []);
}

#[test]
fn conflicts_are_one_path() {
    let place = Place::with(&["f"]);
    place.git("", &["init", "-q", "-b", "main"]);
    place.git("", &["add", "f"]);
    place.git("", &["commit", "-qm", "one"]);
    place.git("", &["checkout", "-qb", "other"]);
    place.write("f", "other");
    place.git("", &["commit", "-qam", "two"]);
    place.git("", &["checkout", "-q", "main"]);
    place.write("f", "main");
    place.git("", &["commit", "-qam", "three"]);
    assert!(!place.try_git("", &["merge", "-q", "other"]).status.success());
    assert_eq!(parse(&place, 20).unwrap().files.iter().collect::<Vec<_>>(), [b"f"]);
}

/// An unreadable index excludes nothing, and a note says so.
#[test]
fn an_index_that_is_not_understood_sets_the_rules_aside() {
    let split = sample();
    split.git("", &["update-index", "--split-index"]);
    assert_eq!(parse(&split, 20).unwrap_err(), "it is a split index");
    let corrupt = sample();
    corrupt.write(".git/index", "DIRCnot at all");
    for place in [split, corrupt] {
        place.write(".gitignore", "*\n");
        let rules = place.rules();
        assert_eq!(ask(&rules, &place.root(), "dir/x"), ExclusionVerdict::TakeAnyway);
        assert_eq!(ask(&rules, &place.root(), "untracked"), ExclusionVerdict::TakeAnyway);
        assert!(
            matches!(&rules.notes()[..], [ExclusionNote::IndexNotUnderstood { repository, .. }] if repository == "the root")
        );
        let frozen = Rules::frozen(&rules.freeze()).unwrap();
        place.git("", &["init", "-q"]);
        fs::remove_file(place.root().join(".git/index")).unwrap();
        assert_eq!(ask(&frozen, &place.root(), "dir/x"), ExclusionVerdict::TakeAnyway);
    }
}

#[test]
fn a_sparse_index_is_not_understood() {
    let place = sample();
    place.git("", &["commit", "-qm", "all"]);
    place.git("", &["sparse-checkout", "set", "--sparse-index", "dir"]);
    assert!(parse(&place, 20).is_err());
}

/// Each scan reads the index again.
#[test]
fn verdicts_follow_the_index() {
    let place = Place::with(&["a.o"]);
    place.git("", &["init", "-q"]);
    place.write(".gitignore", "*.o\n");
    assert_eq!(place.ask("a.o"), ignored("*.o", ".gitignore"));
    place.git("", &["add", "-f", "a.o"]);
    assert_eq!(place.ask("a.o"), ExclusionVerdict::TakeAnyway);
    place.git("", &["rm", "-q", "--cached", "a.o"]);
    assert_eq!(place.ask("a.o"), ignored("*.o", ".gitignore"));
}

/// A directory in the place of a tracked file is not tracked.
#[test]
fn kinds_are_told_apart() {
    let place = Place::with(&["out"]);
    place.git("", &["init", "-q"]);
    place.git("", &["add", "out"]);
    place.write(".gitignore", "out\n");
    assert_eq!(place.ask("out"), ExclusionVerdict::TakeAnyway);
    fs::remove_file(place.root().join("out")).unwrap();
    place.write("out/x", "");
    assert_eq!(place.ask("out"), ignored("out", ".gitignore"));
}

#[test]
fn no_forged_index_makes_us_fail() {
    for version in ["2", "4"] {
        let place = sample();
        place.git("", &["update-index", "--index-version", version]);
        let bytes = fs::read(place.root().join(".git/index")).unwrap();
        for at in 0..bytes.len() {
            drop(index::parse(&bytes[..at], 20, false));
            for bit in 0..8 {
                let mut forged = bytes.clone();
                forged[at] ^= 1 << bit;
                drop(index::parse(&forged, 20, bit % 2 == 0));
            }
            let mut forged = bytes.clone();
            forged[at] = 0xff;
            drop(index::parse(&forged, 32, false));
        }
    }
}

/// Prefix compression must not let a small file grow without bound.
#[test]
fn a_forged_index_cannot_blow_up() {
    let mut bytes = b"DIRC\0\0\0\x04".to_vec();
    let count = 100_000u32;
    bytes.extend(count.to_be_bytes());
    for number in 1..=count {
        let mut entry = [0; 62];
        entry[60..].copy_from_slice(&u16::try_from(number.min(0xfff)).unwrap().to_be_bytes());
        entry[24..28].copy_from_slice(&0o100_644u32.to_be_bytes());
        bytes.extend(entry);
        bytes.extend(b"\0a\0");
    }
    bytes.extend([0; 20]);
    assert_eq!(index::parse(&bytes, 20, false), Err("its paths are too long"));
}
