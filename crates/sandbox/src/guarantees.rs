//! What is promised, by which mechanism, and what is left where that mechanism is missing.
//!
//! One table for three readers: `nono setup` prints it for this machine, SECURITY.md contains it, tests compare the two.

use crate::backend::{Namespaces, Support};
use crate::strategy::ExecStrategy;

/// One thing a sandboxed command cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantee {
    pub what: &'static str,
    pub with_namespaces: Held,
    /// The same in `wrap`, which has no pid namespace.
    pub direct: Held,
    pub without_namespaces: Held,
}

/// Whether a guarantee holds, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    By(&'static str),
    /// It does not hold; the text says what remains possible.
    Open(&'static str),
    /// A policy that needs it is refused.
    Refused(&'static str),
}

impl Guarantee {
    /// How it stands on this machine.
    pub fn here(&self, support: &Support, strategy: ExecStrategy) -> Held {
        match (&support.namespaces, strategy) {
            (Namespaces::Missing { .. }, _) => self.without_namespaces,
            (_, ExecStrategy::Direct) => self.direct,
            _ => self.with_namespaces,
        }
    }
}

use Held::{By, Open, Refused};

const fn always(what: &'static str, how: &'static str) -> Guarantee {
    Guarantee { what, with_namespaces: By(how), direct: By(how), without_namespaces: By(how) }
}

/// The table.
pub const fn guarantees() -> &'static [Guarantee] {
    TABLE
}

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
        without_namespaces: Open("metadata of the user's own files can be changed; contents cannot"),
    },
    Guarantee {
        what: "a denied path inside a granted tree",
        with_namespaces: By(
            "mask mount, put back within milliseconds when somebody outside replaces the name",
        ),
        direct: By("mask mount; a name that somebody outside replaces while the command runs is open"),
        without_namespaces: Refused("the run is refused"),
    },
    always(
        "protected files and nono's own state below a granted home folder",
        "siblings are granted one by one",
    ),
    Guarantee {
        what: "the network when it is blocked",
        with_namespaces: By("a network namespace with only its own loopback"),
        direct: By("a network namespace with only its own loopback"),
        without_namespaces: By("no internet socket at all"),
    },
    Guarantee {
        what: "unix sockets of services outside",
        with_namespaces: By(
            "/run is replaced, every other bound socket is masked; one bound later, or in another network namespace, is open",
        ),
        direct: By(
            "/run is replaced, every other bound socket is masked; one bound later, or in another network namespace, is open",
        ),
        without_namespaces: By("no unix socket at all, except pairs"),
    },
    Guarantee {
        what: "shared memory, semaphores and queues of others",
        with_namespaces: By("an ipc namespace and its own /dev/shm"),
        direct: By("an ipc namespace and its own /dev/shm"),
        without_namespaces: By("seccomp refuses System V and POSIX queues; /dev/shm is not granted"),
    },
    Guarantee {
        what: "limits, priorities and scheduling of processes outside",
        with_namespaces: By("a pid namespace: they cannot be named"),
        direct: By("seccomp: a process can name only itself"),
        without_namespaces: By("seccomp: a process can name only itself"),
    },
    Guarantee {
        what: "seeing other processes",
        with_namespaces: By("a pid namespace with its own /proc"),
        direct: Open("names, arguments and states of other processes can be read in /proc"),
        without_namespaces: Open("names, arguments and states of other processes can be read in /proc"),
    },
    Guarantee {
        what: "outliving the command, or a killed nono",
        with_namespaces: By("a pid namespace: when its init ends, the kernel ends everything in it"),
        direct: Open("wrap has no parent: background processes live on, confined"),
        without_namespaces: By(
            "a sweep by init; if init itself is killed with -9, what is left lives on, confined",
        ),
    },
    Guarantee {
        what: "other terminals of the user",
        with_namespaces: By("its own devpts"),
        direct: By("its own devpts"),
        without_namespaces: By(
            "Landlock: /dev/pts is not granted, so there are no terminals of its own either",
        ),
    },
    Guarantee {
        what: "watching files outside by inotify; reading metadata (stat, readlink) outside",
        with_namespaces: Open("names, sizes and times can be seen, except below closed paths and /run"),
        direct: Open("names, sizes and times can be seen, except below closed paths and /run"),
        without_namespaces: Open("names, sizes and times can be seen"),
    },
    Guarantee {
        what: "other addresses on a port opened with --allow-connect-port; listening without bind",
        with_namespaces: Open("Landlock judges the port, not the address"),
        direct: Open("Landlock judges the port, not the address"),
        without_namespaces: Open("Landlock judges the port, not the address"),
    },
];
