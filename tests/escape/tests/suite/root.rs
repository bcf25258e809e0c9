//! nono started by root: the child keeps the uid but has no power left. The control is root without nono.

use crate::harness::attack::existing;
use crate::harness::{Attack, attack, attacks, check};

fn power(steps: &'static str) -> Attack {
    attack(steps).by_root()
}

attacks! {
    no_capabilities:
        power("status CapEff 0000000000000000"),
        power("status CapPrm 0000000000000000"),
        power("status CapBnd 0000000000000000");
    no_new_privs: power("no-new-privs");
    files_of_root:
        power("read {out}/secret").leaks().also_in_tmp(),
        power("write {out}/target").changes(),
        power("meta chmod path {ro}/file").changes(),
        power("read /etc/shadow"),
        power("read /proc/1/environ").lacks(&["EACCES", "EPERM"]);
    by_handle:
        power("handle-read {out}/secret {ro}").leaks(),
        power("handle-read {out}/secret /").leaks();
    devices:
        power("mknod {prj}/disk"),
        power("mknod {out}/disk");
    identities: power("call setgroups");
    machine:
        power("call reboot"),
        power("call swapon"),
        power("call acct"),
        power("call hostname"),
        power("call clock"),
        power("call kernel-log"),
        power("call bpf-prog");
    kexec: power("call kexec");
    modules: power("call init-module");
    ports: power("call iopl");
    mounts:
        power("mount-any {prj}"),
        power("umount-any {prj}/sub"),
        power("chroot {out}"),
        power("unshare mnt");
}

/// Opening is enough: nothing is written.
#[test]
fn kernel_settings() {
    let paths = existing(&[
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/kernel/hostname",
        "/proc/sysrq-trigger",
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
        "/proc/irq/default_smp_affinity",
    ]);
    opened("open write", &paths);
}

#[test]
fn kernel_views() {
    opened(
        "open read",
        &existing(&[
            "/dev/mem",
            "/proc/kcore",
            "/proc/kmsg",
            "/dev/kmsg",
            "/dev/loop-control",
            "/dev/fuse",
            "/dev/kvm",
        ]),
    );
}

fn opened(how: &str, paths: &[&str]) {
    let chains = paths.iter().map(|path| &*Box::leak(format!("{how} {path}").into_boxed_str()));
    check(&chains.map(power).collect::<Vec<_>>());
}
