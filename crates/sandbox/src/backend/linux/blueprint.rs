//! Compilation of a policy and kernel facts into a printable plan of enforcement.
//!
//! Nothing is changed here; only what exists is looked up (`/dev/shm`, bound sockets). The mount steps are worked out
//! in `mounts.rs`.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use nono_policy::is_within;
use nono_policy::resolved::{
    AccessRule, ClosedHow, ClosedPath, Limits, NetworkPolicy, PathKind, ResolvedPolicy, RuleAccess,
};
use nono_sys::landlock::{fs, net, scope};

use super::filter::{FilterSpec, Mediated, SocketRule};
use super::memory::{self, MemoryHold};
use super::mounts::{copies, mounts, refuse_hidden, refuse_masks};
use super::support::{Namespaces, Support};
use crate::refusal::{NoProcessLimit, Refusal};
use crate::strategy::ExecStrategy;

/// Directories and files that the caller made for this session, outside every grant. A sandbox without mounts needs
/// none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionPaths {
    pub dir: PathBuf,
    /// Mask with mode 000: what a closed directory looks like from inside.
    pub mask_dir: PathBuf,
    /// Mask with mode 000: what a closed file or socket looks like from inside.
    pub mask_file: PathBuf,
    pub empty_dir: PathBuf,
    /// Replacement for `/run`, made when granted entries have to be mounted into it.
    pub run_dir: PathBuf,
    /// Directories of sessions with another temporary directory that a writable grant contains.
    pub others: Vec<PathBuf>,
}

impl SessionPaths {
    /// Directory for the child's temporary files.
    pub fn tmp_dir(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    /// Copies mounted over closed paths: (path, copy).
    pub fn copies<'a>(&self, policy: &'a ResolvedPolicy) -> impl Iterator<Item = (&'a Path, PathBuf)> {
        let dir = self.dir.join("saved");
        let copied = policy.closed.iter().filter(|closed| closed.how == ClosedHow::Copy);
        copied.enumerate().map(move |(n, closed)| (closed.resolved.as_path(), dir.join(n.to_string())))
    }
}

/// Namespaces the child gets.
#[allow(clippy::struct_excessive_bools, reason = "one switch per kind of namespace")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    pub user: bool,
    pub mount: bool,
    pub pid: bool,
    pub ipc: bool,
    pub net: bool,
}

/// Port of the command's own loopback on which the filtering proxy listens, unless another is chosen.
pub const PROXY_PORT: u16 = 19080;

/// Place of the filtering proxy, as the command reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyPlace {
    /// On this port of the loopback of a network of its own. The launch makes the listener there and hands it out.
    Own { port: u16 },
    /// On the host's network, at the address set by [`Blueprint::proxy_at`]. Nothing can be reached before that.
    Host(Option<SocketAddrV4>),
}

impl ProxyPlace {
    /// Address that the command has to connect to.
    pub fn address(self) -> Option<SocketAddrV4> {
        match self {
            ProxyPlace::Own { port } => Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)),
            ProxyPlace::Host(address) => address,
        }
    }
}

/// One rule as Landlock takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRule {
    pub path: PathBuf,
    pub access: u64,
}

/// One change of the child's mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountStep {
    /// Copies the mounts at this path, to be put back writable.
    Keep { path: PathBuf },
    /// Makes everything read-only.
    ReadOnlyRoot,
    /// Mounts a new file system.
    Private { kind: &'static str, target: PathBuf, options: String },
    /// Mounts the replacement over the directory.
    Replace { source: PathBuf, target: PathBuf },
    /// Puts a kept copy back.
    PutBack { path: PathBuf },
    /// Keeps a directory from being renamed or removed.
    Pin { path: PathBuf },
    /// Keeps the object at a path, even if it is a link, from being changed, replaced or removed.
    Hold { path: PathBuf },
    /// Mounts a writable file over another.
    Copy { source: PathBuf, target: PathBuf },
    /// Hides a path. `must`: a failure ends the launch; otherwise a path that cannot be reached is skipped.
    Mask { source: PathBuf, target: PathBuf, must: bool },
}

/// Name on which a mask has to stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedName {
    pub path: PathBuf,
    pub cover: Cover,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cover {
    /// An empty mask.
    Nothing,
    /// The object itself, read-only.
    Itself,
    Copy(PathBuf),
}

