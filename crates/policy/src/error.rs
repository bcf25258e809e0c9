//! Errors of policies, profiles, capability sets and saved states.
//!
//! Each variant carries the path or name it is about, so that callers match on variants and never on text.
//! `hint` gives the flag or command that fixes the case, where there is one; the CLI prints it on its own line.

use std::io;
use std::path::PathBuf;

use nono_sys::errno::describe;
use thiserror::Error;

use crate::access::{AccessMode, CapabilitySource};
use crate::host_rule::{HostError, HostRule};
use crate::request::GrantKind;

/// Reason why a run was refused before anything started.
#[derive(Debug, Error)]
pub enum PolicyError {
    #[error("{} does not exist (granted by {})", .path.display(), .from.subject())]
    PathNotFound { path: PathBuf, from: CapabilitySource },
    #[error("{} is a link that leads nowhere (granted by {})", .path.display(), .from.subject())]
    DanglingLink { path: PathBuf, from: CapabilitySource },
    #[error("{} cannot be resolved: {}", .path.display(), describe(.source))]
    Resolve { path: PathBuf, source: io::Error },
    #[error("{} cannot be listed to keep {} closed: {}", .dir.display(), .closed.display(), describe(.source))]
    List { dir: PathBuf, closed: PathBuf, source: io::Error },
    #[error("{} is a file, but a directory was granted", .path.display())]
    ExpectedDirectory { path: PathBuf, access: AccessMode },
    #[error("{} is a directory, but a file was granted", .path.display())]
    ExpectedFile { path: PathBuf, access: AccessMode },
    #[error("{} is a socket; a file grant does not open it", .path.display())]
    IsSocket { path: PathBuf },
    #[error("{} is a device and cannot be granted", .path.display())]
    IsDevice { path: PathBuf },
    #[error("{} is a named pipe and cannot be granted on its own", .path.display())]
    IsFifo { path: PathBuf },
    #[error("{} is not a unix socket", .path.display())]
    NotASocket { path: PathBuf },
    #[error(
        "{} leads to {}: the link {} leaves its folder, and a sandboxed command could have made it (granted by {})",
        .path.display(), .found.display(), .link.display(), .from.subject()
    )]
    LeadsOut { path: PathBuf, link: PathBuf, found: PathBuf, from: CapabilitySource },
    #[error("{} is protected (group {group})", .path.display())]
    Protected { path: PathBuf, group: String },
    #[error("protection of {} is bypassed, but there is no matching grant", .path.display())]
    BypassWithoutGrant { path: PathBuf },
    #[error("{} is not protected, so there is nothing to bypass", .path.display())]
    NothingToBypass { path: PathBuf },
    #[error("{} belongs to nono itself ({}) and can never be granted", .path.display(), .own.display())]
    NonoOwned { path: PathBuf, own: PathBuf },
    #[error(
        "{} decides what {agent} runs outside the sandbox, and can be granted for reading only", .path.display()
    )]
    AgentSettings { path: PathBuf, agent: String },
    #[error("{} is granted but lies in {}, which is denied by {}", .path.display(), .deny.display(), .by.subject())]
    GrantDenied { path: PathBuf, deny: PathBuf, by: CapabilitySource },
    #[error(
        "{} is denied but does not exist; nono cannot keep a name closed that is created later inside {}, which is \
         granted", .path.display(), .grant.display()
    )]
    DenyAbsent { path: PathBuf, grant: PathBuf },
    #[error("{text} needs a home folder, and none is known")]
    NoHome { text: String },
    #[error("{text}: unknown variable ${variable}")]
    UnknownVariable { text: String, variable: String },
    #[error("unknown group {name:?}{}", did_you_mean(.nearest.as_ref()))]
    UnknownGroup { name: String, nearest: Option<String> },
    #[error("the protected group {name:?} cannot be excluded by a profile")]
    ProtectedGroupExcluded { name: String },
    #[error("the environment variable {name} can inject code and is never passed on; leave it out")]
    NeverVariable { name: String },
    #[error("the environment variable {name} is reserved for nono")]
    ReservedVariable { name: String },
    #[error(
        "invalid environment variable {name:?}: the name must not be empty or contain \"=\" or \"*\", and nothing may contain NUL"
    )]
    BadVariable { name: String },
    #[error("profile {profile} opens the network and also lists single ports or hosts")]
    NetworkContradiction { profile: String },
    #[error("{rule} is opened by {by}, but the whole network is {}", if *.open { "open" } else { "blocked" })]
    HostContradiction { rule: HostRule, by: CapabilitySource, open: bool },
    #[error("profile {profile}: network.allow_domain: {source}")]
    BadHost { profile: String, source: HostError },
    #[error("{} is too broad for a project's profile (granted by {})", .path.display(), .from.subject())]
    TooBroadForProject { path: PathBuf, from: CapabilitySource },
    #[error(
        "{} now leads to {}, which you have not agreed to (granted by {})",
        .path.display(), .found.display(), .from.subject()
    )]
    NotAsAgreed { path: PathBuf, found: PathBuf, from: CapabilitySource },
    #[error(
        "{} (granted by {from}) contains {}, whose protection you bypassed; a project's profile cannot use your bypass",
        .path.display(), .bypass.display()
    )]
    BypassForProject { path: PathBuf, bypass: PathBuf, from: CapabilitySource },
}

