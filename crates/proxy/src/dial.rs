//! Connections to servers: resolve the name, check the addresses, dial exactly those.
//!
//! Through an upstream proxy a name is checked against the allowlist only, because the upstream resolves it. Addresses
//! are checked all the same, and loopback targets are never sent to an upstream proxy.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use nono_policy::addresses::{AddressClass, class_of};
use nono_policy::host_rule::Host;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::access::dialled;
use crate::address::{is_localhost, is_metadata_name};
use crate::buffered::Buffered;
use crate::config::{Config, RequestTarget, Upstream};
use crate::event::Category;
use crate::head::parse_response;
use crate::refusal::{Refusal, remedy};
use crate::shared::ListenerShared;

/// Time after which the next address is tried in parallel.
const HEAD_START: Duration = Duration::from_millis(250);
const MAX_ADDRESSES: usize = 8;

/// A connection that leads to the target.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) stream: Buffered<TcpStream>,
    pub(crate) address: SocketAddr,
}

/// Upstream proxy for this target, if any.
pub(crate) fn way<'a>(config: &'a Config, target: &RequestTarget) -> Option<&'a Upstream> {
    let here = match &target.host {
        Host::Address(address) => address.is_loopback(),
        name @ Host::Name(_) => is_localhost(name),
    };
    let direct =
        |upstream: &Upstream| upstream.bypass.iter().any(|rule| rule.matches(&target.host, target.port));
    config.upstream.as_ref().filter(|upstream| !here && !direct(upstream))
}

/// Connects to the target, or to its upstream proxy.
pub(crate) async fn reach(shared: &ListenerShared, target: &RequestTarget) -> Result<Reached, Refusal> {
    let limit = shared.config.limits.connect_time;
    let work = async {
        match way(&shared.config, target) {
            Some(upstream) => {
                check_without_lookup(&shared.config, target)?;
                reach_upstream(shared, upstream).await
            }
            None => connect(&judged(shared, target).await?).await,
        }
    };
    let late = || Refusal::upstream(Category::Timeout, format!("{target} did not answer in time"));
    timeout(limit, work).await.unwrap_or_else(|_| Err(late()))
}

/// Connects for a tunnel, through a tunnel of the upstream proxy if there is one.
pub(crate) async fn reach_tunnel(
    shared: &ListenerShared,
    target: &RequestTarget,
) -> Result<Reached, Refusal> {
    let mut reached = reach(shared, target).await?;
    if let Some(upstream) = way(&shared.config, target) {
        let limit = shared.config.limits.connect_time;
        let asked = timeout(limit, ask_tunnel(shared, upstream, target, &mut reached.stream)).await;
        asked.unwrap_or_else(|_| {
            Err(Refusal::upstream(Category::Timeout, "the upstream proxy did not answer in time"))
        })?;
    }
    Ok(reached)
}

/// Checks a target that an upstream proxy resolves: only the text of the request can be checked.
fn check_without_lookup(config: &Config, target: &RequestTarget) -> Result<(), Refusal> {
    match target.host {
        Host::Address(address) if !dialled(config, target, address) => Err(closed(config, target, address)),
        _ if is_metadata_name(&target.host) => Err(Refusal::host(config, target)),
        _ => Ok(()),
    }
}

/// Addresses of the target that may be dialled.
async fn judged(shared: &ListenerShared, target: &RequestTarget) -> Result<Vec<SocketAddr>, Refusal> {
    let found = match &target.host {
        Host::Address(address) => vec![*address],
        name if is_localhost(name) => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        Host::Name(name) => {
            shared.resolver.resolve(name).await.map_err(|error| unresolved(target, &error))?
        }
    };
    let Some(first) = found.first().copied() else {
        return Err(unresolved(target, &io::ErrorKind::NotFound.into()));
    };
    let mut open = Vec::new();
    for address in found.into_iter().filter(|address| dialled(&shared.config, target, *address)) {
        let address = SocketAddr::new(address, target.port);
        if !open.contains(&address) && open.len() < MAX_ADDRESSES {
            open.push(address);
        }
    }
    if open.is_empty() { Err(closed(&shared.config, target, first)) } else { Ok(open) }
}

