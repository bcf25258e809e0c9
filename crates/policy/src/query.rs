//! Queries for one path: the answer the kernel will give, with the reason and the flag that changes it.
//!
//! Rules add up along a path as they do in Landlock; file rules count for exactly one file, and a listing rule
//! opens the directory itself and nothing in it. Making a new name needs writing through a directory rule.
//! A masked path is closed whatever the rules say. [`query_path`] is pure; [`query_path_on`] asks the file system
//! first, in the way grants were resolved, so that links and `..` cannot widen an answer.

mod broad_folders;
mod locate;
mod network;
mod set;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::access::{AccessMode, CapabilitySource};
use crate::data::PolicyData;
use crate::error::grant_flag;
use crate::facts::Facts;
use crate::is_within;
use crate::request::GrantKind;
use crate::resolved::{
    AccessRule, ClosedBy, ClosedHow, ClosedPath, FsCapability, ResolvedPolicy, RuleAccess,
};

pub use broad_folders::is_system_folder;
use locate::{LocatedPath, locate};
pub use network::{NetworkQuery, NetworkReason, query_network};
pub use set::{SetAnswer, SetQuery};

/// Representative of any new name in a folder, for queries.
pub const SOME_NAME: &str = ".nono-asks-about-this-folder";

/// The answer for a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum QueryResult {
    Allowed {
        /// The grant, resolved, that decides.
        #[serde(with = "crate::path_serde")]
        granted_path: PathBuf,
        access: AccessMode,
        source: CapabilitySource,
    },
    Denied {
        reason: DeniedReason,
        /// The nearest grant: the deepest one above the path, if any.
        closest: Option<FsCapability>,
        suggestion: Option<Suggestion>,
    },
}

impl QueryResult {
    pub fn is_allowed(&self) -> bool {
        matches!(self, QueryResult::Allowed { .. })
    }
}

/// Reason why a path is closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum DeniedReason {
    NotGranted,
    InsufficientAccess {
        granted: AccessMode,
        requested: AccessMode,
    },
    Protected {
        group: String,
    },
    DenyRule {
        source: CapabilitySource,
    },
    NonoState,
    /// Settings of an agent, which cannot be written inside the sandbox.
    AgentSettings {
        agent: String,
    },
    /// The directory's entries are granted one by one, so nothing new can be made in it.
    CarvedDirectory {
        #[serde(with = "crate::path_serde")]
        path: PathBuf,
    },
}

impl DeniedReason {
    /// Short text, for records.
    pub fn words(&self) -> String {
        match self {
            DeniedReason::NotGranted => "not granted".to_owned(),
            DeniedReason::InsufficientAccess { granted, requested } => {
                format!("granted for {granted}, not for {requested}")
            }
            DeniedReason::Protected { group } if PolicyData::embedded().runs_later(group) => {
                format!("runs later ({group})")
            }
            DeniedReason::Protected { group } => format!("protected ({group})"),
            DeniedReason::DenyRule { source } => format!("denied ({source})"),
            DeniedReason::NonoState => "nono's own".to_owned(),
            DeniedReason::AgentSettings { agent } => format!("settings of {agent}"),
            DeniedReason::CarvedDirectory { path } => {
                format!("nothing new can be made in {}", path.display())
            }
        }
    }
}

/// The flags that would open exactly what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestion {
    pub flags: Vec<String>,
}

/// Asks about a path that was already resolved as far as it exists.
pub fn query_path(policy: &ResolvedPolicy, path: &Path, exists: bool, want: AccessMode) -> QueryResult {
    let is_dir = policy.rules.iter().any(|rule| !rule.is_file && rule.path == path);
    let grantable = if exists { path } else { path.parent().unwrap_or(path) };
    answer(
        policy,
        &LocatedPath {
            path: path.to_path_buf(),
            exists,
            is_dir,
            grantable: grantable.to_path_buf(),
            hidden: false,
        },
        want,
    )
}

/// Asks about a path as it was typed.
pub fn query_path_on(
    policy: &ResolvedPolicy,
    facts: &dyn Facts,
    cwd: &Path,
    raw_path: &Path,
    want: AccessMode,
) -> QueryResult {
    answer(policy, &locate(facts, &cwd.join(raw_path)), want)
}

