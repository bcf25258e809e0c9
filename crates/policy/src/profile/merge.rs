//! Merging of a profile with everything it extends.
//!
//! Base first: lists append without duplicates, scalars and entries of maps override. Every path remembers the
//! profile it came from, so that an error or `why` can name it. Merging adds and never removes, with one exception:
//! `groups.exclude` of a later profile drops an earlier `include`, and the other way round.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    EnvironmentSection, FilesystemSection, GroupsSection, HookSection, NetworkSection, PathEntry, Profile,
    RollbackSection, SecuritySection, WorkdirAccess,
};
use crate::access::AccessMode;
use crate::request::GrantKind;

/// A path of a profile, before expansion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilePath {
    pub path: String,
    pub optional: bool,
    pub profile: String,
    /// Whether this is a resolved path the user agreed to; if it leads elsewhere by now, the run is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
}

/// A grant of a profile, before expansion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileGrant {
    #[serde(flatten)]
    pub at: ProfilePath,
    pub access: AccessMode,
    pub kind: GrantKind,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedFilesystem {
    pub grants: Vec<ProfileGrant>,
    pub deny: Vec<ProfilePath>,
    pub bypass_protection: Vec<ProfilePath>,
    pub unix_socket: Vec<ProfilePath>,
}

/// The access on the working directory and the profile that decided it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedWorkdir {
    pub access: WorkdirAccess,
    pub profile: Option<String>,
}

/// A profile with everything it extends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedProfile {
    /// Names from the base to the one asked for.
    pub chain: Vec<String>,
    pub description: Option<String>,
    pub groups: GroupsSection,
    pub filesystem: MergedFilesystem,
    pub network: NetworkSection,
    /// Profile that each host of `network.allow_domain` comes from.
    #[serde(default)]
    pub domain_from: BTreeMap<String, String>,
    pub workdir: MergedWorkdir,
    pub environment: EnvironmentSection,
    pub rollback: RollbackSection,
    pub hooks: BTreeMap<String, HookSection>,
    pub interactive: bool,
    pub security: SecuritySection,
}

impl MergedProfile {
    /// The profile that was asked for: the last of the chain.
    pub fn name(&self) -> &str {
        self.chain.last().map_or("default", String::as_str)
    }

    /// Lays one more profile over what was merged so far.
    pub(super) fn absorb(&mut self, name: &str, profile: &Profile) {
        self.chain.push(name.to_owned());
        self.description.clone_from(&profile.description);
        absorb_groups(&mut self.groups, &profile.groups);
        self.filesystem.absorb(name, &profile.filesystem);
        absorb_network(&mut self.network, &profile.network);
        for domain in &profile.network.allow_domain {
            self.domain_from.entry(domain.clone()).or_insert_with(|| name.to_owned());
        }
        if let Some(access) = profile.workdir.access {
            self.workdir = MergedWorkdir { access, profile: Some(name.to_owned()) };
        }
        absorb_environment(&mut self.environment, &profile.environment);
        absorb_rollback(&mut self.rollback, &profile.rollback);
        for (key, value) in &profile.hooks {
            self.hooks.insert(key.clone(), value.clone());
        }
        self.interactive = profile.interactive.unwrap_or(self.interactive);
        overlay(&mut self.security.capability_elevation, profile.security.capability_elevation);
    }
}

impl MergedFilesystem {
    fn absorb(&mut self, name: &str, section: &FilesystemSection) {
        use AccessMode::{Read, ReadWrite, Write};
        for (entries, access, kind) in [
            (&section.allow, ReadWrite, GrantKind::Directory),
            (&section.read, Read, GrantKind::Directory),
            (&section.write, Write, GrantKind::Directory),
            (&section.allow_file, ReadWrite, GrantKind::File),
            (&section.read_file, Read, GrantKind::File),
            (&section.write_file, Write, GrantKind::File),
        ] {
            for entry in entries {
                self.add_grant(ProfileGrant { at: at(name, entry), access, kind });
            }
        }
        append_paths(&mut self.deny, name, &section.deny);
        append_paths(&mut self.bypass_protection, name, &section.bypass_protection);
        append_paths(&mut self.unix_socket, name, &section.unix_socket);
    }

    pub(super) fn add_grant(&mut self, grant: ProfileGrant) {
        let known =
            |g: &ProfileGrant| g.at.path == grant.at.path && g.access == grant.access && g.kind == grant.kind;
        if !self.grants.iter().any(known) {
            self.grants.push(grant);
        }
    }
}

fn at(profile: &str, entry: &PathEntry) -> ProfilePath {
    ProfilePath {
        path: entry.path().to_owned(),
        optional: entry.optional(),
        profile: profile.to_owned(),
        exact: false,
    }
}

fn append_paths(into: &mut Vec<ProfilePath>, profile: &str, entries: &[PathEntry]) {
    for entry in entries {
        if !into.iter().any(|known| known.path == entry.path()) {
            into.push(at(profile, entry));
        }
    }
}

