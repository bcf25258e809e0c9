//! `Policy` and `ResolvedPolicy`.

use std::env;

use nono::document::{DocumentRole, PolicyDocument, ResolvedDocument};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::error::document_error;
use super::proxy::proxy_config;
use crate::capability::CapabilitySet;
use crate::error::Raised;
use crate::list_args::many;
use crate::paths::{PathText, texts};
use crate::plain;

/// A policy document: named groups of paths and network rules.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct Policy {
    document: PolicyDocument,
}

impl From<PolicyDocument> for Policy {
    fn from(document: PolicyDocument) -> Policy {
        Policy { document }
    }
}

/// Host of a document, with the home and temporary folders of the present environment.
fn place() -> DocumentRole {
    let folder = |name| env::var_os(name).map(Into::into);
    DocumentRole { home: folder("HOME"), tmpdir: folder("TMPDIR"), platform: env::consts::OS.to_owned() }
}

#[pymethods]
impl Policy {
    /// The names of all groups, sorted.
    fn group_names(&self) -> Vec<&str> {
        self.document.groups.keys().map(String::as_str).collect()
    }

    /// The description of a group; None if there is no such group.
    fn group_description(&self, name: &str) -> Option<&str> {
        self.document.groups.get(name).map(|group| group.description.as_str())
    }

    /// Add what these groups allow to `caps`, and block its network where one says so.
    ///
    /// Groups of another platform and paths that do not exist are passed over. Raises ValueError for a group that is
    /// unknown, or a path that needs HOME or TMPDIR where that is unset or relative; `caps` is then as it was. What the
    /// groups deny is in the result, for validate_deny_overlaps(): a set only ever opens paths.
    fn resolve_groups(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = many)] group_names: Vec<String>,
        caps: &CapabilitySet,
    ) -> PyResult<ResolvedPolicy> {
        let place = place();
        let resolved = py.detach(|| caps.change(|set| self.document.resolve(&group_names, &place, set)));
        let ResolvedDocument { names, needs_unlink_overrides, deny_paths } =
            resolved.raised(document_error)?;
        Ok(ResolvedPolicy { names, needs_unlink_overrides, deny_paths: texts(deny_paths) })
    }

    /// The paths that these groups deny: each with `~` and variables expanded, and where it leads.
    fn resolve_deny_paths(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = many)] group_names: Vec<String>,
    ) -> PyResult<Vec<PathText>> {
        let place = place();
        let denied = py.detach(|| self.document.deny_paths(&group_names, &place));
        denied.map(texts).raised(document_error)
    }

    /// The proxy these groups need together; None when none of them says anything that takes one.
    ///
    /// Raises ValueError where they contradict each other, and for credentials that are only named.
    fn resolve_proxy_config<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = many)] group_names: Vec<String>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let proxy = self.document.proxy(&group_names, &place()).raised(document_error)?;
        proxy.map(|proxy| proxy_config(py, &proxy)).transpose()
    }

    /// Refuse to leave out groups that are required. Names that are no group do not matter.
    fn validate_group_exclusions(&self, excluded_groups: Vec<String>) -> PyResult<()> {
        self.document.check_exclusions(&excluded_groups).raised(document_error)
    }

    /// The document as plain dicts and lists, without default values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = self.document.to_json().raised(document_error)?;
        py.import("json")?.call_method1("loads", (text,))
    }

    fn __repr__(&self) -> String {
        format!("Policy(groups={})", self.document.groups.len())
    }
}

/// Result of resolving groups of a policy.
#[pyclass(frozen, get_all, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct ResolvedPolicy {
    /// The groups that are for this platform, in the order they were asked for.
    names: Vec<String>,
    /// Whether a group wants apply_unlink_overrides().
    needs_unlink_overrides: bool,
    /// The denied paths: each as written, and where it leads. Only validate_deny_overlaps() enforces them.
    deny_paths: Vec<PathText>,
}

#[pymethods]
impl ResolvedPolicy {
    /// The values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        plain::attributes(slf, "names needs_unlink_overrides deny_paths")
    }

    fn __repr__(&self) -> String {
        let ResolvedPolicy { names, needs_unlink_overrides, deny_paths } = self;
        format!(
            "ResolvedPolicy(names={}, deny_paths={}, needs_unlink_overrides={needs_unlink_overrides})",
            names.len(),
            deny_paths.len()
        )
    }
}
