//! Network events in the format of a session's record.

use nono_proxy::{Category, Mode, Phase, ProxyEvent};
use serde::Serialize;

use super::{Injection, PlacedRoute};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Deny,
}

/// One request or tunnel, at the time of the decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkEvent {
    pub timestamp_unix_ms: u64,
    pub mode: &'static str,
    pub decision: Decision,
    pub target: String,
    pub port: Option<u16>,
    pub method: Option<String>,
    pub path: Option<String>,
    pub status: Option<u16>,
    pub reason: Option<String>,
    pub route_id: Option<String>,
    pub auth_mechanism: Option<&'static str>,
    pub auth_outcome: Option<&'static str>,
    pub managed_credential_active: Option<bool>,
    pub injection_mode: Option<&'static str>,
    pub denial_category: Option<&'static str>,
}

impl NetworkEvent {
    /// Convert an event; None for the end of one that was reported when it was opened.
    pub(super) fn of(event: &ProxyEvent, routes: &[PlacedRoute], external: bool) -> Option<NetworkEvent> {
        if event.phase == Some(Phase::Ended) && event.category.is_none() {
            return None;
        }
        let named = event.route.as_ref().or(event.credential.as_ref());
        let route = named.and_then(|name| routes.iter().find(|route| route.prefix == *name));
        let refused = !event.allowed
            || event.category.is_some() && matches!(event.status, Some(502..=504))
            || event.category == Some(Category::InterceptHandshakeFailed);
        let (mechanism, outcome) = authentication(event, route);
        Some(NetworkEvent {
            timestamp_unix_ms: event.time_ms,
            mode: mode(event, external),
            decision: if refused { Decision::Deny } else { Decision::Allow },
            target: event.host.clone(),
            port: (event.port != 0).then_some(event.port),
            method: event.method.clone(),
            path: event.path.clone(),
            status: event.status,
            reason: event.reason.clone(),
            route_id: named.cloned(),
            auth_mechanism: mechanism,
            auth_outcome: outcome,
            managed_credential_active: route.map(|_| event.credential.is_some()),
            injection_mode: route.filter(|_| event.credential.is_some()).map(|route| route.injection.word()),
            denial_category: event.category.filter(|_| refused).and_then(category),
        })
    }
}

/// Mode of an event. A plain request is reported like one to a route: the proxy makes both itself.
fn mode(event: &ProxyEvent, external: bool) -> &'static str {
    match event.mode {
        Mode::Connect if external => "external",
        Mode::Connect => "connect",
        Mode::ConnectIntercept => "connect_intercept",
        Mode::Forward | Mode::Reverse => "reverse",
    }
}

/// Authentication that the client presented. For a refused host it is not checked.
fn authentication(
    event: &ProxyEvent,
    route: Option<&PlacedRoute>,
) -> (Option<&'static str>, Option<&'static str>) {
    let mechanism = match route {
        Some(route) if route.managed => match route.injection {
            Injection::Header | Injection::BasicAuth => "phantom_header",
            Injection::UrlPath => "phantom_path",
            Injection::QueryParam => "phantom_query",
        },
        _ => "proxy_authorization",
    };
    match event.category {
        Some(Category::AuthenticationFailed) => (Some(mechanism), Some("failed")),
        _ if event.allowed => (Some(mechanism), Some("succeeded")),
        _ => (None, None),
    }
}

fn category(category: Category) -> Option<&'static str> {
    Some(match category {
        Category::AuthenticationFailed => "authentication_failed",
        Category::HostDenied | Category::AddressDenied | Category::SniMismatch => "host_denied",
        Category::EndpointPolicy => "endpoint_policy",
        Category::ConnectBypassesRoute => "connect_bypasses_l7",
        Category::CredentialUnavailable => "managed_credential_unavailable",
        Category::InterceptHandshakeFailed => "intercept_handshake_failed",
        Category::UpstreamProxyRejected => "external_proxy_rejected",
        Category::ResolveFailed
        | Category::UpstreamConnectFailed
        | Category::UpstreamFailed
        | Category::Timeout => "upstream_connect_failed",
        // The record has no value for it.
        Category::MalformedRequest | Category::TooManyConnections => return None,
    })
}
