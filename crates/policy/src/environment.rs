//! Filter of the environment variables that reach the command.
//!
//! Names decide, values never do and pass as bytes. The most specific rule wins: a name denied in full, a name
//! allowed in full, a denied pattern, an allowed pattern; patterns never let through a name that looks like a secret.
//! The never-list stands above all of it, as do nono's own `NONO_*` names, also when everything is passed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use crate::data::PolicyData;
use crate::resolved::EnvironmentRules;

/// Prefix of the names that nono sets itself; the caller's values of such names are not passed on.
pub(crate) const OWN_PREFIX: &str = "NONO_";

/// A key that stays outside, and the placeholder that the command sees instead.
pub struct ReplacedKey {
    pub key: String,
    pub placeholder: String,
}

impl fmt::Debug for ReplacedKey {
    /// Without the key, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplacedKey").field("placeholder", &self.placeholder).finish_non_exhaustive()
    }
}

/// The environment of the command, sorted by name.
pub fn build(
    rules: &EnvironmentRules,
    data: &PolicyData,
    caller: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut kept: BTreeMap<OsString, OsString> =
        caller.filter(|(name, _)| passes(rules, data, name)).collect();
    for (name, value) in rules.set.iter().filter(|(name, _)| !is_never(data, name)) {
        kept.insert(name.into(), value.into());
    }
    kept.into_iter().collect()
}

fn passes(rules: &EnvironmentRules, data: &PolicyData, name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return rules.all && !is_never_bytes(data, name) };
    if name.is_empty() || is_never(data, name) || name.starts_with(OWN_PREFIX) {
        return false;
    }
    if named(&rules.deny, name) {
        return false;
    }
    named(&rules.allow, name)
        || (!any_match(&rules.deny, name)
            && (rules.all || (any_match(&rules.allow, name) && !any_match(&data.environment.secret, name))))
}

/// Whether the loader, a shell or an interpreter would run what the variable names.
pub(crate) fn is_never(data: &PolicyData, name: &str) -> bool {
    any_match(&data.environment.never, name)
}

/// Like [`is_never`], for a name that is not UTF-8: only its beginning is compared, which is what loaders look at.
fn is_never_bytes(data: &PolicyData, name: &OsStr) -> bool {
    is_never(data, &name.to_string_lossy()) || name.to_string_lossy().starts_with(OWN_PREFIX)
}

fn named(list: &[String], name: &str) -> bool {
    list.iter().any(|entry| entry == name)
}

fn any_match(list: &[String], name: &str) -> bool {
    list.iter().any(|pattern| matches(pattern, name))
}

/// Whether a name matches a pattern. A `*` counts at the start, at the end, or both; everything else is literal.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(""), _) => true,
        (Some(rest), Some(_)) => name.contains(rest.trim_end_matches('*')),
        (Some(end), None) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use proptest::prelude::*;

    use super::*;

    fn pairs(list: &[(&str, &str)]) -> std::vec::IntoIter<(OsString, OsString)> {
        list.iter().map(|(n, v)| (n.into(), v.into())).collect::<Vec<_>>().into_iter()
    }

    fn names(rules: &EnvironmentRules, list: &[(&str, &str)]) -> Vec<String> {
        let built = build(rules, PolicyData::embedded(), pairs(list));
        built.into_iter().map(|(n, _)| n.into_string().unwrap()).collect()
    }

    fn defaults() -> EnvironmentRules {
        EnvironmentRules {
            allow: PolicyData::embedded().environment.allow.clone(),
            ..EnvironmentRules::default()
        }
    }

    #[test]
    fn patterns_take_a_star_at_either_end() {
        assert!(matches("LC_*", "LC_ALL") && !matches("LC_*", "XLC_ALL"));
        assert!(matches("*_TOKEN", "GH_TOKEN") && !matches("*_TOKEN", "TOKENS"));
        assert!(matches("*SECRET*", "MY_SECRETS") && matches("*", "X") && !matches("A", "AB"));
    }

    #[test]
    fn the_default_is_a_short_list() {
        let caller =
            [("PATH", "/bin"), ("LC_ALL", "C"), ("FOO", "1"), ("GH_TOKEN", "t"), ("XDG_RUNTIME_DIR", "/r")];
        assert_eq!(names(&defaults(), &caller), ["LC_ALL", "PATH"]);
    }

    #[test]
    fn loaders_are_never_reached_even_with_all() {
        let rules = EnvironmentRules { all: true, allow: vec!["LD_PRELOAD".into()], ..defaults() };
        let caller = [
            ("LD_PRELOAD", "x"),
            ("BASH_FUNC_ls%%", "() { :; }"),
            ("NODE_OPTIONS", "-r x"),
            ("GIT_SSH_COMMAND", "x"),
            ("NONO_CAP_FILE", "/x"),
            ("GH_TOKEN", "t"),
            ("FOO", "1"),
        ];
        assert_eq!(names(&rules, &caller), ["FOO", "GH_TOKEN"]);
    }

    #[test]
    fn secrets_pass_only_by_their_full_name() {
        let caller = [("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "r"), ("MY_A", "1")];
        let by_pattern =
            EnvironmentRules { allow: vec!["AWS_*".into(), "MY_*".into()], ..Default::default() };
        assert_eq!(names(&by_pattern, &caller), ["MY_A"]);
        let by_name = EnvironmentRules { allow: vec!["AWS_REGION".into()], ..Default::default() };
        assert_eq!(names(&by_name, &caller), ["AWS_REGION"]);
    }

    #[test]
    fn the_most_specific_rule_wins() {
        let rules = EnvironmentRules {
            allow: vec!["A_*".into(), "B_ONE".into()],
            deny: vec!["A_ONE".into(), "B_*".into()],
            ..Default::default()
        };
        let caller = [("A_ONE", ""), ("A_TWO", ""), ("B_ONE", ""), ("B_TWO", "")];
        assert_eq!(names(&rules, &caller), ["A_TWO", "B_ONE"]);
    }

    #[test]
    fn bytes_survive_and_later_settings_win() {
        let value = OsString::from_vec(vec![0xff, 0xfe]);
        let rules = EnvironmentRules {
            set: vec![("TERM".into(), "a".into()), ("TERM".into(), "b".into())],
            ..defaults()
        };
        let caller = vec![("HOME".into(), value.clone()), (OsString::from_vec(vec![0xff]), "x".into())];
        let built = build(&rules, PolicyData::embedded(), caller.clone().into_iter());
        assert_eq!(built, [("HOME".into(), value), ("TERM".into(), "b".into())]);
        let all = EnvironmentRules { all: true, ..Default::default() };
        assert_eq!(build(&all, PolicyData::embedded(), caller.into_iter()).len(), 2);
    }

    proptest! {
        #[test]
        fn no_rules_let_a_never_variable_through(
            allow in proptest::collection::vec("[A-Z_*]{0,6}", 0..4),
            all: bool,
            tail in "[A-Z]{1,5}",
        ) {
            let rules = EnvironmentRules { allow, all, set: vec![(format!("LD_{tail}"), "x".into())], ..Default::default() };
            let caller = [(OsString::from(format!("LD_{tail}")), OsString::new())];
            prop_assert!(build(&rules, PolicyData::embedded(), caller.into_iter()).is_empty());
        }
    }
}
