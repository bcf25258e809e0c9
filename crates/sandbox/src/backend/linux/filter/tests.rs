use super::bpf::{FilteredCall, interpret};
use super::*;

const NOTHING: Mediated = Mediated {
    opens: false,
    connects: false,
    listens: false,
    metadata: false,
    renames: false,
    changes: false,
    watches: false,
};
const EVERYTHING: Mediated = Mediated {
    opens: true,
    connects: true,
    listens: true,
    metadata: true,
    renames: true,
    changes: true,
    watches: true,
};
const NAMESPACED: FilterSpec = FilterSpec {
    sockets: SocketRule::OwnNetwork,
    pid_namespace: true,
    ipc_namespace: true,
    unix_sockets: true,
    memfd: true,
    watches: true,
    mediated: NOTHING,
};
const BARE: FilterSpec = FilterSpec {
    sockets: SocketRule::NoInternet,
    pid_namespace: false,
    ipc_namespace: false,
    unix_sockets: false,
    memfd: false,
    watches: false,
    mediated: NOTHING,
};

fn ask(spec: FilterSpec, nr: libc::c_long, args: [u64; 6]) -> u32 {
    interpret(&compile(spec), FilteredCall { arch: calls::AUDIT_ARCH, nr: number(nr), args })
}

fn args(list: &[u64]) -> [u64; 6] {
    let mut all = [0; 6];
    all[..list.len()].copy_from_slice(list);
    all
}

fn errno(code: i32) -> u32 {
    FilterAction::Errno(code).code()
}

const ALLOW: u32 = 0x7fff_0000;
const HIGH: u64 = 1 << 32;

#[test]
fn wrong_architectures_are_killed() {
    let call = FilteredCall { arch: 0x4000_0003, nr: 5, args: [0; 6] };
    assert_eq!(interpret(&compile(NAMESPACED), call), FilterAction::Kill.code());
    let x32 = FilteredCall { arch: calls::AUDIT_ARCH, nr: 0x4000_0000 | 2, args: [0; 6] };
    assert_eq!(interpret(&compile(NAMESPACED), x32), FilterAction::Kill.code());
}

#[test]
fn unknown_numbers_do_not_exist() {
    for nr in [463, 469, 500, 100_000] {
        assert_eq!(ask(NAMESPACED, nr, [0; 6]), errno(libc::ENOSYS), "{nr}");
    }
    assert_eq!(ask(NAMESPACED, libc::SYS_clone3, [0; 6]), errno(libc::ENOSYS));
}

#[test]
fn ordinary_calls_pass() {
    for nr in [
        libc::SYS_openat,
        libc::SYS_read,
        libc::SYS_execve,
        libc::SYS_ptrace,
        libc::SYS_futex,
        libc::SYS_close_range,
    ] {
        for spec in [NAMESPACED, BARE] {
            assert_eq!(ask(spec, nr, [0; 6]), ALLOW, "{nr}");
        }
    }
}

#[test]
fn only_the_low_half_of_an_int_counts() {
    let inet = u64::from(number(libc::AF_INET.into()));
    assert_eq!(ask(BARE, libc::SYS_socket, args(&[HIGH | inet, 1, 0])), errno(libc::EACCES));
    assert_eq!(ask(NAMESPACED, libc::SYS_ioctl, args(&[0, HIGH | 0x5412])), errno(libc::EPERM));
    assert_eq!(ask(NAMESPACED, libc::SYS_clone, args(&[HIGH | 0x1000_0000])), errno(libc::EPERM));
}

#[test]
fn unix_sockets_are_streams() {
    let unix = |kind, spec| ask(spec, libc::SYS_socket, args(&[1, kind, 0]));
    let cloexec = 0o2_000_000;
    assert_eq!(unix(1 | cloexec, NAMESPACED), ALLOW);
    assert_eq!(unix(5, NAMESPACED), ALLOW);
    assert_eq!(unix(2, NAMESPACED), errno(libc::EPERM));
    assert_eq!(unix(3, NAMESPACED), errno(libc::EPERM), "SOCK_RAW is turned into a datagram socket");
    assert_eq!(unix(1, BARE), errno(libc::EPERM));
    assert_eq!(ask(BARE, libc::SYS_socketpair, args(&[1, 1, 0])), ALLOW);
}

