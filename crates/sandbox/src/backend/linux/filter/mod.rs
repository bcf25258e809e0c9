//! Static seccomp filter: system calls that no sandboxed program may make, whatever Landlock says.
//!
//! Written as families, not single calls. Any call newer than this table is answered with ENOSYS, so that a new kernel
//! does not open something that was never reviewed; libraries fall back to the older call. What no rule names is
//! allowed and, because that decision does not depend on arguments, costs nothing at run time (the kernel caches it per
//! call number).

mod bpf;
mod calls;

use bpf::{Block, FilterAction, dispatch};
pub use calls::{MODES, REMOVALS};
use nono_sys::seccomp::Instruction;

/// Network as the filter sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketRule {
    /// Network namespace of its own: internet sockets reach nothing but its loopback.
    OwnNetwork,
    /// No namespace and the network blocked: no internet socket at all.
    NoInternet,
    /// TCP only, ports judged by Landlock.
    TcpOnly,
    /// Network of the host.
    Open,
}

/// Families of calls that are not decided here but by the supervisor.
#[allow(clippy::struct_excessive_bools, reason = "one switch per family of calls")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mediated {
    /// Opening files, and changing the working directory.
    pub opens: bool,
    /// Connecting a socket, to a path or an address.
    pub connects: bool,
    /// Listening on a socket that may not be bound.
    pub listens: bool,
    /// Changing owners, modes, times and attributes.
    pub metadata: bool,
    /// Renaming, where a copy is mounted that cannot be renamed onto.
    pub renames: bool,
    /// Starting programs and changing directories: only recorded, the kernel judges them.
    pub changes: bool,
    /// Watching files and directories with inotify.
    pub watches: bool,
}

impl Mediated {
    pub fn any(self) -> bool {
        self != Mediated::default()
    }
}

/// Settings of the filter: what it has to close because no namespace does.
#[allow(clippy::struct_excessive_bools, reason = "one switch for each thing that is closed otherwise or not")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilterSpec {
    pub(super) sockets: SocketRule,
    /// Whether processes outside are invisible, so that calls that name a process need no check.
    pub(super) pid_namespace: bool,
    pub(super) ipc_namespace: bool,
    /// Whether path sockets are masked or connecting is mediated; without that no unix socket may be made at all.
    pub(super) unix_sockets: bool,
    /// Whether anonymous files (memfd) can be made: memory that no process shows.
    pub(super) memfd: bool,
    /// Whether files can be watched (inotify), mediated or not.
    pub(super) watches: bool,
    pub(super) mediated: Mediated,
}

const EPERM: FilterAction = FilterAction::Errno(libc::EPERM);
const ENOSYS: FilterAction = FilterAction::Errno(libc::ENOSYS);

/// Assembles the program.
pub(super) fn compile(spec: FilterSpec) -> Vec<Instruction> {
    let mut rules = rules(spec);
    rules.sort_by_key(|(nr, _)| *nr);
    Block::new()
        .load_arch()
        .unless(calls::AUDIT_ARCH, FilterAction::Kill)
        .load_number()
        // x32 numbers share the architecture word with x86-64.
        .when_at_least(0x4000_0000, Block::new().ret(FilterAction::Kill))
        .when_at_least(calls::FIRST_UNKNOWN, Block::new().ret(ENOSYS))
        .then(dispatch(&rules))
        .into_program()
}

/// Program that allows everything.
pub(super) fn allow_all() -> Vec<Instruction> {
    allow().into_program()
}

type Rules = Vec<(u32, Block)>;

/// Rules for every call that is not simply allowed.
fn rules(spec: FilterSpec) -> Rules {
    let mut rules = Rules::new();
    let always: [(bool, &[libc::c_long], FilterAction); 5] = [
        (true, calls::REFUSED, EPERM),
        (true, calls::NOT_THERE, ENOSYS),
        (!spec.ipc_namespace, calls::SHARED_IPC, EPERM),
        (!spec.memfd, calls::MEMFD, ENOSYS),
        (!spec.watches, &[libc::SYS_inotify_add_watch], FilterAction::Errno(libc::EACCES)),
    ];
    for (_, list, action) in always.into_iter().filter(|(closed, ..)| *closed) {
        rules.extend(list.iter().map(|nr| (number(*nr), Block::new().ret(action))));
    }
    if spec.pid_namespace {
        rules.push(limits_of_init());
    } else {
        rules.extend(other_processes());
    }
    rules.extend(namespaces());
    rules.extend(by_argument(spec.sockets));
    rules.extend(sockets(spec));
    rules.extend(mediated(spec.mediated));
    rules
}

