use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::path::Path;

use nono_policy::{CapabilitySource, FsCapability};

use super::super::testing::{CallOutcome, HandlerTest, address, call, call_while, word};
use super::*;

/// Unconnected socket of this process: stream sockets cannot be made in another way without `unsafe`.
fn unconnected(domain: &str) -> OwnedFd {
    let (family, kind) = match domain {
        "unix" => (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM),
        "inet" => (rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM),
        _ => (rustix::net::AddressFamily::INET6, rustix::net::SocketType::STREAM),
    };
    rustix::net::socket(family, kind, None).unwrap()
}

fn unix(name: &[u8]) -> Vec<u8> {
    [&UNIX.to_ne_bytes(), name].concat()
}

fn v4(ip: [u8; 4], port: u16) -> Vec<u8> {
    [&2u16.to_ne_bytes()[..], &port.to_be_bytes(), &ip, &[0; 8]].concat()
}

fn v6(ip: &str, port: u16) -> Vec<u8> {
    let ip: Ipv6Addr = ip.parse().unwrap();
    [&10u16.to_ne_bytes()[..], &port.to_be_bytes(), &[0; 4], &ip.octets(), &[0; 4]].concat()
}

fn dial(scene: &Arc<CallContext>, socket: &OwnedFd, to: &[u8]) -> CallOutcome {
    let args = [word(socket.as_raw_fd()), address(to), to.len() as u64];
    call(libc::SYS_connect, &args, |call| connect(scene, call))
}

fn dial_path(scene: &Arc<CallContext>, path: &Path) -> CallOutcome {
    dial(scene, &unconnected("unix"), &unix(path.as_os_str().as_bytes()))
}

fn visits(listener: &UnixListener) -> usize {
    listener.set_nonblocking(true).unwrap();
    std::iter::from_fn(|| listener.accept().ok()).count()
}

fn granted(path: &Path) -> FsCapability {
    FsCapability {
        original: path.to_owned(),
        resolved: path.to_owned(),
        access: nono_policy::AccessMode::ReadWrite,
        is_file: true,
        source: CapabilitySource::User,
    }
}

#[test]
fn sockets_of_others_are_refused_wherever_they_are() {
    let mut lab = HandlerTest::new();
    lab.hold(std::fs::File::open("/dev/null").unwrap());
    let scene = lab.scene();
    for place in ["own/listener", "read/listener", "outside/listener"] {
        let listener = UnixListener::bind(lab.path(place)).unwrap();
        let refused = CallOutcome::Refused(DeniedAttempt::Socket { path: lab.path(place) });
        assert_eq!(dial_path(&scene, &lab.path(place)), refused);
        std::os::unix::fs::symlink(lab.path(place), lab.path("own/link")).unwrap();
        assert!(dial_path(&scene, &lab.path("own/link")).is_refused());
        assert_eq!(visits(&listener), 0, "{place}");
        std::fs::remove_file(lab.path("own/link")).unwrap();
    }
}

#[test]
fn sockets_of_the_sandbox_are_connected() {
    let mut lab = HandlerTest::new();
    let listener = UnixListener::bind(lab.path("own/listener")).unwrap();
    lab.hold(listener.as_fd().try_clone_to_owned().unwrap());
    let scene = lab.scene();
    assert_eq!(dial_path(&scene, &lab.path("own/listener")), CallOutcome::Value(0));
    assert_eq!(visits(&listener), 1);
    // Under another name it is the same socket; under the same name another is not.
    std::fs::rename(lab.path("own/listener"), lab.path("own/moved")).unwrap();
    assert_eq!(dial_path(&scene, &lab.path("own/moved")), CallOutcome::Value(0));
    let other = UnixListener::bind(lab.path("own/listener")).unwrap();
    assert!(dial_path(&scene, &lab.path("own/listener")).is_refused());
    assert_eq!((visits(&listener), visits(&other)), (1, 0));
}

