//! Objects outside the sandbox for an attack to reach: victims, accomplices, listeners. Each reports its state; an
//! attack that had an effect changed it.

use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};

use super::binaries::controls_only;
use super::child::Child;
use super::world::World;

pub(crate) trait Fixture {
    /// Replaces the names in braces that this fixture defines.
    fn expand(&self, text: &str) -> String;
    fn state(&mut self) -> String;
}

pub(crate) type Maker = Box<dyn Fn(&World) -> Box<dyn Fixture>>;

/// Helper process outside, of the same program: prints `READY name=value …`, then a `STATE` for each line.
pub(crate) struct Helper {
    child: Child,
    names: Vec<(String, String)>,
}

impl Helper {
    pub(crate) fn start(world: &World, chain: &str) -> Self {
        let mut command = world.command(&world.program("attacks"));
        command.args(world.expand(chain).split_whitespace()).env("SECRET_TOKEN", &world.secret);
        Self::adopt(Child::start(command, None))
    }

    pub(crate) fn adopt(mut child: Child) -> Self {
        let ready = child.hear(&["READY"]);
        let Some(ready) = ready else { panic!("helper did not start: {}", child.finish()) };
        let pairs = ready.split_whitespace().filter_map(|word| word.split_once('='));
        let names = pairs.map(|(name, value)| (format!("{{{name}}}"), value.to_owned())).collect();
        Self { child, names }
    }

    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['T', 't']))
    }
}

impl Fixture for Helper {
    fn expand(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    fn state(&mut self) -> String {
        if self.is_stopped() {
            return "stopped".to_owned();
        }
        self.child.say("?");
        self.child.hear(&["STATE"]).unwrap_or_else(|| "dead".to_owned())
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if self.is_stopped() {
            super::child::kill(&self.child.id().to_string());
        }
    }
}

pub(crate) fn helper(chain: &'static str) -> Maker {
    Box::new(move |world| Box::new(Helper::start(world, chain)))
}

/// Process of the same user: `{pid}`, the address of its secret `{addr}`, and its open file `{fd}`.
pub(crate) fn victim() -> Maker {
    helper("victim {secret} {out} plain")
}

/// Listener of the harness: `{door}` is its port, path or name; its state is who connected.
struct Door<L> {
    listener: L,
    address: String,
    visits: u32,
    visit: fn(&L) -> std::io::Result<()>,
}

impl<L> Drop for Door<L> {
    fn drop(&mut self) {
        if self.address.starts_with('/') {
            drop(std::fs::remove_file(&self.address));
        }
    }
}

impl<L> Fixture for Door<L> {
    fn expand(&self, text: &str) -> String {
        text.replace("{door}", &self.address)
    }

    fn state(&mut self) -> String {
        loop {
            match (self.visit)(&self.listener) {
                Ok(()) => self.visits += 1,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return format!("{} visits", self.visits),
                Err(e) => panic!("listener: {e}"),
            }
        }
    }
}

fn door<L: 'static>(listener: L, address: String, visit: fn(&L) -> std::io::Result<()>) -> Box<dyn Fixture> {
    Box::new(Door { listener, address, visits: 0, visit })
}

/// TCP listener; `host` is `127.0.0.1` or `::1`.
pub(crate) fn tcp(host: &'static str) -> Maker {
    Box::new(move |_| {
        let listener = TcpListener::bind((host, 0)).expect("tcp listener");
        listener.set_nonblocking(true).expect("nonblocking");
        let port = listener.local_addr().expect("address").port();
        door(listener, port.to_string(), |l| l.accept().map(drop))
    })
}

/// TCP listener on an address and a port that the attack names itself.
pub(crate) fn tcp_at(host: &str, port: u16) -> Maker {
    let host = host.to_owned();
    Box::new(move |_| {
        let listener = TcpListener::bind((host.as_str(), port)).expect("tcp listener");
        listener.set_nonblocking(true).expect("nonblocking");
        door(listener, port.to_string(), |l| l.accept().map(drop))
    })
}

pub(crate) fn udp(host: &'static str) -> Maker {
    Box::new(move |_| {
        let socket = UdpSocket::bind((host, 0)).expect("udp socket");
        socket.set_nonblocking(true).expect("nonblocking");
        let port = socket.local_addr().expect("address").port();
        door(socket, port.to_string(), |s| s.recv(&mut [0; 16]).map(drop))
    })
}

/// Stream listener at a path of the world, or with an abstract name when it begins with `@`.
pub(crate) fn unix_stream(name: &'static str) -> Maker {
    Box::new(move |world| {
        let name = world.expand(name);
        let listener = UnixListener::bind_addr(&unix_address(&name)).expect("unix listener");
        listener.set_nonblocking(true).expect("nonblocking");
        share(world, &name);
        door(listener, name, |l| l.accept().map(drop))
    })
}

pub(crate) fn unix_dgram(name: &'static str) -> Maker {
    Box::new(move |world| {
        let name = world.expand(name);
        let socket = UnixDatagram::bind_addr(&unix_address(&name)).expect("unix socket");
        socket.set_nonblocking(true).expect("nonblocking");
        share(world, &name);
        door(socket, name, |s| s.recv(&mut [0; 16]).map(drop))
    })
}

fn unix_address(name: &str) -> SocketAddr {
    match name.strip_prefix('@') {
        Some(abstract_name) => SocketAddr::from_abstract_name(abstract_name).expect("name"),
        None => SocketAddr::from_pathname(name).expect("path"),
    }
}

fn share(world: &World, name: &str) {
    if !name.starts_with('@') {
        world.own(Path::new(name), 0o777);
    }
}

/// Copy of the attack program that runs with the ids of root. Only a harness that is root can make one.
pub(crate) fn setuid_copy(mode: u32) -> Maker {
    Box::new(move |world| {
        let path = world.path("ro/raised");
        std::fs::copy(world.program("attacks"), &path).expect("copy");
        std::os::unix::fs::chown(&path, Some(0), Some(0)).expect("chown");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("chmod");
        Box::new(Nothing)
    })
}

/// Copy of `attacks` or `nono` that belongs to the user.
pub(crate) fn installed(program: &'static str, at: &'static str) -> Maker {
    Box::new(move |world| {
        let path = PathBuf::from(world.expand(at));
        let program = if controls_only() { "attacks" } else { program };
        std::fs::copy(world.program(program), &path).expect("copy");
        world.own(&path, 0o755);
        Box::new(Nothing)
    })
}

/// No fixture at all.
pub(crate) struct Nothing;

impl Fixture for Nothing {
    fn expand(&self, text: &str) -> String {
        text.to_owned()
    }
    fn state(&mut self) -> String {
        String::new()
    }
}
