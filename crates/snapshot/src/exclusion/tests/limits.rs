//! Limits on captured folders that git ignores, and on repositories.

use super::*;
use crate::exclusion::FrozenRules;

const LIMIT: u64 = 100;

fn place() -> Place {
    let mut place = Place::with(&["small/a", "large/a", "plain/a"]);
    place.git("", &["init", "-q"]);
    place.write(".gitignore", "small/\nlarge/\n*.log\n");
    place.write("large/b", [0; 200]);
    place.write("plain/b", [0; 200]);
    place.write("a.log", [0; 200]);
    place.config = ExclusionConfig {
        use_gitignore: false,
        max_ignored_folder: Some(LIMIT),
        ..ExclusionConfig::default()
    };
    place
}

fn large() -> ExclusionVerdict {
    ExclusionVerdict::Leave(Reason::LargeFolder { limit: LIMIT })
}

#[test]
fn only_large_ignored_folders_are_left_out() {
    let place = place();
    for path in ["small", "small/a", "plain", "a.log", ".git"] {
        assert_eq!(place.ask(path), ExclusionVerdict::Take, "{path}");
    }
    assert_eq!(place.ask("large"), large());
    place.git("", &["add", "-f", "large/a"]);
    assert_eq!(place.ask("large"), ExclusionVerdict::Search(Reason::LargeFolder { limit: LIMIT }));
    assert_eq!(place.ask("large/a"), ExclusionVerdict::TakeAnyway);
}

/// A folder captured once stays captured, however it grows; an excluded one stays excluded; a new one is measured.
#[test]
fn frozen_decisions_outlive_sizes() {
    let place = place();
    let rules = place.rules();
    let verdicts = |rules: &Rules| ["small", "large"].map(|path| ask(rules, &place.root(), path));
    let before = verdicts(&rules);
    let frozen = rules.freeze();
    assert_eq!(FrozenRules::decode(&frozen.encode()).unwrap(), frozen);
    place.write("small/b", [0; 200]);
    fs::remove_file(place.root().join("large/b")).unwrap();
    let thawed = Rules::frozen(&frozen).unwrap();
    assert_eq!(verdicts(&thawed), before);
    assert_eq!(before, [ExclusionVerdict::Take, large()]);
    place.write(".gitignore", "");
    place.write("new/.gitignore", "");
    assert_eq!(ask(&thawed, &place.root(), "new"), ExclusionVerdict::Take);
}

#[test]
fn a_repository_is_taken_as_a_whole_or_not_at_all() {
    let mut place = place();
    place.write("file", "");
    for (limit, verdict) in [
        (u64::MAX, ExclusionVerdict::Take),
        (1, ExclusionVerdict::Leave(Reason::LargeRepository { limit: 1 })),
    ] {
        place.config = ExclusionConfig { max_repository: Some(limit), ..ExclusionConfig::default() };
        assert_eq!(place.ask(".git"), verdict);
        let rules = place.rules();
        ask(&rules, &place.root(), ".git");
        let frozen = rules.freeze();
        assert_eq!(FrozenRules::decode(&frozen.encode()).unwrap(), frozen);
        assert_eq!(ask(&Rules::frozen(&frozen).unwrap(), &place.root(), ".git"), verdict);
    }
    // A file of that name leads to one elsewhere.
    place.write("sub/.git", "gitdir: ../.git\n");
    assert_eq!(place.ask("sub/.git"), ExclusionVerdict::Take);
}