#[test]
fn a_granted_socket_is_the_one_that_was_granted() {
    let mut lab = HandlerTest::new();
    lab.hold(std::fs::File::open("/dev/null").unwrap());
    for place in ["own/listener", "outside/listener"] {
        let listener = UnixListener::bind(lab.path(place)).unwrap();
        lab.policy.unix_sockets = vec![granted(&lab.path(place))];
        let scene = lab.scene();
        assert_eq!(dial_path(&scene, &lab.path(place)), CallOutcome::Value(0));
        assert_eq!(visits(&listener), 1);
        // A restarted service is granted too, unless the command could have replaced it.
        std::fs::remove_file(lab.path(place)).unwrap();
        let again = UnixListener::bind(lab.path(place)).unwrap();
        let outcome = dial_path(&scene, &lab.path(place));
        assert_eq!(outcome == CallOutcome::Value(0), place == "outside/listener", "{outcome:?}");
        assert_eq!(visits(&again), usize::from(place == "outside/listener"));
    }
}

#[test]
fn a_port_without_listener_is_answered_as_the_kernel_would() {
    let lab = HandlerTest::new();
    let scene = lab.scene();
    drop(UnixListener::bind(lab.path("own/left")).unwrap());
    assert_eq!(dial_path(&scene, &lab.path("own/left")), CallOutcome::Errno(libc::ECONNREFUSED));
    std::fs::write(lab.path("own/file"), "").unwrap();
    assert_eq!(dial_path(&scene, &lab.path("own/file")), CallOutcome::Errno(libc::ECONNREFUSED));
    assert_eq!(dial_path(&scene, &lab.path("own/none")), CallOutcome::Errno(libc::ENOENT));
    assert_eq!(dial_path(&scene, Path::new("/proc/self/fd/0")), CallOutcome::Errno(libc::ELOOP));
}

#[test]
fn broken_arguments_are_answered_as_the_kernel_would() {
    let lab = HandlerTest::new();
    let scene = lab.scene();
    let socket = unconnected("unix");
    let raw = word(socket.as_raw_fd());
    let to = unix(b"/x");
    let dial = |fd: u64, at: u64, length: u64| {
        call(libc::SYS_connect, &[fd, at, length], |call| connect(&scene, call))
    };
    assert_eq!(dial(word(-1), address(&to), 4), CallOutcome::Errno(libc::EBADF));
    let file = std::fs::File::open("/dev/null").unwrap();
    assert_eq!(dial(word(file.as_raw_fd()), address(&to), 4), CallOutcome::Errno(libc::ENOTSOCK));
    assert_eq!(dial(raw, 8, 4), CallOutcome::Errno(libc::EFAULT));
    for length in [0, 1, 2, 111, 129, u64::from(u32::MAX)] {
        let long = [to.clone(), vec![b'x'; 200]].concat();
        assert_eq!(dial(raw, address(&long), length), CallOutcome::Errno(libc::EINVAL), "{length}");
    }
    // The kernel ignores the bits above 32, and so does this code.
    assert_eq!(dial(raw | 1 << 32, address(&to), 4 | 1 << 32), CallOutcome::Errno(libc::ENOENT));
}

#[test]
fn nothing_is_done_for_a_caller_that_is_gone() {
    let mut lab = HandlerTest::new();
    let listener = UnixListener::bind(lab.path("own/listener")).unwrap();
    lab.hold(listener.as_fd().try_clone_to_owned().unwrap());
    let scene = lab.scene();
    let socket = unconnected("unix");
    let to = unix(lab.path("own/listener").as_os_str().as_bytes());
    let args = [word(socket.as_raw_fd()), address(&to), to.len() as u64];
    let outcome = call_while(libc::SYS_connect, &args, false, |call| connect(&scene, call));
    assert_eq!((outcome, visits(&listener)), (CallOutcome::Errno(libc::EINTR), 0));
}

