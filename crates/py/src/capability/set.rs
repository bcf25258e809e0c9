//! `CapabilitySet`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nono::NetworkPolicy;
use nono::proxy::Handle;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::access::AccessMode;
use super::error::capability_error;
use super::grant::FsCapability;
use crate::error::{Raise, Raised};
use crate::paths::{self, PathArg, texts};
use crate::plain;
use crate::proxy::ProxyHandle;

/// Capabilities of a process: granted paths, and the network.
///
/// Nothing but the granted paths can be reached; the network is open until block_network() or proxy_only() is called.
/// Each path is resolved once, when it is added, so that a link changed later opens nothing.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct CapabilitySet {
    inner: Mutex<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    set: nono::CapabilitySet,
    /// The proxy that is the only way to the network, if any. `set` then has its port.
    proxy: Option<Arc<Handle>>,
}

impl From<nono::CapabilitySet> for CapabilitySet {
    fn from(set: nono::CapabilitySet) -> CapabilitySet {
        CapabilitySet { inner: Mutex::new(Inner { set, proxy: None }) }
    }
}

impl CapabilitySet {
    /// The set to enforce, and the proxy that is the only way to the network, if any: then the network of the set is
    /// its port.
    pub(crate) fn to_exec(&self) -> (nono::CapabilitySet, Option<Arc<Handle>>) {
        let inner = self.inner().clone();
        (inner.set, inner.proxy)
    }

    /// Changes the set as a whole, or not at all.
    pub(crate) fn change<T, E>(
        &self,
        change: impl FnOnce(&mut nono::CapabilitySet) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut inner = self.inner();
        let mut set = inner.set.clone();
        let value = change(&mut set)?;
        if set.network() != inner.set.network() {
            inner.proxy = None;
        }
        inner.set = set;
        Ok(value)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A set is replaced as a whole, so that it is consistent even after a panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn network(&self) -> String {
        match &self.proxy {
            Some(proxy) => format!("proxy-only (localhost:{})", proxy.port()),
            None => self.set.network_word(),
        }
    }
}

#[pymethods]
impl CapabilitySet {
    #[new]
    fn new() -> CapabilitySet {
        let mut set = nono::CapabilitySet::new();
        set.set_network(NetworkPolicy::Allowed);
        set.into()
    }

    /// Grant a directory and everything below it.
    ///
    /// Raises FileNotFoundError where nothing is, ValueError for a file, OSError where it cannot be looked up.
    fn allow_path(&self, py: Python<'_>, path: PathArg, mode: AccessMode) -> PyResult<()> {
        py.detach(|| self.inner().set.allow_path(&path.0, mode.into())).raised(capability_error)
    }

    /// Grant one file. Anything that is not a directory counts: devices, sockets, pipes.
    ///
    /// Raises FileNotFoundError where nothing is, ValueError for a directory, OSError where it cannot be looked up.
    fn allow_file(&self, py: Python<'_>, path: PathArg, mode: AccessMode) -> PyResult<()> {
        py.detach(|| self.inner().set.allow_file(&path.0, mode.into())).raised(capability_error)
    }

    /// Let a unix socket be connected to. Needs a mount namespace, so sandboxed_exec() can and apply() cannot.
    fn allow_unix_socket(&self, py: Python<'_>, path: PathArg) -> PyResult<()> {
        py.detach(|| self.inner().set.allow_unix_socket(&path.0)).raised(capability_error)
    }

    /// Close a path inside a granted directory. Needs a mount namespace, so sandboxed_exec() can and apply() cannot.
    fn deny_path(&self, py: Python<'_>, path: PathArg) -> PyResult<()> {
        py.detach(|| self.inner().set.deny(&path.0)).raised(capability_error)
    }

    /// Close the network: TCP, UDP and everything else that leaves.
    fn block_network(&self) {
        let mut inner = self.inner();
        inner.set.set_network(NetworkPolicy::Blocked);
        inner.proxy = None;
    }

    /// Close the network but for this proxy.
    ///
    /// sandboxed_exec() lets the command reach the proxy and nothing else. apply() can only name the port: whatever
    /// listens on it can be reached, at any address.
    fn proxy_only(&self, proxy: &Bound<'_, ProxyHandle>) {
        let (port, handle) = (proxy.get().port(), proxy.get().shared());
        let mut inner = self.inner();
        inner.set.set_network(NetworkPolicy::Ports { connect: vec![port], listen: Vec::new() });
        inner.proxy = Some(handle);
    }

    /// Add a rule in the language of macOS's sandbox. It is checked everywhere, and used on macOS only.
    ///
    /// Raises ValueError for broken text, and for a rule that opens the whole file system.
    fn platform_rule(&self, rule: &str) -> PyResult<()> {
        let added = self.inner().set.platform_rule(rule);
        added.map_err(|error| Raise::new("platform_rule", error).value_error())
    }

    /// Join grants of one source on the same path, and drop grants that add nothing.
    ///
    /// The enforced access stays the same; no grant shows more than its source asked for, or another spelling.
    fn deduplicate(&self) {
        self.inner().set.deduplicate();
    }

    /// Whether a directory grant is at or above the path, compared lexically. A path with `..` is covered by nothing.
    /// QueryContext follows links and takes a mode.
    fn path_covered(&self, path: PathArg) -> bool {
        self.inner().set.path_covered(&path.0)
    }

    /// The grants, in the order they were added.
    fn fs_capabilities(&self) -> Vec<FsCapability> {
        self.inner().set.fs_capabilities().iter().map(FsCapability::from).collect()
    }

    /// Whether the network is closed; a proxy as the only way out does not change that.
    #[getter]
    fn is_network_blocked(&self) -> bool {
        self.inner().set.is_network_blocked()
    }

    /// A text summary of the set, one grant per line.
    fn summary<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        let inner = self.inner().clone();
        paths::os_str(py, &inner.set.summary_with(&inner.network()))
    }

    /// The set as a plain dict: `fs`, `network`, `network_blocked`, `denied`, `unix_sockets`, `platform_rules`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.inner().clone();
        let grants = |grants: &[nono::FsCapability]| {
            plain::simple(&PyList::new(py, grants.iter().map(FsCapability::from))?.into_any())
        };
        let dict = PyDict::new(py);
        dict.set_item("fs", grants(inner.set.fs_capabilities())?)?;
        dict.set_item("network", inner.network())?;
        dict.set_item("network_blocked", inner.set.is_network_blocked())?;
        dict.set_item("denied", texts(inner.set.denied_paths()))?;
        dict.set_item("unix_sockets", grants(inner.set.unix_sockets())?)?;
        dict.set_item("platform_rules", inner.set.platform_rules())?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let inner = self.inner();
        format!("CapabilitySet(fs={}, network={})", inner.set.fs_capabilities().len(), inner.network())
    }
}