/// Plan of everything the child will do to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blueprint {
    pub strategy: ExecStrategy,
    pub layers: Layers,
    pub handled_fs: u64,
    pub handled_net: u64,
    pub scoped: u64,
    pub rules: Vec<KernelRule>,
    /// Rules for file systems that exist only in the child's mount namespace.
    pub late_rules: Vec<KernelRule>,
    pub ports: Vec<(u16, u64)>,
    /// Place of the proxy, if the network is filtered.
    pub proxy: Option<ProxyPlace>,
    pub mounts: Vec<MountStep>,
    /// Masked names that init must watch, because a process outside may replace them.
    pub watched: Vec<WatchedName>,
    /// Names below the `/run` replacement that must exist before it is mounted: (path, is a directory).
    pub run_entries: Vec<(PathBuf, bool)>,
    /// Directories shown as copies that belong to the user: (original, copy to be made).
    pub copies: Vec<(PathBuf, PathBuf)>,
    pub(super) filter: FilterSpec,
    pub limits: Limits,
    /// Method of enforcing the memory limit, where there is one.
    pub memory: Option<MemoryHold>,
    pub workdir: PathBuf,
}

pub(super) const READ: u64 = fs::EXECUTE | fs::READ_FILE | fs::READ_DIR;
const WRITE: u64 = fs::WRITE_FILE
    | fs::REMOVE_DIR
    | fs::REMOVE_FILE
    | fs::MAKE_DIR
    | fs::MAKE_REG
    | fs::MAKE_SOCK
    | fs::MAKE_FIFO
    | fs::MAKE_SYM
    | fs::REFER
    | fs::TRUNCATE;
pub(super) const EVERYTHING: u64 = READ | WRITE;
/// First ABI in which a file cannot be truncated without write access.
const OLDEST_ABI: u32 = 3;

/// Compiles a blueprint, or returns why the policy cannot be enforced.
pub fn compile(
    policy: &ResolvedPolicy,
    support: &Support,
    strategy: ExecStrategy,
    session: &SessionPaths,
) -> Result<Blueprint, Refusal> {
    let abi = support.landlock.clone().map_err(|reason| Refusal::NoLandlock { reason })?;
    if strategy != ExecStrategy::Supervised && matches!(policy.network, NetworkPolicy::Filtered { .. }) {
        return Err(Refusal::CannotFilter { strategy });
    }
    let layers = layers(policy, support, strategy);
    check_abi(abi, policy, layers)?;
    check_limits(policy, support, layers)?;
    let handled_fs = handled_fs(abi);
    let (rules, mut late_rules) = rules(policy, layers, handled_fs);
    let (handled_net, ports) = network(policy, abi, layers);
    let memory = policy.limits.memory.map(|_| memory::hold(strategy));
    let copies = if layers.user { copies(policy, session) } else { Vec::new() };
    let copied =
        |(path, _): &(PathBuf, PathBuf)| KernelRule { path: path.clone(), access: READ & handled_fs };
    late_rules.extend(copies.iter().map(copied));
    let mut blueprint = Blueprint {
        strategy,
        layers,
        handled_fs,
        handled_net,
        scoped: if abi >= 6 { scope::ABSTRACT_UNIX_SOCKET | scope::SIGNAL } else { 0 },
        rules,
        late_rules,
        ports,
        proxy: proxy(policy, layers),
        mounts: Vec::new(),
        watched: Vec::new(),
        run_entries: Vec::new(),
        copies,
        filter: filter(policy, layers, memory.as_ref()),
        limits: policy.limits.clone(),
        memory,
        workdir: policy.workdir.clone(),
    };
    let unheld = |closed: &&ClosedPath| closed.how == ClosedHow::Mask && closed.kind == PathKind::Absent;
    if let Some(closed) = policy.closed.iter().find(unheld) {
        return Err(Refusal::CannotHold { path: closed.resolved.clone() });
    }
    if layers.mount {
        refuse_hidden(policy)?;
        mounts(&mut blueprint, policy, session);
    } else {
        refuse_masks(policy, no_namespaces(support))?;
        let mediated = strategy == ExecStrategy::Supervised && support.notify.is_ok();
        if !policy.unix_sockets.is_empty() && !mediated {
            return Err(Refusal::CannotOpenSocket { reason: no_namespaces(support).to_owned() });
        }
    }
    Ok(blueprint)
}

fn layers(policy: &ResolvedPolicy, support: &Support, strategy: ExecStrategy) -> Layers {
    let Namespaces::Available { user } = support.namespaces else { return Layers::default() };
    Layers {
        user,
        mount: true,
        // A process cannot move itself into a pid namespace, and Direct has no second one.
        pid: strategy != ExecStrategy::Direct,
        ipc: true,
        net: match &policy.network {
            NetworkPolicy::Blocked => true,
            // Ports belong to the host's network.
            NetworkPolicy::Filtered { connect, listen, .. } => connect.is_empty() && listen.is_empty(),
            NetworkPolicy::Allowed | NetworkPolicy::Ports { .. } => false,
        },
    }
}

