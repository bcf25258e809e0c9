//! Every way in which a document or its use can be refused.

use std::path::PathBuf;

use thiserror::Error;

use crate::error::CapabilityError;

/// Why a document was refused, or could not be used.
#[derive(Debug, Error)]
pub enum DocumentError {
    #[error("Invalid policy: {source}")]
    Json { source: serde_json::Error },
    #[error("unknown group {name:?}{}", .nearest.as_ref().map(|name| format!(" (nearest: {name:?})")).unwrap_or_default())]
    UnknownGroup { name: String, nearest: Option<String> },
    #[error("group {group}: {text} needs ${variable}, which is not set")]
    Unset { group: String, text: String, variable: &'static str },
    #[error("group {group}: {text} needs ${variable}, which is not an absolute path: {}", .value.display())]
    NotAbsolute { group: String, text: String, variable: &'static str, value: PathBuf },
    #[error("group {group}: {source}")]
    Grant { group: String, source: CapabilityError },
    #[error("required groups cannot be excluded: {}", .names.join(", "))]
    RequiredExcluded { names: Vec<String> },
    /// Of groups; the values may have passwords in them.
    #[error("Conflicting upstream_proxy values in the groups {one:?} and {two:?}")]
    UpstreamConflict { one: String, two: String },
    #[error("groups say different things about the credential {name:?}")]
    RouteConflict { name: String },
    #[error("group {group}: no service is known by name here ({}); describe it in custom_credentials", .names.join(", "))]
    NamedCredentials { group: String, names: Vec<String> },
}

/// A path that is to be denied lies in a grant, and nothing would keep it closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{} is denied but lies in {}, which is granted: grants cannot be taken back in part; grant less than that",
    .deny.display(), .grant.display()
)]
pub struct DenyOverlap {
    pub deny: PathBuf,
    pub grant: PathBuf,
}
