//! Conversion of a configuration to the engine's.

use std::path::Path;

use nono_policy::host_rule::{Host, HostRule, Hosts};
use nono_proxy::{ClientTls, Config, Endpoint, HostOverrides, Inject, Limits, Route, RouteKey, Secret};

use super::secret::{self, Surroundings};
use super::{EndpointRule, Injection, PlacedRoute, ProxyConfig, ProxyError, RouteConfig};
use crate::helper::Bundle;
use nono_policy::glob;

/// Maximum size of a file of certificates or keys.
const MAX_PEM: u64 = 16 << 20;

pub(super) fn engine(
    config: &ProxyConfig,
    token: &Secret,
    around: &Surroundings,
) -> Result<(Config, Vec<PlacedRoute>), ProxyError> {
    let mut engine = Config {
        allowed: config.allowed.clone(),
        reach: HostOverrides { all: config.allow_all_hosts, metadata: false },
        token: Some(token.clone()),
        upstream: config.external_proxy.clone(),
        limits: Limits { connections: config.max_connections, ..Limits::default() },
        intercept: config.intercept_ca_dir.is_some(),
        short_secrets: true,
        remedy: "put \"{}\" into allowed_hosts".to_owned(),
        ..Config::default()
    };
    let mut placed = Vec::new();
    for route in &config.routes {
        let prefix = route.prefix.trim_matches('/').to_owned();
        let (key, inject) = key(route, around)?;
        let loaded = matches!(key, RouteKey::Secret(_));
        placed.push(PlacedRoute {
            injection: route.inject_mode,
            managed: route.credential_key.is_some(),
            variable: variable(route).filter(|_| loaded),
            prefix: prefix.clone(),
        });
        match Upstream::read(&route.upstream) {
            Ok(upstream) => {
                engine.allowed.push(upstream.rule());
                engine.routes.push(Route {
                    name: prefix.clone(),
                    https: upstream.https,
                    host: upstream.host.to_string(),
                    port: upstream.port,
                    base: upstream.base,
                    inject,
                    secret: key,
                    placeholder: token.reveal().to_owned(),
                    endpoints: endpoints(route, &prefix)?,
                    tls: client_tls(route, &prefix)?,
                    prefix,
                });
            }
            Err(why) => engine.broken.push((prefix, format!("its upstream {why}"))),
        }
    }
    if engine.routes.iter().any(|route| route.https) {
        engine.certificates = certificates(config, &engine.routes)?;
    }
    Ok((engine, placed))
}

/// Certificate authorities that servers are checked against. Routes that bring their own need no others.
fn certificates(config: &ProxyConfig, routes: &[Route]) -> Result<String, ProxyError> {
    if let Some(pems) = &config.intercept_parent_ca_pems {
        return Ok(pems.clone());
    }
    let needed = routes.iter().any(|route| route.https && route.tls.authorities.is_empty());
    match Bundle::read(None) {
        Ok(bundle) => Ok(bundle.text()?),
        Err(_) if !needed => Ok(String::new()),
        Err(error) => Err(error.into()),
    }
}

/// Variable from which programs read the key. A URI is not a variable name.
fn variable(route: &RouteConfig) -> Option<String> {
    let key = route.credential_key.as_ref()?;
    let capitals = || (!secret::is_uri(key)).then(|| key.to_uppercase());
    route.env_var.clone().or_else(capitals)
}

/// The secret, and its place in a request.
fn key(route: &RouteConfig, around: &Surroundings) -> Result<(RouteKey, Inject), ProxyError> {
    let inject = |user: &str| inject(route, user);
    let Some(key) = &route.credential_key else { return Ok((RouteKey::None, inject("")?)) };
    match secret::fetch(key, around) {
        Err(why) => Ok((RouteKey::Missing(why.to_string()), inject("")?)),
        Ok(text) if route.inject_mode == Injection::BasicAuth => match text.split_once(':') {
            Some((user, password)) if !password.is_empty() => {
                Ok((Secret::new(password).into(), inject(user)?))
            }
            _ => Ok((RouteKey::Missing("it is not user:password".to_owned()), inject("")?)),
        },
        Ok(text) => Ok((Secret::new(text).into(), inject("")?)),
    }
}

