//! Emulation of `connect` and `listen` on behalf of the command.
//!
//! The kernel never continues such a call: its address is in the command's memory and its descriptor in the command's
//! table, and both may have changed by the time the kernel reads them. The supervisor connects the socket it has taken
//! to the address it has copied; a path is reached through the object that was pinned when it was judged.
//!
//! A server sees the supervisor as the peer (`SO_PEERCRED`). That cannot be avoided, and is why this is done only for
//! granted sockets and the sandbox's own.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nono_policy::DeniedReason;
use nono_policy::resolved::NetworkPolicy;
use nono_sys::other_process;

use super::context::{CallContext, CallResponse, Handled, TrappedCall, errno_of};
use super::unix_sockets::{SocketOwner, identify};
use crate::recorded::Reached;
use crate::report::{DeniedAttempt, Port, RefusalReason};

/// Longest address the kernel takes.
const ADDRESS_MAX: usize = size_of::<libc::sockaddr_storage>();
/// Length of the family field before the name in a unix address.
const FAMILY: usize = size_of::<libc::sa_family_t>();
/// Value of `AF_UNIX` in an address.
const UNIX: libc::sa_family_t = 1;

pub(crate) fn connect(scene: &Arc<CallContext>, call: TrappedCall<'_>) -> Result<Handled, i32> {
    let socket = call.descriptor(call.int(0))?;
    let domain = other_process::domain(socket.as_fd())?;
    let length = usize::try_from(call.int(2)).ok().filter(|length| *length <= ADDRESS_MAX);
    let address = call.bytes(call.word(1), length.ok_or(libc::EINVAL)?)?;
    let family = family(&address).ok_or(libc::EINVAL)?;
    match domain {
        libc::AF_UNIX if family == libc::AF_UNIX => connect_unix(scene, call, socket, address),
        libc::AF_UNIX => Err(libc::EINVAL),
        libc::AF_INET | libc::AF_INET6 => {
            if family == libc::AF_UNSPEC || may_reach(scene, &address) {
                return Ok(later(move || other_process::connect(socket.as_fd(), &address)));
            }
            Ok(refused(not_connected(scene, &address)))
        }
        // To the kernel itself, which is where such a socket sends in any case.
        libc::AF_NETLINK
            if family == libc::AF_NETLINK && address.iter().skip(FAMILY).all(|byte| *byte == 0) =>
        {
            Ok(Handled::Now(other_process::connect(socket.as_fd(), &address).into()))
        }
        _ => {
            let what = format!("connect to an address of family {family}");
            Ok(refused(DeniedAttempt::Network { what, port: None }))
        }
    }
}

fn family(address: &[u8]) -> Option<i32> {
    Some(u16::from_ne_bytes(address.get(..FAMILY)?.try_into().ok()?).into())
}

fn later(connect: impl FnOnce() -> Result<(), i32> + Send + 'static) -> Handled {
    Handled::Later(Box::new(move || connect().into()))
}

fn refused(attempt: DeniedAttempt) -> Handled {
    Handled::Refused(attempt, RefusalReason::Policy { reason: DeniedReason::NotGranted })
}

/// Whether the policy allows an internet address. A port is open only on this machine's loopback; the filtering proxy
/// is one address with one port.
fn may_reach(scene: &CallContext, address: &[u8]) -> bool {
    let at = internet(address);
    let loopback = |ports: &[u16]| at.is_some_and(|at| is_loopback(at) && ports.contains(&at.port()));
    match &scene.policy.network {
        NetworkPolicy::Allowed => true,
        NetworkPolicy::Blocked => scene.own_network,
        NetworkPolicy::Filtered { .. } if scene.own_network => at.is_some_and(is_inside),
        NetworkPolicy::Ports { connect, .. } => loopback(connect),
        NetworkPolicy::Filtered { connect, .. } => {
            loopback(connect) || at.is_some_and(|at| is_same(at, scene.proxy()))
        }
    }
}

const DNS: u16 = 53;

