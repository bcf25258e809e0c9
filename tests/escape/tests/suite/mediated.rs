//! What only a mediator can close: sockets that were bound later or are on no list, other addresses on an opened port,
//! listening without binding, metadata where there are no mounts. `wrap` and `run --monitor` have none; `open.rs` shows
//! what that leaves.

use std::net::{TcpListener, TcpStream};

use crate::harness::attack::skip;
use crate::harness::child::{Outcome, Verdict};
use crate::harness::fixture::{Maker, helper, unix_dgram, unix_stream};
use crate::harness::world::World;
use crate::harness::{Attack, Mode, attack, attacks, controls_only};

const RUN: &[Mode] = &[Mode::Run];
/// An unused address that is not loopback, and a port, both of a network namespace of the attack's own.
const PLACE: &str = "192.0.2.1 4711";
const PORT: &str = "--allow-connect-port 4711";

/// The command runs, then a process outside binds `door`, then the steps go on. Returns the outcome, and whether a
/// connection came.
pub(crate) fn after_binding(steps: &'static str, door: &'static str, mode: Option<Mode>) -> (Outcome, bool) {
    after_making(steps, &unix_stream(door), mode)
}

fn after_making(steps: &'static str, server: &Maker, mode: Option<Mode>) -> (Outcome, bool) {
    let world = World::new("/var/tmp", false);
    let mut child = attack(steps).running(&world, mode);
    child.hear(&["WAITING"]);
    let mut fixture = server(&world);
    let before = fixture.state();
    child.say("");
    let outcome = child.finish();
    (outcome, fixture.state() != before)
}

fn bound_later(steps: &'static str, door: &'static str) {
    made_later(steps, &unix_stream(door));
}

fn made_later(steps: &'static str, server: &Maker) {
    let (control, came) = after_making(steps, server, None);
    let worked = came && control.verdict() == Verdict::Escaped;
    assert!(worked, "`{steps}`: control failed: proves nothing: {control}");
    for mode in RUN.iter().filter(|_| !controls_only()) {
        let (outcome, came) = after_making(steps, server, Some(*mode));
        assert!(!came && outcome.verdict() == Verdict::Blocked, "`{steps}`: {mode:?}: {outcome}");
    }
}

#[test]
fn datagrams_to_sockets_bound_later() {
    made_later("pause , throw pair to {out}/door", &unix_dgram("{out}/door"));
    made_later("pause , throw pair msg {prj}/door", &unix_dgram("{prj}/door"));
    made_later("pause , throw raw-pair mmsg {ro}/door", &unix_dgram("{ro}/door"));
    made_later("pause , pair-dial {out}/door", &unix_dgram("{out}/door"));
    made_later(
        "pause , throw pair to @nono-escape-later-{terces}",
        &unix_dgram("@nono-escape-later-{terces}"),
    );
}

attacks! {
    watches_outside:
        attack("inotify {out}").modes(RUN),
        attack("inotify {out}/secret").modes(RUN),
        attack("inotify {home}").modes(RUN),
        attack("inotify ../outside").modes(RUN),
        attack("inotify-fd {out}").modes(RUN),
        attack("inotify-fd {out}/secret").modes(RUN),
        attack("symlink {out} {prj}/link , inotify {prj}/link").modes(RUN),
        attack("inotify {out}").bare().modes(RUN),
        attack("inotify {out}").flags("--allow-net").modes(RUN);
    /// A watch on the parent of a granted folder reveals the names beside it.
    watches_above: attack("inotify {w}").modes(RUN);
    watches_of_what_is_closed:
        attack("inotify {prj}/no").before("plant {prj}/no/key x").flags("--deny {prj}/no").modes(RUN);
}

#[test]
fn sockets_bound_later() {
    bound_later("pause , dial stream {out}/door", "{out}/door");
    bound_later("pause , dial stream {ro}/door", "{ro}/door");
    bound_later("pause , dial stream {prj}/door", "{prj}/door");
    bound_later("pause , dial stream {home}/door", "{home}/door");
    bound_later("pause , dial stream /tmp/nono-escape-later-{terces}", "/tmp/nono-escape-later-{terces}");
    bound_later("pause , dial-near {prj} ./door", "{prj}/door");
    bound_later("pause , symlink {out}/door {prj}/link , dial stream {prj}/link", "{out}/door");
    bound_later("pause , rename {prj}/door {prj}/sub/door , dial stream {prj}/sub/door", "{prj}/door");
    bound_later("pause , dial stream @nono-escape-later-{terces}", "@nono-escape-later-{terces}");
}

/// A socket of the sandbox's own gives its name, but not its rights, to one of another process.
#[test]
fn a_name_that_was_the_sandboxs_own() {
    bound_later("bind-away {prj}/door , pause , dial stream {prj}/door", "{prj}/door");
}