fn proxy(policy: &ResolvedPolicy, layers: Layers) -> Option<ProxyPlace> {
    matches!(policy.network, NetworkPolicy::Filtered { .. })
        .then(|| if layers.net { ProxyPlace::Own { port: PROXY_PORT } } else { ProxyPlace::Host(None) })
}

/// Reason why there are no namespaces; empty where there are.
fn no_namespaces(support: &Support) -> &str {
    support.namespaces.missing().unwrap_or_default()
}

fn check_abi(abi: u32, policy: &ResolvedPolicy, layers: Layers) -> Result<(), Refusal> {
    let need = |needed, what| {
        if abi < needed { Err(Refusal::LandlockTooOld { abi, needed, what }) } else { Ok(()) }
    };
    need(OLDEST_ABI, "keeping files from being truncated")?;
    if !layers.pid {
        need(6, "keeping signals inside the sandbox without a pid namespace")?;
    }
    if !layers.net {
        need(6, "keeping abstract sockets closed without a network namespace")?;
    }
    match policy.network {
        NetworkPolicy::Ports { .. } => need(4, "opening the network port by port"),
        NetworkPolicy::Filtered { .. } if !layers.net => {
            need(4, "keeping the network to the filtering proxy without a network namespace")
        }
        _ => Ok(()),
    }
}

fn check_limits(policy: &ResolvedPolicy, support: &Support, layers: Layers) -> Result<(), Refusal> {
    if policy.limits.processes.is_some() && !layers.user {
        let why = match &support.namespaces {
            Namespaces::Nested => NoProcessLimit::Nested,
            Namespaces::Missing { reason } => NoProcessLimit::NoNamespaces { reason: reason.clone() },
            Namespaces::Available { .. } => NoProcessLimit::Root,
        };
        return Err(Refusal::CannotLimitProcesses { why });
    }
    Ok(())
}

fn handled_fs(abi: u32) -> u64 {
    let newest = match abi {
        0..=2 => fs::REFER,
        3..=4 => fs::TRUNCATE,
        _ => fs::IOCTL_DEV,
    };
    fs::ALL & (newest | (newest - 1))
}

/// Landlock rights of one policy rule.
fn rights(rule: &AccessRule) -> u64 {
    let mode = match rule.access {
        RuleAccess::List => return fs::READ_DIR,
        RuleAccess::Mode(mode) => mode,
    };
    let mut access = 0;
    if mode.reads() {
        access |= READ;
    }
    if mode.writes() {
        access |= WRITE;
        if rule.path.starts_with("/dev") {
            access |= fs::IOCTL_DEV;
        }
    }
    if rule.is_file { access & fs::ON_FILES } else { access }
}

/// Rules known before the fork, and those for file systems the child mounts itself.
fn rules(policy: &ResolvedPolicy, layers: Layers, handled: u64) -> (Vec<KernelRule>, Vec<KernelRule>) {
    let proc_is_private = layers.pid;
    let mut early = Vec::new();
    let mut late = Vec::new();
    for rule in &policy.rules {
        // Without masks a listing rule would show the content of closed directories below.
        if rule.access == RuleAccess::List && !(layers.mount && listing_is_safe(policy, &rule.path)) {
            continue;
        }
        let access = rights(rule) & handled;
        let entry = KernelRule { path: rule.path.clone(), access };
        if proc_is_private && rule.path.starts_with("/proc") {
            late.push(KernelRule { access: entry.access | process_writes(), ..entry });
        } else {
            early.push(entry);
        }
    }
    if layers.mount {
        let device = READ | WRITE | fs::IOCTL_DEV;
        let private =
            [("/dev/pts", device), ("/dev/ptmx", device & fs::ON_FILES), ("/dev/shm", READ | WRITE)];
        for (path, access) in private.into_iter().filter(|(path, _)| Path::new(path).exists()) {
            late.push(KernelRule { path: path.into(), access: access & handled });
        }
    }
    (early, late)
}

/// Write right for a private `/proc`: programs write to their own entries (`comm`, `oom_score_adj`, a debugger to
/// `mem`). Root does not get it: the kernel takes uid 0 for the owner of every file under `/proc/sys`, capabilities or
/// not.
fn process_writes() -> u64 {
    if nono_sys::process::uid() == 0 { 0 } else { fs::WRITE_FILE }
}

/// Whether a listing rule is safe: it covers everything below, so each closed directory there must be masked.
fn listing_is_safe(policy: &ResolvedPolicy, dir: &Path) -> bool {
    policy
        .closed
        .iter()
        .filter(|closed| is_within(&closed.resolved, dir) && closed.kind == PathKind::Directory)
        // A closed directory with openings is not masked.
        .all(|closed| !closed.has_openings)
}