/// Whether an address is inside a network of the command's own. The kernel reaches only loopback there anyway; other
/// addresses are refused here so that they are reported. DNS cannot be served inside either: a port this low cannot be
/// bound. Port 0 is not a connection but a library's query about routes.
fn is_inside(at: SocketAddr) -> bool {
    (is_loopback(at) || at.ip().is_unspecified()) && at.port() != DNS || at.port() == 0
}

fn is_loopback(at: SocketAddr) -> bool {
    at.ip().to_canonical().is_loopback()
}

fn is_same(at: SocketAddr, proxy: Option<SocketAddrV4>) -> bool {
    proxy.is_some_and(|proxy| at.ip().to_canonical() == *proxy.ip() && at.port() == proxy.port())
}

fn internet(address: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(address.get(2..4)?.try_into().ok()?);
    let ip = match family(address)? {
        libc::AF_INET => Ipv4Addr::from(<[u8; 4]>::try_from(address.get(4..8)?).ok()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(<[u8; 16]>::try_from(address.get(8..24)?).ok()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

fn not_connected(scene: &CallContext, address: &[u8]) -> DeniedAttempt {
    let Some(at) = internet(address) else {
        return DeniedAttempt::Network { what: "connect to an unknown address".to_owned(), port: None };
    };
    let filtered = matches!(scene.policy.network, NetworkPolicy::Filtered { .. });
    let port = if is_loopback(at) && !scene.own_network {
        Some(Port::Connect(at.port()))
    } else {
        filtered.then_some(Port::Direct(at))
    };
    DeniedAttempt::Network { what: format!("connect to {at}"), port }
}

/// Internet address that a connecting call names. Only for reports: it may have changed when the call is carried out.
pub(crate) fn reached(call: TrappedCall<'_>) -> Option<Reached> {
    let at = internet(&named_address(call)?)?;
    let (address, port, loopback) = (at.to_string(), at.port(), is_loopback(at));
    (port != 0).then_some(Reached { address, port, loopback })
}

/// Address that a binding call names.
pub(crate) enum Bound {
    Port(u16),
    Path(PathBuf),
}

/// Address that a binding call names; as [`reached`], only for reports.
pub(crate) fn bound(call: TrappedCall<'_>) -> Option<Bound> {
    let address = named_address(call)?;
    if family(&address)? != libc::AF_UNIX {
        return internet(&address).map(|at| Bound::Port(at.port()));
    }
    let name = address[FAMILY..].split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
    Some(Bound::Path(PathBuf::from(OsStr::from_bytes(name))))
}

fn named_address(call: TrappedCall<'_>) -> Option<Vec<u8>> {
    let length = usize::try_from(call.int(2)).ok().filter(|length| *length <= ADDRESS_MAX)?;
    call.bytes(call.word(1), length).ok()
}

fn connect_unix(
    scene: &Arc<CallContext>,
    call: TrappedCall<'_>,
    socket: OwnedFd,
    address: Vec<u8>,
) -> Result<Handled, i32> {
    let name = &address[FAMILY..];
    if name.is_empty() || address.len() > size_of::<libc::sockaddr_un>() {
        return Err(libc::EINVAL);
    }
    if name[0] == 0 {
        return connect_abstract(scene, socket, address);
    }
    let path = Path::new(OsStr::from_bytes(name.split(|byte| *byte == 0).next().unwrap_or_default()));
    connect_path(scene, call, socket, &call.absolute(libc::AT_FDCWD, path)?)
}

fn connect_path(
    scene: &Arc<CallContext>,
    call: TrappedCall<'_>,
    socket: OwnedFd,
    path: &Path,
) -> Result<Handled, i32> {
    let pinned = scene.pin(path, true)?;
    let (node, is_socket) = identify(&pinned)?;
    if !is_socket {
        if let Some(path) = masked_socket(path) {
            return Ok(refused(DeniedAttempt::Socket { path }));
        }
        // It never becomes a socket, so there is nothing to reach: the kernel returns the error.
        return Ok(Handled::Now(other_process::connect(socket.as_fd(), &address_of(&pinned)).into()));
    }
    if let Some(request) = scene.request_socket().filter(|request| request.is_at(node.dev, node.ino)) {
        let asker = call.asker();
        return Ok(later(move || request.connect(asker, socket.as_fd()).map_err(|error| errno_of(&error))));
    }
    let whose = scene.whose_file(call.tid(), &pinned, node).unwrap_or(SocketOwner::Others);
    Ok(match whose {
        SocketOwner::Granted | SocketOwner::Own(_) => {
            later(move || other_process::connect(socket.as_fd(), &address_of(&pinned)))
        }
        // Left behind by a server that has ended; programs start another one on this error.
        SocketOwner::Unowned => Handled::from(libc::ECONNREFUSED),
        SocketOwner::Others => refused(DeniedAttempt::Socket { path: path.to_owned() }),
    })
}

/// Path of a socket that is masked from the command. Only for reports: it is refused in any case.
fn masked_socket(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let there = std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.file_type().is_socket());
    (there && nono_sys::process::can_access(&path, false, true)).then_some(path)
}

/// Address that leads to exactly the pinned object, whatever its name leads to by now.
fn address_of(pinned: &OwnedFd) -> Vec<u8> {
    let mut address = UNIX.to_ne_bytes().to_vec();
    address.extend_from_slice(format!("/proc/self/fd/{}\0", pinned.as_raw_fd()).as_bytes());
    address
}

/// Connects to an abstract name, which belongs to the socket's network namespace. In the host's, a name that the
/// sandbox gives up could be taken by another process between the check and the call, so it is checked again before the
/// connection can be used.
fn connect_abstract(scene: &Arc<CallContext>, socket: OwnedFd, address: Vec<u8>) -> Result<Handled, i32> {
    if scene.own_network {
        return Ok(later(move || other_process::connect(socket.as_fd(), &address)));
    }
    let whose = scene.whose_name(&address[FAMILY..]).unwrap_or(SocketOwner::Others);
    let SocketOwner::Own(server) = whose else {
        let errno = if whose == SocketOwner::Unowned { Some(libc::ECONNREFUSED) } else { None };
        let name = String::from_utf8_lossy(&address[FAMILY + 1..]).into_owned();
        let attempt = DeniedAttempt::Socket { path: PathBuf::from(format!("@{name}")) };
        return errno.map_or_else(|| Ok(refused(attempt)), Err);
    };
    let scene = Arc::clone(scene);
    Ok(later(move || {
        other_process::connect(socket.as_fd(), &address)?;
        if scene.whose_name(&address[FAMILY..]).ok() == Some(SocketOwner::Own(server)) {
            return Ok(());
        }
        other_process::hang_up(socket.as_fd());
        Err(libc::EACCES)
    }))
}

/// Emulates `listen`, which is trapped only where ports are granted one by one. A socket that was not bound gets a port
/// of the kernel's choice.
pub(crate) fn listen(scene: &CallContext, call: TrappedCall<'_>) -> Result<Handled, i32> {
    let (NetworkPolicy::Ports { listen, .. } | NetworkPolicy::Filtered { listen, .. }) =
        &scene.policy.network
    else {
        return Err(libc::EACCES);
    };
    let socket = call.descriptor(call.int(0))?;
    let may = |port: Option<u16>| port.is_none_or(|port| listen.contains(&port));
    let port = other_process::local_port(socket.as_fd())?;
    if !may(port) {
        return Ok(refused(not_listened(port)));
    }
    other_process::listen(socket.as_fd(), call.int(1))?;
    // A socket that was connected and is no longer keeps showing a port that it lost, and has just got another one.
    match other_process::local_port(socket.as_fd()) {
        Ok(got) if may(got) => Ok(Handled::Now(CallResponse::Value(0))),
        got => {
            other_process::hang_up(socket.as_fd());
            Ok(refused(not_listened(got.unwrap_or(None))))
        }
    }
}

fn not_listened(port: Option<u16>) -> DeniedAttempt {
    match port.filter(|port| *port != 0) {
        None => {
            DeniedAttempt::Network { what: "listen on a port of the kernel's choice".to_owned(), port: None }
        }
        Some(port) => {
            DeniedAttempt::Network { what: format!("listen on port {port}"), port: Some(Port::Listen(port)) }
        }
    }
}

#[cfg(test)]
mod tests;
