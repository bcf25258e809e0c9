//! The network is closed unless opened, whatever the kind of socket; some kinds stay closed even then.

use std::net::TcpStream;

use crate::harness::attack::Mode;
use crate::harness::fixture::{tcp, udp};
use crate::harness::world::World;
use crate::harness::{Attack, attack, attacks, controls_only};

const V4: &str = "127.0.0.1";
const V6: &str = "::1";

fn reach(steps: &'static str) -> Attack {
    attack(steps).changes().against(tcp(V4))
}
fn datagram(steps: &'static str) -> Attack {
    attack(steps).changes().against(udp(V4))
}
/// Closed in any case: an open internet does not open these.
fn even_when_open(steps: &'static str) -> Attack {
    attack(steps).flags("--allow-net")
}

/// In a network of the attack's own, with an address of its own.
fn addressed(steps: &'static str) -> Attack {
    attack(steps).addressed("192.0.2.1 4711").watch(&[])
}

attacks! {
    tcp_connect: reach("tcp 4 {door}");
    tcp_connect_ipv6: attack("tcp 6 {door}").changes().against(tcp(V6));
    tcp_connect_by_a_wide_family: reach("wide-tcp {door}");
    multipath_tcp: reach("mptcp {door}");
    tcp_fast_open:
        reach("fast-open {door}"),
        reach("fast-open-connect {door}");
    udp_datagrams:
        datagram("udp 4 to {door}"),
        datagram("udp 4 connect {door}"),
        datagram("udp 4 msg {door}"),
        datagram("udp 4 mmsg {door}");
    udp_datagrams_ipv6: attack("udp 6 to {door}").changes().against(udp(V6));
    host_interfaces: attack("interfaces").lacks(&["ENODEV"]);
    addresses_of_the_host:
        addressed("address-netlink 192.0.2.1"),
        addressed("address-ioctl 192.0.2.1"),
        addressed("address-netlink 192.0.2.1").bare(),
        addressed("address-ioctl 192.0.2.1").bare(),
        addressed("address-netlink 192.0.2.1").flags("--allow-connect-port 4711");
    device_events:
        attack("uevents"),
        even_when_open("uevents");

    raw_sockets:
        attack("socket inet raw 1").by_root(),
        even_when_open("socket inet raw 1").by_root(),
        even_when_open("socket inet6 raw 58").by_root();
    packet_sockets:
        attack("socket packet raw").by_root(),
        even_when_open("socket packet raw").by_root(),
        even_when_open("socket packet dgram").by_root();
    route_changes:
        attack("route").by_root(),
        even_when_open("route").by_root();
    vsock:
        attack("socket vsock stream"),
        even_when_open("socket vsock stream"),
        even_when_open("wide-socket vsock stream");
    other_families:
        attack("family-sweep"),
        even_when_open("family-sweep");
    other_families_by_root:
        attack("family-sweep").by_root(),
        even_when_open("family-sweep").by_root();
}

/// A port served inside must not answer outside, bound or not.
#[test]
fn servers_inside_are_not_reached_from_outside() {
    for how in ["serve bound", "serve unbound"] {
        for mode in std::iter::once(None).chain(Mode::ALL.iter().copied().map(Some)) {
            if mode.is_some() && controls_only() {
                continue;
            }
            let world = World::new("/var/tmp", false);
            let mut server = attack(how).running(&world, mode);
            let said = server.hear(&["PORT", "BLOCKED"]).unwrap_or_default();
            let port = said.strip_prefix("PORT ").and_then(|port| port.parse().ok());
            let reached = port.is_some_and(|port| TcpStream::connect((V4, port)).is_ok());
            let outcome = server.finish();
            assert!(reached == mode.is_none(), "`{how}` in {mode:?}: reached {reached}: {outcome}");
            assert!(!said.is_empty(), "`{how}` in {mode:?}: {outcome}");
        }
    }
}
