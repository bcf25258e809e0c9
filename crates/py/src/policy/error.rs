//! Errors of policy documents, as exceptions.

use nono::document::DocumentError;
use pyo3::prelude::*;

use crate::capability::capability_error;
use crate::error::Raise;

pub(super) fn document_error(error: &DocumentError) -> PyErr {
    let kind = match error {
        DocumentError::Grant { source, .. } => return capability_error(source),
        DocumentError::Json { .. } => "bad_json",
        DocumentError::UnknownGroup { .. } => "unknown_group",
        DocumentError::Unset { .. } => "unset_variable",
        DocumentError::NotAbsolute { .. } => "relative_variable",
        DocumentError::RequiredExcluded { .. } => "required_group",
        DocumentError::UpstreamConflict { .. } => "upstream_conflict",
        DocumentError::RouteConflict { .. } => "route_conflict",
        DocumentError::NamedCredentials { .. } => "unknown_credentials",
    };
    Raise::new(kind, error).value_error()
}