impl PolicyError {
    /// Flag or command that fixes the error, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            PolicyError::ExpectedDirectory { path, access } => {
                Some(format!("use {} {}", grant_flag(*access, GrantKind::File), path.display()))
            }
            PolicyError::ExpectedFile { path, access } => {
                Some(format!("use {} {}", grant_flag(*access, GrantKind::Directory), path.display()))
            }
            PolicyError::IsSocket { .. } => Some(
                "--allow-unix-socket opens a socket; the process listening there acts outside the sandbox"
                    .to_owned(),
            ),
            PolicyError::LeadsOut { found, from: CapabilitySource::Profile(name), .. } => Some(format!(
                "write {} in profile {name} if you mean that target, or run this once on a terminal to confirm the link",
                found.display()
            )),
            PolicyError::LeadsOut { found, .. } => Some(format!(
                "use {} if you mean that target, or run this once on a terminal to confirm the link",
                found.display()
            )),
            PolicyError::Protected { path, .. } => {
                Some(format!("add --bypass-protection {}", path.display()))
            }
            PolicyError::BypassWithoutGrant { path } => {
                Some(format!("add --read {} or --read-file", path.display()))
            }
            PolicyError::NothingToBypass { path } => {
                Some(format!("drop --bypass-protection {}; a grant alone opens it", path.display()))
            }
            PolicyError::GrantDenied { deny, .. } => {
                Some(format!("drop the grant, or the deny of {}", deny.display()))
            }
            PolicyError::DenyAbsent { path, grant } => {
                Some(format!("create {} first, or grant less than {}", path.display(), grant.display()))
            }
            PolicyError::UnknownGroup { nearest: Some(nearest), .. } => Some(format!("use {nearest:?}")),
            PolicyError::ProtectedGroupExcluded { .. } => {
                Some("open single paths with filesystem.bypass_protection and a grant".to_owned())
            }
            PolicyError::NetworkContradiction { .. } => {
                Some("set network.block to true to allow those alone, or drop them".to_owned())
            }
            PolicyError::HostContradiction { open: true, .. } => {
                Some("drop --allow-net to open single hosts only, or drop the hosts".to_owned())
            }
            PolicyError::HostContradiction { open: false, .. } => {
                Some("drop --block-net, or drop the hosts".to_owned())
            }
            PolicyError::TooBroadForProject { .. } => {
                Some("name only the folders it needs, or open this one yourself with a flag".to_owned())
            }
            PolicyError::NotAsAgreed { .. } => Some("run `nono profile trust` to review it".to_owned()),
            PolicyError::BypassForProject { .. } => {
                Some("--no-project-profile runs without the project's profile".to_owned())
            }
            PolicyError::BadHost { .. } => {
                Some("write NAME, *.NAME or an address, optionally with :PORT".to_owned())
            }
            PolicyError::PathNotFound { path, from: CapabilitySource::Profile(name) } => Some(format!(
                "mark it in profile {name} as {{\"path\": \"{}\", \"optional\": true}}, or create it",
                path.display()
            )),
            _ => None,
        }
    }
}