fn answer(policy: &ResolvedPolicy, target: &LocatedPath, want: AccessMode) -> QueryResult {
    if let Some(socket) = policy.unix_sockets.iter().find(|socket| socket.resolved == target.path) {
        let FsCapability { resolved, access, source, .. } = socket.clone();
        return QueryResult::Allowed { granted_path: resolved, access, source };
    }
    let closed = policy.closed.iter().filter(|closed| is_within(&target.path, &closed.resolved));
    let named: Vec<_> = policy.names.over(&target.path).collect();
    let closed = closed.chain(&named).max_by_key(|closed| closed.resolved.as_os_str().len());
    if let Some(masked) = closed.filter(|closed| closed.how == ClosedHow::Mask && !spared(closed, want)) {
        return denied(policy, target, want, closed_reason(masked));
    }
    match allowing(policy, target, want) {
        Some(allowed) => allowed,
        None => denied(policy, target, want, reason(policy, target, want, closed)),
    }
}

fn spared(closed: &ClosedPath, want: AccessMode) -> bool {
    closed.keep_read && want == AccessMode::Read
}

/// The access rules give together, and the grant to name for it.
fn allowing(policy: &ResolvedPolicy, target: &LocatedPath, want: AccessMode) -> Option<QueryResult> {
    let total = effective(policy, target)?;
    if !total.covers(want) {
        return None;
    }
    let deciding = policy
        .rules
        .iter()
        .filter(|rule| gives(rule, target).is_some_and(|access| access.covers(want)))
        .max_by_key(|rule| rule.path.as_os_str().len())
        .or_else(|| policy.rules.iter().find(|rule| gives(rule, target).is_some()))?;
    let grant = policy.grants.get(deciding.grant)?;
    let access = gives(deciding, target).filter(|access| access.covers(want)).unwrap_or(total);
    Some(QueryResult::Allowed { granted_path: grant.resolved.clone(), access, source: grant.source.clone() })
}

fn effective(policy: &ResolvedPolicy, target: &LocatedPath) -> Option<AccessMode> {
    policy.rules.iter().filter_map(|rule| gives(rule, target)).reduce(AccessMode::union)
}

fn gives(rule: &AccessRule, target: &LocatedPath) -> Option<AccessMode> {
    let at = rule.path == target.path;
    match rule.access {
        RuleAccess::List => (at && target.exists).then_some(AccessMode::Read),
        RuleAccess::Mode(access) if rule.is_file => (at && target.exists).then_some(access),
        RuleAccess::Mode(access) if target.exists => is_within(&target.path, &rule.path).then_some(access),
        // Made through its directory: the rule has to stand above the new name.
        RuleAccess::Mode(access) => (!at && is_within(&target.path, &rule.path)).then_some(access),
    }
}

fn reason(
    policy: &ResolvedPolicy,
    target: &LocatedPath,
    want: AccessMode,
    closed: Option<&ClosedPath>,
) -> DeniedReason {
    if let Some(closed) = closed.filter(|closed| !spared(closed, want)) {
        return closed_reason(closed);
    }
    if let Some(path) = carved(policy, target) {
        return DeniedReason::CarvedDirectory { path };
    }
    match effective(policy, target) {
        Some(granted) => DeniedReason::InsufficientAccess { granted, requested: want },
        None => DeniedReason::NotGranted,
    }
}

fn closed_reason(closed: &ClosedPath) -> DeniedReason {
    match &closed.by {
        ClosedBy::Deny(source) => DeniedReason::DenyRule { source: source.clone() },
        ClosedBy::Protected(group) => DeniedReason::Protected { group: group.clone() },
        ClosedBy::Nono => DeniedReason::NonoState,
        ClosedBy::Agent(agent) => DeniedReason::AgentSettings { agent: agent.clone() },
    }
}

/// The carved directory in which the target would have to be made or changed, when its grant would have allowed it.
fn carved(policy: &ResolvedPolicy, target: &LocatedPath) -> Option<PathBuf> {
    let dir = if target.exists { &target.path } else { &target.grantable };
    let listed = policy.rules.iter().find(|rule| rule.access == RuleAccess::List && rule.path == *dir)?;
    Some(listed.path.clone())
}

fn denied(
    policy: &ResolvedPolicy,
    target: &LocatedPath,
    want: AccessMode,
    reason: DeniedReason,
) -> QueryResult {
    let closest = policy
        .grants
        .iter()
        .filter(|grant| {
            if grant.is_file {
                target.path == grant.resolved
            } else {
                is_within(&target.path, &grant.resolved)
            }
        })
        .max_by_key(|grant| grant.resolved.as_os_str().len())
        .cloned();
    let suggestion = suggestion(policy, target, want, &reason);
    QueryResult::Denied { reason, closest, suggestion }
}

