//! Queries of a capability set, and the grant that decides.
//!
//! The answer is the kernel's, as for a policy. Where it is yes, the most permissive grant that covers the path is
//! named, the first of several; where only several together allow it, the deepest of them, with what they give
//! together.

use std::path::{Path, PathBuf};

use super::locate::{LocatedPath, locate};
use super::{DeniedReason, QueryResult, answer, gives};
use crate::access::AccessMode;
use crate::capability_set::CapabilitySet;
use crate::error::PolicyError;
use crate::facts::Facts;
use crate::resolved::{NetworkPolicy, ResolvedPolicy};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetAnswer {
    Allowed {
        /// The grant that decides, resolved.
        granted_path: PathBuf,
        access: AccessMode,
    },
    Insufficient {
        granted: AccessMode,
        requested: AccessMode,
    },
    NotGranted,
    /// The path is closed inside a grant.
    Denied,
}

/// A copy of a set, prepared for queries.
#[derive(Clone, Debug)]
pub struct SetQuery {
    policy: ResolvedPolicy,
}

impl SetQuery {
    pub fn new(set: &CapabilitySet) -> Result<SetQuery, PolicyError> {
        Ok(SetQuery { policy: set.to_policy()? })
    }

    /// Asks about a path as it was typed; `cwd` is what a relative one is relative to.
    pub fn path(&self, facts: &dyn Facts, cwd: &Path, path: &Path, want: AccessMode) -> SetAnswer {
        let bytes = path.as_os_str().as_encoded_bytes();
        // No such path can exist: the kernel accepts neither.
        if bytes.is_empty() || bytes.contains(&0) {
            return SetAnswer::NotGranted;
        }
        let target = locate(facts, &cwd.join(path));
        match answer(&self.policy, &target, want) {
            QueryResult::Allowed { granted_path, access, .. } => {
                let (granted_path, access) = self.deciding(&target, want).unwrap_or((granted_path, access));
                SetAnswer::Allowed { granted_path, access }
            }
            QueryResult::Denied { reason, .. } => match reason {
                DeniedReason::InsufficientAccess { granted, requested } => {
                    SetAnswer::Insufficient { granted, requested }
                }
                DeniedReason::NotGranted => SetAnswer::NotGranted,
                DeniedReason::Protected { .. }
                | DeniedReason::DenyRule { .. }
                | DeniedReason::NonoState
                | DeniedReason::AgentSettings { .. }
                | DeniedReason::CarvedDirectory { .. } => SetAnswer::Denied,
            },
        }
    }

    /// Whether the network is open as a whole.
    pub fn network_allowed(&self) -> bool {
        self.policy.network == NetworkPolicy::Allowed
    }

    fn deciding(&self, target: &LocatedPath, want: AccessMode) -> Option<(PathBuf, AccessMode)> {
        let giving = self.policy.rules.iter().filter_map(|rule| Some((rule, gives(rule, target)?)));
        let alone = giving.filter(|(_, access)| access.covers(want));
        let (rule, access) =
            alone.reduce(|best, next| if next.1.covers(best.1) && next.1 != best.1 { next } else { best })?;
        Some((self.policy.grants.get(rule.grant)?.resolved.clone(), access))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::facts::HostFacts;
    use AccessMode::{Read, ReadWrite, Write};

    /// `a/b/c`, `outside/file`, and links in `a`: `out` to outside, `dangling` and `chain` to a missing name there.
    fn world() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::create_dir_all(root.join("a/b/c")).unwrap();
        std::fs::create_dir(root.join("outside")).unwrap();
        std::fs::write(root.join("outside/file"), "").unwrap();
        symlink("../outside", root.join("a/out")).unwrap();
        symlink(root.join("outside/new"), root.join("a/dangling")).unwrap();
        symlink("./b/../dangling", root.join("a/chain")).unwrap();
        symlink("loop", root.join("a/loop")).unwrap();
        (dir, root)
    }

    fn ask(root: &Path, grants: &[(&str, AccessMode)], path: &str, want: AccessMode) -> SetAnswer {
        let mut set = CapabilitySet::new();
        for (path, access) in grants {
            set.allow_path(root.join(path), *access).unwrap();
        }
        SetQuery::new(&set).unwrap().path(&HostFacts, root, Path::new(path), want)
    }

    #[test]
    fn the_most_permissive_grant_decides_in_any_order() {
        let (_dir, root) = world();
        let allowed = |path: &str, access| SetAnswer::Allowed { granted_path: root.join(path), access };
        for grants in [[("a", Read), ("a/b", ReadWrite)], [("a/b", ReadWrite), ("a", Read)]] {
            assert_eq!(ask(&root, &grants, "a/b/c", Write), allowed("a/b", ReadWrite));
            assert_eq!(ask(&root, &grants, "a/b/c", Read), allowed("a/b", ReadWrite));
            let insufficient = SetAnswer::Insufficient { granted: Read, requested: ReadWrite };
            assert_eq!(ask(&root, &grants, "a/x", ReadWrite), insufficient);
        }
        let same = [("a", Read), ("a/b", Read)];
        assert_eq!(ask(&root, &same, "a/b/c", Read), allowed("a", Read));
        let together = [("a", Read), ("a/b", Write)];
        assert_eq!(ask(&root, &together, "a/b/c", Read), allowed("a", Read));
        assert!(matches!(
            ask(&root, &together, "a/b/c", ReadWrite),
            SetAnswer::Allowed { access: ReadWrite, .. }
        ));
    }

    #[test]
    fn neither_dots_nor_links_nor_nonsense_widen_an_answer() {
        let (_dir, root) = world();
        for path in [
            "a/../outside/file",
            "a/missing/../../outside/file",
            "a/missing/../../../etc/passwd",
            "a/out/file",
            "a/out/new",
            "a/b/../out/file",
            "a/missing/../out/new",
            "a/dangling",
            "a/chain",
            "a/missing/../chain",
            "a/out/../x",
            "",
            "a/\0",
            "ab",
        ] {
            assert_eq!(ask(&root, &[("a", ReadWrite)], path, Read), SetAnswer::NotGranted, "{path}");
            assert_eq!(ask(&root, &[("a", ReadWrite)], path, Write), SetAnswer::NotGranted, "{path}");
        }
        for path in ["a", "a/.", "a/new", "a/new/newer", "a/b/..", "a/out/../a/b", "a/loop"] {
            let answer = ask(&root, &[("a", ReadWrite)], path, Read);
            assert!(matches!(answer, SetAnswer::Allowed { .. }), "{path}: {answer:?}");
        }
    }
}