#[test]
fn abstract_names_of_others_are_refused() {
    let mut lab = HandlerTest::new();
    let name = format!("nono-mediate-{}", std::process::id());
    let listener = UnixListener::bind_addr(&UnixAddr::from_abstract_name(&name).unwrap()).unwrap();
    let to = unix(&[b"\0", name.as_bytes()].concat());
    let dial = |scene: &Arc<CallContext>| dial(scene, &unconnected("unix"), &to);
    assert_eq!(
        dial(&lab.scene()),
        CallOutcome::Refused(DeniedAttempt::Socket { path: format!("@{name}").into() })
    );
    assert_eq!(visits(&listener), 0);
    lab.hold(listener.as_fd().try_clone_to_owned().unwrap());
    assert_eq!(dial(&lab.scene()), CallOutcome::Value(0));
    assert_eq!(visits(&listener), 1);
}

#[test]
fn ports_are_opened_on_loopback_alone() {
    let mut lab = HandlerTest::new();
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    lab.policy.network = NetworkPolicy::Ports { connect: vec![port], listen: vec![] };
    let scene = lab.scene();
    let dial4 = |to: &[u8]| dial(&scene, &unconnected("inet"), to);
    let dial6 = |to: &[u8]| dial(&scene, &unconnected("inet6"), to);
    assert_eq!(dial4(&v4([127, 0, 0, 1], port)), CallOutcome::Value(0));
    assert_eq!(dial4(&v4([127, 9, 9, 9], port)), CallOutcome::Value(0));
    assert_eq!(dial6(&v6("::ffff:127.0.0.1", port)), CallOutcome::Value(0));
    assert_eq!(
        dial6(&v6("::1", port)),
        CallOutcome::Errno(libc::ECONNREFUSED),
        "allowed, but nothing listens"
    );
    for refused in [
        dial4(&v4([127, 0, 0, 1], port ^ 1)),
        dial4(&v4([0, 0, 0, 0], port)),
        dial4(&v4([192, 0, 2, 1], port)),
        dial4(&v4([128, 0, 0, 1], port)),
        dial6(&v6("::", port)),
        dial6(&v6("::2", port)),
        dial6(&v6("2001:db8::1", port)),
        dial6(&v6("::ffff:192.0.2.1", port)),
        dial6(&v6("::127.0.0.1", port)),
        dial4(&v4([127, 0, 0, 1], port)[..6]),
    ] {
        assert!(refused.is_refused(), "{refused:?}");
    }
    let connected = OwnedFd::from(TcpStream::connect(("127.0.0.1", port)).unwrap());
    assert_eq!(dial(&scene, &connected, &[0; 16]), CallOutcome::Value(0), "letting go is always allowed");
}

#[test]
fn only_granted_ports_are_listened_on() {
    let mut lab = HandlerTest::new();
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = free();
    lab.policy.network = NetworkPolicy::Ports { connect: vec![], listen: vec![port] };
    let scene = lab.scene();
    let serve = |socket: &OwnedFd| {
        call(libc::SYS_listen, &[word(socket.as_raw_fd()), 5], |call| listen(&scene, call))
    };
    let bound = |port: u16| {
        let socket = unconnected("inet");
        let at = std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        rustix::net::bind(&socket, &at).unwrap();
        socket
    };
    let choice = "listen on a port of the kernel's choice".to_owned();
    let choice = DeniedAttempt::Network { what: choice, port: None };
    assert_eq!(serve(&unconnected("inet")), CallOutcome::Refused(choice));
    let other = bound(0);
    let got = other_process::local_port(other.as_fd()).unwrap().unwrap();
    let refused =
        DeniedAttempt::Network { what: format!("listen on port {got}"), port: Some(Port::Listen(got)) };
    assert_eq!(serve(&other), CallOutcome::Refused(refused));
    let good = bound(port);
    assert_eq!(serve(&good), CallOutcome::Value(0));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    let unix = UnixListener::bind(lab.path("own/listener")).unwrap();
    assert_eq!(serve(&OwnedFd::from(unix)), CallOutcome::Value(0));
}

fn filtered(connect: Vec<u16>, listen: Vec<u16>) -> NetworkPolicy {
    NetworkPolicy::Filtered { hosts: vec!["example.org".parse().unwrap()], connect, listen }
}