fn network(policy: &ResolvedPolicy, abi: u32, layers: Layers) -> (u64, Vec<(u16, u64)>) {
    let both = net::BIND_TCP | net::CONNECT_TCP;
    match &policy.network {
        NetworkPolicy::Allowed => (0, Vec::new()),
        // With a namespace there is nothing to reach, and its own loopback must work.
        NetworkPolicy::Filtered { .. } if layers.net => (0, Vec::new()),
        NetworkPolicy::Blocked => (if abi >= 4 && !layers.net { both } else { 0 }, Vec::new()),
        NetworkPolicy::Ports { connect, listen } | NetworkPolicy::Filtered { connect, listen, .. } => {
            let connect = connect.iter().map(|port| (*port, net::CONNECT_TCP));
            (both, connect.chain(listen.iter().map(|port| (*port, net::BIND_TCP))).collect())
        }
    }
}

fn filter(policy: &ResolvedPolicy, layers: Layers, memory: Option<&MemoryHold>) -> FilterSpec {
    let sockets = match policy.network {
        NetworkPolicy::Allowed => SocketRule::Open,
        NetworkPolicy::Blocked | NetworkPolicy::Filtered { .. } if layers.net => SocketRule::OwnNetwork,
        NetworkPolicy::Blocked => SocketRule::NoInternet,
        NetworkPolicy::Ports { .. } | NetworkPolicy::Filtered { .. } => SocketRule::TcpOnly,
    };
    FilterSpec {
        sockets,
        pid_namespace: layers.pid,
        ipc_namespace: layers.ipc,
        unix_sockets: layers.mount,
        memfd: memory != Some(&MemoryHold::Polled),
        watches: true,
        mediated: Mediated::default(),
    }
}

/// Mediation wanted beyond what every supervised run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mediation {
    /// Trap opens too, to ask for approval.
    pub opens: bool,
    /// Trap opens and everything else that changes or starts something, to record it.
    pub record: bool,
    /// Go on where the kernel cannot mediate, with what that leaves open.
    pub accept_weaker: bool,
}

impl Blueprint {
    /// Adds mediation of what neither Landlock nor a namespace can judge. Where the kernel has no way to do that, the
    /// calls are closed, or the run is refused, naming what would be lost.
    pub fn mediate(mut self, wish: Mediation, support: &Support) -> Result<Blueprint, Refusal> {
        let ports = self.filter.sockets == SocketRule::TcpOnly;
        let families = Mediated {
            opens: wish.opens || wish.record,
            connects: true,
            listens: ports,
            metadata: !self.layers.mount,
            renames: self.mounts.iter().any(|step| matches!(step, MountStep::Copy { .. })),
            changes: wish.record,
            watches: true,
        };
        let refused = |what| Refusal::CannotMediate { what, reason: support.no_notify() };
        if support.notify.is_ok() {
            self.filter.mediated = families;
            self.filter.unix_sockets = true;
            return Ok(self);
        }
        if wish.opens {
            return Err(refused("asking about files at run time"));
        }
        if wish.record {
            return Err(refused("recording what the command does"));
        }
        if wish.accept_weaker {
            return Ok(self);
        }
        if ports && self.proxy.is_some() {
            return Err(refused("keeping the network to the filtering proxy alone"));
        }
        if ports {
            return Err(refused("keeping an opened port to loopback addresses"));
        }
        if families.metadata {
            return Err(refused("keeping owners, modes and times outside the write grants"));
        }
        self.filter.unix_sockets = false;
        self.filter.watches = false;
        Ok(self)
    }

    /// Sets the address of the proxy on the host, where it is there ([`ProxyPlace::Host`]). The caller keeps the socket
    /// open as long as the command runs: another process could take a port that was given up.
    #[must_use]
    pub fn proxy_at(mut self, address: SocketAddrV4) -> Blueprint {
        if let Some(ProxyPlace::Host(place)) = &mut self.proxy {
            *place = Some(address);
            self.ports.push((address.port(), net::CONNECT_TCP));
        }
        self
    }

    /// Sets the port of the proxy, where the command has a network of its own ([`ProxyPlace::Own`]).
    #[must_use]
    pub fn proxy_on(mut self, port: u16) -> Blueprint {
        if let Some(ProxyPlace::Own { port: place }) = &mut self.proxy {
            *place = port;
        }
        self
    }

    /// Calls that the supervisor has to answer.
    pub fn mediated(&self) -> Mediated {
        self.filter.mediated
    }
}

#[cfg(test)]
#[path = "blueprint_tests.rs"]
mod tests;