#[test]
fn pairs_of_datagrams_are_closed_where_paths_are_not() {
    let mediated = FilterSpec { mediated: EVERYTHING, ..BARE };
    // SOCK_RAW is turned into a datagram socket.
    for kind in [2, 3, HIGH | 2] {
        let pair = |spec| ask(spec, libc::SYS_socketpair, args(&[1, kind, 0]));
        assert_eq!(pair(NAMESPACED), ALLOW, "masked");
        assert_eq!(pair(BARE), errno(libc::EPERM));
        assert_eq!(pair(mediated), FilterAction::Notify.code());
    }
    assert_eq!(ask(mediated, libc::SYS_socketpair, args(&[1, 1, 0])), ALLOW, "streams need no supervisor");
    assert_eq!(ask(NAMESPACED, libc::SYS_socketpair, args(&[1, 4, 0])), errno(libc::EPERM));
}

#[test]
fn watches_are_judged_or_closed() {
    let watch = |spec| ask(spec, libc::SYS_inotify_add_watch, [0; 6]);
    assert_eq!(watch(FilterSpec { mediated: EVERYTHING, ..NAMESPACED }), FilterAction::Notify.code());
    assert_eq!(watch(NAMESPACED), ALLOW, "no supervisor to judge it");
    assert_eq!(watch(BARE), errno(libc::EACCES));
}

#[test]
fn invisible_memory_is_denied_where_memory_is_polled() {
    for nr in calls::MEMFD {
        assert_eq!(ask(NAMESPACED, *nr, [0; 6]), ALLOW, "{nr}");
        assert_eq!(ask(BARE, *nr, [0; 6]), errno(libc::ENOSYS), "{nr}");
    }
}

#[test]
fn the_clock_and_segments_are_closed() {
    for spec in [NAMESPACED, BARE] {
        assert_eq!(ask(spec, libc::SYS_adjtimex, [0; 6]), errno(libc::EPERM));
        assert_eq!(ask(spec, libc::SYS_clock_adjtime, [0; 6]), errno(libc::EPERM));
        #[cfg(target_arch = "x86_64")]
        assert_eq!(ask(spec, libc::SYS_modify_ldt, [0; 6]), errno(libc::ENOSYS));
    }
}

#[test]
fn interfaces_of_the_host_are_told_only_with_the_network() {
    let route = |sockets| ask(FilterSpec { sockets, ..NAMESPACED }, libc::SYS_socket, args(&[16, 3, 0]));
    assert_eq!(route(SocketRule::Open), ALLOW);
    assert_eq!(route(SocketRule::OwnNetwork), ALLOW);
    assert_eq!(route(SocketRule::NoInternet), errno(libc::ENOSYS));
    assert_eq!(route(SocketRule::TcpOnly), errno(libc::ENOSYS));
    let ioctl = |spec, request| ask(spec, libc::SYS_ioctl, args(&[3, request]));
    for request in [0x8910, 0x8912, 0x8927, 0x8946, 0x89ff, HIGH | 0x8912] {
        assert_eq!(ioctl(BARE, request), errno(libc::EPERM), "{request:#x}");
        assert_eq!(ioctl(NAMESPACED, request), ALLOW, "{request:#x}");
    }
    for request in [0x541b, 0x5411, 0x8905, 0x8906, 0x8a00, 0x4004_667f] {
        assert_eq!(ioctl(BARE, request), ALLOW, "{request:#x}");
    }
}

