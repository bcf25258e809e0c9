//! Description of a sandbox as JSON: read by the child, and used to rebuild a capability set.
//!
//! Other programs know the keys `fs`, `unix_sockets`, `net_blocked` and `resource_limits`. Beside them stand the denied
//! paths of a set, or the resolved policy of a run without notes on absent paths and without protected names that
//! neither exist nor are granted, so that `why --self` answers exactly as the kernel does. Unknown keys are ignored.
//! Access modes are checked only when a set is rebuilt.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::access::{AccessMode, CapabilitySource};
use crate::capability_set::CapabilitySet;
use crate::error::StateError;
use crate::resolved::{
    AccessRule, ClosedPath, EnvironmentRules, FsCapability, HostGrant, Limits, NetworkPolicy, PolicyNote,
    ResolvedPolicy,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateGrant {
    #[serde(with = "crate::path_serde")]
    pub original: PathBuf,
    #[serde(with = "crate::path_serde")]
    pub resolved: PathBuf,
    /// `read`, `write` or `read+write`.
    pub access: String,
    pub is_file: bool,
    /// Source of the grant; left out when it is the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<CapabilitySource>,
}

/// One closed path of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateDenied {
    #[serde(with = "crate::path_serde")]
    pub resolved: PathBuf,
}

/// Description of a sandbox. `P` is its policy, or a borrowed form of it for serialisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
pub struct SandboxState<P = ResolvedPolicy> {
    pub fs: Vec<StateGrant>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unix_sockets: Vec<StateGrant>,
    pub net_blocked: bool,
    /// Paths that a set closes inside its grants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<StateDenied>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_limits: Option<Limits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<P>,
    /// Command line that made the sandbox, without secrets: nono's arguments up to the command, and the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<Typed>,
}

/// Command line of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typed {
    pub flags: Vec<String>,
    pub command: Vec<String>,
}

impl SandboxState {
    pub fn from_caps(caps: &CapabilitySet) -> SandboxState {
        SandboxState {
            fs: caps.fs_capabilities().iter().map(StateGrant::from).collect(),
            unix_sockets: caps.unix_sockets().iter().map(StateGrant::from).collect(),
            net_blocked: caps.is_network_blocked(),
            denied: caps.denied_paths().map(|path| StateDenied { resolved: path.to_path_buf() }).collect(),
            resource_limits: set_limits(caps.limits()),
            name: None,
            session_id: None,
            policy: None,
            typed: None,
        }
    }

    /// Pretty-printed JSON, indented by two spaces.
    pub fn to_json(&self) -> Result<String, StateError> {
        serde_json::to_string_pretty(self).map_err(|source| StateError::Json { source })
    }

    pub fn from_json(text: &str) -> Result<SandboxState, StateError> {
        serde_json::from_str(text).map_err(|source| StateError::Json { source })
    }

    /// Rebuilds the capability set. Grants are taken from their resolved paths, so that the working directory does not
    /// matter; each has to exist and to be of the same kind as before.
    pub fn to_caps(&self) -> Result<CapabilitySet, StateError> {
        let mut caps = CapabilitySet::new();
        for grant in &self.fs {
            caps.restore(grant.to_capability()?)?;
        }
        for socket in &self.unix_sockets {
            caps.unix_sockets.push(socket.to_capability()?);
        }
        for denied in &self.denied {
            caps.restore_denied(&denied.resolved)?;
        }
        // Paths that were carved out of the grants or masked in them stay closed.
        for closed in self.policy.iter().flat_map(|policy| &policy.closed) {
            if caps.path_covered(&closed.resolved) {
                caps.deny.push(closed.clone());
            }
        }
        let network = self.policy.as_ref().map(|policy| policy.network.clone());
        let plain = if self.net_blocked { NetworkPolicy::Blocked } else { NetworkPolicy::Allowed };
        caps.set_network(
            network.filter(|known| (*known != NetworkPolicy::Allowed) == self.net_blocked).unwrap_or(plain),
        );
        caps.set_limits(self.resource_limits.clone().unwrap_or_default());
        Ok(caps)
    }
}