fn inject(route: &RouteConfig, user: &str) -> Result<Inject, ProxyError> {
    let missing = |why| ProxyError::Route { prefix: route.prefix.clone(), why };
    // Without a key the place does not matter.
    let without = route.credential_key.is_none();
    Ok(match route.inject_mode {
        Injection::Header => Inject::Header {
            name: route.inject_header.clone(),
            format: route.credential_format.clone().unwrap_or_else(|| {
                let bearer = route.inject_header.eq_ignore_ascii_case("authorization");
                if bearer { "Bearer {}" } else { "{}" }.to_owned()
            }),
        },
        Injection::BasicAuth => Inject::Basic { user: user.to_owned() },
        Injection::QueryParam => match &route.query_param_name {
            Some(name) => Inject::Query { name: name.clone() },
            None if without => Inject::Query { name: "key".to_owned() },
            None => return Err(missing("query_param needs a query_param_name")),
        },
        Injection::UrlPath => match (&route.path_pattern, &route.path_replacement) {
            (Some(pattern), replacement) => Inject::Path {
                pattern: pattern.clone(),
                replacement: replacement.as_ref().unwrap_or(pattern).clone(),
            },
            (None, _) if without => Inject::Path { pattern: "/{}".to_owned(), replacement: "/{}".to_owned() },
            (None, _) => return Err(missing("url_path needs a path_pattern")),
        },
    })
}

fn endpoints(route: &RouteConfig, prefix: &str) -> Result<Vec<Endpoint>, ProxyError> {
    let mut endpoints = Vec::new();
    for EndpointRule { method, path } in &route.endpoint_rules {
        let wrong = |source| ProxyError::Endpoint { prefix: prefix.to_owned(), source };
        let bad = |why| wrong(nono_proxy::EndpointError { pattern: path.clone(), why });
        for pattern in glob::expand(path.as_bytes()).map_err(bad)? {
            let pattern = String::from_utf8(pattern).map_err(|_| bad("it is not text"))?;
            endpoints.push(Endpoint::new(method, &pattern).map_err(wrong)?);
        }
    }
    Ok(endpoints)
}

fn client_tls(route: &RouteConfig, prefix: &str) -> Result<ClientTls, ProxyError> {
    let identity = match (&route.tls_client_cert, &route.tls_client_key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((pem(certificate)?, Secret::new(pem(key)?))),
        _ => {
            let why = "set both tls_client_cert and tls_client_key, or neither";
            return Err(ProxyError::Route { prefix: prefix.to_owned(), why });
        }
    };
    let authorities = route.tls_ca.as_deref().map(pem).transpose()?.unwrap_or_default();
    Ok(ClientTls { authorities, identity })
}

fn pem(path: &Path) -> Result<String, ProxyError> {
    use std::io::Read;
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_PEM).read_to_string(&mut text))
        .map_err(|source| ProxyError::File { path: path.to_owned(), source })?;
    Ok(text)
}

/// Parts of `http://host:port/base`.
struct Upstream {
    https: bool,
    host: Host,
    port: u16,
    base: String,
}

impl Upstream {
    fn read(text: &str) -> Result<Upstream, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or("is not a URL")?;
        let https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err("is neither http:// nor https://"),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, base) = rest.split_at(end);
        if authority.contains('@') {
            return Err("has a user name in it; use a credential_key");
        }
        if base.contains(['?', '#']) {
            return Err("has a query or a fragment");
        }
        let rule: HostRule = authority.parse().map_err(|_| "has no host that could be reached")?;
        let Hosts::One(host) = rule.hosts else { return Err("means more than one host") };
        let port = rule.port.unwrap_or(if https { 443 } else { 80 });
        Ok(Upstream { https, host, port, base: base.trim_end_matches('/').to_owned() })
    }

    fn rule(&self) -> HostRule {
        HostRule { hosts: Hosts::One(self.host.clone()), port: Some(self.port) }
    }
}