#[test]
fn families_that_do_not_exist() {
    for family in [0, 3, 9, 17, 38, 40, 44] {
        assert_eq!(
            ask(NAMESPACED, libc::SYS_socket, args(&[family, 1, 0])),
            errno(libc::EAFNOSUPPORT),
            "{family}"
        );
    }
    assert_eq!(ask(NAMESPACED, libc::SYS_socket, args(&[16, 3, 0])), ALLOW, "route netlink");
    assert_eq!(
        ask(NAMESPACED, libc::SYS_socket, args(&[16, 3, 9])),
        errno(libc::EPROTONOSUPPORT),
        "audit netlink"
    );
    assert_eq!(ask(NAMESPACED, libc::SYS_socket, args(&[2, 3, 1])), errno(libc::EPERM), "raw");
}

#[test]
fn tcp_only_is_tcp_only() {
    let spec = FilterSpec { sockets: SocketRule::TcpOnly, ..NAMESPACED };
    let inet = |kind, protocol| ask(spec, libc::SYS_socket, args(&[2, kind, protocol]));
    assert_eq!(inet(1, 0), ALLOW);
    assert_eq!(inet(1, 6), ALLOW);
    assert_eq!(inet(1, 262), errno(libc::EPROTONOSUPPORT));
    assert_eq!(inet(2, 0), errno(libc::EPERM));
    assert_eq!(ask(spec, libc::SYS_sendto, args(&[3, 0, 0, 0x2000_0000])), errno(libc::EPERM));
    assert_eq!(ask(spec, libc::SYS_sendmsg, args(&[3, 0, 0x2000_0000])), errno(libc::EPERM));
    assert_eq!(ask(spec, libc::SYS_sendto, args(&[3, 0, 0, 0x4000])), ALLOW);
}

#[test]
fn others_cannot_be_named_without_a_pid_namespace() {
    let bare = |nr, list: &[u64]| ask(BARE, nr, args(list));
    assert_eq!(bare(libc::SYS_prlimit64, &[0, 7, 0x1000]), ALLOW);
    assert_eq!(bare(libc::SYS_prlimit64, &[4711, 7, 0]), ALLOW, "reading");
    assert_eq!(bare(libc::SYS_prlimit64, &[4711, 7, 0x1000]), errno(libc::EPERM));
    assert_eq!(bare(libc::SYS_prlimit64, &[4711, 7, HIGH]), errno(libc::EPERM), "pointer above 4 GiB");
    assert_eq!(bare(libc::SYS_sched_setaffinity, &[4711, 8, 1]), errno(libc::EPERM));
    assert_eq!(bare(libc::SYS_setpriority, &[0, 0, 5]), ALLOW);
    assert_eq!(bare(libc::SYS_setpriority, &[2, 0, 5]), errno(libc::EPERM));
    assert_eq!(bare(libc::SYS_ioprio_set, &[1, 0, 5]), ALLOW);
    assert_eq!(bare(libc::SYS_ioprio_set, &[3, 0, 5]), errno(libc::EPERM));
    assert_eq!(ask(NAMESPACED, libc::SYS_prlimit64, args(&[4711, 7, 0x1000])), ALLOW);
    assert_eq!(
        ask(NAMESPACED, libc::SYS_prlimit64, args(&[1, 7, 0x1000])),
        errno(libc::EPERM),
        "init's limits"
    );
    assert_eq!(ask(NAMESPACED, libc::SYS_prlimit64, args(&[HIGH | 1, 7, 0x1000])), errno(libc::EPERM));
    assert_eq!(ask(NAMESPACED, libc::SYS_prlimit64, args(&[1, 7, 0])), ALLOW, "reading them");
}

#[test]
fn dumpable_is_answered_and_ignored() {
    assert_eq!(ask(NAMESPACED, libc::SYS_prctl, args(&[4, 0])), errno(0));
    assert_eq!(ask(NAMESPACED, libc::SYS_prctl, args(&[4, 1])), ALLOW);
    assert_eq!(ask(NAMESPACED, libc::SYS_prctl, args(&[15, 0])), ALLOW);
}