impl<'a> SandboxState<ToldPolicy<'a>> {
    /// State of a run with this policy, which is borrowed: copying its thousand strings takes noticeable time.
    pub fn told(
        policy: &'a ResolvedPolicy,
        name: Option<String>,
        session_id: Option<String>,
    ) -> SandboxState<ToldPolicy<'a>> {
        SandboxState {
            fs: policy.grants.iter().map(StateGrant::from).collect(),
            unix_sockets: policy.unix_sockets.iter().map(StateGrant::from).collect(),
            net_blocked: policy.network != NetworkPolicy::Allowed,
            // The policy itself has the closed paths.
            denied: Vec::new(),
            resource_limits: set_limits(&policy.limits),
            name,
            session_id,
            // A protected name that does not exist and lies in no grant is of no use to the child.
            policy: Some(ToldPolicy {
                profiles: &policy.profiles,
                grants: &policy.grants,
                rules: &policy.rules,
                closed: &policy.closed,
                unix_sockets: &policy.unix_sockets,
                network: &policy.network,
                hosts: &policy.hosts,
                environment: &policy.environment,
                workdir: &policy.workdir,
                limits: &policy.limits,
                interactive: policy.interactive,
                notes: policy.notes.iter().filter(|note| is_of_use(note)).collect(),
            }),
            typed: None,
        }
    }
}

/// Borrowed policy for the child, field by field. A test compares it with the policy's own form, so that a new field is
/// not forgotten.
#[derive(Debug, Serialize)]
pub struct ToldPolicy<'a> {
    profiles: &'a [String],
    grants: &'a [FsCapability],
    rules: &'a [AccessRule],
    closed: &'a [ClosedPath],
    unix_sockets: &'a [FsCapability],
    network: &'a NetworkPolicy,
    hosts: &'a [HostGrant],
    environment: &'a EnvironmentRules,
    #[serde(with = "crate::path_serde")]
    workdir: &'a Path,
    limits: &'a Limits,
    interactive: bool,
    notes: Vec<&'a PolicyNote>,
}

impl From<&FsCapability> for StateGrant {
    fn from(grant: &FsCapability) -> StateGrant {
        StateGrant {
            original: grant.original.clone(),
            resolved: grant.resolved.clone(),
            access: grant.access.to_string(),
            is_file: grant.is_file,
            source: Some(grant.source.clone()).filter(|source| *source != CapabilitySource::User),
        }
    }
}

impl StateGrant {
    fn to_capability(&self) -> Result<FsCapability, StateError> {
        let access = match self.access.as_str() {
            "read" => AccessMode::Read,
            "write" => AccessMode::Write,
            "read+write" => AccessMode::ReadWrite,
            other => {
                return Err(StateError::UnknownAccess {
                    path: self.original.clone(),
                    access: other.to_owned(),
                });
            }
        };
        Ok(FsCapability {
            original: self.original.clone(),
            resolved: self.resolved.clone(),
            access,
            is_file: self.is_file,
            source: self.source.clone().unwrap_or(CapabilitySource::User),
        })
    }
}

/// Whether a note is for the child. Notes on absent paths are not: there are many, and they are of no use to it.
fn is_of_use(note: &PolicyNote) -> bool {
    !matches!(note, PolicyNote::Skipped { .. })
}

