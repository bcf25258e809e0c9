//! Guarantees of the sandbox, the mechanism behind each, and what remains where that mechanism is missing.
//!
//! One table for three uses: `nono setup` prints it for this machine, SECURITY.md contains it, tests compare the two.

use crate::backend::Support;
use crate::strategy::ExecStrategy;

/// Guarantee: something a sandboxed command cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantee {
    pub what: &'static str,
    pub with_namespaces: GuaranteeState,
    /// The same in `wrap`, which has no pid namespace and no supervisor.
    pub direct: GuaranteeState,
    pub without_namespaces: GuaranteeState,
    /// State without a supervisor, for a guarantee that needs one.
    pub unanswered: Option<Unanswered>,
}

/// State of a guarantee where no supervisor answers trapped calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// In `run --monitor`, whose parent is confined as well.
    pub monitored: GuaranteeState,
    /// In `wrap` and `run --monitor` where there are no namespaces.
    pub bare: GuaranteeState,
    /// In `run` where the kernel has no seccomp notification: with namespaces, and without.
    pub no_listener: (GuaranteeState, GuaranteeState),
}

/// Whether a guarantee holds, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuaranteeState {
    By(&'static str),
    /// It does not hold; the text says what remains possible.
    Open(&'static str),
    /// A policy that needs it is refused.
    Refused(&'static str),
}

impl Guarantee {
    /// State of the guarantee on this machine.
    pub fn here(&self, support: &Support, strategy: ExecStrategy) -> GuaranteeState {
        let bare = support.namespaces.missing().is_some();
        let Some(without) = self.unanswered else { return self.usual(bare, strategy) };
        match strategy {
            ExecStrategy::Supervised if support.notify.is_ok() => self.usual(bare, strategy),
            ExecStrategy::Supervised if bare => without.no_listener.1,
            ExecStrategy::Supervised => without.no_listener.0,
            _ if bare => without.bare,
            ExecStrategy::Direct => self.direct,
            ExecStrategy::Monitor => without.monitored,
        }
    }

    fn usual(&self, bare: bool, strategy: ExecStrategy) -> GuaranteeState {
        match strategy {
            _ if bare => self.without_namespaces,
            ExecStrategy::Direct => self.direct,
            _ => self.with_namespaces,
        }
    }
}

use GuaranteeState::{By, Open, Refused};

const fn always(what: &'static str, how: &'static str) -> Guarantee {
    Guarantee {
        what,
        with_namespaces: By(how),
        direct: By(how),
        without_namespaces: By(how),
        unanswered: None,
    }
}

pub const fn guarantees() -> &'static [Guarantee] {
    TABLE
}

const MASKED: &str = "/run is replaced, every other bound socket is masked; one bound later, or in another network namespace, is open";
const NO_UNIX_SOCKETS: &str = "no unix socket at all, except pairs";
const ON_LOOPBACK: &str =
    "the supervisor connects itself, to loopback addresses alone, and listens itself, on granted ports";
const BY_PORT: &str = "Landlock judges the port, not the address";
const FILTERED: &str = "a network namespace with only its own loopback, where the proxy listens on one port";
const FILTERED_BARE: &str =
    "the supervisor connects itself, to the proxy's address and port alone; no UDP or raw sockets";
const NO_SUPERVISOR: &str = "--allow-domain needs a supervisor";
const NO_FILTER: &str = "the run is refused, unless --accept-weaker is given";
const WATCHES: &str = "the supervisor adds the watches itself, to what may be read";
const WATCHED: &str = "names and activity can be watched, except below closed paths and /run";
const NO_WATCHES: &str = "nothing can be watched";
const NO_PORTS: &str = "ports cannot be opened one by one, unless --accept-weaker is given";

const TABLE: &[Guarantee] = &[
    always("reading, listing, executing files outside the grants", "Landlock"),
    always(
        "creating, writing, emptying, removing, renaming, linking files outside the write grants",
        "Landlock",
    ),
    always(
        "gaining privileges (setuid programs, capabilities, new namespaces)",
        "no_new_privs, empty capability sets, seccomp",
    ),
    always(
        "mounting, chroot, io_uring, bpf, keyrings, userfaultfd, kernel modules, 32-bit and x32 calls",
        "seccomp",
    ),
    always("attaching to, or reading the memory of, processes outside", "Landlock"),
    always(
        "signals to processes outside, abstract sockets of others",
        "Landlock scopes (ABI 6) or namespaces",
    ),
    always("typing into the terminal (TIOCSTI, TIOCLINUX)", "seccomp"),
    Guarantee {
        what: "changing modes, owners, times or attributes outside the write grants",
        with_namespaces: By("read-only mounts"),
        direct: By("read-only mounts"),
        without_namespaces: By("the supervisor makes such changes itself, inside the write grants"),
        unanswered: Some(Unanswered {
            monitored: By("read-only mounts"),
            bare: Open("metadata of the user's own files can be changed; contents cannot"),
            no_listener: (
                By("read-only mounts"),
                Refused("the run is refused, unless --accept-weaker is given"),
            ),
        }),
    },
    Guarantee {
        what: "a denied path inside a granted tree",
        with_namespaces: By(
            "mask mount, put back within milliseconds when a process outside replaces the name",
        ),
        direct: By("mask mount; a name that a process outside replaces while the command runs is open"),
        without_namespaces: Refused("the run is refused"),
        unanswered: None,
    },
    always(
        "protected files and nono's own state below a granted home folder",
        "siblings are granted one by one",
    ),
    Guarantee {
        what: "the network when it is blocked, and what it tells of the host (addresses, interfaces)",
        with_namespaces: By("a network namespace with only its own loopback"),
        direct: By("a network namespace with only its own loopback"),
        without_namespaces: By("no internet and no netlink socket at all; /proc/net can be read"),
        unanswered: None,
    },
    Guarantee {
        what: "any way out but the filtering proxy (--allow-domain)",
        with_namespaces: By(FILTERED),
        direct: Refused(NO_SUPERVISOR),
        without_namespaces: By(FILTERED_BARE),
        unanswered: Some(Unanswered {
            monitored: Refused(NO_SUPERVISOR),
            bare: Refused(NO_SUPERVISOR),
            no_listener: (By(FILTERED), Refused(NO_FILTER)),
        }),
    },
    Guarantee {
        what: "unix sockets of services outside",
        with_namespaces: By(
            "the supervisor connects itself, to granted sockets and to those of the sandbox; /run is replaced, sockets bound before the start are masked",
        ),
        direct: By(MASKED),
        without_namespaces: By(
            "the supervisor connects itself, to granted sockets and to those of the sandbox",
        ),
        unanswered: Some(Unanswered {
            monitored: By(MASKED),
            bare: By(NO_UNIX_SOCKETS),
            no_listener: (By(NO_UNIX_SOCKETS), By(NO_UNIX_SOCKETS)),
        }),
    },
    Guarantee {
        what: "shared memory, semaphores and queues of others",
        with_namespaces: By("an ipc namespace and its own /dev/shm"),
        direct: By("an ipc namespace and its own /dev/shm"),
        without_namespaces: By("seccomp refuses System V and POSIX queues; /dev/shm is not granted"),
        unanswered: None,
    },
    Guarantee {
        what: "limits, priorities and scheduling of processes outside",
        with_namespaces: By("a pid namespace: they cannot be named"),
        direct: By("seccomp: a process can name only itself"),
        without_namespaces: By("seccomp: a process can name only itself"),
        unanswered: None,
    },
    Guarantee {
        what: "seeing other processes",
        with_namespaces: By("a pid namespace with its own /proc"),
        direct: Open("names, arguments and states of other processes can be read in /proc"),
        without_namespaces: Open("names, arguments and states of other processes can be read in /proc"),
        unanswered: None,
    },
    Guarantee {
        what: "outliving the command, or a killed nono",
        with_namespaces: By("a pid namespace: when its init ends, the kernel ends everything in it"),
        direct: Open("wrap has no parent: background processes live on, confined"),
        without_namespaces: By(
            "a sweep by init; if init itself is killed with -9, what is left lives on, confined",
        ),
        unanswered: None,
    },
    Guarantee {
        what: "other terminals of the user",
        with_namespaces: By("its own devpts"),
        direct: By("its own devpts"),
        without_namespaces: By(
            "Landlock: /dev/pts is not granted, so there are no terminals of its own either",
        ),
        unanswered: None,
    },
    Guarantee {
        what: "watching files and folders outside the grants (inotify)",
        with_namespaces: By(WATCHES),
        direct: Open(WATCHED),
        without_namespaces: By(WATCHES),
        unanswered: Some(Unanswered {
            monitored: Open(WATCHED),
            bare: Open(WATCHED),
            no_listener: (By(NO_WATCHES), By(NO_WATCHES)),
        }),
    },
    Guarantee {
        what: "reading metadata (stat, readlink) outside",
        with_namespaces: Open("names, sizes and times can be seen, except below closed paths and /run"),
        direct: Open("names, sizes and times can be seen, except below closed paths and /run"),
        without_namespaces: Open("names, sizes and times can be seen"),
        unanswered: None,
    },
    Guarantee {
        what: "other addresses on a port opened with --allow-connect-port; listening without bind",
        with_namespaces: By(ON_LOOPBACK),
        direct: Open(BY_PORT),
        without_namespaces: By(ON_LOOPBACK),
        unanswered: Some(Unanswered {
            monitored: Open(BY_PORT),
            bare: Open(BY_PORT),
            no_listener: (Refused(NO_PORTS), Refused(NO_PORTS)),
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Namespaces, NotifySupport};

    fn support(namespaces: bool, listener: bool) -> Support {
        Support {
            kernel: "test".to_owned(),
            landlock: Ok(7),
            seccomp_notify: listener,
            notify: if listener {
                Ok(NotifySupport { wait_killable: true, sync_wake_up: true })
            } else {
                Err("there is none".to_owned())
            },
            namespaces: if namespaces {
                Namespaces::Available { user: true }
            } else {
                Namespaces::Missing { reason: "test".to_owned() }
            },
            ptrace_scope: None,
        }
    }

    fn open(support: &Support, strategy: ExecStrategy) -> Vec<&'static str> {
        let is_open = |row: &&Guarantee| matches!(row.here(support, strategy), Open(_));
        guarantees().iter().filter(is_open).map(|row| row.what.split(' ').next().unwrap_or("")).collect()
    }

    #[test]
    fn what_a_supervisor_answers_for_is_open_without_one() {
        let here = support(true, true);
        assert_eq!(open(&here, ExecStrategy::Supervised), ["reading"]);
        assert_eq!(open(&here, ExecStrategy::Monitor), ["watching", "reading", "other"]);
        let bare = support(false, true);
        assert_eq!(open(&bare, ExecStrategy::Supervised), ["seeing", "reading"]);
        assert_eq!(
            open(&bare, ExecStrategy::Monitor),
            ["changing", "seeing", "watching", "reading", "other"]
        );
        assert_eq!(open(&bare, ExecStrategy::Direct), open(&bare, ExecStrategy::Monitor));
    }

    #[test]
    fn without_a_listener_a_supervised_run_is_closed_or_refused() {
        for namespaces in [true, false] {
            let open_with = open(&support(namespaces, true), ExecStrategy::Supervised);
            assert_eq!(open(&support(namespaces, false), ExecStrategy::Supervised), open_with);
        }
    }
}
