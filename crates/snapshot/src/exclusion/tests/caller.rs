//! The caller's own rules.

use super::*;
use crate::exclusion::glob::Glob;
use crate::exclusion::{LargePacks, RulesError, is_git_pack};

fn pattern(text: &str) -> ExclusionVerdict {
    ExclusionVerdict::Leave(Reason::Pattern(text.into()))
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn nothing_is_left_out_by_default() {
    let place = Place::with(&["node_modules/a", "package.json", "x.pyc", ".hidden", "a.tmp.1.2"]);
    for path in ["node_modules", "node_modules/a", "x.pyc", ".hidden", "a.tmp.1.2"] {
        assert_eq!(place.ask(path), ExclusionVerdict::Take, "{path}");
    }
    let rules = place.rules();
    assert!(rules.root(File::open(place.root()).unwrap().as_fd()).is_trivial());
}

#[test]
fn a_pattern_is_a_component_below_the_root_only() {
    let mut place = Place::with(&["src/a", "src/tree/b", "srcs/c"]);
    place.config.exclude_patterns = strings(&["src", "", "tree"]);
    assert_eq!(place.ask("src"), pattern("src"));
    assert_eq!(place.ask("src/a"), pattern("src"));
    // The root itself is called `tree`.
    assert_eq!(place.ask("srcs/c"), ExclusionVerdict::Take);
}

#[test]
fn a_pattern_with_a_slash_is_a_part_of_the_path_below_the_root() {
    let mut place = Place::with(&["a/gen/x", "gen/x", "b/c/d", "b/cc/d"]);
    place.config.exclude_patterns = strings(&["/gen", "b/c/", "tree/b"]);
    assert_eq!(place.ask("a/gen"), pattern("/gen"));
    assert_eq!(place.ask("gen"), pattern("/gen"));
    assert_eq!(place.ask("b/c"), ExclusionVerdict::Take);
    assert_eq!(place.ask("b/c/d"), pattern("b/c/"));
    assert_eq!(place.ask("b/cc/d"), ExclusionVerdict::Take);
}

#[test]
fn globs_match_names() {
    let mut place = Place::with(&["a.log", "d.log/x", "b.txt", "src/c.pyc"]);
    place.config.exclude_globs = strings(&["*.log", "**/*.pyc", "src/*.txt", "/b.txt"]);
    assert_eq!(place.ask("a.log"), ExclusionVerdict::Leave(Reason::Glob("*.log".into())));
    assert_eq!(place.ask("d.log/x"), ExclusionVerdict::Leave(Reason::Glob("*.log".into())));
    assert_eq!(place.ask("src/c.pyc"), ExclusionVerdict::Leave(Reason::Glob("**/*.pyc".into())));
    assert_eq!(place.ask("b.txt"), ExclusionVerdict::Take);
}

#[test]
fn the_syntax_of_globs() {
    let matches = |glob: &str, name: &str| Glob::parse(glob).unwrap().matches(name.as_bytes());
    for (glob, yes, no) in [
        ("*", "a", "a/b"),
        ("a?c", "abc", "ac"),
        ("[a-c]x", "bx", "dx"),
        ("[!a-c]x", "dx", "bx"),
        ("[]]", "]", "a"),
        ("[a-]", "-", "b"),
        ("*.{o,so{,.1}}", "x.so.1", "x.so.2"),
        ("{a,b}{c,d}", "bd", "ab"),
        (r"\*\{", "*{", "a{"),
        ("[{]a", "{a", "a"),
    ] {
        assert!(matches(glob, yes), "{glob} {yes}");
        assert!(!matches(glob, no), "{glob} {no}");
    }
    for glob in ["[", "[a", "[!", "{a", "a}", r"a\", "[z-a]", &"{a,b}".repeat(20)] {
        assert!(Glob::parse(glob).is_err(), "{glob}");
    }
}

#[test]
fn an_invalid_glob_is_named() {
    let mut place = Place::new();
    place.config.exclude_globs = strings(&["*.o", "[oops"]);
    let error = Rules::live(&place.config, &place.root()).unwrap_err();
    assert!(matches!(&error, RulesError::Glob { glob, .. } if glob == "[oops"), "{error}");
    let missing = Rules::live(&ExclusionConfig::default(), &place.root().join("no")).unwrap_err();
    assert!(matches!(missing, RulesError::Root { .. }));
}

#[test]
fn what_is_forced_wins_over_everything_also_inside() {
    let mut place =
        Place::with(&["out/deep/keep.me", "out/deep/other", "out/my/all/of/it", "k.o", "[slug]/a.o"]);
    place.write(".gitignore", "out/\n*.o\n");
    place.write("pat/a/keep.me", "");
    place.config.exclude_patterns = strings(&["pat"]);
    place.config.force_include = strings(&["*.me", "out/my", "k.o", "[slug]", "["]);
    assert!(matches!(place.ask("out"), ExclusionVerdict::Search(Reason::Ignored { .. })));
    assert!(matches!(place.ask("out/deep"), ExclusionVerdict::Search(Reason::Ignored { .. })));
    assert_eq!(place.ask("out/deep/keep.me"), ExclusionVerdict::TakeAnyway);
    assert_eq!(place.ask("out/deep/other"), ignored("out/", ".gitignore"));
    assert_eq!(place.ask("out/my/all/of/it"), ExclusionVerdict::TakeAnyway);
    assert_eq!(place.ask("k.o"), ExclusionVerdict::TakeAnyway);
    assert_eq!(place.ask("[slug]/a.o"), ExclusionVerdict::TakeAnyway);
    assert_eq!(place.ask("pat"), ExclusionVerdict::Search(Reason::Pattern("pat".into())));
    assert_eq!(place.ask("pat/a/keep.me"), ExclusionVerdict::TakeAnyway);
}

/// Entries that the caller excludes by name stay excluded, tracked or not.
#[test]
fn git_does_not_overrule_the_caller() {
    let mut place = Place::with(&["secret/a", "b.key"]);
    place.git("", &["init", "-q"]);
    place.git("", &["add", "-f", "."]);
    place.config.exclude_patterns = strings(&["secret"]);
    place.config.exclude_globs = strings(&["*.key"]);
    assert_eq!(place.ask("secret/a"), pattern("secret"));
    assert_eq!(place.ask("b.key"), ExclusionVerdict::Leave(Reason::Glob("*.key".into())));
    // Also inside a directory that is searched because it holds a tracked file.
    place.write(".gitignore", "ign/\n");
    place.write("ign/x/secret/a", "");
    place.write("ign/x/t", "");
    place.git("", &["add", "-f", "ign"]);
    assert!(matches!(place.ask("ign"), ExclusionVerdict::Search(_)));
    assert_eq!(place.ask("ign/x/t"), ExclusionVerdict::TakeAnyway);
    assert_eq!(place.ask("ign/x/secret"), pattern("secret"));
}

#[test]
fn ignore_files_can_be_set_aside_and_turned_off() {
    let mut place = Place::with(&["a.o", "b.log"]);
    place.write(".gitignore", "*\n");
    place.config.exclude_globs = strings(&["*.log"]);
    let aside = place.rules().set_aside();
    assert_eq!(ask(&aside, &place.root(), "a.o"), ExclusionVerdict::Take);
    assert_eq!(ask(&aside, &place.root(), "b.log"), ExclusionVerdict::Leave(Reason::Glob("*.log".into())));
    assert!(aside.freeze().is_set_aside());
    let rules = place.rules();
    assert_eq!(ask(&rules, &place.root(), "a.o"), ignored("*", ".gitignore"));
    let later = Rules::frozen(&rules.freeze()).unwrap();
    assert_eq!(ask(&later, &place.root(), "a.o"), ignored("*", ".gitignore"));
    assert_eq!(ask(&later.set_aside(), &place.root(), "a.o"), ExclusionVerdict::Take);
    place.config.use_gitignore = false;
    assert_eq!(place.ask("a.o"), ExclusionVerdict::Take);
}

#[test]
fn the_digest_follows_the_rules_of_a_directory() {
    let mut place = Place::with(&["a/x", "b/x", "a/in/x", ".git/x"]);
    place.write(".gitignore", "*.o\n");
    let digest = |place: &Place, path: &str| go(&place.rules(), &place.root(), path).1.digest();
    let before = ["x", "a/x", "a/in/x", "b/x"].map(|path| digest(&place, path));
    assert_eq!(before, ["x", "a/x", "a/in/x", "b/x"].map(|path| digest(&place, path)));
    place.write("a/.gitignore", "y\n");
    let after = ["x", "a/x", "a/in/x", "b/x"].map(|path| digest(&place, path));
    assert_eq!(before.map(|digest| after.contains(&digest)), [true; 4]);
    assert_ne!([before[1], before[2]], [after[1], after[2]]);
    assert_eq!([before[0], before[3]], [after[0], after[3]]);
    place.write(".gitignore", "*.a\n");
    assert!(
        after
            .iter()
            .all(|digest| !["x", "a/x", "b/x"].map(|path| self::digest(&place, path)).contains(digest))
    );
    let old = self::digest(&place, "b/x");
    place.config.exclude_globs = strings(&["*.z"]);
    assert_ne!(old, self::digest(&place, "b/x"));
}

fn digest(place: &Place, path: &str) -> [u8; 32] {
    go(&place.rules(), &place.root(), path).1.digest()
}

#[test]
fn packs_are_known_by_their_path() {
    for path in [
        ".git/objects/pack/pack-1.pack",
        "a/b/.git/objects/pack/x.pack",
        ".git/modules/a/b/objects/pack/x.pack",
    ] {
        assert!(is_git_pack(path.as_bytes()), "{path}");
    }
    for path in
        ["objects/pack/x.pack", ".git/objects/pack/x.idx", ".git/x.pack", ".git/modules/objects/pack/x.pack"]
    {
        assert!(!is_git_pack(path.as_bytes()), "{path}");
    }
}

#[test]
fn a_configuration_is_json_with_defaults() {
    let config: ExclusionConfig = serde_json::from_str("{\"exclude_globs\": [\"*.o\"]}").unwrap();
    assert!(config.use_gitignore && !config.artifacts && config.large_git_packs == LargePacks::LeaveOut);
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<ExclusionConfig>(&text).unwrap(), config);
}
