//! Policy documents: groups of paths and network rules.

pub(crate) mod document;
mod error;
mod proxy;

use std::env;
use std::path::PathBuf;

use nono::HostContext;
use nono::document::{PolicyDocument, deny_overlaps, embedded};
use pyo3::prelude::*;

use crate::capability::CapabilitySet;
use crate::error::{Raise, Raised};
use crate::list_args::many;
use crate::paths::PathArg;
use document::Policy;
use error::document_error;

/// Read a policy document.
///
/// Raises ValueError for anything that is not one; a key that is unknown or given twice is named.
#[pyfunction]
pub(crate) fn load_policy(json: &str) -> PyResult<Policy> {
    PolicyDocument::parse(json).map(Policy::from).raised(document_error)
}

/// nono's own policy as a document.
///
/// It is made from what `nono run` uses, for the folders of this user (`XDG_CONFIG_HOME` and the like). What is
/// protected there is a group `deny_<name>` here; `deny_credentials` is all of them that hold keys, tokens and
/// passwords.
#[pyfunction]
pub(crate) fn load_embedded_policy() -> Policy {
    embedded(&host()).into()
}

/// The text of load_embedded_policy().
#[pyfunction]
pub(crate) fn embedded_policy_json() -> PyResult<String> {
    embedded(&host()).to_json().raised(document_error)
}

/// Refuse grants that would leave a denied path open.
///
/// Raises PolicyError when one lies below a directory that the user granted: grants add up and cannot be taken back in
/// part. Paths are compared by their letters. Grants of groups are left to those who wrote them.
#[pyfunction]
pub(crate) fn validate_deny_overlaps(
    #[pyo3(from_py_with = many)] deny_paths: Vec<PathArg>,
    caps: &CapabilitySet,
) -> PyResult<()> {
    let deny: Vec<PathBuf> = deny_paths.into_iter().map(PathBuf::from).collect();
    deny_overlaps(&deny, &caps.to_exec().0).map_err(|overlap| {
        Raise::new("deny_overlap", &overlap).about(overlap.deny).as_a::<crate::error::PolicyError>()
    })
}

/// Let files in writable grants be removed on macOS. Does nothing on Linux, where writing includes it.
#[pyfunction]
pub(crate) fn apply_unlink_overrides(caps: &CapabilitySet) {
    let _ = caps;
}

/// Host for the embedded policy, from the caller's environment.
fn host() -> HostContext {
    let folder = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    HostContext {
        home: folder("HOME"),
        xdg_config: folder("XDG_CONFIG_HOME"),
        xdg_data: folder("XDG_DATA_HOME"),
        xdg_cache: folder("XDG_CACHE_HOME"),
        xdg_state: folder("XDG_STATE_HOME"),
        ..HostContext::default()
    }
}