/// Rules for calls that the supervisor decides. `O_PATH` opens nothing that Landlock or the supervisor would refuse.
fn mediated(families: Mediated) -> Rules {
    let notify = || Block::new().ret(FilterAction::Notify);
    // A file is saved by making another one, which is renamed or removed.
    let saves = families.opens && !families.changes;
    let whole: [(bool, &[libc::c_long]); 9] = [
        (families.opens, calls::OPENING_OTHERS),
        (families.connects, &[libc::SYS_connect]),
        (families.watches, &[libc::SYS_inotify_add_watch]),
        (families.listens, &[libc::SYS_listen]),
        (families.metadata, calls::METADATA),
        ((families.renames || saves) && !families.changes, calls::RENAMES),
        (saves, calls::REMOVALS),
        (saves && !families.metadata, calls::MODES),
        (families.changes, calls::CHANGES),
    ];
    let mut rules = Rules::new();
    for (_, list) in whole.into_iter().filter(|(wanted, _)| *wanted) {
        rules.extend(list.iter().map(|nr| (number(*nr), notify())));
    }
    if families.opens {
        for (nr, flags) in calls::OPENING {
            let open =
                Block::new().load_arg(*flags, u32::MAX).when_any(calls::O_PATH, allow()).then(notify());
            rules.push((number(*nr), open));
        }
    }
    if families.changes {
        // The launcher starts the command this way, before the supervisor answers.
        let start = Block::new().load_arg(0, u32::MAX).when(calls::AT_FDCWD, allow()).then(notify());
        rules.push((number(libc::SYS_execveat), start));
    }
    if families.any() {
        // The kernel allows one listener; a program that wants its own is told why it cannot have one.
        let own = Block::new().load_arg(1, u32::MAX).when_any(calls::NEW_LISTENER, notify()).then(allow());
        rules.push((number(libc::SYS_seccomp), own));
    }
    rules
}

fn number(nr: libc::c_long) -> u32 {
    u32::try_from(nr).unwrap_or(u32::MAX)
}

fn allow() -> Block {
    Block::new().ret(FilterAction::Allow)
}

fn refuse() -> Block {
    Block::new().ret(EPERM)
}

/// Rules against new namespaces, which would give back the capabilities that were dropped.
fn namespaces() -> Rules {
    let clone = Block::new().load_arg(0, u32::MAX).when_any(calls::CLONE_NEW, refuse()).then(allow());
    let unshare = Block::new()
        .load_arg(0, u32::MAX)
        .when_any(calls::CLONE_NEW | calls::CLONE_NEWTIME, refuse())
        .then(allow());
    vec![(number(libc::SYS_clone), clone), (number(libc::SYS_unshare), unshare)]
}

/// Rule that protects init's limits. Init has the command's uid, which is all the kernel checks: without descriptors it
/// could not even poll. (Its scheduling is safe: there the kernel compares capabilities too.)
fn limits_of_init() -> (u32, Block) {
    let set = Block::new().when_nonzero_64(2, EPERM).then(allow());
    (number(libc::SYS_prlimit64), Block::new().load_arg(0, u32::MAX).when(1, set).then(allow()))
}

/// Rules for limits, scheduling and priorities of other processes, where they can be named.
fn other_processes() -> Rules {
    let self_only = |arg| Block::new().load_arg(arg, u32::MAX).unless(0, EPERM).then(allow());
    // Reading the limits of another process (a null new limit) is harmless.
    let prlimit = Block::new().load_arg(0, u32::MAX).when(0, allow()).when_nonzero_64(2, EPERM).then(allow());
    let whose = |process: u32| {
        Block::new()
            .load_arg(0, u32::MAX)
            .unless(process, EPERM)
            .load_arg(1, u32::MAX)
            .unless(0, EPERM)
            .then(allow())
    };
    let mut rules = vec![
        (number(libc::SYS_prlimit64), prlimit),
        (number(libc::SYS_setpriority), whose(0)),
        (number(libc::SYS_ioprio_set), whose(1)),
    ];
    rules.extend(calls::SCHEDULING.iter().map(|nr| (number(*nr), self_only(0))));
    rules
}

/// Rules for ioctl requests, fcntl commands and prctl options that reach further than their descriptor.
fn by_argument(sockets: SocketRule) -> Rules {
    let mut ioctl = Block::new().load_arg(1, u32::MAX);
    for request in calls::IOCTLS {
        ioctl = ioctl.when(*request, refuse());
    }
    if sockets == SocketRule::NoInternet {
        // A unix socket would reveal the host's interfaces, too.
        let (first, last) = calls::INTERFACES;
        ioctl = ioctl.when_at_least(last + 1, allow()).when_at_least(first, refuse());
    }
    let fcntl = Block::new()
        .load_arg(1, u32::MAX)
        .when(number(libc::F_SETLEASE.into()), refuse())
        .when(number(libc::F_NOTIFY.into()), refuse())
        .then(allow());
    // Answered with success without doing it: the supervisor could not inspect a non-dumpable child.
    let dumpable =
        Block::new().load_arg(1, u32::MAX).when(0, Block::new().ret(FilterAction::Errno(0))).then(allow());
    let prctl =
        Block::new().load_arg(0, u32::MAX).when(number(libc::PR_SET_DUMPABLE.into()), dumpable).then(allow());
    vec![
        (number(libc::SYS_ioctl), ioctl.then(allow())),
        (number(libc::SYS_fcntl), fcntl),
        (number(libc::SYS_prctl), prctl),
    ]
}

