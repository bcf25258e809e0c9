//! Configuration of a proxy: `ProxyConfig` and its parts.

use nono::network::UpstreamProxy;
use nono::proxy::{self as engine, EndpointRule, Injection};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::error::config_error;
use crate::error::Raised;
use crate::list_args::{Many, many, some_many};
use crate::paths::{PathArg, PathText};
use crate::plain;

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

/// A service behind the proxy: `http://127.0.0.1:<port>/<prefix>/…` leads to `upstream`.
///
/// `credential_key` says where its secret is: the name of an environment variable (or of an entry of the service `nono`
/// in the keyring), `env://NAME`, `file:///path`, or `keyring://service/account`. A program shows the proxy's token
/// where the secret goes (`inject_mode`), and never sees the secret: answers are searched for it, and it is replaced
/// there. With BASIC_AUTH the secret is `user:password`. With URL_PATH `path_pattern` has `{}` where the token stands,
/// and `path_replacement` (the same, if None) where the secret goes. With `endpoint_rules` only these methods (`*`:
/// any) and paths below `upstream` are let through; `*` stays within a segment, `**` does not. Nothing is checked
/// before `start_proxy`.
#[pyclass(frozen, get_all, from_py_object, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct RouteConfig {
    /// The first part of the path that leads here.
    prefix: String,
    /// The URL that requests go to.
    upstream: String,
    /// The source of the secret, not the secret.
    credential_key: Option<String>,
    /// The part of a request that carries the secret.
    inject_mode: InjectMode,
    /// The header that carries the secret, with HEADER.
    inject_header: String,
    /// The format of the secret; `{}` is the secret.
    credential_format: Option<String>,
    /// With URL_PATH: the path pattern with `{}` for the token.
    path_pattern: Option<String>,
    /// With URL_PATH: the path replacement with `{}` for the secret.
    path_replacement: Option<String>,
    /// With QUERY_PARAM: the name of the parameter.
    query_param_name: Option<String>,
    /// The variable in which programs look for the key.
    env_var: Option<String>,
    /// Methods and globs of paths.
    endpoint_rules: Vec<(String, String)>,
    /// A PEM file of authorities to trust for the upstream, beside the system's.
    tls_ca: Option<PathText>,
    /// A PEM file with the client certificate for the upstream.
    tls_client_cert: Option<PathText>,
    /// A PEM file with its key.
    tls_client_key: Option<PathText>,
}

impl RouteConfig {
    fn engine(&self) -> engine::RouteConfig {
        let path = |path: &Option<PathText>| path.as_ref().map(|path| path.0.clone());
        let rules = self.endpoint_rules.iter().cloned();
        engine::RouteConfig {
            prefix: self.prefix.clone(),
            upstream: self.upstream.clone(),
            credential_key: self.credential_key.clone(),
            inject_mode: self.inject_mode.into(),
            inject_header: self.inject_header.clone(),
            credential_format: self.credential_format.clone(),
            path_pattern: self.path_pattern.clone(),
            path_replacement: self.path_replacement.clone(),
            query_param_name: self.query_param_name.clone(),
            env_var: self.env_var.clone(),
            endpoint_rules: rules.map(|(method, path)| EndpointRule { method, path }).collect(),
            tls_ca: path(&self.tls_ca),
            tls_client_cert: path(&self.tls_client_cert),
            tls_client_key: path(&self.tls_client_key),
        }
    }
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
        let path = |path: Option<PathArg>| path.map(|path| PathText(path.0));
        RouteConfig {
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
        }
    }

    /// All values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let names = "prefix upstream credential_key inject_mode inject_header credential_format path_pattern \
                     path_replacement query_param_name env_var endpoint_rules tls_ca tls_client_cert \
                     tls_client_key";
        plain::attributes(slf, names)
    }

    fn __repr__(&self) -> String {
        format!("RouteConfig(prefix='{}', upstream='{}')", self.prefix, self.upstream)
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
    /// The address as it was given.
    #[pyo3(get)]
    address: String,
    /// The hosts that are reached directly.
    #[pyo3(get)]
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
        let inner = inner.raised(config_error)?;
        Ok(ExternalProxyConfig { inner, address, bypass_hosts })
    }

    /// All values as a plain dict, without a password.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("address", self.shown())?;
        dict.set_item("bypass_hosts", &self.bypass_hosts)?;
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
    /// The allowed hosts as given, without those of the routes.
    #[pyo3(get)]
    allowed_hosts: Vec<String>,
    /// The services behind it.
    #[pyo3(get)]
    routes: Vec<RouteConfig>,
    external_proxy: Option<ExternalProxyConfig>,
    /// The address it listens on.
    #[pyo3(get)]
    bind_addr: String,
    /// 0: any port that is free.
    #[pyo3(get)]
    bind_port: u16,
    /// The maximum number of concurrent connections.
    #[pyo3(get)]
    max_connections: usize,
    /// Whether every host is open.
    #[pyo3(get)]
    allow_all_hosts: bool,
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
        inner.routes = routes.iter().map(RouteConfig::engine).collect();
        inner.external_proxy = external_proxy.as_ref().map(|proxy| proxy.inner.clone());
        inner.intercept_ca_dir = intercept_ca_dir.map(|path| path.0);
        inner.intercept_parent_ca_pems = match intercept_parent_ca_pems.map(Pems::text) {
            Some(None) => return Err(wrong(engine::ProxyConfigError::Pems)),
            text => text.flatten(),
        };
        Ok(ProxyConfig {
            inner,
            allowed_hosts,
            routes,
            external_proxy,
            bind_addr,
            bind_port,
            max_connections,
            allow_all_hosts,
        })
    }

    /// All values as a plain dict, without the certificates.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let names = "allowed_hosts routes bind_addr bind_port max_connections allow_all_hosts";
        let (dict, this) = (plain::attributes(slf, names)?, slf.get());
        let external = this.external_proxy.as_ref().map(|proxy| proxy.to_dict(slf.py())).transpose()?;
        dict.set_item("external_proxy", external)?;
        dict.set_item("intercept_ca_dir", this.inner.intercept_ca_dir.clone().map(PathText))?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!(
            "ProxyConfig(hosts={}, routes={}, bind={}:{})",
            self.allowed_hosts.len(),
            self.routes.len(),
            self.bind_addr,
            self.bind_port
        )
    }
}
