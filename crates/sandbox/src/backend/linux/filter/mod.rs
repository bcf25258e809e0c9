//! The static seccomp filter: what no sandboxed program may ask of the kernel, whatever Landlock says.
//!
//! Written as families, not single calls. Anything newer than this table is answered ENOSYS, so that a new kernel does
//! not open a door nobody looked at; libraries fall back to the older call. What no rule names is allowed and, because
//! that decision does not depend on arguments, costs nothing at run time (the kernel caches it per call number).

mod bpf;
mod calls;

use bpf::{Action, Block, dispatch};
use nono_sys::seccomp::Instruction;

/// How the network looks to the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketRule {
    /// A network namespace of its own: internet sockets reach nothing but its loopback.
    OwnNetwork,
    /// No namespace and the network blocked: no internet socket at all.
    NoInternet,
    /// TCP only, ports judged by Landlock.
    TcpOnly,
    /// The host's network.
    Open,
}

/// The families of calls that are not decided here but put to the supervisor.
#[allow(clippy::struct_excessive_bools, reason = "one switch per family of calls")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mediated {
    /// Opening files, and changing the folder that relative names start from.
    pub opens: bool,
    /// Connecting a socket, to a path or an address.
    pub connects: bool,
    /// Listening on a socket that may not be bound.
    pub listens: bool,
    /// Changing owners, modes, times and attributes.
    pub metadata: bool,
    /// Renaming, where a copy stands that cannot be renamed onto.
    pub renames: bool,
    /// Starting programs and changing what is in a folder: only to be recorded, the kernel judges them.
    pub changes: bool,
    /// Watching files and folders by inotify.
    pub watches: bool,
}

impl Mediated {
    pub fn any(self) -> bool {
        self != Mediated::default()
    }
}

/// What the filter has to close because no namespace does.
#[allow(clippy::struct_excessive_bools, reason = "one switch for each thing that is closed otherwise or not")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilterSpec {
    pub(super) sockets: SocketRule,
    /// Others' processes are out of sight, so calls that name a process need no check.
    pub(super) pid_namespace: bool,
    pub(super) ipc_namespace: bool,
    /// Path sockets are masked, or connecting is mediated; without that no unix socket may be made at all.
    pub(super) unix_sockets: bool,
    /// Files without a name or place can be made (memfd): memory that no process shows.
    pub(super) memfd: bool,
    /// Files can be watched (inotify), whoever judges that.
    pub(super) watches: bool,
    pub(super) mediated: Mediated,
}

const EPERM: Action = Action::Errno(libc::EPERM);
const ENOSYS: Action = Action::Errno(libc::ENOSYS);

/// Assemble the program.
pub(super) fn compile(spec: FilterSpec) -> Vec<Instruction> {
    let mut rules = rules(spec);
    rules.sort_by_key(|(nr, _)| *nr);
    Block::new()
        .load_arch()
        .unless(calls::AUDIT_ARCH, Action::Kill)
        .load_number()
        // x32 numbers share the architecture word with x86-64.
        .when_at_least(0x4000_0000, Block::new().ret(Action::Kill))
        .when_at_least(calls::FIRST_UNKNOWN, Block::new().ret(ENOSYS))
        .then(dispatch(&rules))
        .into_program()
}

/// A program that decides nothing.
pub(super) fn allow_all() -> Vec<Instruction> {
    allow().into_program()
}

type Rules = Vec<(u32, Block)>;

/// Every call that is not simply allowed, with what decides about it.
fn rules(spec: FilterSpec) -> Rules {
    let always = |list: &[libc::c_long], action| -> Rules {
        list.iter().map(|nr| (number(*nr), Block::new().ret(action))).collect()
    };
    let mut rules = always(calls::REFUSED, EPERM);
    rules.extend(always(calls::NOT_THERE, ENOSYS));
    if !spec.ipc_namespace {
        rules.extend(always(calls::SHARED_IPC, EPERM));
    }
    if spec.pid_namespace {
        rules.push(limits_of_init());
    } else {
        rules.extend(other_processes());
    }
    rules.extend(namespaces());
    rules.extend(by_argument(spec.sockets));
    rules.extend(sockets(spec));
    if !spec.memfd {
        rules.extend(always(calls::MEMFD, ENOSYS));
    }
    if !spec.watches {
        rules.extend(always(&[libc::SYS_inotify_add_watch], Action::Errno(libc::EACCES)));
    }
    rules.extend(mediated(spec.mediated));
    rules
}

/// What the supervisor decides. `O_PATH` opens nothing that Landlock or anybody else would refuse.
fn mediated(families: Mediated) -> Rules {
    let notify = || Block::new().ret(Action::Notify);
    let every = |list: &[libc::c_long]| -> Rules { list.iter().map(|nr| (number(*nr), notify())).collect() };
    let mut rules = Rules::new();
    if families.opens {
        for (nr, flags) in calls::OPENING {
            let open =
                Block::new().load_arg(*flags, u32::MAX).when_any(calls::O_PATH, allow()).then(notify());
            rules.push((number(*nr), open));
        }
        rules.extend(every(calls::OPENING_OTHERS));
    }
    if families.connects {
        rules.extend(every(&[libc::SYS_connect]));
    }
    if families.watches {
        rules.extend(every(&[libc::SYS_inotify_add_watch]));
    }
    if families.listens {
        rules.extend(every(&[libc::SYS_listen]));
    }
    if families.metadata {
        rules.extend(every(calls::METADATA));
    }
    // A file is saved by making another one, which is renamed or removed.
    let saves = families.opens && !families.changes;
    if (families.renames || saves) && !families.changes {
        rules.extend(every(calls::RENAMES));
    }
    if saves {
        rules.extend(every(calls::REMOVALS));
    }
    if saves && !families.metadata {
        rules.extend(every(calls::MODES));
    }
    if families.changes {
        rules.extend(every(calls::CHANGES));
        // The launcher starts the command this way, before anybody answers.
        let start = Block::new().load_arg(0, u32::MAX).when(calls::AT_FDCWD, allow()).then(notify());
        rules.push((number(libc::SYS_execveat), start));
    }
    if families.any() {
        // The kernel allows one listener; a program that wants its own is told why it cannot have it.
        let own = Block::new().load_arg(1, u32::MAX).when_any(calls::NEW_LISTENER, notify()).then(allow());
        rules.push((number(libc::SYS_seccomp), own));
    }
    rules
}