fn apart(steps: &'static str, server: &'static str) -> Attack {
    attack(steps).changes().against(helper(server)).watch(&[]).modes(RUN).label(server)
}
fn port(steps: &'static str) -> Attack {
    attack(steps).addressed(PLACE).flags(PORT).modes(RUN)
}

attacks! {
    sockets_of_another_network_namespace:
        apart("dial stream {door}", "listener apart {out} door"),
        apart("dial stream {door}", "listener apart {ro} door"),
        apart("dial stream {door}", "listener apart {prj} door"),
        apart("dial stream {door}", "listener apart {prj} door").flags("--allow-net");
    sockets_with_the_network_open:
        attack("dial stream {door}").changes().watch(&[]).modes(RUN).flags("--allow-net")
            .against(unix_stream("{prj}/door")).label("by path"),
        attack("dial stream {door}").changes().watch(&[]).modes(RUN).flags("--allow-net")
            .against(unix_stream("@nono-escape-open-{terces}")).label("by name");
    races_of_addresses:
        attack("dial-race {prj}/own.sock {door}").changes().watch(&[]).modes(RUN).against(unix_stream("{prj}/door")),
        attack("dial-race {prj}/own.sock {door}").changes().watch(&[]).modes(RUN).flags("--allow-net")
            .against(unix_stream("{prj}/door"));
    races_of_descriptors:
        attack("swap-race {prj}/own.sock {door}").changes().watch(&[]).modes(RUN).flags("--allow-net")
            .against(unix_stream("{prj}/door"));

    other_addresses_on_an_open_port:
        port("tcp-at 192.0.2.1 4711"),
        port("tcp-at ::ffff:192.0.2.1 4711");
    races_of_internet_addresses: port("tcp-race 127.0.0.1 192.0.2.1 4711");
}

#[test]
fn an_open_port_can_be_used_on_loopback() {
    for address in ["tcp-at 127.0.0.1 4711", "tcp-at ::1 4711", "tcp-at ::ffff:127.0.0.1 4711"] {
        let attack = port(address);
        if !crate::harness::world::is_root() {
            assert!(skip(address, "needs a harness that root started").is_empty());
            return;
        }
        for mode in Mode::ALL.iter().filter(|_| !controls_only()) {
            let outcome = attack.once(*mode);
            assert!(outcome.verdict() == Verdict::Escaped, "`{address}` in {mode:?}: {outcome}");
        }
    }
}

/// Whether a process outside reaches what the steps serve.
pub(crate) fn is_reached(serve: &'static str, flags: &'static str, mode: Option<Mode>) -> (bool, Outcome) {
    let world = World::new("/var/tmp", false);
    let mut server = attack(serve).flags(flags).running(&world, mode);
    let said = server.hear(&["PORT", "BLOCKED"]).unwrap_or_default();
    let port = said.strip_prefix("PORT ").and_then(|port| port.parse().ok());
    let reached = port.is_some_and(|port: u16| TcpStream::connect(("127.0.0.1", port)).is_ok());
    (reached, server.finish())
}

#[test]
fn listening_without_binding() {
    let (reached, control) = is_reached("serve unbound", "", None);
    assert!(reached, "control failed: proves nothing: {control}");
    for flags in [PORT, "--listen-port 4711"].iter().filter(|_| !controls_only()) {
        let (reached, outcome) = is_reached("serve unbound", flags, Some(Mode::Run));
        assert!(!reached && outcome.verdict() == Verdict::Blocked, "{flags}: {outcome}");
    }
}

#[test]
fn a_granted_port_can_be_listened_on() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|probe| probe.local_addr()).expect("a port").port();
    let serve: &'static str = Box::leak(format!("serve {free}").into_boxed_str());
    let flags: &'static str = Box::leak(format!("--listen-port {free}").into_boxed_str());
    for mode in RUN.iter().filter(|_| !controls_only()) {
        let (reached, outcome) = is_reached(serve, flags, Some(*mode));
        assert!(reached, "{outcome}");
    }
}

#[test]
fn a_granted_socket_can_be_used() {
    for mode in Mode::ALL.iter().filter(|_| !controls_only()) {
        for place in ["{out}/door", "{prj}/door"] {
            let flags: &'static str = Box::leak(format!("--allow-unix-socket {place}").into_boxed_str());
            let outcome = attack("dial stream {door}").flags(flags).against(unix_stream(place)).once(*mode);
            assert!(outcome.verdict() == Verdict::Escaped, "{place} in {mode:?}: {outcome}");
        }
    }
}

/// In the host's network namespace a list of sockets proves nothing; the sandbox's own are those its processes hold.
#[test]
fn own_sockets_work_in_the_hosts_network() {
    for flags in ["--allow-net", PORT] {
        attack("own-unix stream {prj}/own.sock").flags(flags).works();
        attack("own-unix seqpacket {prj}/own.sock").flags(flags).works();
        attack("own-unix stream @nono-escape-own-{terces}").flags(flags).works();
    }
}
