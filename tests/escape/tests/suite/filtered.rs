//! Filtered network: only the proxy is reached, whatever the kind of socket, on a network of the command's own and on
//! the host's. The library's example of such a run takes the place of nono; its proxy allows no host.

use std::net::{TcpListener, TcpStream};

use crate::harness::attack::{has_bwrap, skip};
use crate::harness::child::Verdict;
use crate::harness::fixture::{tcp, tcp_at, udp, unix_stream};
use crate::harness::world::World;
use crate::harness::{Attack, Mode, attack, check, controls_only};

const RUN: &[Mode] = &[Mode::Run];
/// Port of the proxy on a network of the command's own.
const PROXY: u16 = 19080;

fn filtered(steps: &'static str) -> Attack {
    attack(steps).nono_at("{bin}/filtered").modes(RUN)
}

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Unused port, for a proxy on the host's network.
fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|probe| probe.local_addr()).expect("a port").port()
}

/// Another loopback address of the host, used by this suite alone: two may run at once.
fn other_address() -> String {
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("127.77.{high}.{}", low.clamp(1, 254))
}

/// On a network of the command's own; on the host's, because a port of it is open; and where there are no namespaces.
fn in_every_shape(make: impl Fn() -> Vec<Attack>) {
    check(&make());
    let ports = leaked(format!("--connect-port 1 --proxy-port {}", free()));
    check(&make().into_iter().map(|attack| attack.flags(ports)).collect::<Vec<_>>());
    let bare = leaked(format!("--proxy-port {}", free()));
    check(&make().into_iter().map(|attack| attack.bare().flags(bare)).collect::<Vec<_>>());
}

#[test]
fn servers_of_the_host() {
    let reach = |steps| filtered(steps).changes().against(tcp("127.0.0.1"));
    in_every_shape(|| {
        vec![
            reach("tcp 4 {door}"),
            reach("wide-tcp {door}"),
            reach("mptcp {door}"),
            reach("fast-open {door}"),
            reach("fast-open-connect {door}"),
            filtered("tcp 6 {door}").changes().against(tcp("::1")),
            filtered("dial stream {door}").changes().against(unix_stream("@nono-escape-filtered-{terces}")),
        ]
    });
}

#[test]
fn datagrams_and_lookups() {
    let send = |steps| filtered(steps).changes().against(udp("127.0.0.1"));
    in_every_shape(|| {
        vec![
            send("udp 4 to {door}"),
            send("udp 4 connect {door}"),
            send("udp 4 msg {door}"),
            send("udp 4 mmsg {door}"),
            filtered("udp 6 to {door}").changes().against(udp("::1")),
        ]
    });
}

#[test]
fn raw_sockets() {
    let raw = |steps| filtered(steps).by_root();
    check(&[raw("socket inet raw 1"), raw("socket inet6 raw 58"), raw("socket packet raw")]);
}

/// Another address of the host, on the very port of the proxy.
#[test]
fn the_proxys_port_on_other_addresses() {
    let other = other_address();
    let at = |steps: &str, port: u16| {
        let steps = steps.replace("OTHER", &other).replace("PORT", &port.to_string());
        filtered(leaked(steps)).changes().against(tcp_at(&other, port))
    };
    check(&[at("tcp-at OTHER PORT", PROXY), at("tcp-at ::ffff:OTHER PORT", PROXY)]);
    let port = free();
    let flags = leaked(format!("--proxy-port {port}"));
    let with_port = leaked(format!("--proxy-port {port} --connect-port 1"));
    check(&[
        at("tcp-at OTHER PORT", port).flags(with_port),
        at("tcp-at ::ffff:OTHER PORT", port).flags(with_port),
        at("tcp-at OTHER PORT", port).flags(flags).bare(),
        at("tcp-at ::ffff:OTHER PORT", port).flags(flags).bare(),
    ]);
}

/// The address changes while it is judged. (The control needs a server at both.)
#[test]
fn races_of_the_proxys_address() {
    let (other, port) = (other_address(), free());
    let steps = leaked(format!("tcp-race 127.0.0.1 {other} {port}"));
    let flags = leaked(format!("--proxy-port {port} --connect-port 1"));
    check(&[filtered(steps).flags(flags).against(tcp_at(&other, port))]);
}

#[test]
fn the_proxy_itself_is_reached() {
    let connects = |port: u16, flags: &'static str| {
        let steps = leaked(format!("tcp-at 127.0.0.1 {port}"));
        filtered(steps).flags(flags)
    };
    let port = free();
    let host = leaked(format!("--proxy-port {port} --connect-port 1"));
    let bare = leaked(format!("--proxy-port {port}"));
    let mut ways = vec![connects(PROXY, ""), connects(port, host)];
    if has_bwrap() {
        ways.push(connects(port, bare).bare());
    } else {
        assert!(skip("tcp-at", "bwrap is not installed").is_empty());
    }
    for way in ways.iter().filter(|_| !controls_only()) {
        let outcome = way.once(Mode::Run);
        assert!(outcome.verdict() == Verdict::Escaped, "{outcome}");
    }
}

/// A process that could take the proxy's port could impersonate it. In the same network without a proxy the port is
/// free.
#[test]
fn the_proxys_port_cannot_be_taken() {
    let serve = leaked(format!("serve {PROXY}"));
    let ways = [(attack(serve), true), (filtered(serve), false)];
    for (way, taken) in ways.iter().filter(|_| !controls_only()) {
        let world = World::new("/var/tmp", false);
        let mut server = way.running(&world, Some(Mode::Run));
        let said = server.hear(&["PORT", "BLOCKED"]).unwrap_or_default();
        let outcome = server.finish();
        assert_eq!(said.starts_with("PORT"), *taken, "{said}: {outcome}");
        assert!(*taken || outcome.errno() == "EADDRINUSE", "{outcome}");
    }
}

#[test]
fn servers_inside_are_not_reached_from_outside() {
    for how in ["serve bound", "serve unbound"] {
        let shapes = [filtered(how), filtered(how).flags("--connect-port 1"), filtered(how).bare().flags("")];
        for (shape, mode) in shapes.iter().flat_map(|shape| [(shape, None), (shape, Some(Mode::Run))]) {
            if mode.is_some() && controls_only() {
                continue;
            }
            let world = World::new("/var/tmp", false);
            let mut server = shape.running(&world, mode);
            let said = server.hear(&["PORT", "BLOCKED"]).unwrap_or_default();
            let port = said.strip_prefix("PORT ").and_then(|port| port.parse().ok());
            let reached = port.is_some_and(|port: u16| TcpStream::connect(("127.0.0.1", port)).is_ok());
            let outcome = server.finish();
            assert!(reached == mode.is_none(), "`{how}` in {mode:?}: reached {reached}: {outcome}");
            assert!(!said.is_empty(), "`{how}` in {mode:?}: {outcome}");
        }
    }
}

/// A command whose proxy cannot serve would have no network; it is not even started.
#[test]
fn without_its_proxy_the_command_is_not_run() {
    let steps = "mkdir {prj}/made";
    for (flags, runs) in [("", true), ("--fail tired", false)].iter().filter(|_| !controls_only()) {
        let world = World::new("/var/tmp", false);
        let outcome = filtered(steps).flags(flags).running(&world, Some(Mode::Run)).finish();
        assert_eq!(world.path("project/made").exists(), *runs, "{outcome}");
        let refused = outcome.status.code() == Some(125) && outcome.errors.contains("filtering proxy: tired");
        assert_eq!(refused, !runs, "{outcome}");
    }
}
