//! Environment variables for programs that use the proxy.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use nono_policy::host_rule::{Host, HostRule, Hosts};
use nono_proxy::Secret;

use super::PlacedRoute;

type Variables = Vec<(String, OsString)>;

pub(super) fn proxy(
    address: SocketAddr,
    token: &Secret,
    allowed: &[HostRule],
    bundle: Option<&Path>,
) -> Variables {
    let proxy = format!("http://nono:{}@{address}", token.reveal());
    let direct = no_proxy(allowed);
    let mut env: Variables = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"]
        .map(|name| (name.to_owned(), OsString::from(&proxy)))
        .into();
    for (name, value) in [
        ("NO_PROXY", direct.as_str()),
        ("no_proxy", &direct),
        ("NONO_PROXY_TOKEN", token.reveal()),
        ("NODE_USE_ENV_PROXY", "1"),
    ] {
        env.push((name.to_owned(), value.into()));
    }
    let trust =
        ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"];
    env.extend(bundle.into_iter().flat_map(|file| trust.map(|name| (name.to_owned(), file.into()))));
    env
}

/// Value of `NO_PROXY`. A host opened by its name is meant to be reached through the proxy.
fn no_proxy(allowed: &[HostRule]) -> String {
    let opened = |name: &str| {
        allowed.iter().any(|rule| match &rule.hosts {
            Hosts::One(Host::Name(host)) | Hosts::Below(host) => host.as_str() == name,
            Hosts::One(Host::Address(address)) => {
                name == "127.0.0.1" && *address == std::net::IpAddr::from(Ipv4Addr::LOCALHOST)
            }
        })
    };
    let direct: Vec<_> = ["localhost", "127.0.0.1"].into_iter().filter(|name| !opened(name)).collect();
    direct.join(",")
}

/// Variables of the routes, sorted by name.
pub(super) fn routes(address: SocketAddr, token: &Secret, routes: &[PlacedRoute]) -> Variables {
    let mut env = BTreeMap::new();
    for route in routes {
        let name = format!("{}_BASE_URL", route.prefix.to_uppercase());
        env.insert(name, OsString::from(format!("http://{address}/{}", route.prefix)));
        if let Some(variable) = &route.variable {
            env.insert(variable.clone(), token.reveal().into());
        }
    }
    env.into_iter().collect()
}