/// Flag of a grant.
pub fn grant_flag(access: AccessMode, kind: GrantKind) -> &'static str {
    match (access, kind) {
        (AccessMode::Read, GrantKind::Directory) => "--read",
        (AccessMode::Write, GrantKind::Directory) => "--write",
        (AccessMode::ReadWrite, GrantKind::Directory) => "--allow",
        (AccessMode::Read, GrantKind::File) => "--read-file",
        (AccessMode::Write, GrantKind::File) => "--write-file",
        (AccessMode::ReadWrite, GrantKind::File) => "--allow-file",
    }
}

/// Position in a profile's text: line and column, counted from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub file: PathBuf,
    pub line: usize,
    pub column: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// Reason why a profile was refused.
#[derive(Debug, Error)]
pub enum ProfileError {
    #[error("profile {} cannot be read: {}", .path.display(), describe(.source))]
    Read { path: PathBuf, source: io::Error },
    #[error("profile {} is not a regular file", .path.display())]
    NotAFile { path: PathBuf },
    #[error("profile {} is larger than {limit} bytes", .path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("{at}: {message}")]
    Syntax { at: Position, message: String },
    #[error("{at}: unknown key {key:?}{}", did_you_mean(.nearest.as_ref()))]
    UnknownKey { at: Position, key: String, nearest: Option<String> },
    #[error("{at}: key {key:?} appears twice")]
    DuplicateKey { at: Position, key: String },
    #[error("{at}: {key}: expected {expected}, found {found}")]
    WrongType { at: Position, key: String, expected: String, found: String },
    #[error("{at}: {key}: {value:?} is not one of {allowed}")]
    BadValue { at: Position, key: String, value: String, allowed: String },
    #[error("{name:?} is not a profile name: use letters, digits, - and _")]
    BadName { name: String },
    #[error("profile {} has the name {name:?}, but its file name says {expected:?}", .path.display())]
    NameMismatch { path: PathBuf, name: String, expected: String },
    #[error("{} uses the name of the built-in profile {name:?}, which is reserved", .path.display())]
    ReservedName { path: PathBuf, name: String },
    #[error("there is no profile {name:?}{}", extended_and_nearest(.extended_by.as_ref(), .nearest.as_ref()))]
    Unknown { name: String, extended_by: Option<ExtendedBy>, nearest: Option<String> },
    #[error("profiles extend each other in a circle: {}", .chain.join(" -> "))]
    Cycle { chain: Vec<String> },
    #[error("profile {profile}: unknown group {group:?}{}", did_you_mean(.nearest.as_ref()))]
    UnknownGroup { profile: String, group: String, nearest: Option<String> },
    #[error("profile {profile}: the protected group {group:?} cannot be excluded")]
    ProtectedGroupExcluded { profile: String, group: String },
    #[error("{} extends {base:?}; the profile of a project can extend built-in profiles only", .path.display())]
    ProjectExtends { path: PathBuf, base: String },
    #[error("{} sets {key}, which a project's profile cannot set", .path.display())]
    NotForProjects { path: PathBuf, key: String, instead: &'static str },
}

impl ProfileError {
    /// Flag or command that fixes the error, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            ProfileError::UnknownKey { nearest: Some(nearest), .. } => Some(format!("write {nearest:?}")),
            ProfileError::UnknownKey { .. } => Some("nono profile schema prints every known key".to_owned()),
            ProfileError::Unknown { nearest: Some(nearest), .. }
            | ProfileError::UnknownGroup { nearest: Some(nearest), .. } => Some(format!("use {nearest:?}")),
            ProfileError::Unknown { .. } => Some("nono profile list shows the profiles there are".to_owned()),
            ProfileError::ReservedName { name, .. } => {
                Some(format!("rename the file and write \"extends\": \"{name}\" in it"))
            }
            ProfileError::ProtectedGroupExcluded { .. } => {
                Some("open single paths with filesystem.bypass_protection and a grant".to_owned())
            }
            ProfileError::NotForProjects { instead, .. } => Some((*instead).to_owned()),
            _ => None,
        }
    }
}

