//! Pure policy: capabilities, profiles, groups, resolution and queries; globs, and untrusted text made harmless.
//!
//! A [`RunRequest`] and the [`Facts`] of the host go in, a [`ResolvedPolicy`] comes out. Nothing here enforces
//! anything, prints anything or reads the environment: the caller passes what it knows as a [`HostContext`].
//! The file system is seen only through [`Facts`], and by [`ProfileStore`], [`CapabilitySet`] and [`state_dir`], whose
//! whole purpose is to read a given folder, to resolve a given path, or to make nono's own folder.

pub mod access;
pub mod addresses;
pub mod capability_set;
pub mod data;
pub mod document;
pub mod environment;
pub mod error;
mod expand;
pub mod facts;
pub mod glob;
pub mod host_rule;
pub mod links;
pub use nono_sys::path_serde;
pub mod profile;
pub mod query;
pub mod request;
pub mod resolve;
pub mod resolved;
pub mod state;
pub mod state_dir;
#[cfg(test)]
mod testing;
pub mod text;
mod within;

pub use access::{AccessMode, CapabilitySource};
pub use addresses::AddressClass;
pub use capability_set::{CapabilitySet, CapabilitySetBuilder, PlatformRuleError};
pub use data::{EnvironmentData, Group, GroupKind, PolicyData};
pub use error::{CapabilityError, ExtendedBy, PolicyError, ProfileError, StateError, UnknownKey};
pub use facts::{EntryKind, Facts, FoundKind, HostFacts, ResolvedPath};
pub use profile::{
    DiffLine, EffectiveProfile, HookInstall, HookSection, MergedProfile, Profile, ProfileInfo, ProfileOrigin,
    ProfileStore, ProjectEntry, ProjectOverlay, ProjectProfile, WorkdirAccess, diff, schema, template,
};
pub use query::{
    DeniedReason, NetworkQuery, NetworkReason, QueryResult, SOME_NAME, SetAnswer, SetQuery, Suggestion,
    is_system_folder, query_network, query_path, query_path_on,
};
pub use request::{EnvRequest, GrantKind, GrantRequest, HostContext, ProfileRef, RunRequest};
pub use resolve::resolve;
pub use resolved::{
    AccessRule, ClosedBy, ClosedHow, ClosedPath, EnvironmentRules, FsCapability, HostGrant, Limits,
    NetworkPolicy, PathKind, PolicyNote, ProtectedNames, ResolvedPolicy, RuleAccess,
};
pub use state::{SandboxState, Typed};
pub use within::is_within;