#[test]
fn every_table_fits_its_jumps() {
    for sockets in [SocketRule::OwnNetwork, SocketRule::NoInternet, SocketRule::TcpOnly, SocketRule::Open] {
        for bits in 0..8 {
            let spec = FilterSpec {
                sockets,
                pid_namespace: bits & 1 != 0,
                ipc_namespace: bits & 2 != 0,
                unix_sockets: bits & 4 != 0,
                memfd: bits & 2 != 0,
                // Mediated by a supervisor, or closed without one.
                watches: bits & 1 != 0,
                mediated: if bits & 1 != 0 { EVERYTHING } else { NOTHING },
            };
            assert!(compile(spec).len() < 4096);
            let mut numbers: Vec<u32> = rules(spec).into_iter().map(|(nr, _)| nr).collect();
            numbers.sort_unstable();
            assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "two rules for one call");
        }
    }
}

#[test]
fn mediated_families_are_put_to_the_supervisor() {
    let notify = FilterAction::Notify.code();
    let spec = FilterSpec { mediated: EVERYTHING, ..NAMESPACED };
    for nr in [libc::SYS_openat, libc::SYS_openat2, libc::SYS_chdir, libc::SYS_connect, libc::SYS_listen] {
        assert_eq!(ask(spec, nr, [0; 6]), notify, "{nr}");
        assert_eq!(ask(NAMESPACED, nr, [0; 6]), ALLOW, "{nr}");
    }
    for nr in calls::METADATA {
        assert_eq!(ask(spec, *nr, [0; 6]), notify, "{nr}");
    }
    for nr in calls::CHANGES {
        assert_eq!(ask(spec, *nr, [0; 6]), notify, "{nr}");
        let asking =
            FilterSpec { mediated: Mediated { changes: false, renames: false, ..EVERYTHING }, ..NAMESPACED };
        let saves = calls::RENAMES.contains(nr) || calls::REMOVALS.contains(nr);
        assert_eq!(ask(asking, *nr, [0; 6]), if saves { notify } else { ALLOW }, "{nr}: nothing is recorded");
    }
    let asking = FilterSpec { mediated: Mediated { opens: true, ..NOTHING }, ..NAMESPACED };
    for nr in calls::MODES {
        assert_eq!(ask(asking, *nr, [0; 6]), notify, "{nr}");
        assert_eq!(ask(NAMESPACED, *nr, [0; 6]), ALLOW, "{nr}");
    }
    assert_eq!(ask(spec, libc::SYS_execveat, args(&[5])), notify);
    let from_here = u64::from(calls::AT_FDCWD);
    assert_eq!(ask(spec, libc::SYS_execveat, args(&[from_here])), ALLOW, "the launcher's own");
    let named = args(&[0, 0, u64::from(calls::O_PATH)]);
    assert_eq!(ask(spec, libc::SYS_openat, named), ALLOW, "O_PATH opens nothing");
    assert_eq!(ask(spec, libc::SYS_openat, args(&[0, 0, HIGH * u64::from(calls::O_PATH)])), notify);
    assert_eq!(ask(spec, libc::SYS_seccomp, args(&[1, u64::from(calls::NEW_LISTENER)])), notify);
    assert_eq!(ask(spec, libc::SYS_seccomp, args(&[1, 0])), ALLOW);
}

#[test]
fn a_judged_address_cannot_be_reached_by_a_detour() {
    let ports = FilterSpec { sockets: SocketRule::TcpOnly, ..NAMESPACED };
    let set = |spec, level: i32, option: i32| {
        let word = |value: i32| u64::from(value.unsigned_abs());
        ask(spec, libc::SYS_setsockopt, args(&[3, word(level) | HIGH, word(option)]))
    };
    for (level, options) in calls::DETOURS {
        for option in *options {
            assert_eq!(set(ports, *level, *option), EPERM.code(), "{level} {option}");
            assert_eq!(set(NAMESPACED, *level, *option), ALLOW, "{level} {option}");
        }
    }
    assert_eq!(set(ports, libc::SOL_SOCKET, libc::SO_REUSEADDR), ALLOW);
    assert_eq!(set(ports, libc::IPPROTO_TCP, libc::TCP_NODELAY), ALLOW);
}
