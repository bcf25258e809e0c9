//! Configuration of a proxy: `ProxyConfig` and its parts.

use nono::network::UpstreamProxy;
use nono::proxy::{self as engine, Injection};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::error::config_error;
use crate::list_args::{Many, many, some_many};
use crate::paths::{self, PathArg};

/// Ways to insert a secret into a request.
#[pyclass(eq, hash, frozen, from_py_object, module = "nono_py", rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum InjectMode {
    Header,
    UrlPath,
    QueryParam,
    BasicAuth,
}

#[pymethods]
impl InjectMode {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "methods of Python get a reference")]
    fn __str__(&self) -> &'static str {
        Injection::from(*self).word()
    }
}

impl From<InjectMode> for Injection {
    fn from(mode: InjectMode) -> Injection {
        match mode {
            InjectMode::Header => Injection::Header,
            InjectMode::UrlPath => Injection::UrlPath,
            InjectMode::QueryParam => Injection::QueryParam,
            InjectMode::BasicAuth => Injection::BasicAuth,
        }
    }
}

impl From<Injection> for InjectMode {
    fn from(mode: Injection) -> InjectMode {
        match mode {
            Injection::Header => InjectMode::Header,
            Injection::UrlPath => InjectMode::UrlPath,
            Injection::QueryParam => InjectMode::QueryParam,
            Injection::BasicAuth => InjectMode::BasicAuth,
        }
    }
}

/// A service behind the proxy: `http://127.0.0.1:<port>/<prefix>/…` leads to `upstream`.
///
/// `credential_key` says where its secret is: the name of an environment variable (or of an entry of the service `nono`
/// in the keyring), `env://NAME`, `file:///path`, or `keyring://service/account`. A program shows the proxy's token
/// where the secret goes (`inject_mode`), and never sees the secret: answers are searched for it, and it is replaced
/// there. With BASIC_AUTH the secret is `user:password`. With URL_PATH `path_pattern` has `{}` where the token stands,
/// and `path_replacement` (the same, if None) where the secret goes. With `endpoint_rules` only these methods (`*`:
/// any) and paths below `upstream` are let through; `*` stays within a segment, `**` does not. Nothing is checked
/// before `start_proxy`.
#[pyclass(frozen, from_py_object, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct RouteConfig {
    inner: engine::RouteConfig,
}