pub(super) fn absorb_groups(into: &mut GroupsSection, from: &GroupsSection) {
    into.exclude.retain(|name| !from.include.contains(name));
    into.include.retain(|name| !from.exclude.contains(name));
    append(&mut into.include, &from.include);
    append(&mut into.exclude, &from.exclude);
}

fn absorb_network(into: &mut NetworkSection, from: &NetworkSection) {
    overlay(&mut into.block, from.block);
    append(&mut into.allow_domain, &from.allow_domain);
    append(&mut into.allow_connect_port, &from.allow_connect_port);
    append(&mut into.listen_port, &from.listen_port);
}

fn absorb_environment(into: &mut EnvironmentSection, from: &EnvironmentSection) {
    append(&mut into.allow_vars, &from.allow_vars);
    append(&mut into.deny_vars, &from.deny_vars);
    let set: BTreeMap<_, _> = from.set_vars.clone();
    into.set_vars.extend(set);
}

fn absorb_rollback(into: &mut RollbackSection, from: &RollbackSection) {
    overlay(&mut into.enabled, from.enabled);
    overlay(&mut into.use_gitignore, from.use_gitignore);
    append(&mut into.exclude_patterns, &from.exclude_patterns);
    append(&mut into.exclude_globs, &from.exclude_globs);
    append(&mut into.force_include, &from.force_include);
}

fn overlay<T: Copy>(into: &mut Option<T>, from: Option<T>) {
    *into = from.or(*into);
}

pub(super) fn append<T: Clone + PartialEq>(into: &mut Vec<T>, from: &[T]) {
    for item in from {
        if !into.contains(item) {
            into.push(item.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn profile(text: &str) -> Profile {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn lists_append_scalars_override_and_paths_know_their_profile() {
        let mut merged = MergedProfile::default();
        merged.absorb(
            "base",
            &profile(
                r#"{"filesystem": {"read": ["/a", "/b"]}, "network": {"block": true}, "workdir": {"access": "read"},
                    "environment": {"set_vars": {"A": "1", "B": "1"}}, "interactive": true}"#,
            ),
        );
        merged.absorb(
            "top",
            &profile(
                r#"{"filesystem": {"read": ["/b", {"path": "/c", "optional": true}]}, "network": {"block": false},
                    "environment": {"set_vars": {"B": "2"}}}"#,
            ),
        );
        assert_eq!(merged.chain, ["base", "top"]);
        let grants: Vec<_> =
            merged.filesystem.grants.iter().map(|g| (g.at.path.as_str(), g.at.profile.as_str())).collect();
        assert_eq!(grants, [("/a", "base"), ("/b", "base"), ("/c", "top")]);
        assert!(merged.filesystem.grants[2].at.optional);
        assert_eq!(merged.network.block, Some(false));
        assert_eq!(
            merged.workdir,
            MergedWorkdir { access: WorkdirAccess::Read, profile: Some("base".into()) }
        );
        assert_eq!(merged.environment.set_vars["B"], "2");
        assert!(merged.interactive);
    }

    #[test]
    fn a_later_profile_decides_about_a_group() {
        let mut merged = MergedProfile::default();
        merged.absorb("a", &profile(r#"{"groups": {"include": ["rust", "go"]}}"#));
        merged.absorb("b", &profile(r#"{"groups": {"exclude": ["go"]}}"#));
        assert_eq!((merged.groups.include.len(), merged.groups.exclude.len()), (1, 1));
        merged.absorb("c", &profile(r#"{"groups": {"include": ["go"]}}"#));
        assert_eq!(merged.groups.include, ["rust", "go"]);
        assert!(merged.groups.exclude.is_empty());
    }

    #[test]
    fn the_merged_value_round_trips() {
        let mut merged = MergedProfile::default();
        merged.absorb(
            "a",
            &profile(r#"{"filesystem": {"read_file": ["/x"]}, "hooks": {"k": {"install": "ask"}}}"#),
        );
        let json = serde_json::to_string(&merged).unwrap();
        assert_eq!(serde_json::from_str::<MergedProfile>(&json).unwrap(), merged);
    }

    proptest! {
        #[test]
        fn absorbing_twice_changes_nothing_but_the_chain(
            reads in proptest::collection::vec("/[a-c]{1,2}", 0..5),
            vars in proptest::collection::vec("[A-C]{1,2}", 0..5),
            ports in proptest::collection::vec(1u16..5, 0..4),
        ) {
            let mut one = Profile::default();
            one.filesystem.read = reads.into_iter().map(PathEntry::Plain).collect();
            one.environment.allow_vars = vars;
            one.network.allow_connect_port = ports;
            let mut once = MergedProfile::default();
            once.absorb("p", &one);
            let mut twice = once.clone();
            twice.absorb("p", &one);
            twice.chain.pop();
            prop_assert_eq!(once, twice);
        }
    }
}