fn suggestion(
    policy: &ResolvedPolicy,
    target: &LocatedPath,
    want: AccessMode,
    reason: &DeniedReason,
) -> Option<Suggestion> {
    // A grant cannot open a missing path. It can only allow creating it, in an existing folder other than the root.
    let makeable = want == AccessMode::Write && target.grantable != Path::new("/");
    if !target.exists && !makeable && !target.hidden {
        return None;
    }
    // The kind of a path that cannot be looked up is unknown: suggest the path itself, not its folder.
    let by_name = target.hidden && !target.exists;
    let is_file = by_name || (target.exists && !target.is_dir);
    let kind = if is_file { GrantKind::File } else { GrantKind::Directory };
    if kind == GrantKind::Directory && is_wide(policy, target) {
        return None;
    }
    let place = if by_name { &target.path } else { &target.grantable };
    let place = place.to_string_lossy().into_owned();
    let grant = [grant_flag(want, kind).to_owned(), place.clone()];
    let flags = match reason {
        DeniedReason::NotGranted | DeniedReason::InsufficientAccess { .. } => grant.to_vec(),
        DeniedReason::Protected { .. } if bypassable(policy, target) => {
            ["--bypass-protection".to_owned(), place].into_iter().chain(grant).collect()
        }
        _ => return None,
    };
    Some(Suggestion { flags })
}

/// Whether a grant of the folder would open far more than was asked for; or nothing new, where it is taken apart around
/// what is closed in it.
fn is_wide(policy: &ResolvedPolicy, target: &LocatedPath) -> bool {
    let inside = |closed: &ClosedPath| {
        closed.resolved != target.grantable && is_within(&closed.resolved, &target.grantable)
    };
    let telling = |closed: &ClosedPath| match closed.by {
        // It lies in the home folder.
        ClosedBy::Nono => !closed.keep_read,
        ClosedBy::Protected(_) => !target.exists,
        ClosedBy::Deny(_) | ClosedBy::Agent(_) => false,
    };
    is_system_folder(&target.grantable)
        || policy.closed.iter().any(|closed| inside(closed) && telling(closed))
        || !target.exists && policy.names.is_any_in(&target.grantable)
}