#[pymethods]
impl RouteConfig {
    #[new]
    #[pyo3(signature = (
        prefix, upstream, credential_key=None, inject_mode=InjectMode::Header, inject_header="Authorization".to_owned(),
        credential_format=None, path_pattern=None, path_replacement=None, query_param_name=None, env_var=None,
        endpoint_rules=Vec::new(), tls_ca=None, tls_client_cert=None, tls_client_key=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "these are the arguments")]
    fn new(
        prefix: String,
        upstream: String,
        credential_key: Option<String>,
        inject_mode: InjectMode,
        inject_header: String,
        credential_format: Option<String>,
        path_pattern: Option<String>,
        path_replacement: Option<String>,
        query_param_name: Option<String>,
        env_var: Option<String>,
        #[pyo3(from_py_with = many)] endpoint_rules: Vec<(String, String)>,
        tls_ca: Option<PathArg>,
        tls_client_cert: Option<PathArg>,
        tls_client_key: Option<PathArg>,
    ) -> RouteConfig {
        let inject_mode = inject_mode.into();
        let path = |path: Option<PathArg>| path.map(|path| path.0);
        let inner = engine::RouteConfig {
            prefix,
            upstream,
            credential_key,
            inject_mode,
            inject_header,
            credential_format,
            path_pattern,
            path_replacement,
            query_param_name,
            env_var,
            endpoint_rules,
            tls_ca: path(tls_ca),
            tls_client_cert: path(tls_client_cert),
            tls_client_key: path(tls_client_key),
        };
        RouteConfig { inner }
    }

    /// The first part of the path that leads here.
    #[getter]
    fn prefix(&self) -> &str {
        &self.inner.prefix
    }

    /// The URL that requests go to.
    #[getter]
    fn upstream(&self) -> &str {
        &self.inner.upstream
    }

    /// The source of the secret, not the secret.
    #[getter]
    fn credential_key(&self) -> Option<&str> {
        self.inner.credential_key.as_deref()
    }

    /// The part of a request that carries the secret.
    #[getter]
    fn inject_mode(&self) -> InjectMode {
        self.inner.inject_mode.into()
    }

    /// The header that carries the secret, with HEADER.
    #[getter]
    fn inject_header(&self) -> &str {
        &self.inner.inject_header
    }

    /// The format of the secret; `{}` is the secret.
    #[getter]
    fn credential_format(&self) -> Option<&str> {
        self.inner.credential_format.as_deref()
    }

    /// With URL_PATH: the path pattern with `{}` for the token.
    #[getter]
    fn path_pattern(&self) -> Option<&str> {
        self.inner.path_pattern.as_deref()
    }

    /// With URL_PATH: the path replacement with `{}` for the secret.
    #[getter]
    fn path_replacement(&self) -> Option<&str> {
        self.inner.path_replacement.as_deref()
    }

    /// With QUERY_PARAM: the name of the parameter.
    #[getter]
    fn query_param_name(&self) -> Option<&str> {
        self.inner.query_param_name.as_deref()
    }

    /// The variable in which programs look for the key.
    #[getter]
    fn env_var(&self) -> Option<&str> {
        self.inner.env_var.as_deref()
    }

    /// Methods and globs of paths.
    #[getter]
    fn endpoint_rules(&self) -> Vec<(String, String)> {
        self.inner.endpoint_rules.clone()
    }

    /// A PEM file of authorities to trust for the upstream, beside the system's.
    #[getter]
    fn tls_ca<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        self.inner.tls_ca.as_deref().map(|path| paths::to_python(py, path))
    }

    /// A PEM file with the client certificate for the upstream.
    #[getter]
    fn tls_client_cert<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        self.inner.tls_client_cert.as_deref().map(|path| paths::to_python(py, path))
    }

    /// A PEM file with its key.
    #[getter]
    fn tls_client_key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        self.inner.tls_client_key.as_deref().map(|path| paths::to_python(py, path))
    }

    /// All values as a plain dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("prefix", self.prefix())?;
        dict.set_item("upstream", self.upstream())?;
        dict.set_item("credential_key", self.credential_key())?;
        dict.set_item("inject_mode", self.inner.inject_mode.word())?;
        dict.set_item("inject_header", self.inject_header())?;
        dict.set_item("credential_format", self.credential_format())?;
        dict.set_item("path_pattern", self.path_pattern())?;
        dict.set_item("path_replacement", self.path_replacement())?;
        dict.set_item("query_param_name", self.query_param_name())?;
        dict.set_item("env_var", self.env_var())?;
        let rules: Vec<[&String; 2]> =
            self.inner.endpoint_rules.iter().map(|(method, path)| [method, path]).collect();
        dict.set_item("endpoint_rules", rules)?;
        dict.set_item("tls_ca", self.tls_ca(py))?;
        dict.set_item("tls_client_cert", self.tls_client_cert(py))?;
        dict.set_item("tls_client_key", self.tls_client_key(py))?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!("RouteConfig(prefix='{}', upstream='{}')", self.inner.prefix, self.inner.upstream)
    }
}

/// An upstream proxy: `host:port`, or `http://user:password@host:port`.
///
/// `bypass_hosts` (`host`, `*.host`, each perhaps with `:port`) are reached directly, as is this machine. Raises
/// ValueError for anything else.
#[pyclass(frozen, from_py_object, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct ExternalProxyConfig {
    inner: UpstreamProxy,
    address: String,
    bypass_hosts: Vec<String>,
}

#[pymethods]
impl ExternalProxyConfig {
    #[new]
    #[pyo3(signature = (address, bypass_hosts=Vec::new()))]
    fn new(
        address: String,
        #[pyo3(from_py_with = many)] bypass_hosts: Vec<String>,
    ) -> PyResult<ExternalProxyConfig> {
        let inner = engine::ProxyConfig::external(&address, &bypass_hosts);
        let inner = inner.map_err(|error| config_error(&error))?;
        Ok(ExternalProxyConfig { inner, address, bypass_hosts })
    }

    /// The address as it was given.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// The hosts that are reached directly.
    #[getter]
    fn bypass_hosts(&self) -> Vec<String> {
        self.bypass_hosts.clone()
    }

    /// All values as a plain dict, without a password.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("address", self.shown())?;
        dict.set_item("bypass_hosts", self.bypass_hosts())?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!("ExternalProxyConfig(address='{}')", self.shown())
    }
}

impl ExternalProxyConfig {
    /// Address without the user's name and password.
    fn shown(&self) -> String {
        match self.inner.authorization {
            Some(_) => format!("***@{}:{}", self.inner.host, self.inner.port),
            None => self.address.clone(),
        }
    }
}

/// Certificates in PEM: text or bytes, one or several.
#[derive(FromPyObject)]
enum Pems {
    Text(String),
    Bytes(Vec<u8>),
    Texts(Many<String>),
    Many(Many<Vec<u8>>),
}

impl Pems {
    fn text(self) -> Option<String> {
        match self {
            Pems::Text(text) => Some(text),
            Pems::Bytes(bytes) => String::from_utf8(bytes).ok(),
            Pems::Texts(texts) => Some(texts.join("\n")),
            Pems::Many(many) => String::from_utf8(many.join(&b'\n')).ok(),
        }
    }
}

