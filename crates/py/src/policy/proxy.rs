//! Network rules of a document, as a `ProxyConfig`.
//!
//! Made by the constructors Python has, so that a configuration from a document is checked like any other.

use std::path::{Path, PathBuf};

use nono::document::{DocumentProxy, DocumentRoute};
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub(super) fn proxy_config<'py>(py: Python<'py>, proxy: &DocumentProxy) -> PyResult<Bound<'py, PyAny>> {
    let package = py.import("nono_py._nono_py")?;
    let routes = proxy.routes.iter().map(|route| route_config(&package, route));
    let given = PyDict::new(py);
    given.set_item("allowed_hosts", &proxy.hosts)?;
    given.set_item("routes", routes.collect::<PyResult<Vec<_>>>()?)?;
    if let Some(address) = &proxy.upstream_proxy {
        let bypass = PyDict::new(py);
        bypass.set_item("bypass_hosts", &proxy.upstream_bypass)?;
        let external = package.getattr("ExternalProxyConfig")?.call((address,), Some(&bypass))?;
        given.set_item("external_proxy", external)?;
    }
    if let Some(most) = proxy.max_connections {
        given.set_item("max_connections", most)?;
    }
    package.getattr("ProxyConfig")?.call((), Some(&given))
}

fn route_config<'py>(package: &Bound<'py, PyModule>, route: &DocumentRoute) -> PyResult<Bound<'py, PyAny>> {
    let mode = route.inject_mode.word().to_uppercase();
    // A document holds text only.
    let text = |path: &'_ Option<PathBuf>| path.as_deref().and_then(Path::to_str).map(str::to_owned);
    let rules: Vec<_> =
        route.endpoint_rules.iter().map(|rule| (rule.method.as_str(), rule.path.as_str())).collect();
    let given = PyDict::new(package.py());
    given.set_item("credential_key", &route.credential_key)?;
    given.set_item("inject_mode", package.getattr("InjectMode")?.getattr(mode)?)?;
    given.set_item("inject_header", &route.inject_header)?;
    given.set_item("credential_format", &route.credential_format)?;
    given.set_item("path_pattern", &route.path_pattern)?;
    given.set_item("path_replacement", &route.path_replacement)?;
    given.set_item("query_param_name", &route.query_param_name)?;
    given.set_item("env_var", &route.env_var)?;
    given.set_item("endpoint_rules", rules)?;
    given.set_item("tls_ca", text(&route.tls_ca))?;
    given.set_item("tls_client_cert", text(&route.tls_client_cert))?;
    given.set_item("tls_client_key", text(&route.tls_client_key))?;
    package.getattr("RouteConfig")?.call((&route.prefix, &route.upstream), Some(&given))
}