fn direct(to: &str) -> CallOutcome {
    let port = Some(Port::Direct(to.parse().unwrap()));
    CallOutcome::Refused(DeniedAttempt::Network { what: format!("connect to {to}"), port })
}

#[test]
fn a_filtered_network_is_one_address_with_one_port() {
    let mut lab = HandlerTest::new();
    let proxy = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = proxy.local_addr().unwrap().port();
    let other = TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
    lab.policy.network = filtered(vec![other], vec![]);
    let scene = lab.scene();
    let dial4 = |to: &[u8]| dial(&scene, &unconnected("inet"), to);
    let dial6 = |to: &[u8]| dial(&scene, &unconnected("inet6"), to);
    assert!(dial4(&v4([127, 0, 0, 1], port)).is_refused(), "before its address is set");
    scene.set_proxy(Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)));
    scene.set_proxy(Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port ^ 1)));
    assert_eq!(dial4(&v4([127, 0, 0, 1], port)), CallOutcome::Value(0));
    assert_eq!(dial6(&v6("::ffff:127.0.0.1", port)), CallOutcome::Value(0));
    let refused = CallOutcome::Errno(libc::ECONNREFUSED);
    assert_eq!(dial4(&v4([127, 9, 9, 9], other)), refused, "a granted port, but nothing listens");
    for (refused, to) in [
        (dial4(&v4([127, 0, 0, 2], port)), port),
        (dial4(&v4([127, 0, 0, 1], port ^ 1)), port ^ 1),
        (dial6(&v6("::1", port)), port),
        (dial6(&v6("::ffff:127.0.0.2", port)), port),
    ] {
        let CallOutcome::Refused(DeniedAttempt::Network { port: wanted, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(wanted, Some(Port::Connect(to)));
    }
    assert_eq!(dial4(&v4([0, 0, 0, 0], port)), direct(&format!("0.0.0.0:{port}")));
    assert_eq!(dial4(&v4([192, 0, 2, 1], port)), direct(&format!("192.0.2.1:{port}")));
    assert_eq!(dial6(&v6("2001:db8::1", 443)), direct("[2001:db8::1]:443"));
}

#[test]
fn in_a_network_of_its_own_what_goes_past_the_proxy_is_told_of() {
    let mut lab = HandlerTest::new();
    lab.policy.network = filtered(vec![], vec![]);
    let scene = lab.scene_in(true);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let dial4 = |to: &[u8]| dial(&scene, &unconnected("inet"), to);
    assert_eq!(dial4(&v4([127, 0, 0, 1], port)), CallOutcome::Value(0), "a server of its own");
    assert_eq!(dial4(&v4([0, 0, 0, 0], port)), CallOutcome::Value(0));
    assert_eq!(dial4(&v4([192, 0, 2, 1], 443)), direct("192.0.2.1:443"));
    assert_eq!(dial4(&v4([127, 0, 0, 53], 53)), direct("127.0.0.53:53"));
    let v6 = dial(&scene, &unconnected("inet6"), &v6("::ffff:192.0.2.1", 53));
    assert_eq!(v6, direct("[::ffff:192.0.2.1]:53"));
    assert!(dial4(&v4([127, 0, 0, 1], port)[..6]).is_refused());
    assert!(!dial4(&v4([127, 1, 1, 1], 0)).is_refused(), "a question about routes");
}

#[test]
fn a_filtered_network_opens_ports_to_listen_on_as_any_other() {
    let mut lab = HandlerTest::new();
    let mut serve = |granted: bool| {
        let socket = unconnected("inet");
        rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = nono_sys::other_process::local_port(socket.as_fd()).unwrap().unwrap();
        lab.policy.network = filtered(vec![], if granted { vec![port] } else { vec![] });
        let scene = lab.scene();
        call(libc::SYS_listen, &[word(socket.as_raw_fd()), 5], |call| listen(&scene, call))
    };
    assert!(serve(false).is_refused());
    assert_eq!(serve(true), CallOutcome::Value(0));
}
