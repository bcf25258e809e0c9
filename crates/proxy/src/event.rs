//! Events that a proxy reports.

use std::pin::Pin;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A tunnel.
    #[default]
    Connect,
    /// An intercepted tunnel, into whose requests a credential is inserted.
    ConnectIntercept,
    /// A plain request.
    Forward,
    /// A request to a route by its prefix.
    Reverse,
}

/// Category of a refusal or failure, as a fixed word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    AuthenticationFailed,
    HostDenied,
    /// The name is open, but the address it resolves to is closed.
    AddressDenied,
    /// The name in the TLS ClientHello is not the one the tunnel was opened for.
    SniMismatch,
    MalformedRequest,
    TooManyConnections,
    Timeout,
    ResolveFailed,
    UpstreamConnectFailed,
    UpstreamProxyRejected,
    UpstreamFailed,
    InterceptHandshakeFailed,
    CredentialUnavailable,
    /// A route's rules do not permit the request.
    EndpointPolicy,
    /// A tunnel would bypass a route.
    ConnectBypassesRoute,
}

/// Phase of a tunnel that an event reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The tunnel was opened; its byte counts come with its end.
    Opened,
    /// The tunnel ended; its opening was reported before.
    Ended,
}

/// Event for a request that ended or was refused, or for the opening or end of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyEvent {
    pub time_ms: u64,
    pub mode: Mode,
    pub allowed: bool,
    pub host: String,
    pub port: u16,
    pub method: Option<String>,
    /// Path without the query.
    pub path: Option<String>,
    pub status: Option<u16>,
    pub reason: Option<String>,
    pub category: Option<Category>,
    pub address: Option<String>,
    /// Route whose credential was inserted.
    pub credential: Option<String>,
    /// Route whose prefix was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub duration_ms: u64,
    /// `None` for what is reported once.
    pub phase: Option<Phase>,
    /// Number of equal events combined in this one, with the sum of their bytes.
    pub count: u64,
}

/// Future that is ready when the receiver has room for events.
pub type EventCapacity<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Receiver of a proxy's events.
pub trait Events: Send + Sync + 'static {
    /// Receives one event. Called on the runtime's threads, so it must not block.
    fn event(&self, event: ProxyEvent);

    /// Waits for room. No request is started before there is room to report it; each reports at most two events.
    fn room(&self) -> EventCapacity<'_> {
        Box::pin(std::future::ready(()))
    }
}

/// A function always has room.
impl<F: Fn(ProxyEvent) + Send + Sync + 'static> Events for F {
    fn event(&self, event: ProxyEvent) {
        self(event);
    }
}
