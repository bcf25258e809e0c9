//! Hostile rules and frozen rules, and trees that are too deep for recursion.

use super::*;
use crate::exclusion::FrozenRules;
use crate::exclusion::ignore_file::{List, Subject};
use crate::exclusion::wildmatch::CompiledPattern;

/// Git's own matcher takes time that doubles with each `**/`.
#[test]
fn no_pattern_takes_forever() {
    let pattern = [&b"**/a*a*a*/".repeat(60)[..], b"x"].concat();
    let text = b"aaaaaaaaaaaaaaaaaaaa/".repeat(100);
    assert!(!CompiledPattern::git(&pattern, false).unwrap().matches(&text));
    assert!(CompiledPattern::git(&pattern, false).unwrap().matches(&[&text[..], b"x"].concat()));
}

#[test]
fn long_patterns_match_too() {
    let pattern = [&b"[ab]".repeat(400)[..], b"*"].concat();
    let program = CompiledPattern::git(&pattern, false).unwrap();
    assert!(program.matches(&b"ab".repeat(200)));
    assert!(!program.matches(&b"ab".repeat(199)));
}

#[test]
fn a_monstrous_line_is_cut_where_it_is_shown() {
    let list = List::parse(Arc::from(&b"*".repeat(100_000)[..]), false);
    let rule = list.last_match(&Subject::new(b"a", false, false), b"a").unwrap();
    assert!(list.line(rule).len() < 300);
}

/// Random bytes of an alphabet.
fn noise(seed: &mut u64, alphabet: &[u8], len: usize) -> Vec<u8> {
    let mut byte = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        alphabet[usize::try_from(*seed >> 33).unwrap() % alphabet.len()]
    };
    (0..len).map(|_| byte()).collect()
}

#[test]
fn any_bytes_are_a_list() {
    let mut seed = 1;
    for _ in 0..20_000 {
        let text = noise(&mut seed, b"*?[]\\!/-:ab#\n\r \0^\xffA.", 24);
        for fold in [false, true] {
            let list = List::parse(Arc::from(&text[..]), fold);
            list.last_match(&Subject::new(b"b", fold, fold), b"a/b");
        }
    }
}

/// All shortcuts give the same result as the automaton.
#[test]
fn short_cuts_change_nothing() {
    let (mut seed, mut matched) = (7, 0);
    for round in 0..200_000 {
        let pattern = noise(&mut seed, b"***?ab/aA[b]", 1 + round % 9);
        let text = noise(&mut seed, b"aabA/b", round % 7);
        let Some(program) = CompiledPattern::git(&pattern, round % 3 == 0) else { continue };
        let found = program.matches(&text);
        assert_eq!(found, program.run_automaton(&text), "{pattern:?} {text:?}");
        matched += usize::from(found);
    }
    assert!(matched > 5_000, "{matched}");
}

/// A rule set with every kind of rule.
fn frozen() -> (Place, FrozenRules) {
    let mut place = Place::with(&[
        "sub/root/a.o",
        "sub/root/target/.rustc_info.json",
        "sub/root/target/x",
        "sub/root/in/b.o",
    ]);
    place.git("", &["init", "-q"]);
    place.write(".gitignore", "*.o\n");
    place.write("sub/.gitignore", "*.log\n");
    place.write(".git/info/exclude", "e\n");
    place.git("", &["add", "-f", "sub/root/a.o", "sub/root/target/x"]);
    place.git("sub/root/in", &["init", "-q"]);
    place.write("sub/root/in/.gitignore", "b.*\n");
    place.config = ExclusionConfig {
        artifacts: true,
        exclude_patterns: vec!["p".into()],
        exclude_globs: vec!["*.g".into()],
        force_include: vec!["f".into()],
        ..ExclusionConfig::default()
    };
    let root = place.root().join("sub/root");
    let rules = Rules::live(&place.config, &root).unwrap();
    for path in ["a.o", "target", "in/b.o"] {
        ask(&rules, &root, path);
    }
    let frozen = rules.freeze();
    (place, frozen)
}

#[test]
fn frozen_rules_go_there_and_back() {
    let (place, rules) = frozen();
    let bytes = rules.encode();
    assert_eq!(FrozenRules::decode(&bytes).unwrap(), rules);
    let root = place.root().join("sub/root");
    let thawed = Rules::frozen(&rules).unwrap();
    fs::remove_dir_all(place.root().join(".git")).unwrap();
    assert_eq!(ask(&thawed, &root, "a.o"), ExclusionVerdict::TakeAnyway);
    assert!(matches!(ask(&thawed, &root, "target"), ExclusionVerdict::Search(Reason::Artifact(_))));
    assert_eq!(ask(&thawed, &root, "target/x"), ExclusionVerdict::TakeAnyway);
    assert_eq!(ask(&thawed, &root, "new.o"), ignored("*.o", "../../.gitignore"));
    assert_eq!(ask(&thawed, &root, "in/b.o"), ignored("b.*", "in/.gitignore"));
}

/// Bytes that decode at all have one encoding only, and can be used.
#[test]
fn forged_frozen_rules_are_refused_or_harmless() {
    let (place, rules) = frozen();
    let bytes = rules.encode();
    for at in 0..bytes.len() {
        assert!(FrozenRules::decode(&bytes[..at]).is_err());
        for bit in 0..8 {
            let mut forged = bytes.clone();
            forged[at] ^= 1 << bit;
            if let Ok(rules) = FrozenRules::decode(&forged) {
                assert_eq!(rules.encode(), forged);
                if let Ok(rules) = Rules::frozen(&rules) {
                    ask(&rules, &place.root().join("sub/root"), "in/b.o");
                }
            }
        }
    }
    assert!(FrozenRules::decode(&[&bytes[..], b"x"].concat()).is_err());
}

/// Each level adds rules; dropping them must not recurse.
#[test]
fn a_tree_of_100_000_levels_does_not_overflow_the_stack() {
    let place = Place::new();
    let rules = place.rules();
    place.write("one/.gitignore", "*.o\n");
    let dir = File::open(place.root().join("one")).unwrap();
    let mut here = rules.root(File::open(place.root()).unwrap().as_fd());
    for _ in 0..100_000 {
        here = here.enter(&rules, b"one", dir.as_fd(), RuleFiles { gitignore: true, git: false }, false);
    }
    assert_eq!(here.judge(b"one/a.o", b"a.o", false, &|_: &[u8]| false), ignored("*.o", "one/.gitignore"));
    drop(here);
}

/// More repositories than descriptors.
#[test]
fn many_repositories_need_few_descriptors() {
    let place = Place::new();
    place.git("", &["init", "-q"]);
    place.write(".gitignore", "*.o\n");
    place.write("a.o", "");
    place.git("", &["add", "-f", "a.o"]);
    let rules = place.rules();
    let dir = File::open(place.root()).unwrap();
    let root = rules.root(dir.as_fd());
    let open = || fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    let mut kept = Vec::new();
    for number in 0..200 {
        let path = format!("r{number}");
        let here =
            root.enter(&rules, path.as_bytes(), dir.as_fd(), RuleFiles { gitignore: true, git: true }, false);
        assert_eq!(
            here.judge(format!("{path}/a.o").as_bytes(), b"a.o", false, &|_: &[u8]| false),
            ExclusionVerdict::TakeAnyway
        );
        kept.push(here);
    }
    // Other tests open files at the same time.
    assert!(open() < before + 150);
}
