//! What a proxy tells of what it did.

use std::pin::Pin;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A tunnel.
    Connect,
    /// A tunnel whose requests are seen, because a credential goes in.
    ConnectIntercept,
    /// A plain request.
    Forward,
    /// A request to a route by its prefix.
    Reverse,
}

/// A fixed word for why something was refused or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    AuthenticationFailed,
    HostDenied,
    /// The name is open, but where it leads is not.
    AddressDenied,
    /// The name in the TLS greeting is not the one that was asked for.
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
    /// A tunnel would lead around a route.
    ConnectBypassesRoute,
}

/// Which end of something that lasts an event tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It begins: what it moves is told at its end.
    Opened,
    /// It was told before that it was opened.
    Ended,
}

/// One request, when it is over or was refused; or one of the two ends of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub time_ms: u64,
    pub mode: Mode,
    pub allowed: bool,
    pub host: String,
    pub port: u16,
    pub method: Option<String>,
    /// Without the query.
    pub path: Option<String>,
    pub status: Option<u16>,
    pub reason: Option<String>,
    pub category: Option<Category>,
    pub address: Option<String>,
    /// The route whose credential went in.
    pub credential: Option<String>,
    /// The route whose prefix was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub duration_ms: u64,
    /// None: it is told once.
    pub phase: Option<Phase>,
    /// That many of a kind, with their bytes together.
    pub count: u64,
}

/// When there is room.
pub type Room<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Whoever hears of everything that a proxy does.
pub trait Events: Send + Sync + 'static {
    /// Called on the runtime's threads: it must not block.
    fn event(&self, event: Event);

    /// No request is begun before there is room to tell of it. Each that is begun tells of itself at most twice.
    fn room(&self) -> Room<'_> {
        Box::pin(std::future::ready(()))
    }
}

/// There is always room.
impl<F: Fn(Event) + Send + Sync + 'static> Events for F {
    fn event(&self, event: Event) {
        self(event);
    }
}