fn set_limits(limits: &Limits) -> Option<Limits> {
    Some(limits.clone()).filter(|limits| *limits != Limits::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RunRequest;
    use crate::testing::{dir, resolved};

    fn of_policy(policy: &ResolvedPolicy) -> SandboxState {
        let told = SandboxState::told(policy, Some("n".into()), Some("id".into()));
        SandboxState::from_json(&serde_json::to_string(&told).unwrap()).unwrap()
    }

    #[test]
    fn the_known_keys_come_first_and_in_order() {
        let temp = tempfile::tempdir().unwrap();
        let mut caps = CapabilitySet::new();
        caps.allow_path(temp.path(), AccessMode::ReadWrite).unwrap();
        let json = SandboxState::from_caps(&caps).to_json().unwrap();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value.as_object().unwrap().keys().collect::<Vec<_>>(), ["fs", "net_blocked"]);
        let keys: Vec<_> = value["fs"][0].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["original", "resolved", "access", "is_file"]);
        assert_eq!(value["fs"][0]["access"], "read+write");
        assert!(json.starts_with("{\n  \"fs\": ["));
    }

    #[test]
    fn a_set_round_trips_with_its_sources() {
        let temp = tempfile::tempdir().unwrap();
        let mut caps = CapabilitySet::new();
        caps.allow_path(temp.path(), AccessMode::Read).unwrap();
        caps.set_network(NetworkPolicy::Allowed);
        let mut state = SandboxState::from_caps(&caps);
        state.fs[0].source = Some(CapabilitySource::Group("system".into()));
        let back = SandboxState::from_json(&state.to_json().unwrap()).unwrap().to_caps().unwrap();
        assert_eq!(back.fs_capabilities()[0].source, CapabilitySource::Group("system".into()));
        assert!(!back.is_network_blocked());
    }

    #[test]
    fn a_policy_round_trips_whole() {
        let policy = resolved(&RunRequest { deny: vec![".env".into()], ..dir("/h", AccessMode::ReadWrite) });
        let back = of_policy(&policy);
        assert_eq!((back.name.as_deref(), back.session_id.as_deref()), (Some("n"), Some("id")));
        assert_eq!(SandboxState::from_json(&back.to_json().unwrap()).unwrap(), back);
        let kept = back.policy.unwrap();
        assert_eq!(
            (&kept.rules, &kept.closed, &kept.grants),
            (&policy.rules, &policy.closed, &policy.grants)
        );
    }

    #[test]
    fn what_a_child_is_told_is_the_state_of_the_policy() {
        let request = RunRequest { deny: vec![".env".into()], ..dir("/h", AccessMode::ReadWrite) };
        let policy = resolved(&request);
        let told = SandboxState::told(&policy, None, None).policy.unwrap();
        let mut kept = policy.clone();
        kept.notes.retain(is_of_use);
        assert_eq!(serde_json::to_string(&told).unwrap(), serde_json::to_string(&kept).unwrap());
    }

    #[test]
    fn what_was_closed_stays_closed() {
        let temp = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(temp.path()).unwrap();
        std::fs::create_dir(root.join("in")).unwrap();
        let mut caps = CapabilitySet::new();
        caps.allow_path(&root, AccessMode::Read).unwrap();
        caps.deny(root.join("in")).unwrap();
        let again = |state: &SandboxState| {
            SandboxState::from_json(&state.to_json().unwrap()).unwrap().to_caps().map(|caps| {
                let closed = caps.to_policy().unwrap().closed;
                closed.into_iter().map(|closed| (closed.resolved, closed.how)).collect::<Vec<_>>()
            })
        };
        let closed = [(root.join("in"), crate::ClosedHow::Mask)];
        let (of_set, policy) = (SandboxState::from_caps(&caps), caps.to_policy().unwrap());
        assert_eq!(again(&of_set).unwrap(), closed);
        assert_eq!(again(&of_policy(&policy)).unwrap(), closed);
        // A path that cannot be closed again is an error, not left open.
        std::fs::remove_dir(root.join("in")).unwrap();
        assert!(again(&of_set).is_err());
        std::os::unix::fs::symlink("/", root.join("in")).unwrap();
        assert!(matches!(
            again(&of_set),
            Err(StateError::Capability(crate::CapabilityError::Elsewhere { .. }))
        ));
    }

    #[test]
    fn bad_states_are_refused() {
        for text in ["", "{}", "[]", r#"{"fs": []}"#] {
            let error = SandboxState::from_json(text).unwrap_err();
            assert!(error.to_string().starts_with("Invalid JSON:"), "{text}");
        }
        let text = r#"{"fs": [{"original": "/", "resolved": "/", "access": "all", "is_file": false}],
            "net_blocked": true, "later": 1}"#;
        let state = SandboxState::from_json(text).unwrap();
        assert!(matches!(state.to_caps(), Err(StateError::UnknownAccess { .. })));
        let gone = text.replace("\"all\"", "\"read\"").replace("\"/\"", "\"/no/such\"");
        let error = SandboxState::from_json(&gone).unwrap().to_caps().unwrap_err();
        assert!(matches!(error, StateError::Capability(crate::CapabilityError::PathNotFound { .. })));
    }
}
