//! Kernel services that see or do more than the process itself, and entries that bypass a filter.

use crate::harness::fixture::{helper, setuid_copy, victim};
use crate::harness::{Attack, attack, attacks};

fn ipc(steps: &'static str) -> Attack {
    attack(steps).against(helper("host-ipc {secret}"))
}

attacks! {
    io_uring:
        attack("io-uring-read {out}/secret").leaks().lacks(&["EPERM"]),
        attack("io-uring-reach").lacks(&["EPERM"]);
    int80:
        attack("int80-read {out}/secret").leaks(),
        attack("int80-reach");
    x32:
        attack("x32-reach"),
        attack("x32-read {out}/secret");

    bpf: attack("bpf-reach").lacks(&["EPERM"]);
    perf_events:
        attack("perf self").lacks(&["EACCES", "EPERM"]),
        attack("perf {pid}").against(victim()).lacks(&["EACCES", "EPERM"]);
    userfaultfd: attack("userfaultfd").lacks(&["EPERM"]);
    fanotify: attack("fanotify").lacks(&["EPERM"]);
    clock_state:
        attack("clock-state adjtimex"),
        attack("clock-state clock_adjtime");
    #[cfg(target_arch = "x86_64")]
    segments: attack("ldt");
    keyrings:
        attack("key-add"),
        attack("key-request"),
        attack("key-control");

    system_v_memory:
        ipc("shm-id {shmid}").leaks(),
        ipc("shm-key {key}").leaks();
    system_v_queues:
        ipc("msg-receive {msgid}").leaks(),
        ipc("sem-set {semid}").changes();
    posix_queues: ipc("mq-receive {name}").leaks();
    posix_memory:
        ipc("posix-shm {name}").leaks(),
        ipc("read /dev/shm{name}").leaks(),
        ipc("write /dev/shm{name}").changes();

    setuid_copies:
        attack("exec {ro}/raised who").against(setuid_copy(0o4755)).prepared_by_root(),
        attack("exec {ro}/raised who").against(setuid_copy(0o2755)).prepared_by_root(),
        attack("exec {ro}/raised become-root").against(setuid_copy(0o4755)).prepared_by_root();
    setuid_programs_of_the_system:
        attack("system-setuid /usr/bin/su"),
        attack("system-setuid /usr/bin/passwd"),
        attack("system-setuid /usr/bin/mount");
    no_new_privs:
        attack("no-new-privs"),
        attack("status NoNewPrivs 1");
    capabilities:
        attack("status CapBnd 0000000000000000"),
        attack("unshare user , status CapEff 0000000000000000").lacks(&["EPERM", "ENOSPC"]);
    seccomp_is_on: attack("status Seccomp 2");
    core_dumps: attack("core-limit");
    hiding_from_the_supervisor:
        attack("undumpable narrow"),
        attack("undumpable wide");
}
