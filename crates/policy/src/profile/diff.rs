//! Differences between two profiles, line by line.
//!
//! Pure, and over merged profiles: it shows what changes for a run, not how the files differ. Each list counts as
//! a set, since order never changes what a profile grants.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::merge::{MergedProfile, ProfilePath};
use crate::request::GrantKind;

/// Side that a line is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffChange {
    /// Only in the first.
    Removed,
    /// Only in the second.
    Added,
}

/// One difference: the key, and the value that only one side has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffLine {
    pub key: String,
    pub change: DiffChange,
    pub value: String,
}

/// The differences from `a` to `b`, in the order of the keys of a profile.
pub fn diff(a: &MergedProfile, b: &MergedProfile) -> Vec<DiffLine> {
    let (before, after) = (facts(a), facts(b));
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in before.iter().chain(&after) {
        if !keys.contains(key) {
            keys.push(key);
        }
    }
    keys.into_iter().flat_map(|key| lines(key, &values(&before, key), &values(&after, key))).collect()
}

fn lines(key: &str, before: &BTreeSet<&str>, after: &BTreeSet<&str>) -> Vec<DiffLine> {
    let line = |change, value: &&str| DiffLine { key: key.to_owned(), change, value: (*value).to_owned() };
    let removed = before.difference(after).map(|value| line(DiffChange::Removed, value));
    let added = after.difference(before).map(|value| line(DiffChange::Added, value));
    removed.chain(added).collect()
}

fn values<'a>(facts: &'a [(&'static str, String)], key: &str) -> BTreeSet<&'a str> {
    facts.iter().filter(|(known, _)| *known == key).map(|(_, value)| value.as_str()).collect()
}

/// A profile as flat pairs of key and value.
fn facts(profile: &MergedProfile) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    strings(&mut out, "groups.include", &profile.groups.include);
    strings(&mut out, "groups.exclude", &profile.groups.exclude);
    for grant in &profile.filesystem.grants {
        let kind = if grant.kind == GrantKind::File { "file" } else { "directory" };
        out.push((
            "filesystem.grant",
            format!("{} ({}, {kind}{})", grant.at.path, grant.access, optional(&grant.at)),
        ));
    }
    paths(&mut out, "filesystem.deny", &profile.filesystem.deny);
    paths(&mut out, "filesystem.bypass_protection", &profile.filesystem.bypass_protection);
    paths(&mut out, "filesystem.unix_socket", &profile.filesystem.unix_socket);
    scalar(&mut out, "network.block", Some(profile.network.block.unwrap_or(true)));
    strings(&mut out, "network.allow_domain", &profile.network.allow_domain);
    strings(&mut out, "network.allow_connect_port", &profile.network.allow_connect_port);
    strings(&mut out, "network.listen_port", &profile.network.listen_port);
    out.push(("workdir.access", format!("{:?}", profile.workdir.access).to_lowercase()));
    strings(&mut out, "environment.allow_vars", &profile.environment.allow_vars);
    strings(&mut out, "environment.deny_vars", &profile.environment.deny_vars);
    let set: Vec<_> =
        profile.environment.set_vars.iter().map(|(name, value)| format!("{name}={value}")).collect();
    strings(&mut out, "environment.set_vars", &set);
    scalar(&mut out, "rollback.enabled", profile.rollback.enabled);
    strings(&mut out, "rollback.exclude_patterns", &profile.rollback.exclude_patterns);
    strings(&mut out, "rollback.exclude_globs", &profile.rollback.exclude_globs);
    strings(&mut out, "rollback.force_include", &profile.rollback.force_include);
    scalar(&mut out, "rollback.use_gitignore", profile.rollback.use_gitignore);
    let hooks: Vec<_> = profile
        .hooks
        .iter()
        .map(|(name, hook)| format!("{name}: {:?}", hook.install).to_lowercase())
        .collect();
    strings(&mut out, "hooks", &hooks);
    scalar(&mut out, "interactive", Some(profile.interactive));
    scalar(&mut out, "security.capability_elevation", profile.security.capability_elevation);
    out
}

fn strings(out: &mut Vec<(&'static str, String)>, key: &'static str, list: &[impl ToString]) {
    out.extend(list.iter().map(|value| (key, value.to_string())));
}

fn paths(out: &mut Vec<(&'static str, String)>, key: &'static str, list: &[ProfilePath]) {
    out.extend(list.iter().map(|at| (key, format!("{}{}", at.path, optional(at)))));
}

fn scalar(out: &mut Vec<(&'static str, String)>, key: &'static str, value: Option<bool>) {
    out.extend(value.map(|value| (key, value.to_string())));
}

fn optional(at: &ProfilePath) -> &'static str {
    if at.optional { ", optional" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ProfileStore;
    use crate::request::ProfileRef;

    #[test]
    fn a_profile_does_not_differ_from_itself() {
        let store = ProfileStore::new(None);
        let rust = store.resolve(&ProfileRef::Name("rust-dev".into()), &[]).unwrap();
        assert_eq!(diff(&rust, &rust), []);
    }

    #[test]
    fn each_difference_is_one_line_on_its_side() {
        let mut a = MergedProfile::default();
        let mut b = MergedProfile::default();
        a.groups.include = vec!["rust".into(), "go".into()];
        b.groups.include = vec!["go".into()];
        b.network.block = Some(false);
        let lines: Vec<_> = diff(&a, &b).into_iter().map(|l| (l.key, l.change, l.value)).collect();
        assert_eq!(
            lines,
            [
                ("groups.include".into(), DiffChange::Removed, "rust".into()),
                ("network.block".into(), DiffChange::Removed, "true".into()),
                ("network.block".into(), DiffChange::Added, "false".into()),
            ]
        );
    }
}