/// Reason why a path was not added to a capability set.
#[derive(Debug, Error)]
pub enum CapabilityError {
    #[error("{} does not exist", .path.display())]
    PathNotFound { path: PathBuf },
    #[error("{} is not a directory", .path.display())]
    ExpectedDirectory { path: PathBuf },
    #[error("{} is a directory", .path.display())]
    ExpectedFile { path: PathBuf },
    #[error("{} cannot be resolved: {}", .path.display(), describe(.source))]
    Resolve { path: PathBuf, source: io::Error },
    #[error("{} leads to {}, which is not what was granted", .path.display(), .found.display())]
    Elsewhere { path: PathBuf, found: PathBuf },
}

impl CapabilityError {
    pub fn hint(&self) -> Option<String> {
        match self {
            CapabilityError::ExpectedDirectory { .. } => Some("use allow_file for a single file".to_owned()),
            CapabilityError::ExpectedFile { .. } => Some("use allow_path for a directory".to_owned()),
            _ => None,
        }
    }
}

/// Reason why a saved sandbox state could not be used.
#[derive(Debug, Error)]
pub enum StateError {
    #[error("Invalid JSON: {source}")]
    Json { source: serde_json::Error },
    #[error("{}: {access:?} is not an access mode", .path.display())]
    UnknownAccess { path: PathBuf, access: String },
    #[error(transparent)]
    Capability(#[from] CapabilityError),
}

impl StateError {
    pub fn hint(&self) -> Option<String> {
        match self {
            StateError::UnknownAccess { .. } => Some("write read, write or read+write".to_owned()),
            StateError::Capability(error) => error.hint(),
            StateError::Json { .. } => None,
        }
    }
}

fn did_you_mean(nearest: Option<&String>) -> String {
    nearest.map(|name| format!(" (nearest: {name:?})")).unwrap_or_default()
}

/// Origin of the wish to extend a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtendedBy {
    /// `--extends`.
    Flag,
    Profile(String),
}

fn extended_and_nearest(by: Option<&ExtendedBy>, nearest: Option<&String>) -> String {
    match (by, nearest) {
        (None, _) => did_you_mean(nearest),
        (Some(ExtendedBy::Flag), None) => " (from --extends)".to_owned(),
        (Some(ExtendedBy::Flag), Some(nearest)) => format!(" (from --extends; nearest: {nearest:?})"),
        (Some(ExtendedBy::Profile(profile)), _) => {
            format!(", which profile {profile:?} extends{}", did_you_mean(nearest))
        }
    }
}

/// Key that is not known, with the names of the tables it is in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown key {key:?}{}", did_you_mean(.nearest.as_ref()))]
pub struct UnknownKey {
    pub key: String,
    /// Known key of the same table, if one is close.
    pub nearest: Option<String>,
}

impl UnknownKey {
    /// The key `name` in the table `path`, whose keys are `known`.
    pub fn new(path: &str, name: &str, known: &[&str]) -> UnknownKey {
        let nearest = nearest(name, known.iter().copied()).map(|name| format!("{path}.{name}"));
        UnknownKey { key: format!("{path}.{name}"), nearest }
    }
}

/// The candidate closest to `word`, if one is close enough to be worth a mention.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 2.max(candidate.len() / 2))
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_close_or_not_given() {
        let words = ["filesystem", "network", "workdir"];
        assert_eq!(nearest("filesytem", words.into_iter()), Some("filesystem".to_owned()));
        assert_eq!(nearest("zzzzzzzzzzzz", words.into_iter()), None);
    }

    #[test]
    fn hints_name_the_other_flag() {
        let error = PolicyError::ExpectedDirectory { path: "/x".into(), access: AccessMode::ReadWrite };
        assert_eq!(error.hint().as_deref(), Some("use --allow-file /x"));
        let error = PolicyError::ExpectedFile { path: "/x".into(), access: AccessMode::Read };
        assert_eq!(error.hint().as_deref(), Some("use --read /x"));
        let error = PolicyError::Protected { path: "/h/.ssh".into(), group: "ssh".into() };
        assert_eq!(error.hint().as_deref(), Some("add --bypass-protection /h/.ssh"));
    }
}
