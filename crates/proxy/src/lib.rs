//! Filtering HTTP/1.1 proxy: the only way from the sandbox to the network.
//!
//! It deals with hosts, addresses, bytes and headers; not with sessions, sandboxes or audit logs. A confined helper
//! process runs it (see `nono::network`), or a library starts it in threads of its own.
//!
//! A request passes through `head` (bytes to values), `judge` (allowlist, token), `dial` (resolve, check the `address`,
//! connect) and then `tunnel` or `forward`. Parsers and checks are pure functions. Requests to a host with a
//! `credential` go through `credential::rewrite`, and tunnels to it through `credential::intercept`.

mod access;
pub mod address;
pub mod body;
mod budget;
mod buffered;
mod client;
pub mod client_hello;
pub mod config;
pub mod credential;
mod dial;
pub mod event;
mod first_bytes;
mod forward;
mod handle;
pub mod head;
pub mod name_lookup;
mod other_protocols;
mod pending_event;
mod pump;
mod refusal;
mod requests;
mod serve;
mod shared;
mod target;
pub mod tls;
mod transfer;
mod tunnel;
mod tunnelled_requests;
mod upstream;

pub use config::{
    ClientTls, Config, HostOverrides, Inject, Limits, RequestTarget, Route, RouteKey, Secret, Token, Upstream,
};
pub use credential::endpoint::{Endpoint, EndpointError};
pub use credential::{RouteError, Routes};
pub use event::{Category, EventCapacity, Events, Mode, Phase, ProxyEvent};
pub use handle::{Guard, Handle, StartError};
pub use serve::Proxy;
pub use upstream::UpstreamError;