fn unresolved(target: &RequestTarget, error: &io::Error) -> Refusal {
    Refusal::upstream(Category::ResolveFailed, format!("cannot resolve {}: {error}", target.host))
}

fn closed(config: &Config, target: &RequestTarget, address: IpAddr) -> Refusal {
    let kind = class_of(address).unwrap_or(AddressClass::Metadata).word();
    let rule = RequestTarget { host: Host::Address(address), port: target.port };
    let advice = format!(
        "{target} resolves to {address}, a {kind} address, which is closed; to open it: {}",
        remedy(config, &rule)
    );
    Refusal { address: Some(address), ..Refusal::upstream(Category::AddressDenied, advice) }
}

/// Connects to the first address that answers.
async fn connect(addresses: &[SocketAddr]) -> Result<Reached, Refusal> {
    let mut waiting = addresses.iter().copied();
    let mut attempts = JoinSet::new();
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    loop {
        if let Some(address) = waiting.next() {
            // One address needs no task of its own.
            if addresses.len() == 1 {
                return dial(address).await.map_err(|error| unreachable(addresses, &error));
            }
            attempts.spawn(dial(address));
        }
        tokio::select! {
            biased;
            done = attempts.join_next() => match done {
                Some(Ok(Ok(reached))) => return Ok(reached),
                Some(Ok(Err(error))) => last = error,
                // An attempt is never aborted, and it cannot panic.
                Some(Err(_)) => {}
                None => return Err(unreachable(addresses, &last)),
            },
            () = sleep(HEAD_START), if waiting.len() > 0 => {}
        }
    }
}

fn unreachable(addresses: &[SocketAddr], error: &io::Error) -> Refusal {
    let shown = addresses.first().map(ToString::to_string).unwrap_or_default();
    Refusal::upstream(Category::UpstreamConnectFailed, format!("cannot connect to {shown}: {error}"))
}

async fn dial(address: SocketAddr) -> io::Result<Reached> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(Reached { stream: Buffered::new(stream), address })
}

/// Connects to the upstream proxy. Its address is not checked: the user configured it.
async fn reach_upstream(shared: &ListenerShared, upstream: &Upstream) -> Result<Reached, Refusal> {
    let host = upstream.host.parse::<Host>().map_err(|error| {
        Refusal::upstream(Category::ResolveFailed, format!("the upstream proxy: {error}"))
    })?;
    let target = RequestTarget { host, port: upstream.port };
    let found = match &target.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => {
            shared.resolver.resolve(name).await.map_err(|error| unresolved(&target, &error))?
        }
    };
    let addresses: Vec<_> =
        found.into_iter().take(MAX_ADDRESSES).map(|ip| SocketAddr::new(ip, target.port)).collect();
    connect(&addresses).await
}

/// Opens a tunnel through the upstream proxy with `CONNECT`.
async fn ask_tunnel(
    shared: &ListenerShared,
    upstream: &Upstream,
    target: &RequestTarget,
    stream: &mut Buffered<TcpStream>,
) -> Result<(), Refusal> {
    let broken = |error: &dyn Error| {
        Refusal::upstream(Category::UpstreamProxyRejected, format!("the upstream proxy: {error}"))
    };
    let mut ask = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some(secret) = &upstream.authorization {
        ask.push_str("Proxy-Authorization: ");
        ask.push_str(secret.reveal());
        ask.push_str("\r\n");
    }
    ask.push_str("\r\n");
    stream.stream.write_all(ask.as_bytes()).await.map_err(|error| broken(&error))?;
    let head = stream.head(&shared.config.limits, parse_response).await.map_err(|error| broken(&error))?;
    if head.status / 100 == 2 { Ok(()) } else { Err(rejected(target, head.status)) }
}

fn rejected(target: &RequestTarget, status: u16) -> Refusal {
    Refusal::upstream(
        Category::UpstreamProxyRejected,
        format!("the upstream proxy answered {status} for {target}"),
    )
}
