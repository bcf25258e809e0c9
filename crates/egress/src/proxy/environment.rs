//! Environment variables for programs that use the proxy.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use nono_policy::host_rule::HostRule;
use nono_proxy::Secret;

use super::PlacedRoute;
use crate::network::{no_proxy, of_proxy};

type Variables = Vec<(String, OsString)>;

pub(super) fn proxy(
    address: SocketAddr,
    token: &Secret,
    allowed: &[HostRule],
    bundle: Option<&Path>,
) -> Variables {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
    of_proxy(&names, address, token, &no_proxy(&["localhost", "127.0.0.1"], allowed), bundle)
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
