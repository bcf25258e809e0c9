//! Compilation: policy and kernel facts in, a printable plan of enforcement out.
//!
//! Nothing is performed here except looking at what exists (`/dev/shm`, bound sockets). Mount steps come in the order
//! they are performed: copies of the writable grants first, then everything read-only, then private file systems, then
//! the writable grants back in, and the masks on top, so that nothing later can uncover what an earlier step closed.

use std::path::{Path, PathBuf};

use nono_policy::is_within;
use nono_policy::resolved::{
    ClosedHow, ClosedPath, Limits, NetworkPolicy, PathKind, ResolvedPolicy, Rule, RuleAccess,
};
use nono_sys::landlock::{fs, net, scope};

use super::filter::{FilterSpec, SocketRule};
use super::sockets::bound_sockets;
use super::support::{Namespaces, Support};
use crate::refusal::Refusal;
use crate::strategy::ExecStrategy;

/// Folders and files the edge made for this session, outside every grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPaths {
    pub dir: PathBuf,
    /// Mode 000: what a closed directory looks like from inside.
    pub mask_dir: PathBuf,
    /// Mode 000: what a closed file or socket looks like from inside.
    pub mask_file: PathBuf,
    /// An empty folder.
    pub empty_dir: PathBuf,
    /// A stand-in for `/run`, made when granted entries have to be mounted into it.
    pub run_dir: PathBuf,
}

impl SessionPaths {
    /// For a sandbox without mounts, which needs none of them.
    pub fn none() -> SessionPaths {
        let nowhere = PathBuf::new;
        SessionPaths {
            dir: nowhere(),
            mask_dir: nowhere(),
            mask_file: nowhere(),
            empty_dir: nowhere(),
            run_dir: nowhere(),
        }
    }
}

/// Which namespaces the child gets.
#[allow(clippy::struct_excessive_bools, reason = "one switch per kind of namespace")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    pub user: bool,
    pub mount: bool,
    pub pid: bool,
    pub ipc: bool,
    pub net: bool,
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
    /// Copy the mounts at this path, to be put back writable.
    Keep { path: PathBuf },
    /// Make everything read-only.
    ReadOnlyRoot,
    /// A new file system.
    Private { kind: &'static str, target: PathBuf, options: &'static str },
    /// Put the stand-in over the directory.
    Replace { source: PathBuf, target: PathBuf },
    /// Put a kept copy back.
    PutBack { path: PathBuf },
    /// Hide a path. `must`: a failure ends the launch; otherwise a path that cannot be reached is passed over.
    Mask { source: PathBuf, target: PathBuf, must: bool },
}

/// Everything the child will do to itself.
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
    pub mounts: Vec<MountStep>,
    /// Masked names that init must watch, because somebody outside may replace them.
    pub watched: Vec<PathBuf>,
    /// Names below the `/run` stand-in that must exist before it is mounted: (path, is a directory).
    pub run_entries: Vec<(PathBuf, bool)>,
    /// Folders shown as copies that belong to the user: (original, copy to be made).
    pub copies: Vec<(PathBuf, PathBuf)>,
    pub(super) filter: FilterSpec,
    pub limits: Limits,
    pub workdir: PathBuf,
}

const READ: u64 = fs::EXECUTE | fs::READ_FILE | fs::READ_DIR;
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
/// Below this ABI a file could be emptied without write access.
const OLDEST_ABI: u32 = 3;