fn sockets(spec: FilterSpec) -> Rules {
    let no_family = FilterAction::Errno(libc::EAFNOSUPPORT);
    let inet = internet(spec.sockets);
    let socket = Block::new()
        .load_arg(0, u32::MAX)
        .when(number(libc::AF_UNIX.into()), unix(spec.unix_sockets))
        .when(number(libc::AF_INET.into()), inet.clone())
        .when(number(libc::AF_INET6.into()), inet)
        .when(number(libc::AF_NETLINK.into()), netlink(spec.sockets))
        .ret(no_family);
    let pair =
        Block::new().load_arg(0, u32::MAX).unless(number(libc::AF_UNIX.into()), no_family).then(pair(spec));
    let mut rules = vec![(number(libc::SYS_socket), socket), (number(libc::SYS_socketpair), pair)];
    if spec.sockets == SocketRule::TcpOnly {
        // Fast open connects without the connect call that Landlock judges.
        for (nr, flags) in calls::SENDING {
            let fast_open =
                Block::new().load_arg(*flags, u32::MAX).when_any(calls::MSG_FASTOPEN, refuse()).then(allow());
            rules.push((number(*nr), fast_open));
        }
        rules.push((number(libc::SYS_setsockopt), detours()));
    }
    rules
}

fn detours() -> Block {
    let mut by_level = Block::new().load_arg(1, u32::MAX);
    for (level, options) in calls::DETOURS {
        let mut by_option = Block::new().load_arg(2, u32::MAX);
        for option in *options {
            by_option = by_option.when(number((*option).into()), refuse());
        }
        by_level = by_level.when(number((*level).into()), by_option.then(allow()));
    }
    by_level.then(allow())
}

const TYPE_MASK: u32 = 0xf;

/// Rule for unix sockets: streams only, since a datagram socket can send to any path without connecting.
fn unix(may_exist: bool) -> Block {
    if !may_exist {
        return refuse();
    }
    Block::new()
        .load_arg(1, TYPE_MASK)
        .when(number(libc::SOCK_STREAM.into()), allow())
        .when(number(libc::SOCK_SEQPACKET.into()), allow())
        .then(refuse())
}

/// Rule for socket pairs of every type. A datagram pair can send to any path, too: where the supervisor connects
/// sockets, it makes a pair that cannot; where paths are masked, they are closed to it as to a stream.
fn pair(spec: FilterSpec) -> Block {
    let datagrams = if spec.mediated.connects {
        Block::new().ret(FilterAction::Notify)
    } else if spec.unix_sockets {
        allow()
    } else {
        refuse()
    };
    Block::new()
        .load_arg(1, TYPE_MASK)
        .when(number(libc::SOCK_DGRAM.into()), datagrams.clone())
        .when(number(libc::SOCK_RAW.into()), datagrams)
        .then(unix(true))
}

fn internet(rule: SocketRule) -> Block {
    let protocols: &[libc::c_int] = match rule {
        SocketRule::NoInternet => return Block::new().ret(FilterAction::Errno(libc::EACCES)),
        SocketRule::TcpOnly => &[0, libc::IPPROTO_TCP],
        SocketRule::OwnNetwork | SocketRule::Open => &[
            0,
            libc::IPPROTO_TCP,
            libc::IPPROTO_UDP,
            libc::IPPROTO_ICMP,
            libc::IPPROTO_ICMPV6,
            calls::IPPROTO_MPTCP,
        ],
    };
    let mut by_protocol = Block::new().load_arg(2, u32::MAX);
    for protocol in protocols {
        by_protocol = by_protocol.when(number((*protocol).into()), allow());
    }
    let by_protocol = by_protocol.ret(FilterAction::Errno(libc::EPROTONOSUPPORT));
    let mut block =
        Block::new().load_arg(1, TYPE_MASK).when(number(libc::SOCK_STREAM.into()), by_protocol.clone());
    if rule != SocketRule::TcpOnly {
        block = block.when(number(libc::SOCK_DGRAM.into()), by_protocol);
    }
    block.then(refuse())
}

/// Rule for netlink: only the routing family, which name lookups and interface lists use; changing anything needs
/// capabilities. In a network that is neither the command's own nor open to it, it would reveal the addresses.
/// Libraries do without it where it does not exist.
fn netlink(rule: SocketRule) -> Block {
    if !matches!(rule, SocketRule::OwnNetwork | SocketRule::Open) {
        return Block::new().ret(ENOSYS);
    }
    Block::new().load_arg(2, u32::MAX).unless(0, FilterAction::Errno(libc::EPROTONOSUPPORT)).then(allow())
}

#[cfg(test)]
mod tests;