/// A proxy that lets programs reach only these hosts: `host`, `*.host` (what is below it), addresses, each perhaps with
/// `:port`; and the upstreams of its routes.
///
/// With `allow_all_hosts` every host is open, this machine and its neighbours too. Link-local addresses and those where
/// a cloud hands out credentials are always closed; otherwise a name that leads to a private address is closed unless
/// the address itself is listed. `bind_addr` is loopback by default: on another address any host that reaches it can
/// try the token. With `intercept_ca_dir` tunnels to the routes' upstreams are looked into, so that keys and rules work
/// there too: a bundle of certificates is written into that folder, and `env_vars()` points to it; without it such
/// tunnels are refused, and programs go by the routes' prefixes. `intercept_parent_ca_pems` (PEM, str or bytes) is
/// believed in place of the system's authorities. Raises ValueError for what cannot be meant.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct ProxyConfig {
    pub(super) inner: engine::ProxyConfig,
    allowed_hosts: Vec<String>,
    routes: Vec<RouteConfig>,
    external_proxy: Option<ExternalProxyConfig>,
    bind_addr: String,
}

#[pymethods]
impl ProxyConfig {
    #[new]
    #[pyo3(signature = (
        allowed_hosts=None, routes=Vec::new(), external_proxy=None, bind_addr="127.0.0.1".to_owned(), bind_port=0,
        max_connections=256, intercept_ca_dir=None, intercept_parent_ca_pems=None, allow_all_hosts=false
    ))]
    #[allow(clippy::too_many_arguments, reason = "these are the arguments")]
    fn new(
        #[pyo3(from_py_with = some_many)] allowed_hosts: Option<Vec<String>>,
        #[pyo3(from_py_with = many)] routes: Vec<RouteConfig>,
        external_proxy: Option<ExternalProxyConfig>,
        bind_addr: String,
        bind_port: u16,
        max_connections: usize,
        intercept_ca_dir: Option<PathArg>,
        intercept_parent_ca_pems: Option<Pems>,
        allow_all_hosts: bool,
    ) -> PyResult<ProxyConfig> {
        let allowed_hosts = allowed_hosts.unwrap_or_default();
        let wrong = |error| config_error(&error);
        let mut inner =
            engine::ProxyConfig::new(&allowed_hosts, allow_all_hosts, &bind_addr, max_connections)
                .map_err(wrong)?;
        inner.bind_port = bind_port;
        inner.routes = routes.iter().map(|route| route.inner.clone()).collect();
        inner.external_proxy = external_proxy.as_ref().map(|proxy| proxy.inner.clone());
        inner.intercept_ca_dir = intercept_ca_dir.map(|path| path.0);
        inner.intercept_parent_ca_pems = match intercept_parent_ca_pems.map(Pems::text) {
            Some(None) => return Err(wrong(engine::ProxyConfigError::Pems)),
            text => text.flatten(),
        };
        Ok(ProxyConfig { inner, allowed_hosts, routes, external_proxy, bind_addr })
    }

    /// The address it listens on.
    #[getter]
    fn bind_addr(&self) -> &str {
        &self.bind_addr
    }

    /// 0: any port that is free.
    #[getter]
    fn bind_port(&self) -> u16 {
        self.inner.bind_port
    }

    /// The allowed hosts as given, without those of the routes.
    #[getter]
    fn allowed_hosts(&self) -> Vec<String> {
        self.allowed_hosts.clone()
    }

    /// Whether every host is open.
    #[getter]
    fn allow_all_hosts(&self) -> bool {
        self.inner.allow_all_hosts
    }

    /// The services behind it.
    #[getter]
    fn routes(&self) -> Vec<RouteConfig> {
        self.routes.clone()
    }

    /// The maximum number of concurrent connections.
    #[getter]
    fn max_connections(&self) -> usize {
        self.inner.max_connections
    }

    /// All values as a plain dict, without the certificates.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("allowed_hosts", self.allowed_hosts())?;
        let routes: PyResult<Vec<_>> = self.routes.iter().map(|route| route.to_dict(py)).collect();
        dict.set_item("routes", routes?)?;
        let external = self.external_proxy.as_ref().map(|proxy| proxy.to_dict(py)).transpose()?;
        dict.set_item("external_proxy", external)?;
        dict.set_item("bind_addr", self.bind_addr())?;
        dict.set_item("bind_port", self.bind_port())?;
        dict.set_item("max_connections", self.max_connections())?;
        let folder = self.inner.intercept_ca_dir.as_deref().map(|path| paths::to_python(py, path));
        dict.set_item("intercept_ca_dir", folder)?;
        dict.set_item("allow_all_hosts", self.allow_all_hosts())?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!(
            "ProxyConfig(hosts={}, routes={}, bind={}:{})",
            self.allowed_hosts.len(),
            self.routes.len(),
            self.bind_addr,
            self.inner.bind_port
        )
    }
}