/// Compile, or say why it cannot be enforced.
pub fn compile(
    policy: &ResolvedPolicy,
    support: &Support,
    strategy: ExecStrategy,
    session: &SessionPaths,
) -> Result<Blueprint, Refusal> {
    let abi = support.landlock.clone().map_err(|reason| Refusal::NoLandlock { reason })?;
    let layers = layers(policy, support, strategy);
    check_abi(abi, policy, layers)?;
    check_limits(policy, support, layers)?;
    let handled_fs = handled_fs(abi);
    let (rules, mut late_rules) = rules(policy, layers, handled_fs);
    let (handled_net, ports) = network(policy, abi, layers);
    let mut blueprint = Blueprint {
        strategy,
        layers,
        handled_fs,
        handled_net,
        scoped: if abi >= 6 { scope::ABSTRACT_UNIX_SOCKET | scope::SIGNAL } else { 0 },
        rules,
        late_rules: Vec::new(),
        ports,
        mounts: Vec::new(),
        watched: Vec::new(),
        run_entries: Vec::new(),
        copies: if layers.user { copies(policy, session) } else { Vec::new() },
        filter: filter(policy, layers),
        limits: policy.limits.clone(),
        workdir: policy.workdir.clone(),
    };
    let copied =
        |(path, _): &(PathBuf, PathBuf)| KernelRule { path: path.clone(), access: READ & handled_fs };
    late_rules.extend(blueprint.copies.iter().map(copied));
    blueprint.late_rules = late_rules;
    if layers.mount {
        mounts(&mut blueprint, policy, session);
    } else {
        refuse_masks(policy, support)?;
        if !policy.unix_sockets.is_empty() {
            return Err(Refusal::CannotOpenSocket { reason: no_namespaces(support) });
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
        net: policy.network == NetworkPolicy::Blocked,
    }
}

fn no_namespaces(support: &Support) -> String {
    match &support.namespaces {
        Namespaces::Available { .. } => "namespaces are available".to_owned(),
        Namespaces::Missing { reason } => reason.clone(),
    }
}

fn check_abi(abi: u32, policy: &ResolvedPolicy, layers: Layers) -> Result<(), Refusal> {
    let need = |needed, what| {
        if abi < needed { Err(Refusal::LandlockTooOld { abi, needed, what }) } else { Ok(()) }
    };
    need(OLDEST_ABI, "keeping files from being emptied")?;
    if !layers.pid {
        need(6, "keeping signals inside the sandbox without a pid namespace")?;
    }
    if !layers.net {
        need(6, "keeping abstract sockets closed without a network namespace")?;
    }
    if matches!(policy.network, NetworkPolicy::Ports { .. }) {
        need(4, "opening the network port by port")?;
    }
    Ok(())
}

fn check_limits(policy: &ResolvedPolicy, support: &Support, layers: Layers) -> Result<(), Refusal> {
    if policy.limits.processes.is_some() && !layers.user {
        let reason = match &support.namespaces {
            Namespaces::Missing { reason } => reason.clone(),
            Namespaces::Available { .. } => "the kernel does not count root's processes".to_owned(),
        };
        return Err(Refusal::CannotLimitProcesses { reason });
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

/// The rights of one policy rule.
fn rights(rule: &Rule) -> u64 {
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
        // Without masks a listing rule would show what lies in closed directories below.
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

/// Programs write to their own entries (`comm`, `oom_score_adj`, a debugger to `mem`). Root does not get that: the
/// kernel takes uid 0 for the owner of every switch under `/proc/sys`, capabilities or not.
fn process_writes() -> u64 {
    if nono_sys::process::uid() == 0 { 0 } else { fs::WRITE_FILE }
}

/// A listing rule reaches everything below; it is given only if each closed directory there will be masked.
fn listing_is_safe(policy: &ResolvedPolicy, dir: &Path) -> bool {
    policy
        .closed
        .iter()
        .filter(|closed| is_within(&closed.resolved, dir) && closed.kind == PathKind::Directory)
        .all(|closed| !closed.has_openings && !closed.keep_read)
}

fn network(policy: &ResolvedPolicy, abi: u32, layers: Layers) -> (u64, Vec<(u16, u64)>) {
    let both = net::BIND_TCP | net::CONNECT_TCP;
    match &policy.network {
        NetworkPolicy::Allowed => (0, Vec::new()),
        // With a namespace there is nothing to reach, and its own loopback must work.
        NetworkPolicy::Blocked => (if abi >= 4 && !layers.net { both } else { 0 }, Vec::new()),
        NetworkPolicy::Ports { connect, listen } => {
            let connect = connect.iter().map(|port| (*port, net::CONNECT_TCP));
            (both, connect.chain(listen.iter().map(|port| (*port, net::BIND_TCP))).collect())
        }
    }
}

fn filter(policy: &ResolvedPolicy, layers: Layers) -> FilterSpec {
    let sockets = match policy.network {
        NetworkPolicy::Allowed => SocketRule::Open,
        NetworkPolicy::Blocked if layers.net => SocketRule::OwnNetwork,
        NetworkPolicy::Blocked => SocketRule::NoInternet,
        NetworkPolicy::Ports { .. } => SocketRule::TcpOnly,
    };
    FilterSpec {
        sockets,
        pid_namespace: layers.pid,
        ipc_namespace: layers.ipc,
        mount_namespace: layers.mount,
    }
}

fn refuse_masks(policy: &ResolvedPolicy, support: &Support) -> Result<(), Refusal> {
    let Some(closed) = policy.closed.iter().find(|closed| closed.how == ClosedHow::Mask) else {
        return Ok(());
    };
    let grant = policy
        .grants
        .iter()
        .find(|grant| is_within(&closed.resolved, &grant.resolved))
        .map_or_else(PathBuf::new, |grant| grant.resolved.clone());
    Err(Refusal::CannotMask { path: closed.resolved.clone(), grant, reason: no_namespaces(support) })
}

/// The mount steps, in order.
fn mounts(blueprint: &mut Blueprint, policy: &ResolvedPolicy, session: &SessionPaths) {
    let run = run_exposures(policy);
    let writable = writable_grants(policy);
    let mut steps: Vec<MountStep> = Vec::new();
    steps.extend(
        writable.iter().chain(run.iter().flatten()).map(|path| MountStep::Keep { path: path.clone() }),
    );
    if !writable.iter().any(|path| path == Path::new("/")) {
        steps.push(MountStep::ReadOnlyRoot);
    }
    steps.extend(private_file_systems(blueprint.layers));
    if let Some(run) = &run {
        blueprint.run_entries = run_entries(run, &writable);
        let source = if blueprint.run_entries.is_empty() { &session.empty_dir } else { &session.run_dir };
        steps.push(MountStep::Replace { source: source.clone(), target: "/run".into() });
    }
    steps.extend(
        blueprint
            .copies
            .iter()
            .map(|(target, source)| MountStep::Replace { source: source.clone(), target: target.clone() }),
    );
    let mut back: Vec<&PathBuf> =
        writable.iter().chain(run.iter().flatten()).filter(|path| *path != Path::new("/")).collect();
    // Parents before what lies in them, or they would cover it.
    back.sort_by_key(|path| path.components().count());
    steps.extend(back.into_iter().map(|path| MountStep::PutBack { path: path.clone() }));
    steps.extend(policy.closed.iter().filter_map(|closed| mask(closed, session)));
    steps.extend(socket_masks(policy, session));
    blueprint.watched = watched(policy, blueprint.strategy);
    blueprint.mounts = steps;
}

/// Folders whose files a program accepts only from root or from the user. In a user namespace root's files seem to
/// belong to nobody, so ssh would refuse to start; copies of the user's own say the same.
const OWNER_CHECKED: &[&str] = &["/etc/ssh/ssh_config.d"];

fn copies(policy: &ResolvedPolicy, session: &SessionPaths) -> Vec<(PathBuf, PathBuf)> {
    let granted = |dir: &Path| policy.grants.iter().any(|grant| is_within(dir, &grant.resolved));
    let filled = |dir: &Path| std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    OWNER_CHECKED
        .iter()
        .map(Path::new)
        .filter(|dir| granted(dir) && filled(dir))
        .map(|dir| (dir.to_owned(), session.dir.join(dir.file_name().unwrap_or_default())))
        .collect()
}

fn private_file_systems(layers: Layers) -> Vec<MountStep> {
    let mut steps = Vec::new();
    let mut add = |kind, target: &str, options| {
        if Path::new(target).is_dir() {
            steps.push(MountStep::Private { kind, target: target.into(), options });
        }
    };
    add("tmpfs", "/dev/shm", "mode=1777");
    add("devpts", "/dev/pts", "newinstance,ptmxmode=0666,mode=620");
    if layers.pid {
        add("proc", "/proc", "");
    }
    steps
}

/// Writable grants that no other writable grant contains.
fn writable_grants(policy: &ResolvedPolicy) -> Vec<PathBuf> {
    let writable: Vec<&PathBuf> = policy
        .grants
        .iter()
        .filter(|grant| grant.access.writes() && !grant.resolved.starts_with("/dev"))
        .map(|grant| &grant.resolved)
        .collect();
    let mut outermost: Vec<PathBuf> = writable
        .iter()
        .filter(|path| !writable.iter().any(|other| path != &other && path.starts_with(other)))
        .map(|path| (*path).clone())
        .collect();
    outermost.sort();
    outermost.dedup();
    outermost
}

/// `/run` is where the machine's services listen. It is replaced by an empty folder unless it was granted itself; what
/// was granted below it is mounted in. `None`: leave it alone.
fn run_exposures(policy: &ResolvedPolicy) -> Option<Vec<PathBuf>> {
    let run = Path::new("/run");
    if !run.is_dir() || policy.grants.iter().any(|grant| is_within(run, &grant.resolved)) {
        return None;
    }
    let wanted = policy.grants.iter().chain(&policy.unix_sockets);
    let below: Vec<&PathBuf> =
        wanted.map(|grant| &grant.resolved).filter(|path| path.starts_with(run)).collect();
    let mut exposed: Vec<PathBuf> = below
        .iter()
        .filter(|path| !below.iter().any(|other| path != &other && path.starts_with(other)))
        .map(|path| (*path).clone())
        .collect();
    exposed.sort();
    exposed.dedup();
    let writable = writable_grants(policy);
    exposed.retain(|path| !writable.contains(path));
    Some(exposed)
}

fn run_entries(exposed: &[PathBuf], writable: &[PathBuf]) -> Vec<(PathBuf, bool)> {
    let below_run =
        writable.iter().filter_map(|path| path.strip_prefix("/run").ok().map(|rest| (path, rest)));
    exposed
        .iter()
        .filter_map(|path| path.strip_prefix("/run").ok().map(|rest| (path, rest)))
        .chain(below_run)
        .map(|(path, rest)| (rest.to_owned(), path.is_dir()))
        .collect()
}

/// A closed path that exists is hidden, also where no rule reaches it: a rule cannot keep its metadata closed.
fn mask(closed: &ClosedPath, session: &SessionPaths) -> Option<MountStep> {
    if closed.has_openings {
        return None;
    }
    let source = match closed.kind {
        // Itself, read-only: it can be used and not changed.
        PathKind::Directory | PathKind::File if closed.keep_read => closed.resolved.clone(),
        PathKind::Directory => session.mask_dir.clone(),
        PathKind::File => session.mask_file.clone(),
        PathKind::Absent => return None,
    };
    Some(MountStep::Mask { source, target: closed.resolved.clone(), must: closed.how == ClosedHow::Mask })
}

/// Every path socket somebody listens on now, except the granted ones and those that `/run`'s stand-in hides.
fn socket_masks(policy: &ResolvedPolicy, session: &SessionPaths) -> Vec<MountStep> {
    let granted = |path: &Path| policy.unix_sockets.iter().any(|socket| socket.resolved == path);
    bound_sockets()
        .into_iter()
        .filter(|path| !granted(path))
        .filter(|path| !policy.closed.iter().any(|closed| is_within(path, &closed.resolved)))
        .map(|target| MountStep::Mask { source: session.mask_file.clone(), target, must: false })
        .collect()
}

/// Names whose mask somebody outside could take away; only a supervised run has an init that watches.
fn watched(policy: &ResolvedPolicy, strategy: ExecStrategy) -> Vec<PathBuf> {
    if strategy == ExecStrategy::Direct {
        return Vec::new();
    }
    let masked = policy.closed.iter().filter(|closed| closed.how == ClosedHow::Mask);
    masked.map(|closed| closed.resolved.clone()).collect()
}

#[cfg(test)]
#[path = "blueprint_tests.rs"]
mod tests;
