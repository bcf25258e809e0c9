//! Errors of policy documents.

use std::path::PathBuf;

use thiserror::Error;

use crate::error::CapabilityError;

/// Reason why a document was refused, or could not be used.
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
    /// Names the groups only; the values may contain passwords.
    #[error("Conflicting upstream_proxy values in the groups {one:?} and {two:?}")]
    UpstreamConflict { one: String, two: String },
    #[error("groups define the credential {name:?} differently")]
    RouteConflict { name: String },
    #[error("group {group}: unknown services {}; describe them in custom_credentials", .names.join(", "))]
    NamedCredentials { group: String, names: Vec<String> },
}

/// A denied path that lies in a grant, where nothing would keep it closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{} is denied but lies in {}, which is granted, and this sandbox cannot deny a part of a grant; grant only the parts that are needed",
    .deny.display(), .grant.display()
)]
pub struct DenyOverlap {
    pub deny: PathBuf,
    pub grant: PathBuf,
}