/// A bypass has to name something that is there and lies in the protected path.
fn bypassable(policy: &ResolvedPolicy, target: &LocatedPath) -> bool {
    let protects = |closed: &ClosedPath| {
        matches!(closed.by, ClosedBy::Protected(_)) && is_within(&target.grantable, &closed.resolved)
    };
    policy.closed.iter().any(protects) || policy.names.over(&target.grantable).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::HostFacts;
    use crate::request::RunRequest;
    use crate::testing::{dir, resolved, tree};
    use AccessMode::{Read, ReadWrite, Write};

    fn ask(policy: &ResolvedPolicy, path: &str, want: AccessMode) -> QueryResult {
        query_path_on(policy, &tree(), Path::new("/h/w"), Path::new(path), want)
    }

    fn reason(policy: &ResolvedPolicy, path: &str, want: AccessMode) -> DeniedReason {
        match ask(policy, path, want) {
            QueryResult::Denied { reason, .. } => reason,
            allowed @ QueryResult::Allowed { .. } => panic!("{path}: {allowed:?}"),
        }
    }

    fn flags(policy: &ResolvedPolicy, path: &str, want: AccessMode) -> Vec<String> {
        match ask(policy, path, want) {
            QueryResult::Denied { suggestion: Some(suggestion), .. } => suggestion.flags,
            _ => vec![],
        }
    }

    #[test]
    fn grants_answer_with_their_source() {
        let policy = resolved(&dir(".", ReadWrite));
        let QueryResult::Allowed { granted_path, access, source } = ask(&policy, "src/main.rs", Write) else {
            panic!("denied")
        };
        assert_eq!(
            (granted_path.as_path(), access, source),
            (Path::new("/h/w"), ReadWrite, CapabilitySource::User)
        );
        assert!(ask(&policy, "new/file", Write).is_allowed());
    }

    #[test]
    fn suggestions_name_exactly_what_is_missing() {
        let policy = resolved(&dir(".", Read));
        assert_eq!(
            reason(&policy, "src", Write),
            DeniedReason::InsufficientAccess { granted: Read, requested: Write }
        );
        assert_eq!(flags(&policy, "src", Write), ["--write", "/h/w/src"]);
        assert_eq!(flags(&policy, ".env", ReadWrite), ["--allow-file", "/h/w/.env"]);
        assert_eq!(flags(&policy, "/other/data", Read), ["--read-file", "/other/data"]);
        assert_eq!(flags(&policy, "/other/new/file", Write), ["--write", "/other"]);
        assert_eq!(
            flags(&policy, "/h/.ssh/id", Read),
            ["--bypass-protection", "/h/.ssh/id", "--read-file", "/h/.ssh/id"]
        );
        assert_eq!(reason(&policy, "/h/.nono/store", Read), DeniedReason::NonoState);
        assert!(flags(&policy, "/h/.nono/store", Read).is_empty());
    }

    /// A folder is suggested if it was refused itself, or if something is to be created in it; never one that holds a
    /// home or a part of the system.
    #[test]
    fn suggestions_never_open_more_than_was_refused() {
        let policy = resolved(&dir(".", Read));
        assert_eq!(flags(&policy, "/h/notes", Read), ["--read-file", "/h/notes"]);
        assert_eq!(flags(&policy, "/h/notes", Write), ["--write-file", "/h/notes"]);
        assert_eq!(flags(&policy, "/h/.config/other", Read), ["--read", "/h/.config/other"]);
        for (path, want) in [
            ("/h", Read),
            ("/h", Write),
            ("/h/new", Write),
            ("/h/new/deeper", Write),
            ("/h/.config", Read),
            ("/h/.config/new", Write),
            ("/", Read),
            ("/new", Write),
            ("/etc", Read),
            ("/etc/new", Write),
        ] {
            assert!(!ask(&policy, path, want).is_allowed(), "{path}");
            assert!(flags(&policy, path, want).is_empty(), "{path}: {:?}", flags(&policy, path, want));
        }
    }

    #[test]
    fn links_and_dots_lead_where_they_lead() {
        let policy = resolved(&dir(".", ReadWrite));
        assert_eq!(reason(&policy, "link", Read), DeniedReason::Protected { group: "ssh".into() });
        assert_eq!(reason(&policy, "../notes", Read), DeniedReason::NotGranted);
        assert_eq!(reason(&policy, "missing/../../notes", Read), DeniedReason::NotGranted);
        assert_eq!(reason(&policy, "missing/../../../etc/shadow", Read), DeniedReason::NotGranted);
        assert!(ask(&policy, "../shortcut/src", Read).is_allowed());
    }

    #[test]
    fn a_carved_directory_can_be_listed_but_takes_nothing_new() {
        let policy = resolved(&dir("/h", ReadWrite));
        assert!(ask(&policy, "/h", Read).is_allowed());
        assert_eq!(reason(&policy, "/h/new", Write), DeniedReason::CarvedDirectory { path: "/h".into() });
        assert_eq!(reason(&policy, "/h", Write), DeniedReason::CarvedDirectory { path: "/h".into() });
        assert_eq!(
            reason(&policy, "/h/.config/cloud/key", Read),
            DeniedReason::Protected { group: "cloud".into() }
        );
        assert!(ask(&policy, "/h/.config/other/new", Write).is_allowed());
    }

    #[test]
    fn a_mask_closes_what_the_grant_covers() {
        let policy = resolved(&RunRequest { deny: vec!["src".into()], ..dir(".", ReadWrite) });
        assert_eq!(
            reason(&policy, "src/main.rs", Read),
            DeniedReason::DenyRule { source: CapabilitySource::User }
        );
        assert!(flags(&policy, "src/main.rs", Read).is_empty());
        assert!(ask(&policy, ".env", Read).is_allowed());
    }

    #[test]
    fn rules_add_up() {
        let mut request = dir("/h/w", Read);
        request.grants.extend(dir("/h/w/src", Write).grants);
        let policy = resolved(&request);
        assert!(ask(&policy, "src/main.rs", ReadWrite).is_allowed());
        assert!(!ask(&policy, ".env", Write).is_allowed());
    }

    #[test]
    fn a_file_grant_does_not_let_the_name_be_made_again() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("f");
        std::fs::write(&file, "").unwrap();
        let set = crate::CapabilitySet::builder().allow_file(&file, ReadWrite).unwrap().build().unwrap();
        let policy = set.to_policy().unwrap();
        let asked = |want| query_path_on(&policy, &HostFacts, Path::new("/"), &file, want);
        assert!(asked(Write).is_allowed());
        std::fs::remove_file(&file).unwrap();
        assert!(!asked(Write).is_allowed());
    }

    #[test]
    fn answers_round_trip_as_json() {
        let policy = resolved(&dir(".", Read));
        for path in ["src", "/h/.ssh/id", "/h/.nono"] {
            let answer = ask(&policy, path, ReadWrite);
            let json = serde_json::to_string(&answer).unwrap();
            assert_eq!(serde_json::from_str::<QueryResult>(&json).unwrap(), answer);
        }
    }
}