fn number(nr: libc::c_long) -> u32 {
    u32::try_from(nr).unwrap_or(u32::MAX)
}

fn allow() -> Block {
    Block::new().ret(Action::Allow)
}

fn refuse() -> Block {
    Block::new().ret(EPERM)
}

/// New namespaces would give back the capabilities that were dropped.
fn namespaces() -> Rules {
    let clone = Block::new().load_arg(0, u32::MAX).when_any(calls::CLONE_NEW, refuse()).then(allow());
    let unshare = Block::new()
        .load_arg(0, u32::MAX)
        .when_any(calls::CLONE_NEW | calls::CLONE_NEWTIME, refuse())
        .then(allow());
    vec![(number(libc::SYS_clone), clone), (number(libc::SYS_unshare), unshare)]
}

/// Init has the command's uid, which is all the kernel asks for: without descriptors it could not even poll. (Its
/// scheduling is safe: there the kernel compares capabilities too.)
fn limits_of_init() -> (u32, Block) {
    let set = Block::new().when_nonzero_64(2, EPERM).then(allow());
    (number(libc::SYS_prlimit64), Block::new().load_arg(0, u32::MAX).when(1, set).then(allow()))
}

/// Limits, scheduling and priorities of anybody but the caller, where others can be named.
fn other_processes() -> Rules {
    let self_only = |arg| Block::new().load_arg(arg, u32::MAX).unless(0, EPERM).then(allow());
    // Reading another's limits (a null new limit) is harmless.
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

/// ioctl requests, fcntl commands and prctl options that reach further than their descriptor.
fn by_argument(sockets: SocketRule) -> Rules {
    let mut ioctl = Block::new().load_arg(1, u32::MAX);
    for request in calls::IOCTLS {
        ioctl = ioctl.when(*request, refuse());
    }
    if sockets == SocketRule::NoInternet {
        // A unix socket would tell of the host's interfaces, too.
        let (first, last) = calls::INTERFACES;
        ioctl = ioctl.when_at_least(last + 1, allow()).when_at_least(first, refuse());
    }
    let fcntl = Block::new()
        .load_arg(1, u32::MAX)
        .when(number(libc::F_SETLEASE.into()), refuse())
        .when(number(libc::F_NOTIFY.into()), refuse())
        .then(allow());
    // Answered "done" without doing it: a non-dumpable child could not be looked at by its supervisor.
    let dumpable =
        Block::new().load_arg(1, u32::MAX).when(0, Block::new().ret(Action::Errno(0))).then(allow());
    let prctl =
        Block::new().load_arg(0, u32::MAX).when(number(libc::PR_SET_DUMPABLE.into()), dumpable).then(allow());
    vec![
        (number(libc::SYS_ioctl), ioctl.then(allow())),
        (number(libc::SYS_fcntl), fcntl),
        (number(libc::SYS_prctl), prctl),
    ]
}

fn sockets(spec: FilterSpec) -> Rules {
    let no_family = Action::Errno(libc::EAFNOSUPPORT);
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

/// Streams only: a datagram socket can send to any path without connecting.
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

/// Pairs of every type. One of datagrams can send to any path, too: where the supervisor connects sockets, it makes a
/// pair that cannot; where paths are masked, they are closed to it as to a stream.
fn pair(spec: FilterSpec) -> Block {
    let datagrams = if spec.mediated.connects {
        Block::new().ret(Action::Notify)
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
        SocketRule::NoInternet => return Block::new().ret(Action::Errno(libc::EACCES)),
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
    let by_protocol = by_protocol.ret(Action::Errno(libc::EPROTONOSUPPORT));
    let mut block =
        Block::new().load_arg(1, TYPE_MASK).when(number(libc::SOCK_STREAM.into()), by_protocol.clone());
    if rule != SocketRule::TcpOnly {
        block = block.when(number(libc::SOCK_DGRAM.into()), by_protocol);
    }
    block.then(refuse())
}

/// The routing family, which name lookups and interface lists use; changing anything needs capabilities. Of a network that
/// is neither the command's own nor open to it, it would tell the addresses. Libraries do without it where it does not
/// exist.
fn netlink(rule: SocketRule) -> Block {
    if !matches!(rule, SocketRule::OwnNetwork | SocketRule::Open) {
        return Block::new().ret(ENOSYS);
    }
    Block::new().load_arg(2, u32::MAX).unless(0, Action::Errno(libc::EPROTONOSUPPORT)).then(allow())
}

#[cfg(test)]
mod tests;
