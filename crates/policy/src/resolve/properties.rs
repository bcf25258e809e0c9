//! Random small trees, grants and denials: what is closed stays closed, what was granted stays granted.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::access::AccessMode;
use crate::error::PolicyError;
use crate::facts::FoundKind;
use crate::is_within;
use crate::query::query_path;
use crate::request::{GrantKind, RunRequest};
use crate::resolved::{ClosedBy, ClosedHow, ClosedPath, ResolvedPolicy, RuleAccess};
use crate::testing::{FakeTree, grant, resolve_in};

fn a_path() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just(".ssh"),
        Just(".config"),
        Just("cloud"),
        Just(".nono"),
        Just("a"),
        Just("b"),
        Just("w")
    ];
    (prop_oneof![Just("/h"), Just("/o")], proptest::collection::vec(name, 1..4))
        .prop_map(|(root, names)| format!("{root}/{}", names.join("/")))
}

fn a_tree() -> impl Strategy<Value = FakeTree> {
    proptest::collection::vec((a_path(), any::<bool>()), 0..12).prop_map(|paths| {
        let mut lines: Vec<String> = vec!["/h/w/".into(), "/o/".into(), "/usr/bin/nono".into()];
        // Directories only above files: a later line never turns an earlier directory into a file.
        for (path, is_dir) in paths {
            let taken = |line: &String| {
                is_within(Path::new(line.trim_end_matches('/')), Path::new(&path))
                    || (!line.ends_with('/') && is_within(Path::new(&path), Path::new(line)))
            };
            if !lines.iter().any(taken) {
                lines.push(if is_dir { format!("{path}/") } else { path });
            }
        }
        FakeTree::of(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

fn an_access() -> impl Strategy<Value = AccessMode> {
    prop_oneof![Just(AccessMode::Read), Just(AccessMode::Write), Just(AccessMode::ReadWrite)]
}

fn a_request() -> impl Strategy<Value = RunRequest> {
    let place = prop_oneof![Just("/".to_owned()), Just("/h".to_owned()), Just("/o".to_owned()), a_path()];
    let grants = proptest::collection::vec((place, an_access()), 1..4);
    let bypass =
        proptest::collection::vec(prop_oneof![Just("/h/.ssh"), Just("/h/.ssh/a"), Just("/h/.config")], 0..2);
    (grants, proptest::collection::vec(a_path(), 0..3), bypass).prop_map(|(grants, deny, bypass)| {
        RunRequest {
            grants: grants
                .into_iter()
                .map(|(path, access)| grant(&path, access, GrantKind::Directory))
                .collect(),
            deny: deny.into_iter().map(PathBuf::from).collect(),
            bypass_protection: bypass.into_iter().map(PathBuf::from).collect(),
            ..RunRequest::default()
        }
    })
}

/// Files in place of directories and missing grants only make requests invalid; drop those grants.
fn valid(tree: &FakeTree, mut request: RunRequest) -> Option<ResolvedPolicy> {
    for _ in 0..8 {
        let bad = match resolve_in(tree, &request) {
            Ok(policy) => return Some(policy),
            Err(
                PolicyError::PathNotFound { path, .. }
                | PolicyError::ExpectedDirectory { path, .. }
                | PolicyError::Protected { path, .. }
                | PolicyError::NonoOwned { path, .. }
                | PolicyError::AgentSettings { path, .. }
                | PolicyError::GrantDenied { path, .. },
            ) => path,
            Err(PolicyError::DenyAbsent { path, .. }) => {
                request.deny.retain(|deny| *deny != path);
                continue;
            }
            Err(PolicyError::BypassWithoutGrant { path } | PolicyError::NothingToBypass { path }) => {
                request.bypass_protection.retain(|bypass| *bypass != path);
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        request.grants.retain(|grant| grant.path != bad);
    }
    None
}

fn is_closed(closed: &ClosedPath, path: &Path, access: AccessMode) -> bool {
    is_within(path, &closed.resolved) && (!closed.keep_read || access.writes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_rule_reaches_a_closed_path(tree in a_tree(), request in a_request()) {
        let Some(policy) = valid(&tree, request.clone()) else { return Ok(()) };
        for rule in &policy.rules {
            let RuleAccess::Mode(access) = rule.access else { continue };
            for closed in &policy.closed {
                // Only a denied path and nono's binary may rest on a mask; the others have to be out of reach of rules.
                let masked = closed.how == ClosedHow::Mask && (closed.keep_read || matches!(closed.by, ClosedBy::Deny(_)));
                let opened = closed.has_openings
                    && request.bypass_protection.iter().any(|bypass| is_within(&rule.path, bypass));
                let from_above = !rule.is_file && is_within(&closed.resolved, &rule.path);
                let hit = is_closed(closed, &rule.path, access) || (from_above && is_closed(closed, &closed.resolved, access));
                prop_assert!(!hit || masked || opened, "{rule:?} reaches {closed:?}");
            }
        }
    }

    #[test]
    fn what_existed_under_a_grant_and_is_not_closed_stays_granted(tree in a_tree(), request in a_request()) {
        let Some(policy) = valid(&tree, request) else { return Ok(()) };
        for grant in policy.grants.iter().filter(|grant| !grant.is_file) {
            for (path, kind) in tree.paths().filter(|(path, _)| is_within(path, &grant.resolved)) {
                let closed = policy.closed.iter().any(|closed| is_closed(closed, path, grant.access));
                let above_closed = policy.closed.iter().any(|closed| is_within(&closed.resolved, path));
                if closed || (above_closed && kind == FoundKind::Directory) {
                    continue;
                }
                let answer = query_path(&policy, path, true, grant.access);
                prop_assert!(answer.is_allowed(), "{} of {grant:?}: {answer:?}", path.display());
            }
        }
    }

    #[test]
    fn queries_never_allow_what_is_closed(tree in a_tree(), request in a_request(), path in a_path(), want in an_access()) {
        let Some(policy) = valid(&tree, request.clone()) else { return Ok(()) };
        let path = PathBuf::from(path);
        let exists = tree.paths().any(|(known, _)| known == path);
        let answer = query_path(&policy, &path, exists, want);
        let opened = request.bypass_protection.iter().any(|bypass| is_within(&path, bypass));
        if policy.closed.iter().any(|closed| is_closed(closed, &path, want)) && !opened {
            prop_assert!(!answer.is_allowed(), "{}: {answer:?}", path.display());
        }
        if !policy.grants.iter().any(|grant| is_within(&path, &grant.resolved)) {
            prop_assert!(!answer.is_allowed());
        }
    }
}
