//! Errors of the proxy, as exceptions.

use nono::helper::CertificatesError;
use nono::proxy::{ProxyConfigError, ProxyError as Error, StartError};
use pyo3::PyErr;

use crate::error::{ProxyError, Raise};

pub(super) fn config_error(error: &ProxyConfigError) -> PyErr {
    let kind = match error {
        ProxyConfigError::Bind(_) => "bind_addr",
        ProxyConfigError::AllowAll => "allow_all_hosts",
        ProxyConfigError::Host(_) => "allowed_hosts",
        ProxyConfigError::Bypass(_) => "bypass_hosts",
        ProxyConfigError::Connections => "max_connections",
        ProxyConfigError::Pems => "intercept_parent_ca_pems",
        ProxyConfigError::External(_) => "external_proxy",
    };
    Raise::new(kind, error).value_error()
}

pub(super) fn proxy_error(error: &Error) -> PyErr {
    let raise = |kind| Raise::new(kind, error);
    match error {
        Error::Random(_) => raise("random").as_a::<ProxyError>(),
        Error::Endpoint { .. } => raise("endpoint_rules").as_a::<ProxyError>(),
        Error::Route { .. } | Error::Start(StartError::Route(_)) => raise("route").as_a::<ProxyError>(),
        Error::File { path, source } | Error::Bundle { path, source } => {
            raise("file").about(path).os_error(source)
        }
        Error::Certificates(CertificatesError::Unusable { path, .. }) => {
            raise("certificates").about(path).as_a::<ProxyError>()
        }
        Error::Certificates(CertificatesError::None) => raise("certificates").as_a::<ProxyError>(),
        Error::Start(StartError::Bind { .. }) => raise("bind").as_a::<ProxyError>(),
        Error::Start(StartError::Thread(_)) => raise("thread").as_a::<ProxyError>(),
    }
}
